// The table of cells: sorted by any column, a page at a time, and copied to a spreadsheet as it is filtered and sorted.

import { el, name, replace } from "./dom.js";
import { columnOf, compareLoads, counted, percent, times } from "./format.js";
import { trustMark } from "./marks.js";
import { data } from "./payload.js";
import { cellLink } from "./routes.js";
import { matchingCells, onChange } from "./state.js";

const PAGE = 50;
const TRUST_ORDER = ["trusted", "noisy", "contaminated", "insufficient"];

const varies = (key) => new Set(data.cells.map((cell) => cell[key])).size > 1;
const inColumn = columnOf(data.cells.flatMap((cell) => [cell.p50?.[0], cell.p95?.[0]]));
const us = (value) => (value === null || value === undefined ? "" : inColumn.show(value));

function columns() {
  return [
    text("Device", "device"),
    text("Model", "model"),
    varies("runner") ? text("Runner", "runner") : null,
    varies("arm") ? text("Arm", "arm") : null,
    text("Delegate", "delegate"),
    varies("affinity") ? text("Affinity", "affinity") : null,
    { title: "Load", order: (one, other) => compareLoads(one.load, other.load), show: (cell) => name(cell.load, 24), plain: (cell) => cell.load },
    figure("Threads", (cell) => cell.threads, (value) => String(value)),
    {
      ...figure(`p50, ${inColumn.unit}`, (cell) => cell.p50?.[0], us),
      show: (cell) => el("a", { href: cellLink(cell.id) }, cell.p50 ? us(cell.p50[0]) : "not measured"),
    },
    figure("95 % interval", (cell) => cell.half, (value) => percent(value), (cell) => (cell.p50 && cell.p50[1] !== null ? `${us(cell.p50[1])} – ${us(cell.p50[2])}` : "")),
    { title: "Trust", order: (one, other) => TRUST_ORDER.indexOf(one.trust) - TRUST_ORDER.indexOf(other.trust), show: (cell) => trustMark(cell.trust), plain: (cell) => cell.trust },
    figure("Counted", (cell) => cell.outcomes.measured ?? 0, String, (cell) => `${cell.outcomes.measured ?? 0} of ${cell.trials.length}`),
    figure(`mean, ${inColumn.unit}`, (cell) => cell.mean?.[0], us),
    figure(`p95, ${inColumn.unit}`, (cell) => cell.p95?.[0], us),
    figure("Varies", (cell) => cell.cv_between, (value) => percent(value)),
    figure("Speed-up", (cell) => cell.speedup?.[0], times, (cell) => (cell.speedup ? [times(cell.speedup[0]), el("span", { class: `verdict ${cell.verdict}` }, ` ${cell.verdict}`)] : "")),
    figure("Against idle", (cell) => cell.vs_idle?.[0], times),
  ].filter(Boolean);
}

function text(title, key) {
  return {
    title,
    order: (one, other) => String(one[key]).localeCompare(String(other[key]), "en", { numeric: true }),
    show: (cell) => name(cell[key] ?? "", 40),
    plain: (cell) => String(cell[key] ?? ""),
  };
}

/** A column of figures. What has none stands last, whichever way the column is sorted: it is neither fast nor slow. */
function figure(title, value, plain, show = null) {
  return {
    title,
    value,
    isFigure: true,
    show: show ?? ((cell) => (value(cell) === null || value(cell) === undefined ? "–" : plain(value(cell)))),
    plain: (cell) => (value(cell) === null || value(cell) === undefined ? "" : String(plain(value(cell))).replace(/\u202f/g, " ")),
  };
}

