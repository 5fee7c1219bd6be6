// Parts that are there when the run has something for them: operators, sizes, comparison, history, sustained runs.

import { changes } from "./charts/changes.js";
import { history } from "./charts/history.js";
import { operatorTypes } from "./charts/operators.js";
import { pareto } from "./charts/pareto.js";
import { sustained } from "./charts/sustained.js";
import { el, name, replace, select } from "./dom.js";
import { figure } from "./explore.js";
import { counted, latency, percent, signed, times } from "./format.js";
import { cellAnchor, outcomeMark, shortText } from "./marks.js";
import { cellOf, data } from "./payload.js";
import { state, onChange } from "./state.js";

/** A part with a list to choose from; `draw` gives what is shown of the chosen one. */
function chosen(label, id, options, draw) {
  const place = el("div");
  const show = (value) => replace(place, draw(Number(value)));
  const field = select(label, options.map((text, index) => [String(index), text]), "0", show);
  field.querySelector("select").id = id;
  show(0);
  return [options.length > 1 ? el("div", { class: "no-print" }, field) : null, place];
}

export function operatorsPart() {
  const shown = data.ops.filter((profile) => profile.types.length);
  const failed = data.ops.filter((profile) => profile.outcome !== "measured");
  const title = (profile) => {
    const cell = cellOf.get(profile.cell);
    const mark = profile.outcome === "measured" ? "" : ` (${profile.outcome})`;
    return `${cell ? shortText(cell) : profile.name}${mark}`;
  };
  shown.sort((one, other) => (one.outcome === "measured" ? 0 : 1) - (other.outcome === "measured" ? 0 : 1));
  return [
    el("p", { class: "hint" }, "From a pass of its own, as profiling distorts timing; shares are of one inference."),
    shown.length ? chosen("Profile of", "profile", shown.map(title), (index) => profileView(shown[index])) : el("p", { class: "empty" }, "No operator profile could be read."),
    failed.length
      ? el("details", {}, el("summary", {}, `${counted(failed.length, "profile")} not measured as asked`), el("ul", { class: "links" }, failed.map((profile) => el("li", {}, outcomeMark(profile.outcome), " ", cellAnchor(profile.cell, profile.name), ` ${profile.reason ?? ""}`))))
      : null,
  ];
}

function profileView(profile) {
  const total = profile.total_us ?? 0;
  const delegated = total ? `, of it ${percent(profile.delegated_us / total)} by the delegate` : "";
  const cost = profile.distortion === null ? "" : `; profiling makes an inference ${times(profile.distortion)} as long`;
  const rows = profile.top.map(([operator, type, isDelegated, us]) =>
    el("tr", {}, el("td", {}, name(operator, 60)), el("td", {}, name(type, 40)), el("td", {}, isDelegated ? "delegate" : "CPU"), el("td", { class: "figure" }, latency(us)), el("td", { class: "figure" }, total ? percent(us / total) : "–")),
  );
  return [
    profile.outcome === "measured" ? null : el("p", { class: "unsettled" }, `This profile does not count: ${profile.reason}.`),
    el("p", {}, `${latency(total)} in ${counted(profile.types.reduce((sum, row) => sum + row[2], 0), "operator")}${delegated}${cost}. `, cellAnchor(profile.cell, profile.name)),
    figure("By type", "Operators a delegate ran are set apart from those on plain CPU kernels.", operatorTypes(profile), "wide"),
    el("details", { open: true }, el("summary", {}, "The most expensive operators"), el("div", { class: "scroller" }, el("table", {}, el("thead", {}, el("tr", {}, ["Operator", "Type", "Where"].map((text) => el("th", { scope: "col" }, text)), ["Time", "Share"].map((text) => el("th", { scope: "col", class: "figure" }, text)))), el("tbody", {}, rows)))),
  ];
}

export function sizesPart() {
  const places = new Map();
  for (const one of data.sized) {
    const key = `${one.device} · ${one.load}`;
    if (!places.has(key)) places.set(key, []);
    places.get(key).push(one);
  }
  const shown = [...places].filter(([, sized]) => sized.length > 1);
  return chosen("Where", "sized", shown.map(([title]) => title), (index) => figure("Size against latency", "Each model by its fastest setting there. The dashed line joins the models that no other beats in both size and latency.", pareto(shown[index][1]), "wide"));
}

export const hasSizes = () => {
  const seen = new Map();
  for (const one of data.sized) seen.set(`${one.device} · ${one.load}`, (seen.get(`${one.device} · ${one.load}`) ?? 0) + 1);
  return [...seen.values()].some((count) => count > 1);
};

const ROWS = 40;

