// Puts the page together.

import { answers, answersTitle } from "./answers.js";
import { drawAll } from "./charts/chart.js";
import { el, replace } from "./dom.js";
import { doubts } from "./doubts.js";
import { evidence, show } from "./evidence.js";
import { explore } from "./explore.js";
import { filters } from "./filters.js";
import { header } from "./header.js";
import { comparisonPart, hasSizes, historyPart, operatorsPart, sizesPart, sustainedPart } from "./more.js";
import { data } from "./payload.js";
import { table } from "./table.js";
import { setTheme } from "./theme.js";

const hasCells = data.cells.length > 0;
const isEmpty = !hasCells && !data.sustained.length && !data.ops.length;
const PARTS = [
  ["answers", "Answer", answersTitle(), answers, hasCells || isEmpty],
  ["doubts", "What to doubt", "What to doubt", doubts, Object.keys(data.outcomes).length > 0],
  ["compare", "Comparison", "Against the baseline", comparisonPart, data.compared !== null],
  ["charts", "Charts", "Charts", explore, hasCells],
  ["sizes", "Size and latency", "Size and latency", sizesPart, hasSizes()],
  ["operators", "Operators", "Operators", operatorsPart, data.ops.length > 0],
  ["history", "History", "History", historyPart, data.past.cells.length > 0],
  ["sustained", "Sustained", "Without a rest", sustainedPart, data.sustained.length > 0],
  ["cells", "All cells", "All cells", table, hasCells],
].filter(([, , , , isThere]) => isThere);

function section([id, , title, content]) {
  return el("section", { id, class: "part", "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), content());
}

function footer() {
  const made = `Made by devbench ${data.devbench}. This file needs no network and asks for none.`;
  return el("footer", {}, made, " A trial is a fresh process; only measured trials enter an estimate. Raw samples: ", el("code", {}, `devbench export ${data.run.id}`));
}

const sections = PARTS.map(section);
if (hasCells) {
  // Many answers are narrowed first; a few are read as they are.
  const first = data.recommendations.length > 6 ? "answers" : data.compared ? "compare" : "charts";
  sections.splice(PARTS.findIndex(([id]) => id === first), 0, filters());
}
replace(
  document.getElementById("page"),
  header(PARTS.map(([id, title]) => [id, title])),
  el("main", {}, sections),
  footer(),
  evidence(),
);

// A printed page is light, whatever the screen is, and has all its charts.
let before = "";
addEventListener("beforeprint", () => {
  before = document.documentElement.dataset.theme ?? "";
  setTheme("light");
  drawAll();
});
addEventListener("afterprint", () => setTheme(before));

show();
performance.mark("devbench-interactive");
document.documentElement.dataset.ready = "yes";
