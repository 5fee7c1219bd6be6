// How many times as fast more threads are, at each load: blue is faster, orange slower, and every field says its figure.

import { plain } from "../dom.js";
import { compareLoads, threads, times } from "../format.js";
import { cellLink, go } from "../routes.js";
import { categoryAxis, chart, lines, tooltip } from "./chart.js";

const REACH = 1; // a factor of two either way has the full colour

/** One map for each delegate and affinity among the cells; none where only one thread count was swept. */
export function speedups(cells) {
  const sweeps = new Map();
  for (const cell of cells) {
    const key = cell.affinity === "any" ? cell.delegate : `${cell.delegate} on ${cell.affinity}`;
    if (!sweeps.has(key)) sweeps.set(key, []);
    sweeps.get(key).push(cell);
  }
  return [...sweeps].filter(([, swept]) => swept.some((cell) => cell.speedup)).map(([title, swept]) => ({ title, node: map(title, swept) }));
}

function map(title, cells) {
  const loads = [...new Set(cells.map((cell) => cell.load))].sort(compareLoads);
  const counts = [...new Set(cells.map((cell) => cell.threads))].sort((one, other) => one - other);
  const base = cells.find((cell) => cell.base_threads)?.base_threads ?? counts[0];
  const fields = cells.map((cell) => field(cell, loads.indexOf(cell.load), counts.indexOf(cell.threads), base));
  return chart({
    label: `Speed-up over ${threads(base)}, ${title}: ${fields.map((one) => `${one.where}: ${one.text}`).join("; ")}`,
    height: 56 + Math.max(40, Math.min(96, 260 / counts.length)) * counts.length,
    onClick: (event) => event.data?.link && go(event.data.link),
    draw: (shown) => ({
      grid: { left: 8, right: 8, top: 8, bottom: 8, containLabel: true },
      tooltip: tooltip(shown, (event) => lines(event.data.text, event.data.where, event.data.doubt)),
      xAxis: categoryAxis(shown, loads.map((load) => plain(load, 22)), { splitArea: { show: false }, axisLine: { show: false } }),
      yAxis: categoryAxis(shown, counts.map(threads), { axisLine: { show: false } }),
      visualMap: {
        show: false,
        type: "continuous",
        dimension: 2,
        min: -REACH,
        max: REACH,
        inRange: { color: [shown.slower, shown.neutral, shown.faster] },
      },
      series: [
        {
          type: "heatmap",
          data: fields.map((one) => ({
            ...one,
            label: { show: true, formatter: one.text, color: one.isStrong ? "#fff" : shown.ink, fontWeight: one.isStrong ? 600 : 400 },
            itemStyle: one.value[2] === null ? { color: "transparent" } : {},
          })),
          itemStyle: { borderColor: shown.surface, borderWidth: 3, borderRadius: 5 },
          emphasis: { disabled: true },
        },
      ],
    }),
  });
}

function field(cell, x, y, base) {
  const where = `${threads(cell.threads)}, ${plain(cell.load)}`;
  const link = cellLink(cell.id);
  if (cell.threads === base) {
    return { value: [x, y, cell.p50 ? 0 : null], text: cell.p50 ? "1×" : "not measured", where: `${where}, which the others are held against`, link };
  }
  if (!cell.speedup) return { value: [x, y, null], text: "not measured", where, link };
  const [ratio, low, high] = cell.speedup;
  const strength = Math.max(-REACH, Math.min(REACH, Math.log2(ratio)));
  const isOpen = cell.verdict === "undecided";
  const within = low === null ? "no interval yet" : `between ${times(low)} and ${times(high)}`;
  return {
    value: [x, y, strength],
    text: isOpen ? `${times(ratio)} ?` : times(ratio),
    isStrong: Math.abs(strength) > 0.55,
    where,
    doubt: `${cell.verdict}, ${within}`,
    link,
  };
}
