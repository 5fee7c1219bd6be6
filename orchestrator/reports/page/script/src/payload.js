// What the file carries: the front page at once, the details of trials when somebody asks.

import { unpacked as unpack } from "./packing.js";

export const data = globalThis.devbench;
export const cellOf = new Map(data.cells.map((cell) => [cell.id, cell]));

// A cell that ran without a rest has trials and no estimate.
const UNJUDGED = { arm: null, p50: null, mean: null, p90: null, p95: null, p99: null, cv_in: null, cv_between: null, slow: null, speedup: null, vs_idle: null, trust: null, trust_reasons: [], medians: {}, stopped: null };
for (const cell of data.sustained) cellOf.set(cell.id, { ...UNJUDGED, ...cell });

const packed = document.querySelectorAll("script.chunk");
const unpacked = new Map();

/** The details of all trials of a cell. */
export async function trialsOf(key) {
  const index = data.chunks[key];
  if (index === undefined) return [];
  if (!unpacked.has(index)) unpacked.set(index, unpack(packed[index]));
  return (await unpacked.get(index))[key] ?? [];
}

export function groupKey(item) {
  return JSON.stringify([item.device, item.model, item.model_sha256, item.runner, item.arm]);
}

const grouped = new Map();
for (const cell of data.cells) {
  const key = groupKey(cell);
  if (!grouped.has(key)) grouped.set(key, []);
  grouped.get(key).push(cell);
}

/** The cells of one model with one runner on one device. */
export function cellsOf(key) {
  return grouped.get(key) ?? [];
}
