// Unpacks the run, then starts the page; a browser too old for that is told so.

import { unpacked } from "./packing.js";

async function boot() {
  globalThis.devbench = await unpacked(document.getElementById("payload"));
  await import("./main.js");
}

boot().catch((error) => {
  const words = document.createElement("p");
  words.textContent = `This page could not be drawn (${error.message}). It needs a browser of 2024 or later.`;
  document.getElementById("page").append(words);
  throw error;
});
