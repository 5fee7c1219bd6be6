// A trial in time: each inference, what kept the CPUs busy, and clock and temperature, over one axis.

import { axisText, chart, latencyAxis, lines, tooltip, valueAxis } from "./chart.js";
import { latency } from "../format.js";

const PANEL = 150;

export function timeline(trial) {
  const panels = panelsOf(trial);
  if (!panels.length) return null;
  const lastMs = Math.max(...(trial.samples?.t_ms ?? [0]), ...(trial.telemetry?.t_ms ?? [0]));
  return chart({
    label: `The trial in time: ${panels.map((panel) => panel.title).join("; ")}`,
    height: 40 + PANEL * panels.length,
    draw: (shown) => ({
      grid: panels.map((_, number) => ({ left: 56, right: 52, top: 34 + PANEL * number, height: PANEL - 58 })),
      tooltip: tooltip(shown, (event) => lines(event.data.words ?? `${event.seriesName}: ${axisText(event.value[1])}`, `${axisText(event.value[0])} ms after the start`)),
      legend: panels.map((panel, number) => ({ top: 4 + PANEL * number, left: 0, data: panel.curves.map((curve) => curve.name), textStyle: { color: shown.ink }, itemWidth: 18, itemHeight: 8, selectedMode: false })),
      xAxis: panels.map((_, number) => valueAxis(shown, { gridIndex: number, min: 0, max: Math.ceil(lastMs), splitLine: { show: false }, axisLabel: { color: shown.muted, show: number === panels.length - 1, formatter: (value) => `${axisText(value)} ms`, hideOverlap: true } })),
      yAxis: panels.flatMap((panel, number) => panel.axes(shown).map((axis) => ({ ...axis, gridIndex: number, nameTextStyle: { color: shown.muted } }))),
      series: panels.flatMap((panel, number) =>
        panel.curves.map((curve) => ({
          type: curve.isDots ? "scatter" : "line",
          name: curve.name,
          xAxisIndex: number,
          yAxisIndex: panels.slice(0, number).reduce((sum, one) => sum + one.axes(shown).length, 0) + (curve.axis ?? 0),
          symbol: curve.isDots ? "circle" : "emptyCircle",
          symbolSize: 4,
          showSymbol: curve.isDots || curve.points.length < 40,
          connectNulls: false,
          lineStyle: { width: 1.75, type: curve.dash ?? "solid", color: shown.series[curve.colour] },
          itemStyle: { color: shown.series[curve.colour], opacity: curve.isDots ? 0.6 : 1 },
          data: curve.points.map(([x, y]) => ({ value: [x, y], words: curve.isDots ? latency(y) : null })),
        })),
      ),
    }),
  });
}

function panelsOf({ samples, telemetry }) {
  const panels = [];
  if (samples) {
    const points = samples.t_ms.map((t, index) => [t, samples.us[index]]);
    panels.push({ title: "latency of each inference", axes: (shown) => [latencyAxis(shown, samples.us, { name: "" })], curves: [{ name: `each inference (${samples.us.some((us) => us >= 1000) ? "ms" : "µs"})`, isDots: true, colour: 0, points }] });
  }
  const curve = (key, name, colour, more = {}) =>
    telemetry?.[key] ? [{ name, colour, points: telemetry.t_ms.map((t, index) => [t, telemetry[key][index]]), ...more }] : [];
  const cpus = [...curve("busy", "CPUs busy in all", 2), ...curve("model", "by the model", 0, { dash: "dashed" }), ...curve("load", "by the load", 1, { dash: "dotted" })];
  if (cpus.length) panels.push({ title: "CPUs kept busy", axes: (shown) => [valueAxis(shown, { min: 0, splitNumber: 3 })], curves: cpus });
  const heat = [...curve("mhz", "fastest clock (MHz)", 0), ...curve("celsius", "hottest sensor (°C)", 1, { axis: 1, dash: "dashed" })];
  if (heat.length) {
    const axes = (shown) => [valueAxis(shown, { scale: true, splitNumber: 3 }), valueAxis(shown, { scale: true, splitLine: { show: false }, splitNumber: 3 })];
    panels.push({ title: "clock and temperature", axes, curves: heat });
  }
  return panels;
}
