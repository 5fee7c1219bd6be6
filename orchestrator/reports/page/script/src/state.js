// What the reader has chosen, and who wants to know when that changes.

import { data, groupKey } from "./payload.js";

export const FILTERS = ["device", "model", "delegate", "load"];

export const state = { device: "", model: "", delegate: "", load: "", text: "", focus: 0 };

const listeners = [];

export function onChange(listener) {
  listeners.push(listener);
}

export function change(parts) {
  Object.assign(state, parts);
  if (!("focus" in parts)) state.focus = 0;
  for (const listener of listeners) listener();
}

export function matches(cell) {
  if (FILTERS.some((field) => state[field] && cell[field] !== state[field])) return false;
  if (!state.text) return true;
  const words = `${cell.device} ${cell.model} ${cell.runner} ${cell.delegate} ${cell.load} ${cell.trust} ${cell.id}`;
  return words.toLowerCase().includes(state.text.toLowerCase());
}

export function matchingCells() {
  return data.cells.filter(matches);
}

/** The models on devices that have a cell left, in the order of the answers. */
export function matchingGroups() {
  const left = new Set(matchingCells().map(groupKey));
  return data.recommendations.filter((item) => left.has(groupKey(item)));
}
