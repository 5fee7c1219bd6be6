// A trial in time: each inference, who used the CPUs, and clock and temperature, over one axis.

import { latency } from "../format.js";
import { axisText, chart, latencyAxis, lines, tooltip, valueAxis } from "./chart.js";

const PANEL = 150;

export function timeline({ time }) {
  const panels = panelsOf(time);
  if (!panels.length) return null;
  const moments = panels.flatMap((panel) => panel.curves.flatMap((curve) => curve.points.map(([at]) => at)));
  const [first, last] = moments.reduce(([low, high], at) => [Math.min(low, at), Math.max(high, at)], [0, 0]);
  return chart({
    label: `The trial in time: ${panels.map((panel) => panel.title).join("; ")}`,
    height: 40 + PANEL * panels.length,
    draw: (shown) => ({
      grid: panels.map((_, number) => ({ left: 56, right: 52, top: 34 + PANEL * number, height: PANEL - 58 })),
      tooltip: tooltip(shown, (event) => lines(event.data.words ?? `${event.seriesName}: ${axisText(event.value[1])}`, `${axisText(event.value[0])} ms after the start`)),
      legend: panels.map((panel, number) => ({ top: 4 + PANEL * number, left: 0, data: panel.curves.map((curve) => curve.name), textStyle: { color: shown.ink }, itemWidth: 18, itemHeight: 8, selectedMode: false })),
      xAxis: panels.map((_, number) => timeAxis(shown, number, number === panels.length - 1, first, last)),
      yAxis: panels.flatMap((panel, number) => panel.axes(shown).map((axis) => ({ ...axis, gridIndex: number }))),
      series: panels.flatMap((panel, number) => {
        const before = panels.slice(0, number).reduce((sum, one) => sum + one.axes(shown).length, 0);
        return panel.curves.map((curve) => series(curve, shown, number, before + (curve.axis ?? 0)));
      }),
    }),
  });
}

function timeAxis(shown, number, isLast, first, last) {
  const axisLabel = { color: shown.muted, show: isLast, formatter: (value) => `${axisText(value)} ms`, hideOverlap: true, showMinLabel: first === 0, showMaxLabel: false };
  return valueAxis(shown, { gridIndex: number, min: Math.floor(first), max: Math.ceil(last), splitLine: { show: false }, axisLabel });
}

function series(curve, shown, xAxisIndex, yAxisIndex) {
  return {
    type: curve.isDots ? "scatter" : "line",
    name: curve.name,
    xAxisIndex,
    yAxisIndex,
    symbol: curve.isDots ? "circle" : "emptyCircle",
    symbolSize: 4,
    showSymbol: curve.isDots || curve.points.length < 40,
    step: curve.isDots ? undefined : "end",
    lineStyle: { width: 1.75, type: curve.dash ?? "solid", color: shown.series[curve.colour] },
    itemStyle: { color: shown.series[curve.colour], opacity: curve.isDots ? 0.6 : 1 },
    data: curve.points.map(([x, y]) => ({ value: [x, y], words: curve.isDots ? latency(y) : null })),
  };
}

const CPU_LOOKS = { all: ["CPUs used in all", 2, "solid"], load: ["by the load", 1, "dotted"], "measured process": ["by the model", 0, "dashed"] };
const OTHER_LOOKS = [[4, [8, 3, 2, 3]], [5, "dashed"]];

function panelsOf({ measured, warmup, counters }) {
  const panels = [];
  const dots = [...measured, ...warmup].map(([, us]) => us);
  const unit = dots.some((us) => us >= 1000) ? "ms" : "µs";
  const inferences = [
    { name: `inference (${unit})`, isDots: true, colour: 0, points: measured },
    { name: "warm-up", isDots: true, colour: 2, points: warmup },
  ].filter((curve) => curve.points.length);
  if (inferences.length) panels.push({ title: "latency of each inference", axes: (shown) => [latencyAxis(shown, dots, { name: "" })], curves: inferences });
  const { MHz, "°C": celsius, ...used } = counters;
  const looks = OTHER_LOOKS.slice();
  const cpus = Object.entries(used).map(([user, points]) => {
    const [name, colour, dash] = CPU_LOOKS[user] ?? [`by ${user}`, ...(looks.shift() ?? [5, "solid"])];
    return { name, colour, dash, points };
  });
  if (cpus.length) panels.push({ title: "CPUs kept busy", axes: (shown) => [valueAxis(shown, { min: 0, splitNumber: 3 })], curves: cpus });
  const heat = [
    { name: "fastest clock (MHz)", colour: 0, points: MHz ?? [] },
    { name: "hottest sensor (°C)", colour: 1, axis: 1, dash: "dashed", points: celsius ?? [] },
  ].filter((curve) => curve.points.length);
  if (heat.length) {
    const axes = (shown) => [valueAxis(shown, { scale: true, splitNumber: 3 }), valueAxis(shown, { scale: true, splitLine: { show: false }, splitNumber: 3 })];
    panels.push({ title: "clock and temperature", axes, curves: heat });
  }
  return panels;
}
