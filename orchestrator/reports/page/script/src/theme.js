// Light, dark, or as the system has it; and the colours of that for the charts, which cannot read a style sheet.

const listeners = new Set();
const probe = document.createElement("span");
probe.hidden = true;

export function onTheme(listener) {
  listeners.add(listener);
}

export function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  for (const listener of listeners) listener();
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const listener of listeners) listener();
});

/** The colour that a custom property of the style sheet has now. */
export function colour(property) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(--${property})`;
  return getComputedStyle(probe).color;
}

export function colours() {
  const names = ["ink", "muted", "line", "surface", "accent", "faster", "slower", "neutral", "raised"];
  return {
    ...Object.fromEntries(names.map((property) => [property, colour(property)])),
    series: [1, 2, 3, 4, 5, 6].map((number) => colour(`series-${number}`)),
  };
}