export function table() {
  const shownColumns = columns();
  const sort = { column: null, isDown: false };
  let page = 0;
  const body = el("tbody");
  const head = el("tr");
  const pager = el("div", { class: "pager no-print" });
  const rows = () => sorted(matchingCells(), sort);
  const draw = () => {
    const found = rows();
    page = Math.min(page, Math.max(0, Math.ceil(found.length / PAGE) - 1));
    const inView = printing ? found.slice(0, 400) : found.slice(page * PAGE, (page + 1) * PAGE);
    replace(body, inView.map((cell) => row(cell, shownColumns)));
    if (!found.length) replace(body, el("tr", {}, el("td", { colspan: shownColumns.length, class: "empty" }, "No cell matches the filters.")));
    replace(head, shownColumns.map((column) => heading(column, sort, () => ((page = 0), draw()))));
    replace(pager, pages(found.length, page, (to) => ((page = to), draw())));
  };
  let printing = false;
  addEventListener("beforeprint", () => ((printing = true), draw()));
  addEventListener("afterprint", () => ((printing = false), draw()));
  onChange(() => ((page = 0), draw()));
  draw();
  const scroller = el("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": "Table of cells" }, el("table", { id: "cells-table" }, el("thead", {}, head), body));
  const legend = "p50 is the typical trial, mean and p95 the same for each trial's mean and 95th percentile. Varies: the spread between processes. Speed-up: against the fewest threads at the same load. Against idle: how many times longer under load.";
  return [scroller, el("p", { class: "hint legend" }, legend), el("div", { class: "table-foot no-print" }, pager, copyButton(() => asTsv(rows(), shownColumns)))];
}

function sorted(cells, { column, isDown }) {
  if (!column) return cells;
  const turn = isDown ? -1 : 1;
  if (!column.value) return cells.slice().sort((one, other) => turn * column.order(one, other));
  const known = (cell) => column.value(cell) !== null && column.value(cell) !== undefined;
  const measured = cells.filter(known).sort((one, other) => turn * (column.value(one) - column.value(other)));
  return [...measured, ...cells.filter((cell) => !known(cell))];
}

function heading(column, sort, redraw) {
  const isOurs = sort.column?.title === column.title;
  const act = () => {
    sort.isDown = isOurs ? !sort.isDown : false;
    sort.column = column;
    redraw();
    document.querySelector(`#cells-table th[aria-sort] button`)?.focus();
  };
  const arrow = isOurs ? (sort.isDown ? " ↓" : " ↑") : "";
  return el(
    "th",
    { scope: "col", class: column.isFigure ? "figure" : null, "aria-sort": isOurs ? (sort.isDown ? "descending" : "ascending") : null },
    el("button", { type: "button", on: { click: act } }, `${column.title}${arrow}`),
  );
}

function row(cell, shownColumns) {
  return el("tr", { class: cell.p50 ? null : "unmeasured" }, shownColumns.map((column) => el("td", { class: column.isFigure ? "figure" : null }, column.show(cell))));
}

function pages(total, page, go) {
  if (total <= PAGE) return [];
  const last = Math.ceil(total / PAGE) - 1;
  const step = (title, to, isOff) => el("button", { type: "button", disabled: isOff, on: { click: () => go(to) } }, title);
  return [
    step("Previous", page - 1, page === 0),
    el("span", {}, `${page * PAGE + 1} to ${Math.min(total, (page + 1) * PAGE)} of ${counted(total, "cell")}`),
    step("Next", page + 1, page === last),
  ];
}

/** Tab-separated text; what a spreadsheet would take for a formula is made text. */
export function asTsv(cells, shownColumns) {
  const safe = (value) => {
    const line = value.replace(/[\t\r\n]+/g, " ");
    return /^[=+\-@]/.test(line) && Number.isNaN(Number(line)) ? `'${line}` : line;
  };
  const lines = cells.map((cell) => shownColumns.map((column) => safe(column.plain(cell))).join("\t"));
  return [shownColumns.map((column) => column.title).join("\t"), ...lines].join("\n");
}

function copyButton(content) {
  const button = el("button", { type: "button", id: "copy-table" }, "Copy for a spreadsheet");
  button.addEventListener("click", async () => {
    const done = await copied(content());
    button.textContent = done ? "Copied" : "Copying is not allowed here";
    setTimeout(() => (button.textContent = "Copy for a spreadsheet"), 2000);
  });
  return button;
}

async function copied(content) {
  try {
    await navigator.clipboard.writeText(content);
    return true;
  } catch {
    const area = el("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = content;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy"); // where the newer way is refused, as in some viewers of mail
    area.remove();
    return done;
  }
}
