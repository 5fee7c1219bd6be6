// Cells that ran without a rest: latency over time, as a multiple of what it was at the start.

import { plain } from "../dom.js";
import { latency } from "../format.js";
import { chart, lines, tooltip, valueAxis } from "./chart.js";

const DASHES = ["solid", "dashed", "dotted"];

export function sustained(cells) {
  return chart({
    label: `Sustained latency: ${cells.map((cell) => `${plain(cell.name)} from ${latency(cell.start_us)} to ${latency(cell.end_us)}`).join("; ")}`,
    height: 320,
    draw: (shown) => ({
      grid: { left: 8, right: 16, top: 34, bottom: 30 + 22 * Math.min(cells.length, 6), containLabel: true },
      legend: { bottom: 0, orient: "vertical", left: 0, textStyle: { color: shown.ink } },
      tooltip: tooltip(shown, (event) => lines(latency(event.data.us), event.seriesName, `${Math.round(event.value[0])} s after the start`)),
      xAxis: valueAxis(shown, { name: "s", splitLine: { show: false } }),
      yAxis: valueAxis(shown, { scale: true, name: "times its start" }),
      series: cells.slice(0, 12).map((cell, number) => ({
        type: "line",
        name: plain(cell.name, 70),
        symbolSize: 5,
        lineStyle: { type: DASHES[Math.floor(number / shown.series.length) % DASHES.length], width: 2 },
        data: cell.curve.map(([t, us]) => ({ value: [t, us / cell.start_us], us })),
      })),
    }),
  });
}
