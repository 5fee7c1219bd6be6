// Makes elements. Text from data only ever becomes text.

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [name, act] of Object.entries(value)) node.addEventListener(name, act);
    else if (key === "class") node.className = value;
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const LONG = 72;

/** A name from data: set apart from the text around it, and shortened, with the whole of it at hand. */
export function name(text, most = LONG) {
  const whole = String(text);
  return el("bdi", { class: "name", title: whole.length > most ? whole : null }, shortened(whole, most));
}

export function shortened(text, most = LONG) {
  const letters = Array.from(String(text));
  if (letters.length <= most) return letters.join("");
  const head = Math.ceil(most * 0.6);
  return `${letters.slice(0, head).join("")}…${letters.slice(head - most + 1).join("")}`;
}

/** A name for inside a drawing, where nothing isolates it: without the marks that turn the direction of text. */
export function plain(text, most = 44) {
  return shortened(String(text).replace(/[\u0000-\u001f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "·"), most);
}

export function replace(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter(Boolean));
  return node;
}

export function select(label, options, value, onChange) {
  const chosen = options.some(([key]) => key === value) ? value : options[0]?.[0];
  const field = el(
    "select",
    { on: { change: (event) => onChange(event.target.value) } },
    options.map(([key, text]) => el("option", { value: key, selected: key === chosen }, shortened(text, 60))),
  );
  return el("label", { class: "field" }, el("span", {}, label), field);
}
