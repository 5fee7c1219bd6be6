// Latency against load, a line for each delegate and thread count: colour tells the delegate, symbol and dash the threads.

import { plain } from "../dom.js";
import { compareLoads, interval, latency, threads } from "../format.js";
import { cellLink, go } from "../routes.js";
import { categoryAxis, chart, intervals, latencyAxis, lines, tooltip } from "./chart.js";

const SYMBOLS = ["circle", "rect", "triangle", "diamond", "pin", "arrow"];
const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3], [2, 6], [12, 4]];

export function loadLines(cells, metric) {
  const loads = [...new Set(cells.map((cell) => cell.load))].sort(compareLoads);
  const delegates = [...new Set(cells.map((cell) => cell.delegate))];
  const counts = [...new Set(cells.map((cell) => cell.threads))].sort((one, other) => one - other);
  const lanes = new Map();
  for (const cell of cells) {
    const title = [delegates.length > 1 ? cell.delegate : null, threads(cell.threads), cell.affinity === "any" ? null : `on ${cell.affinity}`].filter(Boolean).join(", ");
    if (!lanes.has(title)) lanes.set(title, []);
    lanes.get(title).push(cell);
  }
  const values = cells.flatMap((cell) => cell[metric]?.slice(0, 3) ?? []);
  return chart({
    label: `${metric} latency against load. ${[...lanes].map(([title, lane]) => `${plain(title)}: ${lane.map((cell) => `${plain(cell.load)} ${latency(cell[metric]?.[0])}`).join(", ")}`).join("; ")}`,
    height: 320,
    onClick: (event) => event.data?.link && go(event.data.link),
    draw: (shown) => ({
      grid: { left: 8, right: 16, top: 34, bottom: lanes.size > 4 ? 62 : 40, containLabel: true },
      legend: { bottom: 0, type: "plain", textStyle: { color: shown.ink }, itemWidth: 34, icon: undefined },
      tooltip: tooltip(shown, (event) => (event.data?.words ? lines(...event.data.words) : "")),
      xAxis: categoryAxis(shown, loads.map((load) => plain(load, 22)), { boundaryGap: true }),
      yAxis: latencyAxis(shown, values),
      series: [...lanes].flatMap(([title, lane], number) => {
        const colour = shown.series[(delegates.length > 1 ? delegates.indexOf(lane[0].delegate) : number) % shown.series.length];
        const turn = counts.indexOf(lane[0].threads);
        return [
          {
            type: "line",
            name: plain(title),
            symbol: SYMBOLS[turn % SYMBOLS.length],
            symbolSize: 9,
            lineStyle: { color: colour, width: 2, type: DASHES[turn % DASHES.length] },
            itemStyle: { color: colour },
            data: loads.map((load) => point(lane.find((cell) => cell.load === load), metric, title)),
          },
          {
            ...intervals(
              loads.flatMap((load, at) => {
                const found = lane.find((cell) => cell.load === load)?.[metric];
                return found && found[1] !== null ? [[at, found[1], found[2]]] : [];
              }),
              { colour, isUpright: true, width: 1.25 },
            ),
            name: plain(title),
          },
        ];
      }),
    }),
  });
}

function point(cell, metric, title) {
  const found = cell?.[metric];
  if (!found) return { value: null };
  return {
    value: found[0],
    link: cellLink(cell.id),
    words: [latency(found[0]), `${plain(title)}, ${plain(cell.load)}`, `95 % interval ${interval(found) || "unknown"}`, cell.trust],
  };
}
