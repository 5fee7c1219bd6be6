// A chart on the page: drawn when it comes into view, again when its size or the theme changes, and for print.

import { el } from "../dom.js";
import { colours, onTheme } from "../theme.js";

const live = new Set();
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) entry.target.drawn();
}, { rootMargin: "400px" });
const sized = new ResizeObserver((entries) => {
  for (const entry of entries) entry.target.resized();
});

/** `draw(colours, width)` gives ECharts' options; `label` is the chart in words, for those who do not see it. */
export function chart({ label, height, draw, onClick }) {
  const place = el("div", { class: "chart", role: "img", "aria-label": label });
  place.style.height = `${height}px`;
  let instance = null;
  let width = 0;
  const render = () => {
    if (!instance) return;
    instance.setOption({ ...base(), ...draw(colours(), place.clientWidth) }, { notMerge: true });
  };
  place.drawn = () => {
    if (instance || !place.clientWidth) return;
    width = place.clientWidth;
    instance = DevbenchCharts.init(place, null, { renderer: "svg" });
    if (onClick) instance.on("click", onClick);
    render();
    seen.unobserve(place);
  };
  place.resized = () => {
    if (!place.isConnected) return forget(place, instance);
    if (!instance || place.clientWidth === width || !place.clientWidth) return;
    width = place.clientWidth;
    instance.resize();
    render();
  };
  place.render = render;
  live.add(place);
  seen.observe(place);
  sized.observe(place);
  return place;
}

function forget(place, instance) {
  live.delete(place);
  sized.unobserve(place);
  seen.unobserve(place);
  instance?.dispose();
}

export function drawAll() {
  for (const place of live) if (place.isConnected) place.drawn();
}

function renderAll() {
  for (const place of live) if (place.isConnected) place.render();
}

onTheme(renderAll);

function base() {
  const shown = colours();
  return {
    animation: false,
    backgroundColor: "transparent",
    color: shown.series,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: shown.ink, fontSize: 12 },
  };
}

// What the charts have in common

export function tooltip(shown, formatter, more = {}) {
  return {
    confine: true,
    backgroundColor: shown.raised,
    borderColor: shown.line,
    textStyle: { color: shown.ink, fontSize: 12 },
    extraCssText: "box-shadow: 0 2px 10px rgb(0 0 0 / 12%); max-width: 320px; white-space: normal;",
    formatter,
    ...more,
  };
}

/** Lines of text as an element; the first stands out. */
export function lines(first, ...rest) {
  return el("div", {}, el("strong", {}, first), rest.filter(Boolean).map((line) => el("div", {}, line)));
}

export function valueAxis(shown, more = {}) {
  return {
    type: "value",
    axisLine: { show: false },
    axisTick: { show: false },
    axisLabel: { color: shown.muted, hideOverlap: true },
    splitLine: { lineStyle: { color: shown.line } },
    nameTextStyle: { color: shown.muted },
    ...more,
  };
}

export function categoryAxis(shown, names, more = {}) {
  return {
    type: "category",
    data: names,
    axisLine: { lineStyle: { color: shown.line } },
    axisTick: { show: false },
    axisLabel: { color: shown.ink, interval: 0 },
    nameTextStyle: { color: shown.muted },
    ...more,
  };
}

/** Latencies on an axis: logarithmic where they span more than a decade. */
export function latencyAxis(shown, values, more = {}) {
  const known = values.filter((value) => value > 0);
  const low = known.reduce((one, other) => Math.min(one, other), Infinity);
  const high = known.reduce((one, other) => Math.max(one, other), 0);
  const isWide = known.length > 0 && high / low > 12;
  const inMs = high >= 1000;
  const { axisLabel, ...rest } = more;
  const span = high - low || high || 1;
  return {
    ...valueAxis(shown, isWide ? { type: "log", logBase: 10 } : { scale: true, min: Math.max(0, low - 0.12 * span), max: high + 0.08 * span }),
    ...(isWide ? { min: niceBelow(low), max: niceAbove(high) } : {}),
    name: inMs ? "ms" : "µs",
    axisLabel: {
      color: shown.muted,
      hideOverlap: true,
      showMinLabel: isWide,
      showMaxLabel: isWide,
      formatter: (value) => axisText(inMs ? value / 1000 : value),
      ...axisLabel,
    },
    ...rest,
  };
}

function niceBelow(value) {
  const decade = 10 ** Math.floor(Math.log10(value));
  return [5, 2, 1].map((step) => step * decade).find((edge) => edge <= value * 0.98) ?? decade;
}

function niceAbove(value) {
  const decade = 10 ** Math.floor(Math.log10(value));
  return [2, 5, 10].map((step) => step * decade).find((edge) => edge >= value * 1.02) ?? 10 * decade;
}

export function axisText(value) {
  return Number(value.toPrecision(3)).toString();
}

/** An interval as a thin bar with ends, by a custom series whose values are [position, low, high]. */
export function intervals(rows, { colour, isUpright, size = 5, width = 1.5 }) {
  return {
    type: "custom",
    silent: true,
    z: 3,
    data: rows,
    encode: isUpright ? { x: 0, y: [1, 2] } : { y: 0, x: [1, 2] },
    renderItem: (params, api) => {
      const at = api.value(0);
      const point = (value) => api.coord(isUpright ? [at, value] : [value, at]);
      const [low, high] = [point(api.value(1)), point(api.value(2))];
      const style = { stroke: typeof colour === "function" ? colour(params.dataIndex) : colour, lineWidth: width, fill: "none" };
      const end = ([x, y]) => (isUpright ? { x1: x - size, x2: x + size, y1: y, y2: y } : { x1: x, x2: x, y1: y - size, y2: y + size });
      const line = (shape) => ({ type: "line", shape, style });
      return { type: "group", children: [line({ x1: low[0], y1: low[1], x2: high[0], y2: high[1] }), line(end(low)), line(end(high))] };
    },
  };
}
