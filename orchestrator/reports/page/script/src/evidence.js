// The evidence behind a number: a cell with its trials, a trial with its log, flags, hashes, states and artifacts.

import { timeline } from "./charts/timeline.js";
import { el, name, replace } from "./dom.js";
import { bytes, counted, interval, latency, moment, percent, times } from "./format.js";
import { outcomeMark, settingText, trustMark } from "./marks.js";
import { cellOf, data, trialsOf } from "./payload.js";
import { cellLink, parseRoute, trialLink } from "./routes.js";

const dialog = el("dialog", { class: "evidence", "aria-labelledby": "evidence-title" });
const inside = el("div", { class: "inside" });
let latest = 0;

export function evidence() {
  dialog.append(el("form", { method: "dialog", class: "closing" }, el("button", { type: "submit", "aria-label": "Close" }, "Close")), inside);
  dialog.addEventListener("close", () => {
    if (parseRoute(location.hash)) history.pushState(null, "", location.pathname + location.search);
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  addEventListener("hashchange", show);
  addEventListener("popstate", show);
  return dialog;
}

/** Opens what the fragment names, and closes what it does not. */
export async function show() {
  const route = parseRoute(location.hash);
  const turn = ++latest;
  if (!route) {
    if (dialog.open) dialog.close();
    return;
  }
  const cell = cellOf.get(route.key);
  const trials = cell ? await trialsOf(route.key) : [];
  if (turn !== latest) return;
  if (!dialog.open) dialog.showModal();
  const trial = route.kind === "trial" ? trials[route.number] : null;
  if (!cell) replace(inside, el("h2", { id: "evidence-title" }, "No such cell in this report"), el("p", {}, name(route.key)));
  else if (route.kind === "trial" && trial) replace(inside, trialView(cell, trial, route.number, trials.length));
  else replace(inside, cellView(cell, trials));
  dialog.scrollTop = 0;
  const title = dialog.querySelector("#evidence-title");
  title.tabIndex = -1;
  title.focus({ preventScroll: true });
}

// A cell

function cellView(cell, trials) {
  const metric = (key) => [key, cell[key] ? `${latency(cell[key][0])}${interval(cell[key]) ? `  (${interval(cell[key])})` : ""}` : null];
  return [
    el("p", { class: "eyebrow" }, "Cell ", el("code", {}, cell.id)),
    el("h2", { id: "evidence-title" }, name(cell.model, 80)),
    el("p", { class: "where" }, name(settingText(cell), 80), " · ", name(cell.device, 60), ` · ${cell.runner}`),
    cell.is_reference ? el("p", { class: "hint" }, "The pinned reference, measured in every block: it tells a device that moved from a build that did.") : null,
    cell.trust && el("p", {}, trustMark(cell.trust), cell.stopped ? ` stopped: ${cell.stopped}` : ""),
    cell.trust_reasons.map((reason) => el("div", { class: "doubt" }, el("p", { class: "why" }, reason.text), el("p", { class: "remedy" }, `To do: ${reason.remedy}.`))),
    facts([
      ...["p50", "mean", "p90", "p95", "p99"].map(metric),
      ["spread in a process", cell.cv_in === null ? null : percent(cell.cv_in)],
      ["spread between processes", cell.cv_between === null ? null : percent(cell.cv_between)],
      ["1.5 times as slow as typical", cell.slow === null ? null : `${percent(cell.slow)} of inferences`],
      ["speed-up", cell.speedup ? `${times(cell.speedup[0])} over ${cell.base_threads}, ${cell.verdict}` : null],
      ["against idle", cell.vs_idle ? times(cell.vs_idle[0]) : null],
      ...Object.entries(cell.medians).map(([key, value]) => withUnit(key, value)),
      ["model SHA-256", el("code", {}, cell.model_sha256)],
      ["runner SHA-256", cell.runner_sha256 ? el("code", {}, cell.runner_sha256) : null],
    ]),
    cell.notes.length ? el("ul", { class: "notes" }, cell.notes.map((note) => el("li", {}, note))) : null,
    traces(data.traces.filter((trace) => trace.cell === cell.id)),
    el("h3", {}, counted(trials.length, "trial")),
    trialTable(cell, trials),
  ];
}

/** System traces stay in the store, as they are large; the page says where, and how to look at them. */
function traces(list) {
  if (!list.length) return null;
  const item = ({ tool, outcome, reason, why, path, bytes: size, events, viewer }) =>
    el(
      "li",
      {},
      el("strong", {}, tool ?? "no tracer"),
      ` ${outcome}`,
      reason ? `: ${reason}` : "",
      path ? [", ", el("code", {}, path), size === null ? "" : ` (${bytes(size)}, ${counted(events, "event")})`] : null,
      why ? el("span", { class: "muted" }, ` traced because ${why}`) : null,
      viewer ? el("span", { class: "muted" }, ` To look at it: ${viewer}.`) : null,
    );
  return [el("h3", {}, counted(list.length, "system trace")), el("ul", { class: "notes" }, list.map(item))];
}

const UNITS = { us: latency, kb: (value) => bytes(1024 * value), mb: (value) => bytes(1e6 * value) };

/** `init_us` and 1500 as words: init, 1.50 ms. */
function withUnit(key, value) {
  const [, words, unit] = /^(.*)_(us|kb|mb)$/.exec(key) ?? [null, key, null];
  return [words.replaceAll("_", " "), unit ? UNITS[unit](value) : String(value)];
}

function trialTable(cell, trials) {
  const rows = trials.map((trial, number) =>
    el(
      "tr",
      {},
      el("td", { class: "figure" }, el("a", { href: trialLink(cell.id, number) }, String(number + 1))),
      el("td", { class: "figure" }, String(trial.block)),
      el("td", {}, outcomeMark(trial.outcome)),
      el("td", { class: "figure" }, trial.outcome === "measured" ? latency(cell.trials[number]?.[2]) : "–"),
      el("td", { class: "figure" }, String(trial.time.count || (trial.summary?.count ?? "–"))),
      el("td", {}, moment(trial.started_at)),
      el("td", { class: "wrap" }, trial.reason ?? trial.findings.map((finding) => finding.reason).join("; ")),
    ),
  );
  const head = [["Trial", "figure"], ["Block", "figure"], ["Outcome", ""], ["p50", "figure"], ["Inferences", "figure"], ["Started", ""], ["Reason", ""]];
  return el("div", { class: "scroller" }, el("table", {}, el("thead", {}, el("tr", {}, head.map(([text, kind]) => el("th", { scope: "col", class: kind }, text)))), el("tbody", {}, rows)));
}

// A trial

function trialView(cell, trial, number, count) {
  const drawing = timeline(trial);
  const step = (text, to) => (to >= 0 && to < count ? el("a", { href: trialLink(cell.id, to) }, text) : el("span", { class: "muted" }, text));
  return [
    el("p", { class: "eyebrow" }, el("a", { href: cellLink(cell.id) }, "← its cell"), " · ", step("previous trial", number - 1), " · ", step("next trial", number + 1)),
    el("h2", { id: "evidence-title" }, `Trial ${number + 1} of `, name(cell.model, 60)),
    el("p", { class: "where" }, name(settingText(cell), 80), " · ", name(cell.device, 60)),
    el("p", {}, outcomeMark(trial.outcome), trial.reason ? ` ${trial.reason}` : ""),
    trial.findings.length ? findings(trial.findings) : null,
    facts([
      ["block, position", `${trial.block}, ${trial.position}`],
      ["started", moment(trial.started_at)],
      ["took", trial.duration_s === null ? null : `${trial.duration_s} s`],
      ["waited before it", trial.waited_s ? `${trial.waited_s} s` : null],
      ["session", el("code", {}, trial.session)],
      ...Object.entries(trial.summary ?? {}).map(([key, value]) => [key, key === "count" ? `${value} inferences` : latency(value)]),
    ]),
    drawing ? [el("h3", {}, "In time"), timeNote(trial), drawing] : el("p", { class: "empty" }, "Neither samples nor telemetry were kept for this trial."),
    el("h3", {}, "Evidence"),
    fold("Command line and environment", el("pre", {}, commandLine(trial.argv)), Object.keys(trial.env).length ? tree(trial.env) : null),
    fold("Observed by the runner", tree(trial.observed)),
    fold("Device before and after", trial.states.some((one) => Object.keys(one ?? {}).length) ? tree({ before: trial.states[0], after: trial.states.at(-1) }) : el("p", { class: "empty" }, "No limits are set for this device, so its state was not asked for.")),
    fold("Load", tree(trial.load)),
    fold("Process as the agent saw it", tree({ started: trial.started, closing: trial.closing })),
    fold("Metrics", tree(trial.metrics)),
    fold("Artifacts", Object.keys(trial.artifacts).length ? tree(trial.artifacts) : el("p", { class: "empty" }, "No files were pulled from the device.")),
    log(trial.log),
  ];
}

function timeNote({ time }) {
  const notes = [];
  if (time.measured.length < time.count) notes.push(`${time.measured.length} of ${time.count.toLocaleString("en")} inferences are drawn: of each stretch the median and the slowest`);
  if (time.measured.length && !time.is_recorded) notes.push("when each inference began is reconstructed: lengths laid end to end");
  const absent = Object.keys(time.absent);
  if (absent.length) notes.push(`the device does not tell: ${absent.join(", ")}`);
  if (!Object.keys(time.counters).length) notes.push("no telemetry was kept");
  return notes.length ? el("p", { class: "hint" }, `${notes.join("; ")}.`) : null;
}

function findings(list) {
  return el("ul", { class: "notes" }, list.map((finding) => el("li", {}, el("strong", {}, `${finding.severity}: `), finding.reason, el("span", { class: "muted" }, ` (${finding.remedy})`))));
}

/** The words of a command, a line for each flag, as a shell would take them. */
function commandLine(argv) {
  return argv.map((word, index) => (index === 0 ? "" : String(word).startsWith("-") ? " \\\n  " : " ") + quoted(String(word))).join("");
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function log(found) {
  if (!found) return fold("Log", el("p", { class: "empty" }, "No log was kept."));
  const place = el("p", { class: "hint" }, "In the store: ", el("code", {}, found.path));
  if (found.text === undefined) return fold("Log", place, el("p", { class: "empty" }, `A report of ${data.cells.length} cells carries the logs of trials that do not count only.`));
  if (found.text === null) return fold("Log", place, el("p", { class: "empty" }, "The file is not in the store any more."));
  return fold("Log", place, el("pre", { class: "log", tabindex: 0 }, found.text));
}

function fold(title, ...content) {
  return el("details", {}, el("summary", {}, title), content);
}

function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined);
  return el("dl", { class: "facts-list" }, known.map(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));
}

/** Anything as nested lists of terms. */
function tree(value) {
  if (value === null || value === undefined || value === "") return el("span", { class: "muted" }, "none");
  if (Array.isArray(value)) {
    if (!value.some((item) => item && typeof item === "object")) return el("code", {}, value.map(String).join(", ") || "none");
    return el("ol", {}, value.map((item) => el("li", {}, tree(item))));
  }
  if (typeof value !== "object") return el("code", {}, String(value));
  const entries = Object.entries(value);
  if (!entries.length) return el("span", { class: "muted" }, "none");
  return el("dl", { class: "facts-list" }, entries.map(([key, item]) => [el("dt", {}, name(key, 60)), el("dd", {}, tree(item))]));
}
