// Small marks that several parts show: trust, outcomes, links to cells. Shape and word say what colour says.

import { el, name } from "./dom.js";
import { threads } from "./format.js";
import { cellOf } from "./payload.js";
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

export function cellAnchor(key) {
  const cell = cellOf.get(key);
  if (!cell) return el("span", {}, name(key));
  return el("a", { href: cellLink(key) }, name(`${cell.model}, ${settingText(cell)}, ${cell.device}`, 90));
}

/** The first few links, and the rest behind a word. */
export function cellList(keys, most = 3) {
  const list = el("ul", { class: "links" }, keys.slice(0, most).map((key) => el("li", {}, cellAnchor(key))));
  if (keys.length <= most) return list;
  const more = el("details", {}, el("summary", {}, `and ${keys.length - most} more`));
  more.addEventListener("toggle", () => {
    if (more.open && more.children.length === 1) {
      more.append(el("ul", { class: "links" }, keys.slice(most, most + 500).map((key) => el("li", {}, cellAnchor(key)))));
    }
  });
  return [list, more];
}
