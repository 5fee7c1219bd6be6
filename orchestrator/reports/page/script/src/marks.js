// Small marks that several parts show: trust, outcomes, links to cells. Shape and word say what colour says.

import { el, name, shortened } from "./dom.js";
import { threads } from "./format.js";
import { cellOf, data } from "./payload.js";
import { cellLink } from "./routes.js";

const TRUST = { trusted: "●", noisy: "◐", contaminated: "▲", insufficient: "○" };
const OUTCOMES = { measured: "●", rejected: "✕", failed: "■", skipped: "–", "not-run": "○" };

export function trustMark(verdict) {
  return el("span", { class: `mark trust-${verdict}` }, `${TRUST[verdict] ?? "○"} ${verdict}`);
}

export function outcomeMark(outcome) {
  return el("span", { class: `mark outcome-${outcome}` }, `${OUTCOMES[outcome] ?? "○"} ${outcome}`);
}

export function settingText(cell) {
  const affinity = cell.affinity === "any" ? "" : ` on ${cell.affinity}`;
  return `${cell.delegate}, ${threads(cell.threads)}${affinity}, ${cell.load}`;
}

const isAlone = (key) => new Set([...data.cells, ...data.sustained].map((cell) => cell[key])).size === 1;
const alone = Object.fromEntries(["device", "model", "delegate"].map((key) => [key, isAlone(key)]));

/** A cell by what tells it from the others of this run. */
export function shortText(cell) {
  const affinity = cell.affinity === "any" ? null : `on ${cell.affinity}`;
  const named = ["device", "model", "delegate"].filter((key) => !alone[key]).map((key) => shortened(cell[key], 32));
  return [...named, threads(cell.threads), affinity, shortened(cell.load, 32), cell.arm, cell.is_reference ? "pinned reference" : null].filter(Boolean).join(" · ");
}

export function cellAnchor(key, otherwise = key) {
  const cell = cellOf.get(key);
  if (!cell) return el("span", {}, name(otherwise, 120));
  return el("a", { href: cellLink(key) }, name(shortText(cell), 90));
}

const LISTED = 500;

/** Links to cells behind a word, made when somebody opens it; a single one stands in the open. */
export function cellList(keys) {
  if (keys.length === 1) return el("p", { class: "links" }, cellAnchor(keys[0]));
  const list = el("details", {}, el("summary", {}, `Which ${keys.length.toLocaleString("en")} cells`));
  list.addEventListener("toggle", () => {
    if (!list.open || list.children.length > 1) return;
    list.append(el("ul", { class: "links" }, keys.slice(0, LISTED).map((key) => el("li", {}, cellAnchor(key)))));
    if (keys.length > LISTED) list.append(el("p", { class: "hint" }, `and ${keys.length - LISTED} more`));
  });
  return list;
}
