// Small comforts: ages, clocks, copying. Every page works without them, and without the scripts in landed/.
// Strict CSP: no eval, no inline handlers, no styles from here.
"use strict";

(() => {
  const NBSP = "\u00a0";
  // Ages are told by the server's clock, not by this machine's.
  let offset = 0;

  const setOffset = () => {
    const now = Date.parse(document.body.dataset.now);
    if (now) offset = now - Date.now();
  };

  const span = (milliseconds) => {
    const seconds = Math.max(0, Math.floor(milliseconds / 1000));
    if (seconds < 60) return seconds + NBSP + "s";
    if (seconds < 3600) return Math.floor(seconds / 60) + NBSP + "min";
    if (seconds < 172800) return Math.floor(seconds / 3600) + NBSP + "h";
    return Math.floor(seconds / 86400) + NBSP + "d";
  };

  const WORDS = {
    since: (age) => span(age),
    ago: (age) => span(age) + " ago",
    until: (age) => (age < 0 ? "in" + NBSP + span(-age) : span(age) + NBSP + "late"),
  };

  const tick = () => {
    const now = Date.now() + offset;
    for (const element of document.querySelectorAll("time[datetime]")) {
      for (const [name, words] of Object.entries(WORDS)) {
        if (!(name in element.dataset)) continue;
        const text = words(now - Date.parse(element.dateTime));
        if (element.textContent !== text) element.textContent = text;
      }
    }
  };

  // Without this script clock times are in UTC; with it they are this machine's own, unless the reader chose a zone
  // (then the server has shown it: data-zoned). The exact one is in the title.
  const localise = (root) => {
    const today = new Date(Date.now() + offset).toDateString();
    for (const element of root.querySelectorAll("time[data-clock]")) {
      const when = new Date(element.dateTime);
      const two = (number) => String(number).padStart(2, "0");
      const day = `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
      const hours = `${two(when.getHours())}:${two(when.getMinutes())}`;
      element.textContent = when.toDateString() === today ? `${hours}:${two(when.getSeconds())}` : `${day} ${hours}`;
    }
  };

  const prepare = (root) => {
    for (const element of root.querySelectorAll("[data-copy]")) {
      element.setAttribute("role", "button");
      element.tabIndex = 0;
      if (!element.title) element.title = "Copy";
    }
    localise(root);
    tick();
  };

  const copy = async (element) => {
    try {
      await navigator.clipboard.writeText(element.dataset.copy);
    } catch {
      return; // no permission, or plain HTTP: the text can still be selected
    }
    element.classList.add("copied");
    setTimeout(() => element.classList.remove("copied"), 1200);
  };

  document.addEventListener("click", (event) => {
    const element = event.target.closest("[data-copy]");
    if (element) copy(element);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    if (!event.target.matches("[data-copy]")) return;
    event.preventDefault();
    copy(event.target);
  });

  document.addEventListener("htmx:afterSwap", () => prepare(document));

  setOffset();
  prepare(document);
  setInterval(tick, 5000);
})();