export function comparisonPart() {
  const { compared } = data;
  const place = el("div");
  let metric = "p50";
  let page = 0;
  const fits = (row) => {
    const cell = cellOf.get(row.cell) ?? {};
    return ["device", "model", "delegate", "load"].every((key) => !state[key] || cell[key] === state[key]);
  };
  const draw = () => {
    const rows = compared.rows.filter((row) => row.metric === metric && fits(row)).sort((one, other) => (other.effect ?? -1e9) - (one.effect ?? -1e9));
    const counts = new Map();
    for (const row of rows) counts.set(row.verdict, (counts.get(row.verdict) ?? 0) + 1);
    const said = [...counts].map(([verdict, count]) => `${count} ${verdict.replace("_", " ")}`).join(", ") || "no cell";
    const last = Math.max(0, Math.ceil(rows.length / ROWS) - 1);
    page = Math.min(page, last);
    const step = (text, by) => el("button", { type: "button", disabled: page + by < 0 || page + by > last, on: { click: () => ((page += by), draw()) } }, text);
    const inView = rows.slice(page * ROWS, (page + 1) * ROWS).map((row) => ({ ...row, short: shortName(row) }));
    replace(
      place,
      el("p", {}, el("strong", {}, name(compared.new, 60)), " against ", el("strong", {}, name(compared.base, 60)), `: by ${metric} ${said}.`),
      inView.length ? figure("Change with its interval", `The worst first. The band is ±${100 * compared.threshold} %, within which a change does not matter. Suspected means not interleaved: it may be the day.`, changes(inView, compared.threshold), "wide") : el("p", { class: "empty" }, "No cell matches the filters."),
      last ? el("div", { class: "pager no-print" }, step("Previous", -1), el("span", {}, `${page * ROWS + 1} to ${Math.min(rows.length, (page + 1) * ROWS)} of ${rows.length}`), step("Next", 1)) : null,
      onlySide("Only the baseline has", compared.only_base),
      onlySide("Only the new side has", compared.only_new),
    );
  };
  onChange(draw);
  draw();
  const choose = (value) => ((metric = value), (page = 0), draw());
  return [el("div", { class: "no-print" }, select("By", ["p50", "mean", "p95"].map((key) => [key, key]), "p50", choose)), place];
}

function shortName(row) {
  const cell = cellOf.get(row.cell);
  return cell ? shortText(cell) : row.name;
}

function onlySide(title, cells) {
  if (!cells.length) return null;
  return el("details", {}, el("summary", {}, `${title} ${counted(cells.length, "cell")}`), el("ul", { class: "links" }, cells.slice(0, 200).map((text) => el("li", {}, name(text, 120)))));
}

export function historyPart() {
  const { cells, cells_left_out: others } = data.past;
  const changed = cells.filter((item) => item.changes.length).length;
  const title = (item) => `${item.changes.length ? `${item.changes.map((change) => `${change.direction} ${signed(change.effect_percent)}`).join(", ")}: ` : ""}${cellOf.has(item.cell) ? shortText(cellOf.get(item.cell)) : item.name}`;
  return [
    el("p", { class: "hint" }, `${changed} of ${counted(cells.length, "cell")} changed over the runs of this store${others ? ` (and ${counted(others, "cell")} not shown)` : ""}.`),
    chosen("History of", "history-of", cells.map(title), (index) => figure("Over the runs", cells[index].note ?? (cells[index].changes.length ? "A dashed line marks the run since which the level is another." : "No change was found."), history(cells[index]), "wide")),
  ];
}

export function sustainedPart() {
  const rows = data.sustained.map((cell) =>
    el("tr", {}, el("td", {}, cellAnchor(cell.id)), el("td", { class: "figure" }, `${Math.round(cell.seconds)} s`), el("td", { class: "figure" }, latency(cell.start_us)), el("td", { class: "figure" }, latency(cell.end_us)), el("td", { class: "figure" }, times(cell.end_us / cell.start_us)), el("td", {}, cell.throttled_after_s === null ? "no" : `after ${Math.round(cell.throttled_after_s)} s`)),
  );
  const head = [["Cell", ""], ["Time", "figure"], ["Start", "figure"], ["End", "figure"], ["Slower", "figure"], ["Throttled", ""]];
  return [
    figure("Latency over time", "Cells that ran back to back, as a multiple of what their latency was at the start.", sustained(data.sustained), "wide"),
    el("div", { class: "scroller" }, el("table", {}, el("thead", {}, el("tr", {}, head.map(([text, kind]) => el("th", { scope: "col", class: kind }, text)))), el("tbody", {}, rows))),
  ];
}
