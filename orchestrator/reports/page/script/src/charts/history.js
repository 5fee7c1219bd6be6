// A cell over its runs, with intervals, and the runs since which it is slower or faster.

import { plain } from "../dom.js";
import { interval, latency, moment, signed } from "../format.js";
import { categoryAxis, chart, intervals, latencyAxis, lines, tooltip } from "./chart.js";

export function history(item) {
  const points = item.points.map(([run, at, us, low, high, n]) => ({ run, at, estimate: [us, low, high, n] }));
  const values = points.flatMap(({ estimate }) => estimate.slice(0, 3)).filter(Boolean);
  const when = ({ at, run }) => (at === null ? plain(run, 20) : moment(at * 1000).slice(5, 16));
  return chart({
    label: `${plain(item.name)} over ${points.length} runs: ${item.changes.map((change) => `${change.direction} ${signed(change.effect_percent)} since ${plain(change.run)}`).join("; ") || "no change found"}`,
    height: 280,
    draw: (shown) => ({
      grid: { left: 8, right: 16, top: 44, bottom: 8, containLabel: true },
      tooltip: tooltip(shown, (event) => {
        const { run, at, estimate } = points[event.dataIndex];
        return lines(latency(estimate[0]), plain(run, 60), at === null ? null : moment(at * 1000), `95 % interval ${interval(estimate) || "unknown"}`);
      }),
      xAxis: categoryAxis(shown, points.map(when), { axisLabel: { color: shown.muted, hideOverlap: true, interval: "auto" } }),
      yAxis: latencyAxis(shown, values),
      series: [
        {
          type: "line",
          step: false,
          symbol: "circle",
          symbolSize: 8,
          lineStyle: { color: shown.accent, width: 1.5 },
          itemStyle: { color: shown.accent },
          data: points.map(({ estimate }) => estimate[0]),
          markLine: {
            symbol: "none",
            silent: true,
            data: item.changes.map((change) => ({
              xAxis: change.index,
              lineStyle: { color: change.direction === "slower" ? shown.slower : shown.faster, type: "dashed", width: 1.5 },
              label: { formatter: `${change.direction} ${signed(change.effect_percent)}`, color: shown.ink },
            })),
          },
        },
        intervals(
          points.flatMap(({ estimate }, at) => (estimate[1] !== null ? [[at, estimate[1], estimate[2]]] : [])),
          { colour: shown.muted, isUpright: true, size: 3, width: 1 },
        ),
      ],
    }),
  });
}
