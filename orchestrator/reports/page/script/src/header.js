// The head of the page: which run this is, how much of it counts, and where things are.

import { el, name } from "./dom.js";
import { counted, moment } from "./format.js";
import { data } from "./payload.js";
import { setTheme } from "./theme.js";

export function header(sections) {
  return el(
    "header",
    {},
    el(
      "div",
      { class: "masthead" },
      el("div", {}, el("p", { class: "eyebrow" }, "devbench report"), el("h1", {}, headline())),
      themeField(),
    ),
    el("p", { class: "facts" }, facts()),
    data.run.notes.map((note) => el("p", { class: "note" }, note)),
    el("ul", { class: "totals" }, totals()),
    devices(),
    el("nav", { "aria-label": "Parts of this page" }, sections.map(([id, title]) => el("a", { href: `#${id}` }, title))),
  );
}

function headline() {
  const models = new Set(data.cells.map((cell) => cell.model_sha256 + cell.model));
  const names = [...new Set(data.cells.map((cell) => cell.model))];
  const machines = [...new Set(data.cells.map((cell) => cell.device))];
  if (!data.cells.length) return otherwise();
  const what = models.size === 1 ? [name(names[0], 48)] : [counted(models.size, "model")];
  return [...what, " on ", machines.length === 1 ? name(machines[0], 48) : counted(machines.length, "device")];
}

function otherwise() {
  if (data.sustained.length) return `${counted(data.sustained.length, "cell")} without a rest`;
  return data.ops.length ? `Operator profiles of ${counted(data.ops.length, "cell")}` : "Nothing was measured";
}

function facts() {
  const { run } = data;
  const parts = [name(run.id, 60), moment(run.created_at), run.status, `seed ${run.seed}`, run.version ? `devbench ${run.version}` : null, ...run.tags.map((tag) => name(`#${tag}`, 30))];
  return parts.filter(Boolean).flatMap((part, index) => (index ? [" · ", part] : [part]));
}

function totals() {
  const { measured = 0, ...others } = data.outcomes;
  const all = Object.values(data.outcomes).reduce((sum, count) => sum + count, 0);
  const trusted = data.cells.filter((cell) => cell.trust === "trusted").length;
  if (!all) return [];
  const rows = [[`${measured.toLocaleString("en")} of ${counted(all, "trial")}`, "count"]];
  if (data.cells.length) rows.push([`${trusted} of ${counted(data.cells.length, "cell")}`, "trusted"]);
  for (const [outcome, count] of Object.entries(others)) rows.push([counted(count, "trial"), outcome]);
  if (data.compared) rows.push([verdicts(), "against the baseline"]);
  return rows.map(([figure, word]) => el("li", {}, el("strong", {}, figure), ` ${word}`));
}

/** `3 slower, 20 same, 1 unknown`: unknown is never counted as same. */
function verdicts() {
  const counts = new Map();
  for (const row of data.compared.rows) if (row.metric === "p50") counts.set(row.verdict, (counts.get(row.verdict) ?? 0) + 1);
  return [...counts].map(([verdict, count]) => `${count} ${verdict.replace("_", " ")}`).join(", ") || "No cell compared";
}

function devices() {
  if (!data.devices.length) return null;
  const shown = data.devices.map((device) =>
    el(
      "li",
      {},
      el("strong", {}, name(device.name, 40)),
      " ",
      device.facts,
      findings(device.findings),
      device.ending && device.ending !== "done" ? el("div", { class: "finding" }, `The work ended early: ${device.ending}`) : null,
    ),
  );
  if (data.devices.length === 1) return el("ul", { class: "devices" }, shown);
  return el("details", { class: "devices" }, el("summary", {}, counted(data.devices.length, "device")), el("ul", {}, shown));
}

/** Warnings in the open; notes behind a word, as they say what is so and not what is wrong. */
function findings(list) {
  const text = (finding) => `${finding.reason}; ${finding.remedy}`;
  const notes = list.filter((finding) => finding.severity === "note");
  const grave = list.filter((finding) => finding.severity !== "note");
  return [
    grave.map((finding) => el("div", { class: "finding" }, `${finding.severity}: ${text(finding)}`)),
    notes.length ? el("details", {}, el("summary", {}, counted(notes.length, "note")), notes.map((finding) => el("div", {}, text(finding)))) : null,
  ];
}

function themeField() {
  const choose = (event) => setTheme(event.target.value);
  const options = [["", "System"], ["light", "Light"], ["dark", "Dark"]].map(([value, text]) => el("option", { value }, text));
  return el("label", { class: "field theme" }, el("span", {}, "Theme"), el("select", { id: "theme", on: { change: choose } }, options));
}
