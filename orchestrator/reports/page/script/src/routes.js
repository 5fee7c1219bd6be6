// Fragments that can be shared: #cell/ID and #trial/ID/NUMBER open the evidence, any other is a place on the page.

export function cellLink(key) {
  return `#cell/${encodeURIComponent(key)}`;
}

export function trialLink(key, number) {
  return `#trial/${encodeURIComponent(key)}/${number}`;
}

export function parseRoute(fragment) {
  const [kind, key, number] = fragment.replace(/^#/, "").split("/");
  try {
    if (kind === "cell" && key) return { kind, key: decodeURIComponent(key) };
    if (kind === "trial" && key) return { kind, key: decodeURIComponent(key), number: Number.parseInt(number, 10) };
  } catch {
    return null; // a fragment that is no link of ours
  }
  return null;
}

export function go(fragment) {
  location.hash = fragment;
}
