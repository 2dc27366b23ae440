// Keeps one's case while one is active on its page: asks at most once a minute, and at once when one comes back to it.
"use strict";

(() => {
  const EVERY_MS = 60000;
  let last = Date.now();

  const renew = () => {
    const form = document.getElementById("lease");
    if (!form || !form.hasAttribute("hx-post")) return;
    last = Date.now();
    htmx.trigger(form, "active");
  };
  const active = () => {
    if (Date.now() - last >= EVERY_MS) renew();
  };

  for (const name of ["keydown", "pointermove", "pointerdown"]) {
    document.addEventListener(name, active, { passive: true });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") renew();
  });
})();
