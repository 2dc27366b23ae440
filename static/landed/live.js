// What the page asks for by itself, every few seconds: only while somebody looks, and never moving what is pointed at.
"use strict";

(() => {
  // htmx polls without an event that triggered it.
  const byItself = (detail) => detail.requestConfig && !detail.requestConfig.triggeringEvent;

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && byItself(event.detail)) event.preventDefault();
  });

  // Whoever comes back sees at once what is new, not when the next poll is due.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    for (const element of document.querySelectorAll("[hx-get][hx-trigger*='every']")) {
      htmx.ajax("GET", element.getAttribute("hx-get"), { source: element });
    }
  });

  let pointed = null;
  const MOVED = "tr, li, section, button, a, form";
  const point = (event) => {
    pointed = event.target instanceof Element ? event.target.closest(MOVED) : null;
  };
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  document.documentElement.addEventListener("pointerleave", () => {
    pointed = null;
  });

  const addressOf = (row) => {
    const link = row.querySelector("a.row-link");
    return link && link.getAttribute("href");
  };
  const again = (anchor) => {
    if (anchor.element.isConnected) return anchor.element;
    return [...document.querySelectorAll("a.row-link")]
      .filter((link) => anchor.address && link.getAttribute("href") === anchor.address)
      .map((link) => link.closest("tr"))[0];
  };

  // What is pointed at, else what has the focus, stays where it is on the screen.
  let anchor = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    anchor = null;
    if (!byItself(event.detail)) return;
    const focused = document.activeElement.closest("main tr, main li, main form");
    const element = pointed && pointed.isConnected && pointed.closest("main") ? pointed : focused;
    if (!element) return;
    anchor = { element, address: addressOf(element), top: element.getBoundingClientRect().top };
    anchor.focused = document.activeElement.matches("a.row-link") && document.activeElement.getAttribute("href");
  });
  const hold = () => {
    if (!anchor) return;
    const element = again(anchor);
    if (element) window.scrollBy({ top: element.getBoundingClientRect().top - anchor.top, behavior: "instant" });
  };
  document.addEventListener("htmx:afterSwap", hold);
  document.addEventListener("htmx:afterSettle", () => {
    hold();
    // A row that was drawn anew keeps the focus that it had.
    if (anchor && anchor.focused && document.activeElement === document.body) {
      const link = [...document.querySelectorAll("a.row-link")].find(
        (one) => one.getAttribute("href") === anchor.focused,
      );
      if (link) link.focus({ preventScroll: true });
    }
    anchor = null;
  });
})();
