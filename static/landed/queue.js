// How many cases are selected is said in words. (What renews the queue by itself is in live.js.)
"use strict";

document.addEventListener("change", (event) => {
  if (!event.target.matches(".pick input")) return;
  const count = document.querySelectorAll(".pick input:checked").length;
  const said = document.querySelector(".bulk .picked");
  if (said) said.textContent = count === 1 ? "1 case selected" : count + " cases selected";
});
