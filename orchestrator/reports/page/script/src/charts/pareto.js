// Models by size and latency; the line joins those that no other model beats in both.

import { plain } from "../dom.js";
import { axisText, chart, latencyAxis, lines, tooltip, valueAxis } from "./chart.js";
import { bytes, latency } from "../format.js";
import { cellOf } from "../payload.js";
import { cellLink, go } from "../routes.js";

export function pareto(sized) {
  const points = sized.map((one) => ({ ...one, cell: cellOf.get(one.arm ? `${one.cell}~${one.arm}` : one.cell) })).filter((one) => one.cell?.p50);
  const front = points.filter((one) => one.on_front).sort((one, other) => one.bytes - other.bytes);
  const sizes = points.map((one) => one.bytes);
  const isWide = Math.max(...sizes) / Math.min(...sizes) > 12;
  const dot = (one) => ({
    value: [one.bytes / 1e6, one.cell.p50[0]],
    link: cellLink(one.cell.id),
    name: plain(one.model, 30),
    words: [plain(one.model, 80), `${latency(one.cell.p50[0])}, ${bytes(one.bytes)}`, one.on_front ? "no other model is both smaller and faster" : "another model is smaller and faster"],
  });
  return chart({
    label: `Size against latency of ${points.length} models; not beaten in both: ${front.map((one) => plain(one.model)).join(", ")}`,
    height: 320,
    onClick: (event) => event.data?.link && go(event.data.link),
    draw: (shown) => ({
      grid: { left: 8, right: 24, top: 34, bottom: 34, containLabel: true },
      tooltip: tooltip(shown, (event) => (event.data?.words ? lines(...event.data.words) : "")),
      xAxis: valueAxis(shown, { type: isWide ? "log" : "value", scale: true, name: "size in MB", nameLocation: "middle", nameGap: 26, axisLabel: { color: shown.muted, formatter: axisText, hideOverlap: true } }),
      yAxis: latencyAxis(shown, points.map((one) => one.cell.p50[0])),
      series: [
        { type: "line", silent: true, symbol: "none", z: 1, lineStyle: { color: shown.accent, type: "dashed", width: 1.5 }, data: front.map((one) => [one.bytes / 1e6, one.cell.p50[0]]) },
        scatter("none beats it", "circle", shown.accent, points.filter((one) => one.on_front).map(dot), shown),
        scatter("beaten", "emptyCircle", shown.muted, points.filter((one) => !one.on_front).map(dot), shown),
      ],
    }),
  });
}

function scatter(title, symbol, colour, points, shown) {
  const label = { show: points.length <= 24, position: "top", distance: 6, formatter: ({ name }) => name, color: shown.ink };
  return { type: "scatter", name: title, symbol, symbolSize: 11, itemStyle: { color: colour }, label, labelLayout: { hideOverlap: true, moveOverlap: "shiftY" }, data: points };
}
