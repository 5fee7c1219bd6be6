// The answer first: for each model and device the setting to use, idle and under load, and how surely.

import { el, name, replace } from "./dom.js";
import { counted, interval, latency, percent, threads } from "./format.js";
import { trustMark } from "./marks.js";
import { cellOf, data, groupKey } from "./payload.js";
import { cellLink } from "./routes.js";
import { change, matchingGroups, onChange } from "./state.js";

const PAGE = 8;

export function answers() {
  const list = el("div", { class: "cards" });
  const summary = el("div");
  const more = el("p", { class: "more no-print" });
  let shown = PAGE;
  const draw = () => {
    const groups = matchingGroups();
    replace(list, groups.slice(0, shown).map((item) => card(item)));
    if (!groups.length) replace(list, el("p", { class: "empty" }, data.recommendations.length ? "No answer matches the filters." : "This run has no trials, so there is nothing to recommend."));
    replace(summary, groups.length > PAGE ? glance(groups) : null);
    const rest = groups.length - shown;
    replace(more, rest > 0 ? el("button", { type: "button", on: { click: () => ((shown += 40), draw()) } }, `Show ${Math.min(40, rest)} more of ${groups.length}`) : null);
  };
  onChange(() => ((shown = PAGE), draw()));
  draw();
  return [
    data.recommendations.length > 0 && el("p", { class: "hint" }, "The lowest mean latency wins, so that slow inferences count; of settings as good as each other, the one with the fewest threads. Intervals are 95 % intervals of the typical trial."),
    summary,
    list,
    more,
  ];
}

function card(item) {
  const focus = () => {
    change({ focus: Math.max(0, matchingGroups().findIndex((other) => groupKey(other) === groupKey(item))) });
    document.getElementById("charts").scrollIntoView();
  };
  return el(
    "article",
    { class: "card" },
    el(
      "header",
      {},
      el("h3", {}, name(item.model, 60)),
      el("p", { class: "where" }, name(item.device, 40), ` · ${item.runner}`, item.arm ? [" · ", name(item.arm, 30)] : null),
    ),
    el("div", { class: "choices" }, choice("When idle", item.idle), choice("Under load", item.loaded)),
    el("p", { class: "sentence" }, sentence(item.text)),
    el("button", { type: "button", class: "quiet no-print", on: { click: focus } }, "Show its charts"),
  );
}

/** A sentence begins with a capital, unless it begins with a name. */
function sentence(text) {
  return /^(use|no) /.test(text) ? `${text.charAt(0).toUpperCase()}${text.slice(1)}.` : `${text}.`;
}

/** Many answers in two lines: which settings are the best, and how often. */
function glance(groups) {
  const tally = (key) => {
    const counts = new Map();
    for (const item of groups) {
      const setting = item[key]?.setting ?? "not measured";
      counts.set(setting, (counts.get(setting) ?? 0) + 1);
    }
    const ordered = [...counts].sort((one, other) => other[1] - one[1]);
    const rest = ordered.slice(4).reduce((sum, [, count]) => sum + count, 0);
    return [...ordered.slice(0, 4).map(([setting, count]) => `${setting} (${count})`), ...(rest ? [`others (${rest})`] : [])].join("; ");
  };
  return el("dl", { class: "glance" }, pair("When idle", tally("idle")), pair("Under load", tally("loaded")));
}

function choice(title, found) {
  if (!found) return el("section", { class: "choice none" }, el("h4", {}, title), el("p", { class: "setting" }, "not measured"));
  const cell = cellOf.get(found.cell);
  const where = found.cells.length > 1 ? `slowest under ${cell.load}` : cell.load === "idle" ? null : cell.load;
  return el(
    "section",
    { class: `choice ${found.certainty}` },
    el("h4", {}, title, found.certainty === "settled" ? null : el("span", { class: "unsettled", title: found.reason }, "not settled")),
    el("p", { class: "setting" }, `${threads(found.threads)}`, el("span", { class: "delegate" }, name(found.delegate, 40), found.affinity === "any" ? "" : ` on ${found.affinity}`)),
    el(
      "p",
      { class: "figure" },
      el("a", { href: cellLink(found.cell), title: "its trials" }, latency(cell.p50?.[0])),
      el("span", { class: "interval" }, interval(cell.p50) || "no interval yet"),
    ),
    el(
      "dl",
      { class: "small" },
      pair("mean", latency(cell.mean?.[0])),
      pair("p95", latency(cell.p95?.[0])),
      pair("varies", cell.cv_between === null ? "–" : `${percent(cell.cv_between)} between processes`),
      where ? pair("load", name(where, 40)) : null,
      pair("trust", trustMark(cell.trust)),
    ),
  );
}

function pair(term, value) {
  return [el("dt", {}, term), el("dd", {}, value)];
}

export const answersTitle = () => (data.recommendations.length > 1 ? `What to use: ${counted(data.recommendations.length, "answer")}` : "What to use");
