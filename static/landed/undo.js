// Counts down what can still be taken back, and asks what became of it when the time is over.
"use strict";

(() => {
  const NBSP = "\u00a0";
  // How long the clock takes to carry a decision out, at most, before we ask.
  const PATIENCE_MS = 1500;
  const offset = (Date.parse(document.body.dataset.now) || Date.now()) - Date.now();
  const asked = new WeakSet();

  const ask = (element) => {
    const notice = element.closest("[data-over]");
    if (!notice || asked.has(notice)) return;
    asked.add(notice);
    setTimeout(() => htmx.trigger(notice, "over"), PATIENCE_MS);
  };

  // Whoever pressed a button further down must see that it can be taken back.
  document.addEventListener("htmx:afterSettle", (event) => {
    const notice = document.querySelector("#undo[data-over]");
    if (notice && event.detail.target.id === "main") notice.scrollIntoView({ block: "nearest" });
  });

  setInterval(() => {
    const now = Date.now() + offset;
    for (const element of document.querySelectorAll("time[data-left]")) {
      const seconds = Math.ceil((Date.parse(element.dateTime) - now) / 1000);
      const text = seconds > 0 ? "in" + NBSP + seconds + NBSP + "s" : "now";
      if (element.textContent !== text) element.textContent = text;
      if (seconds > 0) continue;
      for (const button of (element.closest(".undo") || element).querySelectorAll("form button")) button.disabled = true;
      ask(element);
    }
  }, 250);
})();
