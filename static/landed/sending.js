// What happens between a press and the page that follows it: sent once, said aloud, the focus kept.
"use strict";

(() => {
  // A file that is sent back leaves the page standing; then its form must not stay locked for ever.
  const GIVE_BACK_MS = 15000;
  const HTMX = "[hx-boost='true'], [hx-post]";
  const sent = new Map();

  const giveBack = (form) => {
    const found = sent.get(form);
    if (!found) return;
    sent.delete(form);
    clearTimeout(found.timer);
    if (!found.button) return;
    found.button.disabled = false;
    if (found.words !== null) found.button.replaceChildren(...found.words);
  };

  const giveAllBack = () => [...sent.keys()].forEach(giveBack);

  // Before htmx and the browser see it: whoever presses twice sends once.
  document.addEventListener(
    "submit",
    (event) => {
      const form = event.target;
      if (form.method !== "post") return;
      // Enter in a field decides nothing. That is said beside the button, without asking the server.
      if (event.submitter && event.submitter.name === "enter") {
        event.preventDefault();
        event.stopImmediatePropagation();
        const line = form.querySelector("[data-entered]");
        if (!line) return;
        line.hidden = false;
        say(line.textContent.trim());
        line.scrollIntoView({ block: "nearest" });
        return;
      }
      if (sent.has(form)) {
        event.preventDefault();
        event.stopImmediatePropagation();
        return;
      }
      const button = event.submitter;
      pressed = placeOf(button || document.activeElement);
      const found = { button, words: null, left: false };
      sent.set(form, found);
      // The browser has looked at the form's own fields. What it takes along of another one may be half done.
      const checked = form.noValidate;
      form.noValidate = true;
      // Afterwards, because a disabled button would not be sent along.
      setTimeout(() => {
        form.noValidate = checked;
        if (sent.get(form) !== found) return;
        if (!form.closest(HTMX)) found.timer = setTimeout(() => giveBack(form), GIVE_BACK_MS);
        else if (!found.left) return giveBack(form); // something is missing in it, so htmx has sent nothing
        if (!button || !button.dataset.busy) return;
        found.words = [...button.childNodes];
        button.disabled = true;
        button.textContent = button.dataset.busy;
        say(button.dataset.busy);
      });
    },
    true,
  );
  // Somebody else may have stopped it after us (a question that was answered with no).
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented && !event.target.closest(HTMX)) giveBack(event.target);
  });
  document.addEventListener("htmx:beforeSend", (event) => {
    const found = sent.get(event.detail.elt);
    if (found) found.left = true;
  });
  document.addEventListener("htmx:afterRequest", (event) => giveBack(event.detail.elt));

  // The browser may show a page again as it was left. Then it can be pressed again, and shows what is true now.
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    giveAllBack();
    if ("read" in document.body.dataset) location.reload(); // what a POST answered is not asked for twice
  });

  // No answer is not "no": the page says that it can't tell, instead of staying silent.
  const lost = (event) => {
    if (event.detail.requestConfig && event.detail.requestConfig.verb === "get") return;
    document.getElementById("lost").hidden = false;
  };
  document.addEventListener("htmx:sendError", lost);
  document.addEventListener("htmx:timeout", lost);
  document.addEventListener("htmx:responseError", lost);

  // Screen readers announce what changes in an element that was there before.
  const say = (words) => {
    const said = document.getElementById("said");
    if (said) said.textContent = words;
  };

  // Which control had the focus, so that its successor on the new page can get it.
  const placeOf = (element) => {
    if (!element || element === document.body || element.id === "main") return null;
    const form = element.closest("form");
    return {
      id: element.id,
      action: form && form.getAttribute("action"),
      name: element.getAttribute("name"),
      value: element.tagName === "BUTTON" ? element.value : null,
      link: element.getAttribute("href"),
    };
  };

  const findAgain = (place) => {
    const main = document.getElementById("main");
    if (place.id) return document.getElementById(place.id);
    if (place.link) return [...main.querySelectorAll("a[href]")].find((one) => one.getAttribute("href") === place.link);
    const forms = [...main.querySelectorAll("form")].filter((one) => one.getAttribute("action") === place.action);
    const controls = forms.flatMap((one) => [...one.elements]).filter((one) => one.type !== "hidden" && !one.disabled);
    return controls.find(
      (one) => one.getAttribute("name") === place.name && (place.value === null || one.value === place.value),
    );
  };

  // A button that is disabled while it works has lost the focus when the answer comes.
  let pressed = null;
  let place = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target.id === "main") place = placeOf(document.activeElement) || pressed;
  });

  const settle = (main) => {
    // What was refused, or done, is said near the top; whoever pressed a button further down must see it.
    const said = main.querySelector("[role='alert'], :scope > .notice");
    const focusIsLost = document.activeElement === null || document.activeElement === document.body;
    if (focusIsLost) {
      const alert = main.querySelector("[role='alert']");
      const next = alert || (place && findAgain(place)) || main;
      if (next === alert) next.tabIndex = -1;
      next.focus({ preventScroll: true });
    }
    place = null;
    if (!said) return;
    said.scrollIntoView({ block: "nearest" });
    say(said.textContent.replace(/\s+/g, " ").trim());
  };
  document.addEventListener("htmx:afterSettle", (event) => {
    const main = document.getElementById("main");
    if (event.detail.target.id === "main" || event.detail.elt.id === "main") settle(main);
  });
})();
