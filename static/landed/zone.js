// Says in which time zone somebody writes a time, where they have not chosen one: this machine's, as times are shown.
"use strict";

(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const tell = () => {
    if (!zone || document.body.dataset.zone) return;
    for (const input of document.querySelectorAll("input[data-zone-of]")) input.value = zone;
    for (const name of document.querySelectorAll("[data-zone-name]")) name.textContent = zone;
  };
  document.addEventListener("htmx:afterSwap", tell);
  tell();
})();
