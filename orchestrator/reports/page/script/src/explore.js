// The charts of one model on one device, and a way from one to the next.

import { distributions } from "./charts/distributions.js";
import { loadLines } from "./charts/load_lines.js";
import { speedups } from "./charts/speedups.js";
import { el, name, replace, select } from "./dom.js";
import { compareLoads } from "./format.js";
import { cellsOf, groupKey } from "./payload.js";
import { change, matches, matchingGroups, onChange, state } from "./state.js";

let metric = "p50";

export function explore() {
  const place = el("div", { class: "explore" });
  const draw = () => {
    const groups = matchingGroups();
    const item = groups[state.focus];
    if (!item) return replace(place, el("p", { class: "empty" }, "No cell matches the filters."));
    const cells = cellsOf(groupKey(item)).filter(matches).sort(byLoad);
    return replace(place, chooser(groups, item), figures(cells));
  };
  onChange(draw);
  draw();
  return place;
}

function byLoad(one, other) {
  return compareLoads(one.load, other.load) || one.delegate.localeCompare(other.delegate) || one.threads - other.threads;
}

function chooser(groups, item) {
  const title = el("h3", {}, name(item.model, 60), " on ", name(item.device, 40), el("span", { class: "muted" }, ` · ${item.runner}`, item.arm ? ` · ${item.arm}` : ""));
  if (groups.length === 1) return el("div", { class: "chooser" }, title);
  const step = (text, by) => {
    const to = state.focus + by;
    return el("button", { type: "button", disabled: to < 0 || to >= groups.length, on: { click: () => change({ focus: to }) } }, text);
  };
  const options = groups.slice(0, 500).map((other, index) => [String(index), `${other.model} on ${other.device}${other.arm ? ` (${other.arm})` : ""}`]);
  const list = select("Charts of", options, String(state.focus), (value) => change({ focus: Number(value) }));
  list.querySelector("select").id = "focus";
  return el("div", { class: "chooser" }, title, el("div", { class: "steps no-print" }, step("Previous", -1), list, step("Next", 1)));
}

function figures(cells) {
  const measured = cells.filter((cell) => cell.p50);
  if (!measured.length) return el("p", { class: "empty" }, "None of these cells was measured; the reasons are above and with each cell.");
  const maps = speedups(cells);
  return [
    figure("Every trial", "A dot is a trial: the median of a fresh process. The diamond is the estimate, the bar its 95 % interval. Trials that do not count are numbered at the right, never drawn.", distributions(cells), "wide"),
    figure(
      "Speed-up by threads and load",
      "How many times as fast, by p50, against the fewest threads at the same load: blue is faster, orange slower; a question mark is not decided yet.",
      maps.length ? maps.map(({ title, node }) => [maps.length > 1 ? el("h5", {}, name(title, 50)) : null, node]) : el("p", { class: "empty" }, "Only one thread count was swept, so there is no speed-up to show."),
    ),
    figure("Latency against load", "Intervals are 95 % intervals over trials.", [metricField(cells), loadLines(measured, metric)]),
  ];
}

function metricField(cells) {
  const choose = (value) => {
    metric = value;
    change({ focus: state.focus });
  };
  return el("div", { class: "no-print" }, select("By", [["p50", "p50, the typical inference"], ["mean", "mean, every inference"], ["p95", "p95, the slow ones"]].filter(([key]) => cells.some((cell) => cell[key])), metric, choose));
}

export function figure(title, hint, content, kind = "") {
  return el("figure", { class: kind }, el("figcaption", {}, el("h4", {}, title), el("p", { class: "hint" }, hint)), content);
}
