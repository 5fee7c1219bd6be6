// The bar that narrows the page: device, model, delegate, load, and a word.

import { el, replace, select } from "./dom.js";
import { counted } from "./format.js";
import { data } from "./payload.js";
import { FILTERS, change, matchingCells, onChange, state } from "./state.js";

const TITLES = { device: "Device", model: "Model", delegate: "Delegate", load: "Load" };

export function filters() {
  const fields = el("div", { class: "fields" });
  const said = el("p", { class: "said", role: "status" });
  const search = el("input", { type: "search", id: "search", placeholder: "name, trust, id", on: { input: (event) => change({ text: event.target.value }) } });
  const draw = () => {
    replace(fields, FILTERS.map(field));
    fields.append(el("label", { class: "field" }, el("span", {}, "Search"), search));
    const found = matchingCells().length;
    const isNarrowed = FILTERS.some((key) => state[key]) || state.text;
    replace(said, `${isNarrowed ? `${found} of ` : ""}${counted(data.cells.length, "cell")}`, isNarrowed ? clear() : null);
  };
  const clear = () => {
    const reset = () => ((search.value = ""), change({ device: "", model: "", delegate: "", load: "", text: "" }));
    return el("button", { type: "button", class: "quiet", on: { click: reset } }, "Clear");
  };
  onChange(() => {
    const active = document.activeElement === search;
    draw();
    if (active) search.focus();
  });
  draw();
  return el("div", { class: "filters no-print" }, fields, said);
}

function field(key) {
  const values = [...new Set(data.cells.map((cell) => cell[key]))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const node = select(TITLES[key], [["", "All"], ...values.map((value) => [value, value])], state[key], (value) => change({ [key]: value }));
  node.querySelector("select").id = `filter-${key}`;
  return node;
}
