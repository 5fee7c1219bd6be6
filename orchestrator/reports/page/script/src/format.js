// Numbers as people read them.

const THIN = "\u202f";

export function latency(us) {
  if (us === null || us === undefined) return "–";
  if (us < 1000) return `${us.toFixed(us >= 100 ? 0 : 1)}${THIN}µs`;
  const ms = us / 1000;
  return `${ms.toFixed(ms >= 100 ? 0 : ms >= 10 ? 1 : 2)}${THIN}ms`;
}

export function interval(estimate) {
  if (!estimate || estimate[1] === null || estimate[2] === null) return "";
  const [low, high] = [latency(estimate[1]), latency(estimate[2])];
  const [number, unit] = low.split(THIN);
  return unit === high.split(THIN)[1] ? `${number} – ${high}` : `${low} – ${high}`;
}

export function percent(share, digits = 1) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)}${THIN}%`;
}

export function signed(value) {
  return value === null || value === undefined ? "–" : `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(1)}${THIN}%`;
}

export function times(ratio) {
  return ratio === null || ratio === undefined ? "" : `${ratio.toFixed(2)}×`;
}

export function bytes(count) {
  if (count === null || count === undefined) return "–";
  if (count < 1e6) return `${(count / 1e3).toFixed(count < 1e4 ? 1 : 0)}${THIN}kB`;
  return `${(count / 1e6).toFixed(count < 1e8 ? 1 : 0)}${THIN}MB`;
}

export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

export function threads(count) {
  return counted(count, "thread");
}

export function moment(text) {
  const parsed = new Date(text);
  if (Number.isNaN(parsed.getTime())) return String(text ?? "");
  return `${parsed.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** One unit and one number of decimals for a whole column, so that its figures stand under each other. */
export function columnOf(values) {
  const known = values.filter((value) => value !== null && value !== undefined && value > 0);
  const low = known.length ? known.reduce((one, other) => Math.min(one, other)) : 1;
  const high = known.length ? known.reduce((one, other) => Math.max(one, other)) : 1;
  if (high < 1000) return { unit: "µs", show: (us) => us.toFixed(low < 100 ? 1 : 0) };
  const decimals = low < 1000 ? 3 : low < 100_000 ? 2 : 1;
  return { unit: "ms", show: (us) => (us / 1000).toFixed(decimals) };
}

/** A key that puts cpu:2 before cpu:10, and idle before all. */
export function compareLoads(one, other) {
  if (one === "idle" || other === "idle") return one === other ? 0 : one === "idle" ? -1 : 1;
  return one.localeCompare(other, "en", { numeric: true });
}
