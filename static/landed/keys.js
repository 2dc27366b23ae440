// Keys. None of them decides anything: they go to places, and press three buttons that do no harm.
"use strict";

(() => {
  if (document.body.dataset.shortcuts === "off") return;

  // Found by where they lead; a button that decides is none of these.
  const BUTTONS = {
    c: "#main form[action$='/take/'] button",
    r: "#main form[action$='/check/'] button",
    n: "#main form[action$='/next/'] button, #next-case button",
  };
  // A box that is ticked is nothing to type in: from there one goes on.
  const FIELDS = "input:not([type='checkbox']), textarea, select, [contenteditable='']";

  const buttonOf = (key) =>
    [...document.querySelectorAll(BUTTONS[key])].find((button) => button.type === "submit" && !button.disabled);

  const press = (key) => {
    const button = buttonOf(key);
    if (button) button.form.requestSubmit(button);
    return Boolean(button);
  };

  const rows = () => [...document.querySelectorAll("#main .rows a.row-link")];
  // Where the last selection was: the row itself may be gone.
  let index = -1;

  const move = (by) => {
    const links = rows();
    if (!links.length) return false;
    const row = document.activeElement.closest("#main .rows tr");
    const at = row ? links.findIndex((link) => row.contains(link)) : -1;
    if (at >= 0) index = at;
    index = index < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, index + by));
    links[index].focus({ focusVisible: true });
    return true;
  };

  const search = () => {
    const field = document.getElementById("search");
    if (!field) return false;
    field.focus();
    field.select();
    return true;
  };

  const sheet = () => {
    const dialog = document.getElementById("shortcuts");
    if (!dialog) return false;
    dialog.showModal();
    return true;
  };

  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    c: () => press("c"),
    n: () => press("n"),
    r: () => press("r"),
    "/": search,
    "?": sheet,
  };

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.repeat || event.isComposing) return;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape" && event.target.id === "search") return event.target.blur();
    if (event.target.closest(FIELDS) || document.querySelector("dialog[open]")) return;
    const act = Object.hasOwn(KEYS, event.key) && KEYS[event.key];
    // "/" and "?" need Shift on some keyboards; with a letter it is another key.
    if (act && act()) event.preventDefault();
  });

  // The keys are told to whoever asks what a button does, and only while they work.
  const tell = () => {
    for (const [key, selector] of Object.entries(BUTTONS)) {
      for (const button of document.querySelectorAll(selector)) button.setAttribute("aria-keyshortcuts", key);
    }
  };
  document.addEventListener("htmx:afterSwap", tell);
  tell();

  const opener = document.getElementById("open-shortcuts");
  if (!opener) return;
  opener.hidden = false;
  opener.addEventListener("click", sheet);
})();
