// Every cell against the baseline: the change with its interval, the worst first; the grey band is what does not matter.

import { plain } from "../dom.js";
import { signed } from "../format.js";
import { cellLink, go } from "../routes.js";
import { categoryAxis, chart, intervals, lines, tooltip, valueAxis } from "./chart.js";

const ROW = 24;

export function changeColour(verdict, shown) {
  if (verdict.endsWith("slower")) return shown.slower;
  if (verdict.endsWith("faster")) return shown.faster;
  return verdict === "same" ? shown.ink : shown.muted;
}

export function changes(rows, threshold) {
  const shownRows = rows.slice().reverse();
  const ends = shownRows.flatMap((row) => [row.low, row.high, row.effect]).filter((value) => value !== null);
  const reach = Math.max(6, ...ends.map((value) => Math.min(Math.abs(value), 300))) * 1.05;
  return chart({
    label: `Change of each cell: ${rows.slice(0, 20).map((row) => `${plain(row.name)} ${signed(row.effect)} ${row.verdict}`).join("; ")}`,
    height: 60 + ROW * rows.length,
    onClick: (event) => event.data?.link && go(event.data.link),
    draw: (shown, width) => ({
      grid: { left: 8, right: 12, top: 8, bottom: 34, containLabel: true },
      tooltip: tooltip(shown, (event) => (event.data?.words ? lines(...event.data.words) : "")),
      xAxis: valueAxis(shown, { min: -reach, max: reach, name: "change in %, slower to the right", nameLocation: "middle", nameGap: 26, axisLabel: { color: shown.muted, formatter: (value) => `${value > 0 ? "+" : ""}${Math.round(value)}`, showMinLabel: false, showMaxLabel: false } }),
      yAxis: categoryAxis(shown, shownRows.map((row) => plain(row.short ?? row.name, 66)), { axisLabel: { color: shown.ink, interval: 0, width: width < 560 ? 130 : 420, overflow: "truncate" } }),
      series: [
        {
          type: "custom",
          silent: true,
          data: [[0]],
          renderItem: (params, api) => {
            const [left] = api.coord([-100 * threshold, 0]);
            const [right] = api.coord([100 * threshold, 0]);
            const { y, height } = params.coordSys;
            return { type: "rect", shape: { x: left, y, width: right - left, height }, style: { fill: shown.muted, opacity: 0.13 } };
          },
        },
        intervals(
          shownRows.flatMap((row, at) => (row.low !== null ? [[at, Math.max(row.low, -reach), Math.min(row.high, reach)]] : [])),
          { colour: shown.muted, isUpright: false, size: 4 },
        ),
        {
          type: "scatter",
          symbolSize: 10,
          z: 4,
          data: shownRows.map((row, at) => ({
            value: [row.effect ?? 0, at],
            symbol: row.effect === null ? "none" : row.verdict === "unknown" ? "emptyCircle" : row.verdict.endsWith("slower") ? "triangle" : "circle",
            itemStyle: { color: changeColour(row.verdict, shown) },
            link: cellLink(row.cell),
            words: [`${signed(row.effect)} ${row.verdict.replace("_", ", ")}`, plain(row.name, 90), row.low === null ? null : `95 % interval ${signed(row.low)} to ${signed(row.high)}`, ...row.notes.slice(0, 2)],
          })),
        },
      ],
    }),
  });
}
