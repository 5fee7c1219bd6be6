// What not to believe and why, what was not measured and why, and what else to know about the numbers.

import { el } from "./dom.js";
import { counted } from "./format.js";
import { cellList, outcomeMark, trustMark } from "./marks.js";
import { data } from "./payload.js";

const SHOWN = 5;

export function doubts() {
  return el(
    "div",
    { class: "columns" },
    data.cells.length ? column("Not trusted", data.doubts.map(doubt), "Every cell is trusted.") : null,
    column("Not measured", data.missing.map(missing), "Every trial counts."),
    data.remarks.length ? column("Worth knowing", data.remarks.map(remark), "") : null,
  );
}

function column(title, items, empty) {
  const rest = items.slice(SHOWN);
  return el(
    "section",
    { class: "column" },
    el("h3", {}, title, items.length ? el("span", { class: "count" }, String(items.length)) : null),
    items.length ? items.slice(0, SHOWN) : el("p", { class: "empty" }, empty),
    rest.length ? el("details", { class: "rest" }, el("summary", {}, `${counted(rest.length, "more reason")}`), rest) : null,
  );
}

function doubt(item) {
  return el(
    "article",
    { class: "doubt" },
    el("p", {}, trustMark(item.verdict), ` ${item.cause} in ${counted(item.cells.length, "cell")}`),
    el("p", { class: "why" }, item.text),
    el("p", { class: "remedy" }, `To do: ${item.remedy}.`),
    cellList(item.cells),
  );
}

function missing(item) {
  return el(
    "article",
    { class: "doubt" },
    el("p", {}, outcomeMark(item.outcome), ` ${counted(item.trials, "trial")} in ${counted(item.cells.length, "cell")}`),
    el("p", { class: "why" }, item.reason),
    cellList(item.cells),
  );
}

function remark(item) {
  return el(
    "article",
    { class: "doubt" },
    el("p", {}, `${item.severity} in ${item.trials} of ${counted(item.of, "trial")}`),
    el("p", { class: "why" }, item.example),
    el("p", { class: "remedy" }, `To do: ${item.remedy}.`),
  );
}
