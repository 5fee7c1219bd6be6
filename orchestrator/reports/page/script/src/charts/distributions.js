// Every trial of every cell as a dot, with the estimate and its interval; what does not count has no place on the scale.

import { plain } from "../dom.js";
import { counted, interval, latency, threads } from "../format.js";
import { go, trialLink } from "../routes.js";
import { categoryAxis, chart, intervals, latencyAxis, lines, tooltip } from "./chart.js";

const ROW = 30;

export function distributions(cells) {
  const shownCells = cells.slice().reverse(); // ECharts counts categories from below
  const names = shownCells.map((cell) => settingName(cell, cells));
  const dots = shownCells.flatMap((cell, row) =>
    cell.trials.flatMap(([block, outcome, us], number) =>
      outcome === "measured" && us !== null ? [{ row, us, block, number, cell }] : [],
    ),
  );
  const values = [...dots.map((dot) => dot.us), ...shownCells.flatMap((cell) => cell.p50?.slice(0, 3) ?? [])];
  return chart({
    label: `Latency of every trial, ${counted(dots.length, "dot")} in ${counted(cells.length, "row")}. ${inWords(cells)}`,
    height: 70 + ROW * cells.length,
    onClick: (event) => event.data?.link && go(event.data.link),
    draw: (shown, width) => ({
      grid: { left: 8, right: 8, top: 8, bottom: 28, containLabel: true },
      tooltip: tooltip(shown, (event) => (event.data?.words ? lines(...event.data.words) : "")),
      xAxis: latencyAxis(shown, values, { nameLocation: "middle", nameGap: 26 }),
      yAxis: [
        categoryAxis(shown, names, { axisLabel: { color: shown.ink, interval: 0, width: width < 560 ? 120 : 220, overflow: "truncate" }, splitLine: { show: true, lineStyle: { color: shown.line, opacity: 0.6 } } }),
        categoryAxis(shown, shownCells.map(countText), {
          position: "right",
          show: width >= 560,
          axisLine: { show: false },
          axisLabel: { color: shown.muted, interval: 0 },
        }),
      ],
      series: [
        {
          type: "scatter",
          symbolSize: 7,
          itemStyle: { color: shown.accent, opacity: 0.55 },
          data: dots.map((dot) => ({
            value: [dot.us, dot.row],
            symbolOffset: [0, jitter(dot.number)],
            link: trialLink(dot.cell.id, dot.number),
            words: [latency(dot.us), settingName(dot.cell, cells), `trial ${dot.number + 1}, block ${dot.block}`],
          })),
        },
        intervals(
          shownCells.flatMap((cell, row) => (cell.p50?.[1] != null ? [[row, cell.p50[1], cell.p50[2]]] : [])),
          { colour: shown.ink, isUpright: false },
        ),
        {
          type: "scatter",
          symbol: "diamond",
          symbolSize: 10,
          z: 4,
          itemStyle: { color: shown.ink },
          data: shownCells.flatMap((cell, row) =>
            cell.p50 ? [{ value: [cell.p50[0], row], link: `#cell/${encodeURIComponent(cell.id)}`, words: [latency(cell.p50[0]), settingName(cell, cells), `95 % interval ${interval(cell.p50) || "unknown"}`, countText(cell)] }] : [],
          ),
        },
      ],
    }),
  });
}

/** Dots of one row lie beside each other in a pattern that is the same at every drawing. */
function jitter(number) {
  return (((number * 0.618034) % 1) - 0.5) * 16;
}

export function settingName(cell, among) {
  const parts = [plain(cell.load, 22)];
  parts.push(threads(cell.threads));
  if (new Set(among.map((other) => other.delegate)).size > 1) parts.push(plain(cell.delegate, 20));
  if (new Set(among.map((other) => other.affinity)).size > 1) parts.push(`on ${cell.affinity}`);
  return plain(parts.join(" · "));
}

function countText(cell) {
  const { measured = 0, ...others } = cell.outcomes;
  const missed = Object.entries(others).map(([outcome, count]) => `${count} ${outcome}`);
  return [`${measured} counted`, ...missed].join(", ");
}

function inWords(cells) {
  const said = cells.slice(0, 12).map((cell) => `${settingName(cell, cells)}: ${cell.p50 ? latency(cell.p50[0]) : "not measured"}`);
  return said.join("; ");
}
