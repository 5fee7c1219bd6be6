// Where the time of an inference goes: operators by type, those a delegate ran apart from those on plain CPU kernels.

import { plain } from "../dom.js";
import { latency, percent } from "../format.js";
import { categoryAxis, chart, latencyAxis, lines, tooltip } from "./chart.js";

const ROWS_MAX = 14;

export function operatorTypes(profile) {
  const rows = profile.types.slice(0, ROWS_MAX);
  const rest = profile.types.slice(ROWS_MAX);
  if (rest.length) {
    const sum = (column) => rest.reduce((total, row) => total + (row[column] ?? 0), 0);
    rows.push([`${rest.length} other types`, rest.every((row) => row[1]), sum(2), sum(3), sum(4)]);
  }
  const shownRows = rows.reverse();
  const side = (isDelegated) => shownRows.map((row) => (row[1] === isDelegated ? row[3] : null));
  return chart({
    label: `Time by operator type: ${shownRows.slice().reverse().map((row) => `${plain(row[0])} ${percent(row[4])}`).join(", ")}`,
    height: 70 + 24 * shownRows.length,
    draw: (shown, width) => ({
      grid: { left: 8, right: 56, top: 28, bottom: 24, containLabel: true },
      legend: { top: 0, left: 0, textStyle: { color: shown.ink }, itemWidth: 12, itemHeight: 12 },
      tooltip: tooltip(shown, (event) => {
        const [type, isDelegated, count, us, share] = shownRows[event.dataIndex];
        return lines(plain(type, 80), `${latency(us)}, ${percent(share)}`, `${count} operators, ${isDelegated ? "delegate" : "CPU kernels"}`);
      }),
      xAxis: latencyAxis(shown, [0.0001, ...shownRows.map((row) => row[3])], { type: "value", scale: false, min: 0, max: null }),
      yAxis: categoryAxis(shown, shownRows.map((row) => plain(row[0], 48)), { axisLabel: { color: shown.ink, interval: 0, width: width < 560 ? 130 : 320, overflow: "truncate" } }),
      series: [
        { name: "delegate", colour: shown.series[0], rows: side(true) },
        { name: "CPU kernels", colour: shown.series[1], rows: side(false) },
      ]
        .filter(({ rows: lane }) => lane.some((value) => value !== null))
        .map(({ name, colour, rows: lane }) => ({
          type: "bar",
          name,
          stack: "one",
          barMaxWidth: 14,
          itemStyle: { color: colour, borderRadius: 2 },
          data: lane,
          label: { show: true, position: "right", color: shown.muted, formatter: ({ dataIndex, value }) => (value == null ? "" : percent(shownRows[dataIndex][4])) },
        })),
    }),
  });
}
