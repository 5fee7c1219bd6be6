(() => {
  var __getOwnPropNames = Object.getOwnPropertyNames;
  var __esm = (fn, res, err) => function __init() {
    if (err) throw err[0];
    try {
      return fn && (res = (0, fn[__getOwnPropNames(fn)[0]])(fn = 0)), res;
    } catch (e) {
      throw err = [e], e;
    }
  };

  // src/packing.js
  async function unpacked(element) {
    const binary = atob(element.textContent);
    const bytes2 = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes2]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }
  var init_packing = __esm({
    "src/packing.js"() {
    }
  });

  // src/dom.js
  function el(tag, props = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(props)) {
      if (value === null || value === void 0 || value === false) continue;
      if (key === "on") for (const [name2, act] of Object.entries(value)) node.addEventListener(name2, act);
      else if (key === "class") node.className = value;
      else node.setAttribute(key, value === true ? "" : String(value));
    }
    node.append(...children.flat(Infinity).filter((child) => child !== null && child !== void 0 && child !== false));
    return node;
  }
  function name(text2, most = LONG) {
    const whole = String(text2);
    return el("bdi", { class: "name", title: whole.length > most ? whole : null }, shortened(whole, most));
  }
  function shortened(text2, most = LONG) {
    const letters = Array.from(String(text2));
    if (letters.length <= most) return letters.join("");
    const head = Math.ceil(most * 0.6);
    return `${letters.slice(0, head).join("")}…${letters.slice(head - most + 1).join("")}`;
  }
  function plain(text2, most = 44) {
    return shortened(String(text2).replace(/[\u0000-\u001f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "·"), most);
  }
  function replace(node, ...children) {
    node.replaceChildren(...children.flat(Infinity).filter(Boolean));
    return node;
  }
  function select(label, options, value, onChange2) {
    const chosen2 = options.some(([key]) => key === value) ? value : options[0]?.[0];
    const field3 = el(
      "select",
      { on: { change: (event) => onChange2(event.target.value) } },
      options.map(([key, text2]) => el("option", { value: key, selected: key === chosen2 }, shortened(text2, 60)))
    );
    return el("label", { class: "field" }, el("span", {}, label), field3);
  }
  var LONG;
  var init_dom = __esm({
    "src/dom.js"() {
      LONG = 72;
    }
  });

  // src/format.js
  function latency(us2) {
    if (us2 === null || us2 === void 0) return "–";
    if (us2 < 1e3) return `${us2.toFixed(us2 >= 100 ? 0 : 1)}${THIN}µs`;
    const ms = us2 / 1e3;
    return `${ms.toFixed(ms >= 100 ? 0 : ms >= 10 ? 1 : 2)}${THIN}ms`;
  }
  function interval(estimate) {
    if (!estimate || estimate[1] === null || estimate[2] === null) return "";
    const [low, high] = [latency(estimate[1]), latency(estimate[2])];
    const [number, unit] = low.split(THIN);
    return unit === high.split(THIN)[1] ? `${number} – ${high}` : `${low} – ${high}`;
  }
  function percent(share, digits = 1) {
    return share === null || share === void 0 ? "–" : `${(100 * share).toFixed(digits)}${THIN}%`;
  }
  function signed(value) {
    return value === null || value === void 0 ? "–" : `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(1)}${THIN}%`;
  }
  function times(ratio) {
    return ratio === null || ratio === void 0 ? "" : `${ratio.toFixed(2)}×`;
  }
  function bytes(count) {
    if (count === null || count === void 0) return "–";
    if (count < 1e6) return `${(count / 1e3).toFixed(count < 1e4 ? 1 : 0)}${THIN}kB`;
    return `${(count / 1e6).toFixed(count < 1e8 ? 1 : 0)}${THIN}MB`;
  }
  function counted(count, noun) {
    return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
  }
  function threads(count) {
    return counted(count, "thread");
  }
  function moment(text2) {
    const parsed = new Date(text2);
    if (Number.isNaN(parsed.getTime())) return String(text2 ?? "");
    return `${parsed.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  }
  function columnOf(values) {
    const known = values.filter((value) => value !== null && value !== void 0 && value > 0);
    const low = known.length ? known.reduce((one, other) => Math.min(one, other)) : 1;
    const high = known.length ? known.reduce((one, other) => Math.max(one, other)) : 1;
    if (high < 1e3) return { unit: "µs", show: (us2) => us2.toFixed(low < 100 ? 1 : 0) };
    const decimals = low < 1e3 ? 3 : low < 1e5 ? 2 : 1;
    return { unit: "ms", show: (us2) => (us2 / 1e3).toFixed(decimals) };
  }
  function compareLoads(one, other) {
    if (one === "idle" || other === "idle") return one === other ? 0 : one === "idle" ? -1 : 1;
    return one.localeCompare(other, "en", { numeric: true });
  }
  var THIN;
  var init_format = __esm({
    "src/format.js"() {
      THIN = " ";
    }
  });

  // src/payload.js
  async function trialsOf(key) {
    const index = data.chunks[key];
    if (index === void 0) return [];
    if (!unpacked2.has(index)) unpacked2.set(index, unpacked(packed[index]));
    return (await unpacked2.get(index))[key] ?? [];
  }
  function groupKey(item) {
    return JSON.stringify([item.device, item.model, item.model_sha256, item.runner, item.arm]);
  }
  function cellsOf(key) {
    return grouped.get(key) ?? [];
  }
  var data, cellOf, UNJUDGED, packed, unpacked2, grouped;
  var init_payload = __esm({
    "src/payload.js"() {
      init_packing();
      data = globalThis.devbench;
      cellOf = new Map(data.cells.map((cell) => [cell.id, cell]));
      UNJUDGED = { arm: null, p50: null, mean: null, p90: null, p95: null, p99: null, cv_in: null, cv_between: null, slow: null, speedup: null, vs_idle: null, trust: null, trust_reasons: [], medians: {}, stopped: null };
      for (const cell of data.sustained) cellOf.set(cell.id, { ...UNJUDGED, ...cell });
      packed = document.querySelectorAll("script.chunk");
      unpacked2 = /* @__PURE__ */ new Map();
      grouped = /* @__PURE__ */ new Map();
      for (const cell of data.cells) {
        const key = groupKey(cell);
        if (!grouped.has(key)) grouped.set(key, []);
        grouped.get(key).push(cell);
      }
    }
  });

  // src/routes.js
  function cellLink(key) {
    return `#cell/${encodeURIComponent(key)}`;
  }
  function trialLink(key, number) {
    return `#trial/${encodeURIComponent(key)}/${number}`;
  }
  function parseRoute(fragment) {
    const [kind, key, number] = fragment.replace(/^#/, "").split("/");
    try {
      if (kind === "cell" && key) return { kind, key: decodeURIComponent(key) };
      if (kind === "trial" && key) return { kind, key: decodeURIComponent(key), number: Number.parseInt(number, 10) };
    } catch {
      return null;
    }
    return null;
  }
  function go(fragment) {
    location.hash = fragment;
  }
  var init_routes = __esm({
    "src/routes.js"() {
    }
  });

  // src/marks.js
  function trustMark(verdict) {
    return el("span", { class: `mark trust-${verdict}` }, `${TRUST[verdict] ?? "○"} ${verdict}`);
  }
  function outcomeMark(outcome) {
    return el("span", { class: `mark outcome-${outcome}` }, `${OUTCOMES[outcome] ?? "○"} ${outcome}`);
  }
  function settingText(cell) {
    const affinity = cell.affinity === "any" ? "" : ` on ${cell.affinity}`;
    return `${cell.delegate}, ${threads(cell.threads)}${affinity}, ${cell.load}`;
  }
  function shortText(cell) {
    const affinity = cell.affinity === "any" ? null : `on ${cell.affinity}`;
    const named = ["device", "model", "delegate"].filter((key) => !alone[key]).map((key) => shortened(cell[key], 32));
    return [...named, threads(cell.threads), affinity, shortened(cell.load, 32), cell.arm].filter(Boolean).join(" · ");
  }
  function cellAnchor(key, otherwise2 = key) {
    const cell = cellOf.get(key);
    if (!cell) return el("span", {}, name(otherwise2, 120));
    return el("a", { href: cellLink(key) }, name(shortText(cell), 90));
  }
  function cellList(keys) {
    if (keys.length === 1) return el("p", { class: "links" }, cellAnchor(keys[0]));
    const list = el("details", {}, el("summary", {}, `Which ${keys.length.toLocaleString("en")} cells`));
    list.addEventListener("toggle", () => {
      if (!list.open || list.children.length > 1) return;
      list.append(el("ul", { class: "links" }, keys.slice(0, LISTED).map((key) => el("li", {}, cellAnchor(key)))));
      if (keys.length > LISTED) list.append(el("p", { class: "hint" }, `and ${keys.length - LISTED} more`));
    });
    return list;
  }
  var TRUST, OUTCOMES, isAlone, alone, LISTED;
  var init_marks = __esm({
    "src/marks.js"() {
      init_dom();
      init_format();
      init_payload();
      init_routes();
      TRUST = { trusted: "●", noisy: "◐", contaminated: "▲", insufficient: "○" };
      OUTCOMES = { measured: "●", rejected: "✕", failed: "■", skipped: "–", "not-run": "○" };
      isAlone = (key) => new Set([...data.cells, ...data.sustained].map((cell) => cell[key])).size === 1;
      alone = Object.fromEntries(["device", "model", "delegate"].map((key) => [key, isAlone(key)]));
      LISTED = 500;
    }
  });

  // src/state.js
  function onChange(listener) {
    listeners.push(listener);
  }
  function change(parts) {
    Object.assign(state, parts);
    if (!("focus" in parts)) state.focus = 0;
    for (const listener of listeners) listener();
  }
  function matches(cell) {
    if (FILTERS.some((field3) => state[field3] && cell[field3] !== state[field3])) return false;
    if (!state.text) return true;
    const words = `${cell.device} ${cell.model} ${cell.runner} ${cell.delegate} ${cell.load} ${cell.trust} ${cell.id}`;
    return words.toLowerCase().includes(state.text.toLowerCase());
  }
  function matchingCells() {
    return data.cells.filter(matches);
  }
  function matchingGroups() {
    const left = new Set(matchingCells().map(groupKey));
    return data.recommendations.filter((item) => left.has(groupKey(item)));
  }
  var FILTERS, state, listeners;
  var init_state = __esm({
    "src/state.js"() {
      init_payload();
      FILTERS = ["device", "model", "delegate", "load"];
      state = { device: "", model: "", delegate: "", load: "", text: "", focus: 0 };
      listeners = [];
    }
  });

  // src/answers.js
  function answers() {
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
      replace(more, rest > 0 ? el("button", { type: "button", on: { click: () => (shown += 40, draw()) } }, `Show ${Math.min(40, rest)} more of ${groups.length}`) : null);
    };
    onChange(() => (shown = PAGE, draw()));
    draw();
    return [
      data.recommendations.length > 0 && el("p", { class: "hint" }, "The lowest mean latency wins, so that slow inferences count; of settings as good as each other, the one with the fewest threads. Intervals are 95 % intervals of the typical trial."),
      summary,
      list,
      more
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
        el("p", { class: "where" }, name(item.device, 40), ` · ${item.runner}`, item.arm ? [" · ", name(item.arm, 30)] : null)
      ),
      el("div", { class: "choices" }, choice("When idle", item.idle), choice("Under load", item.loaded)),
      el("p", { class: "sentence" }, sentence(item.text)),
      el("button", { type: "button", class: "quiet no-print", on: { click: focus } }, "Show its charts")
    );
  }
  function sentence(text2) {
    return /^(use|no) /.test(text2) ? `${text2.charAt(0).toUpperCase()}${text2.slice(1)}.` : `${text2}.`;
  }
  function glance(groups) {
    const tally = (key) => {
      const counts = /* @__PURE__ */ new Map();
      for (const item of groups) {
        const setting = item[key]?.setting ?? "not measured";
        counts.set(setting, (counts.get(setting) ?? 0) + 1);
      }
      const ordered = [...counts].sort((one, other) => other[1] - one[1]);
      const rest = ordered.slice(4).reduce((sum, [, count]) => sum + count, 0);
      return [...ordered.slice(0, 4).map(([setting, count]) => `${setting} (${count})`), ...rest ? [`others (${rest})`] : []].join("; ");
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
        el("span", { class: "interval" }, interval(cell.p50) || "no interval yet")
      ),
      el(
        "dl",
        { class: "small" },
        pair("mean", latency(cell.mean?.[0])),
        pair("p95", latency(cell.p95?.[0])),
        pair("varies", cell.cv_between === null ? "–" : `${percent(cell.cv_between)} between processes`),
        where ? pair("load", name(where, 40)) : null,
        pair("trust", trustMark(cell.trust))
      )
    );
  }
  function pair(term, value) {
    return [el("dt", {}, term), el("dd", {}, value)];
  }
  var PAGE, answersTitle;
  var init_answers = __esm({
    "src/answers.js"() {
      init_dom();
      init_format();
      init_marks();
      init_payload();
      init_routes();
      init_state();
      PAGE = 8;
      answersTitle = () => data.recommendations.length > 1 ? `What to use: ${counted(data.recommendations.length, "answer")}` : "What to use";
    }
  });

  // src/theme.js
  function onTheme(listener) {
    listeners2.add(listener);
  }
  function setTheme(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    for (const listener of listeners2) listener();
  }
  function colour(property) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(--${property})`;
    return getComputedStyle(probe).color;
  }
  function colours() {
    const names = ["ink", "muted", "line", "surface", "accent", "faster", "slower", "neutral", "raised"];
    return {
      ...Object.fromEntries(names.map((property) => [property, colour(property)])),
      series: [1, 2, 3, 4, 5, 6].map((number) => colour(`series-${number}`))
    };
  }
  var listeners2, probe;
  var init_theme = __esm({
    "src/theme.js"() {
      listeners2 = /* @__PURE__ */ new Set();
      probe = document.createElement("span");
      probe.hidden = true;
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
        for (const listener of listeners2) listener();
      });
    }
  });

  // src/charts/chart.js
  function chart({ label, height, draw, onClick }) {
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
  function drawAll() {
    for (const place of live) if (place.isConnected) place.drawn();
  }
  function renderAll() {
    for (const place of live) if (place.isConnected) place.render();
  }
  function base() {
    const shown = colours();
    return {
      animation: false,
      backgroundColor: "transparent",
      color: shown.series,
      textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: shown.ink, fontSize: 12 }
    };
  }
  function tooltip(shown, formatter, more = {}) {
    return {
      confine: true,
      backgroundColor: shown.raised,
      borderColor: shown.line,
      textStyle: { color: shown.ink, fontSize: 12 },
      extraCssText: "box-shadow: 0 2px 10px rgb(0 0 0 / 12%); max-width: 320px; white-space: normal;",
      formatter,
      ...more
    };
  }
  function lines(first, ...rest) {
    return el("div", {}, el("strong", {}, first), rest.filter(Boolean).map((line) => el("div", {}, line)));
  }
  function valueAxis(shown, more = {}) {
    return {
      type: "value",
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { color: shown.muted, hideOverlap: true },
      splitLine: { lineStyle: { color: shown.line } },
      nameTextStyle: { color: shown.muted },
      ...more
    };
  }
  function categoryAxis(shown, names, more = {}) {
    return {
      type: "category",
      data: names,
      axisLine: { lineStyle: { color: shown.line } },
      axisTick: { show: false },
      axisLabel: { color: shown.ink, interval: 0 },
      nameTextStyle: { color: shown.muted },
      ...more
    };
  }
  function latencyAxis(shown, values, more = {}) {
    const known = values.filter((value) => value > 0);
    const low = known.reduce((one, other) => Math.min(one, other), Infinity);
    const high = known.reduce((one, other) => Math.max(one, other), 0);
    const isWide = known.length > 0 && high / low > 12;
    const inMs = high >= 1e3;
    const { axisLabel, ...rest } = more;
    const span = high - low || high || 1;
    return {
      ...valueAxis(shown, isWide ? { type: "log", logBase: 10 } : { scale: true, min: Math.max(0, low - 0.12 * span), max: high + 0.08 * span }),
      ...isWide ? { min: niceBelow(low), max: niceAbove(high) } : {},
      name: inMs ? "ms" : "µs",
      axisLabel: {
        color: shown.muted,
        hideOverlap: true,
        showMinLabel: isWide,
        showMaxLabel: isWide,
        formatter: (value) => axisText(inMs ? value / 1e3 : value),
        ...axisLabel
      },
      ...rest
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
  function axisText(value) {
    return Number(value.toPrecision(3)).toString();
  }
  function intervals(rows, { colour: colour2, isUpright, size = 5, width = 1.5 }) {
    return {
      type: "custom",
      silent: true,
      z: 3,
      data: rows,
      encode: isUpright ? { x: 0, y: [1, 2] } : { y: 0, x: [1, 2] },
      renderItem: (params, api) => {
        const at = api.value(0);
        const point2 = (value) => api.coord(isUpright ? [at, value] : [value, at]);
        const [low, high] = [point2(api.value(1)), point2(api.value(2))];
        const style = { stroke: typeof colour2 === "function" ? colour2(params.dataIndex) : colour2, lineWidth: width, fill: "none" };
        const end = ([x, y]) => isUpright ? { x1: x - size, x2: x + size, y1: y, y2: y } : { x1: x, x2: x, y1: y - size, y2: y + size };
        const line = (shape) => ({ type: "line", shape, style });
        return { type: "group", children: [line({ x1: low[0], y1: low[1], x2: high[0], y2: high[1] }), line(end(low)), line(end(high))] };
      }
    };
  }
  var live, seen, sized;
  var init_chart = __esm({
    "src/charts/chart.js"() {
      init_dom();
      init_theme();
      live = /* @__PURE__ */ new Set();
      seen = new IntersectionObserver((entries) => {
        for (const entry of entries) if (entry.isIntersecting) entry.target.drawn();
      }, { rootMargin: "400px" });
      sized = new ResizeObserver((entries) => {
        for (const entry of entries) entry.target.resized();
      });
      onTheme(renderAll);
    }
  });

  // src/doubts.js
  function doubts() {
    return el(
      "div",
      { class: "columns" },
      data.cells.length ? column("Not trusted", data.doubts.map(doubt), "Every cell is trusted.") : null,
      column("Not measured", data.missing.map(missing), "Every trial counts."),
      data.remarks.length ? column("Worth knowing", data.remarks.map(remark), "") : null
    );
  }
  function column(title, items, empty) {
    const rest = items.slice(SHOWN);
    return el(
      "section",
      { class: "column" },
      el("h3", {}, title, items.length ? el("span", { class: "count" }, String(items.length)) : null),
      items.length ? items.slice(0, SHOWN) : el("p", { class: "empty" }, empty),
      rest.length ? el("details", { class: "rest" }, el("summary", {}, `${counted(rest.length, "more reason")}`), rest) : null
    );
  }
  function doubt(item) {
    return el(
      "article",
      { class: "doubt" },
      el("p", {}, trustMark(item.verdict), ` ${item.cause} in ${counted(item.cells.length, "cell")}`),
      el("p", { class: "why" }, item.text),
      el("p", { class: "remedy" }, `To do: ${item.remedy}.`),
      cellList(item.cells)
    );
  }
  function missing(item) {
    return el(
      "article",
      { class: "doubt" },
      el("p", {}, outcomeMark(item.outcome), ` ${counted(item.trials, "trial")} in ${counted(item.cells.length, "cell")}`),
      el("p", { class: "why" }, item.reason),
      cellList(item.cells)
    );
  }
  function remark(item) {
    return el(
      "article",
      { class: "doubt" },
      el("p", {}, `${item.severity} in ${item.trials} of ${counted(item.of, "trial")}`),
      el("p", { class: "why" }, item.example),
      el("p", { class: "remedy" }, `To do: ${item.remedy}.`)
    );
  }
  var SHOWN;
  var init_doubts = __esm({
    "src/doubts.js"() {
      init_dom();
      init_format();
      init_marks();
      init_payload();
      SHOWN = 5;
    }
  });

  // src/charts/timeline.js
  function timeline(trial) {
    const panels = panelsOf(trial);
    if (!panels.length) return null;
    const lastMs = Math.max(...trial.samples?.t_ms ?? [0], ...trial.telemetry?.t_ms ?? [0]);
    return chart({
      label: `The trial in time: ${panels.map((panel) => panel.title).join("; ")}`,
      height: 40 + PANEL * panels.length,
      draw: (shown) => ({
        grid: panels.map((_, number) => ({ left: 56, right: 52, top: 34 + PANEL * number, height: PANEL - 58 })),
        tooltip: tooltip(shown, (event) => lines(event.data.words ?? `${event.seriesName}: ${axisText(event.value[1])}`, `${axisText(event.value[0])} ms after the start`)),
        legend: panels.map((panel, number) => ({ top: 4 + PANEL * number, left: 0, data: panel.curves.map((curve) => curve.name), textStyle: { color: shown.ink }, itemWidth: 18, itemHeight: 8, selectedMode: false })),
        xAxis: panels.map((_, number) => valueAxis(shown, { gridIndex: number, min: 0, max: Math.ceil(lastMs), splitLine: { show: false }, axisLabel: { color: shown.muted, show: number === panels.length - 1, formatter: (value) => `${axisText(value)} ms`, hideOverlap: true } })),
        yAxis: panels.flatMap((panel, number) => panel.axes(shown).map((axis) => ({ ...axis, gridIndex: number, nameTextStyle: { color: shown.muted } }))),
        series: panels.flatMap(
          (panel, number) => panel.curves.map((curve) => ({
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
            data: curve.points.map(([x, y]) => ({ value: [x, y], words: curve.isDots ? latency(y) : null }))
          }))
        )
      })
    });
  }
  function panelsOf({ samples, telemetry }) {
    const panels = [];
    if (samples) {
      const points = samples.t_ms.map((t, index) => [t, samples.us[index]]);
      panels.push({ title: "latency of each inference", axes: (shown) => [latencyAxis(shown, samples.us, { name: "" })], curves: [{ name: `each inference (${samples.us.some((us2) => us2 >= 1e3) ? "ms" : "µs"})`, isDots: true, colour: 0, points }] });
    }
    const curve = (key, name2, colour2, more = {}) => telemetry?.[key] ? [{ name: name2, colour: colour2, points: telemetry.t_ms.map((t, index) => [t, telemetry[key][index]]), ...more }] : [];
    const cpus = [...curve("busy", "CPUs busy in all", 2), ...curve("model", "by the model", 0, { dash: "dashed" }), ...curve("load", "by the load", 1, { dash: "dotted" })];
    if (cpus.length) panels.push({ title: "CPUs kept busy", axes: (shown) => [valueAxis(shown, { min: 0, splitNumber: 3 })], curves: cpus });
    const heat = [...curve("mhz", "fastest clock (MHz)", 0), ...curve("celsius", "hottest sensor (°C)", 1, { axis: 1, dash: "dashed" })];
    if (heat.length) {
      const axes = (shown) => [valueAxis(shown, { scale: true, splitNumber: 3 }), valueAxis(shown, { scale: true, splitLine: { show: false }, splitNumber: 3 })];
      panels.push({ title: "clock and temperature", axes, curves: heat });
    }
    return panels;
  }
  var PANEL;
  var init_timeline = __esm({
    "src/charts/timeline.js"() {
      init_chart();
      init_format();
      PANEL = 150;
    }
  });

  // src/evidence.js
  function evidence() {
    dialog.append(el("form", { method: "dialog", class: "closing" }, el("button", { type: "submit", "aria-label": "Close" }, "Close")), inside);
    dialog.addEventListener("close", () => {
      if (parseRoute(location.hash)) history.pushState(null, "", location.pathname + location.search);
    });
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    addEventListener("hashchange", show);
    addEventListener("popstate", show);
    return dialog;
  }
  async function show() {
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
  function cellView(cell, trials) {
    const metric2 = (key) => [key, cell[key] ? `${latency(cell[key][0])}${interval(cell[key]) ? `  (${interval(cell[key])})` : ""}` : null];
    return [
      el("p", { class: "eyebrow" }, "Cell ", el("code", {}, cell.id)),
      el("h2", { id: "evidence-title" }, name(cell.model, 80)),
      el("p", { class: "where" }, name(settingText(cell), 80), " · ", name(cell.device, 60), ` · ${cell.runner}`),
      cell.trust && el("p", {}, trustMark(cell.trust), cell.stopped ? ` stopped: ${cell.stopped}` : ""),
      cell.trust_reasons.map((reason) => el("div", { class: "doubt" }, el("p", { class: "why" }, reason.text), el("p", { class: "remedy" }, `To do: ${reason.remedy}.`))),
      facts([
        ...["p50", "mean", "p90", "p95", "p99"].map(metric2),
        ["spread in a process", cell.cv_in === null ? null : percent(cell.cv_in)],
        ["spread between processes", cell.cv_between === null ? null : percent(cell.cv_between)],
        ["1.5 times as slow as typical", cell.slow === null ? null : `${percent(cell.slow)} of inferences`],
        ["speed-up", cell.speedup ? `${times(cell.speedup[0])} over ${cell.base_threads}, ${cell.verdict}` : null],
        ["against idle", cell.vs_idle ? times(cell.vs_idle[0]) : null],
        ...Object.entries(cell.medians).map(([key, value]) => withUnit(key, value)),
        ["model SHA-256", el("code", {}, cell.model_sha256)],
        ["runner SHA-256", cell.runner_sha256 ? el("code", {}, cell.runner_sha256) : null]
      ]),
      cell.notes.length ? el("ul", { class: "notes" }, cell.notes.map((note) => el("li", {}, note))) : null,
      el("h3", {}, counted(trials.length, "trial")),
      trialTable(cell, trials)
    ];
  }
  function withUnit(key, value) {
    const [, words, unit] = /^(.*)_(us|kb|mb)$/.exec(key) ?? [null, key, null];
    return [words.replaceAll("_", " "), unit ? UNITS[unit](value) : String(value)];
  }
  function trialTable(cell, trials) {
    const rows = trials.map(
      (trial, number) => el(
        "tr",
        {},
        el("td", { class: "figure" }, el("a", { href: trialLink(cell.id, number) }, String(number + 1))),
        el("td", { class: "figure" }, String(trial.block)),
        el("td", {}, outcomeMark(trial.outcome)),
        el("td", { class: "figure" }, trial.outcome === "measured" ? latency(cell.trials[number]?.[2]) : "–"),
        el("td", { class: "figure" }, String(trial.samples?.count ?? trial.summary?.count ?? "–")),
        el("td", {}, moment(trial.started_at)),
        el("td", { class: "wrap" }, trial.reason ?? trial.findings.map((finding) => finding.reason).join("; "))
      )
    );
    const head = [["Trial", "figure"], ["Block", "figure"], ["Outcome", ""], ["p50", "figure"], ["Inferences", "figure"], ["Started", ""], ["Reason", ""]];
    return el("div", { class: "scroller" }, el("table", {}, el("thead", {}, el("tr", {}, head.map(([text2, kind]) => el("th", { scope: "col", class: kind }, text2)))), el("tbody", {}, rows)));
  }
  function trialView(cell, trial, number, count) {
    const drawing = timeline(trial);
    const step = (text2, to) => to >= 0 && to < count ? el("a", { href: trialLink(cell.id, to) }, text2) : el("span", { class: "muted" }, text2);
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
        ...Object.entries(trial.summary ?? {}).map(([key, value]) => [key, key === "count" ? `${value} inferences` : latency(value)])
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
      log(trial.log)
    ];
  }
  function timeNote({ samples, telemetry }) {
    const notes = [];
    if (samples && samples.us.length < samples.count) notes.push(`${samples.us.length} of ${samples.count} inferences are drawn: of each stretch the median and the slowest`);
    if (samples && !samples.is_placed) notes.push("when the first inference began is not known, so latencies start at 0");
    const absent = Object.keys(telemetry?.absent ?? {});
    if (absent.length) notes.push(`the device does not tell: ${absent.join(", ")}`);
    if (!telemetry) notes.push("no telemetry was kept");
    return notes.length ? el("p", { class: "hint" }, `${notes.join("; ")}.`) : null;
  }
  function findings(list) {
    return el("ul", { class: "notes" }, list.map((finding) => el("li", {}, el("strong", {}, `${finding.severity}: `), finding.reason, el("span", { class: "muted" }, ` (${finding.remedy})`))));
  }
  function commandLine(argv) {
    return argv.map((word, index) => (index === 0 ? "" : String(word).startsWith("-") ? " \\\n  " : " ") + quoted(String(word))).join("");
  }
  function quoted(word) {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
  }
  function log(found) {
    if (!found) return fold("Log", el("p", { class: "empty" }, "No log was kept."));
    const place = el("p", { class: "hint" }, "In the store: ", el("code", {}, found.path));
    if (found.text === void 0) return fold("Log", place, el("p", { class: "empty" }, `A report of ${data.cells.length} cells carries the logs of trials that do not count only.`));
    if (found.text === null) return fold("Log", place, el("p", { class: "empty" }, "The file is not in the store any more."));
    return fold("Log", place, el("pre", { class: "log", tabindex: 0 }, found.text));
  }
  function fold(title, ...content) {
    return el("details", {}, el("summary", {}, title), content);
  }
  function facts(pairs) {
    const known = pairs.filter(([, value]) => value !== null && value !== void 0);
    return el("dl", { class: "facts-list" }, known.map(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));
  }
  function tree(value) {
    if (value === null || value === void 0 || value === "") return el("span", { class: "muted" }, "none");
    if (Array.isArray(value)) {
      if (!value.some((item) => item && typeof item === "object")) return el("code", {}, value.map(String).join(", ") || "none");
      return el("ol", {}, value.map((item) => el("li", {}, tree(item))));
    }
    if (typeof value !== "object") return el("code", {}, String(value));
    const entries = Object.entries(value);
    if (!entries.length) return el("span", { class: "muted" }, "none");
    return el("dl", { class: "facts-list" }, entries.map(([key, item]) => [el("dt", {}, name(key, 60)), el("dd", {}, tree(item))]));
  }
  var dialog, inside, latest, UNITS;
  var init_evidence = __esm({
    "src/evidence.js"() {
      init_timeline();
      init_dom();
      init_format();
      init_marks();
      init_payload();
      init_routes();
      dialog = el("dialog", { class: "evidence", "aria-labelledby": "evidence-title" });
      inside = el("div", { class: "inside" });
      latest = 0;
      UNITS = { us: latency, kb: (value) => bytes(1024 * value), mb: (value) => bytes(1e6 * value) };
    }
  });

  // src/charts/distributions.js
  function distributions(cells) {
    const shownCells = cells.slice().reverse();
    const names = shownCells.map((cell) => settingName(cell, cells));
    const dots = shownCells.flatMap(
      (cell, row2) => cell.trials.flatMap(
        ([block, outcome, us2], number) => outcome === "measured" && us2 !== null ? [{ row: row2, us: us2, block, number, cell }] : []
      )
    );
    const values = [...dots.map((dot) => dot.us), ...shownCells.flatMap((cell) => cell.p50?.slice(0, 3) ?? [])];
    return chart({
      label: `Latency of every trial, ${counted(dots.length, "dot")} in ${counted(cells.length, "row")}. ${inWords(cells)}`,
      height: 70 + ROW * cells.length,
      onClick: (event) => event.data?.link && go(event.data.link),
      draw: (shown, width) => ({
        grid: { left: 8, right: 8, top: 8, bottom: 28, containLabel: true },
        tooltip: tooltip(shown, (event) => event.data?.words ? lines(...event.data.words) : ""),
        xAxis: latencyAxis(shown, values, { nameLocation: "middle", nameGap: 26 }),
        yAxis: [
          categoryAxis(shown, names, { axisLabel: { color: shown.ink, interval: 0, width: width < 560 ? 120 : 220, overflow: "truncate" }, splitLine: { show: true, lineStyle: { color: shown.line, opacity: 0.6 } } }),
          categoryAxis(shown, shownCells.map(countText), {
            position: "right",
            show: width >= 560,
            axisLine: { show: false },
            axisLabel: { color: shown.muted, interval: 0 }
          })
        ],
        series: [
          {
            type: "scatter",
            symbolSize: 7,
            itemStyle: { color: shown.accent, opacity: 0.55 },
            data: dots.map((dot) => ({
              value: [dot.us, dot.row],
              symbolOffset: [0, jitter(dot.number)],
              link: trialLink(dot.cell.id, dot.number),
              words: [latency(dot.us), settingName(dot.cell, cells), `trial ${dot.number + 1}, block ${dot.block}`]
            }))
          },
          intervals(
            shownCells.flatMap((cell, row2) => cell.p50?.[1] != null ? [[row2, cell.p50[1], cell.p50[2]]] : []),
            { colour: shown.ink, isUpright: false }
          ),
          {
            type: "scatter",
            symbol: "diamond",
            symbolSize: 10,
            z: 4,
            itemStyle: { color: shown.ink },
            data: shownCells.flatMap(
              (cell, row2) => cell.p50 ? [{ value: [cell.p50[0], row2], link: `#cell/${encodeURIComponent(cell.id)}`, words: [latency(cell.p50[0]), settingName(cell, cells), `95 % interval ${interval(cell.p50) || "unknown"}`, countText(cell)] }] : []
            )
          }
        ]
      })
    });
  }
  function jitter(number) {
    return (number * 0.618034 % 1 - 0.5) * 16;
  }
  function settingName(cell, among) {
    const parts = [plain(cell.load, 22)];
    parts.push(threads(cell.threads));
    if (new Set(among.map((other) => other.delegate)).size > 1) parts.push(plain(cell.delegate, 20));
    if (new Set(among.map((other) => other.affinity)).size > 1) parts.push(`on ${cell.affinity}`);
    return plain(parts.join(" · "));
  }
  function countText(cell) {
    const { measured = 0, ...others } = cell.outcomes;
    const missed = Object.entries(others).map(([outcome, count]) => `${count} ${outcome}`);
    return [`${measured} counted`, ...missed].join(", ");
  }
  function inWords(cells) {
    const said = cells.slice(0, 12).map((cell) => `${settingName(cell, cells)}: ${cell.p50 ? latency(cell.p50[0]) : "not measured"}`);
    return said.join("; ");
  }
  var ROW;
  var init_distributions = __esm({
    "src/charts/distributions.js"() {
      init_dom();
      init_format();
      init_routes();
      init_chart();
      ROW = 30;
    }
  });

  // src/charts/load_lines.js
  function loadLines(cells, metric2) {
    const loads = [...new Set(cells.map((cell) => cell.load))].sort(compareLoads);
    const delegates = [...new Set(cells.map((cell) => cell.delegate))];
    const counts = [...new Set(cells.map((cell) => cell.threads))].sort((one, other) => one - other);
    const lanes = /* @__PURE__ */ new Map();
    for (const cell of cells) {
      const title = [delegates.length > 1 ? cell.delegate : null, threads(cell.threads), cell.affinity === "any" ? null : `on ${cell.affinity}`].filter(Boolean).join(", ");
      if (!lanes.has(title)) lanes.set(title, []);
      lanes.get(title).push(cell);
    }
    const values = cells.flatMap((cell) => cell[metric2]?.slice(0, 3) ?? []);
    return chart({
      label: `${metric2} latency against load. ${[...lanes].map(([title, lane]) => `${plain(title)}: ${lane.map((cell) => `${plain(cell.load)} ${latency(cell[metric2]?.[0])}`).join(", ")}`).join("; ")}`,
      height: 320,
      onClick: (event) => event.data?.link && go(event.data.link),
      draw: (shown) => ({
        grid: { left: 8, right: 16, top: 34, bottom: lanes.size > 4 ? 62 : 40, containLabel: true },
        legend: { bottom: 0, type: "plain", textStyle: { color: shown.ink }, itemWidth: 34, icon: void 0 },
        tooltip: tooltip(shown, (event) => event.data?.words ? lines(...event.data.words) : ""),
        xAxis: categoryAxis(shown, loads.map((load) => plain(load, 22)), { boundaryGap: true }),
        yAxis: latencyAxis(shown, values),
        series: [...lanes].flatMap(([title, lane], number) => {
          const colour2 = shown.series[(delegates.length > 1 ? delegates.indexOf(lane[0].delegate) : number) % shown.series.length];
          const turn = counts.indexOf(lane[0].threads);
          return [
            {
              type: "line",
              name: plain(title),
              symbol: SYMBOLS[turn % SYMBOLS.length],
              symbolSize: 9,
              lineStyle: { color: colour2, width: 2, type: DASHES[turn % DASHES.length] },
              itemStyle: { color: colour2 },
              data: loads.map((load) => point(lane.find((cell) => cell.load === load), metric2, title))
            },
            {
              ...intervals(
                loads.flatMap((load, at) => {
                  const found = lane.find((cell) => cell.load === load)?.[metric2];
                  return found && found[1] !== null ? [[at, found[1], found[2]]] : [];
                }),
                { colour: colour2, isUpright: true, width: 1.25 }
              ),
              name: plain(title)
            }
          ];
        })
      })
    });
  }
  function point(cell, metric2, title) {
    const found = cell?.[metric2];
    if (!found) return { value: null };
    return {
      value: found[0],
      link: cellLink(cell.id),
      words: [latency(found[0]), `${plain(title)}, ${plain(cell.load)}`, `95 % interval ${interval(found) || "unknown"}`, cell.trust]
    };
  }
  var SYMBOLS, DASHES;
  var init_load_lines = __esm({
    "src/charts/load_lines.js"() {
      init_dom();
      init_format();
      init_routes();
      init_chart();
      SYMBOLS = ["circle", "rect", "triangle", "diamond", "pin", "arrow"];
      DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3], [2, 6], [12, 4]];
    }
  });

  // src/charts/speedups.js
  function speedups(cells) {
    const sweeps = /* @__PURE__ */ new Map();
    for (const cell of cells) {
      const key = cell.affinity === "any" ? cell.delegate : `${cell.delegate} on ${cell.affinity}`;
      if (!sweeps.has(key)) sweeps.set(key, []);
      sweeps.get(key).push(cell);
    }
    return [...sweeps].filter(([, swept]) => swept.some((cell) => cell.speedup)).map(([title, swept]) => ({ title, node: map(title, swept) }));
  }
  function map(title, cells) {
    const loads = [...new Set(cells.map((cell) => cell.load))].sort(compareLoads);
    const counts = [...new Set(cells.map((cell) => cell.threads))].sort((one, other) => one - other);
    const base2 = cells.find((cell) => cell.base_threads)?.base_threads ?? counts[0];
    const fields = cells.map((cell) => field(cell, loads.indexOf(cell.load), counts.indexOf(cell.threads), base2));
    return chart({
      label: `Speed-up over ${threads(base2)}, ${title}: ${fields.map((one) => `${one.where}: ${one.text}`).join("; ")}`,
      height: 56 + Math.max(40, Math.min(96, 260 / counts.length)) * counts.length,
      onClick: (event) => event.data?.link && go(event.data.link),
      draw: (shown) => ({
        grid: { left: 8, right: 8, top: 8, bottom: 8, containLabel: true },
        tooltip: tooltip(shown, (event) => lines(event.data.text, event.data.where, event.data.doubt)),
        xAxis: categoryAxis(shown, loads.map((load) => plain(load, 22)), { splitArea: { show: false }, axisLine: { show: false } }),
        yAxis: categoryAxis(shown, counts.map(threads), { axisLine: { show: false } }),
        visualMap: {
          show: false,
          type: "continuous",
          dimension: 2,
          min: -REACH,
          max: REACH,
          inRange: { color: [shown.slower, shown.neutral, shown.faster] }
        },
        series: [
          {
            type: "heatmap",
            data: fields.map((one) => ({
              ...one,
              label: { show: true, formatter: one.text, color: one.isStrong ? "#fff" : shown.ink, fontWeight: one.isStrong ? 600 : 400 },
              itemStyle: one.value[2] === null ? { color: "transparent" } : {}
            })),
            itemStyle: { borderColor: shown.surface, borderWidth: 3, borderRadius: 5 },
            emphasis: { disabled: true }
          }
        ]
      })
    });
  }
  function field(cell, x, y, base2) {
    const where = `${threads(cell.threads)}, ${plain(cell.load)}`;
    const link = cellLink(cell.id);
    if (cell.threads === base2) {
      return { value: [x, y, cell.p50 ? 0 : null], text: cell.p50 ? "1×" : "not measured", where: `${where}, which the others are held against`, link };
    }
    if (!cell.speedup) return { value: [x, y, null], text: "not measured", where, link };
    const [ratio, low, high] = cell.speedup;
    const strength = Math.max(-REACH, Math.min(REACH, Math.log2(ratio)));
    const isOpen = cell.verdict === "undecided";
    const within = low === null ? "no interval yet" : `between ${times(low)} and ${times(high)}`;
    return {
      value: [x, y, strength],
      text: isOpen ? `${times(ratio)} ?` : times(ratio),
      isStrong: Math.abs(strength) > 0.55,
      where,
      doubt: `${cell.verdict}, ${within}`,
      link
    };
  }
  var REACH;
  var init_speedups = __esm({
    "src/charts/speedups.js"() {
      init_dom();
      init_format();
      init_routes();
      init_chart();
      REACH = 1;
    }
  });

  // src/explore.js
  function explore() {
    const place = el("div", { class: "explore" });
    const draw = () => {
      const groups = matchingGroups();
      const item = groups[state.focus];
      if (!item) return replace(place, el("p", { class: "empty" }, "No cell matches the filters."));
      const cells = cellsOf(groupKey(item)).filter(matches).sort(byLoad);
      return replace(place, chooser(groups, item), figures(cells));
    };
    onChange(draw);
    draw();
    return place;
  }
  function byLoad(one, other) {
    return compareLoads(one.load, other.load) || one.delegate.localeCompare(other.delegate) || one.threads - other.threads;
  }
  function chooser(groups, item) {
    const title = el("h3", {}, name(item.model, 60), " on ", name(item.device, 40), el("span", { class: "muted" }, ` · ${item.runner}`, item.arm ? ` · ${item.arm}` : ""));
    if (groups.length === 1) return el("div", { class: "chooser" }, title);
    const step = (text2, by) => {
      const to = state.focus + by;
      return el("button", { type: "button", disabled: to < 0 || to >= groups.length, on: { click: () => change({ focus: to }) } }, text2);
    };
    const options = groups.slice(0, 500).map((other, index) => [String(index), `${other.model} on ${other.device}${other.arm ? ` (${other.arm})` : ""}`]);
    const list = select("Charts of", options, String(state.focus), (value) => change({ focus: Number(value) }));
    list.querySelector("select").id = "focus";
    return el("div", { class: "chooser" }, title, el("div", { class: "steps no-print" }, step("Previous", -1), list, step("Next", 1)));
  }
  function figures(cells) {
    const measured = cells.filter((cell) => cell.p50);
    if (!measured.length) return el("p", { class: "empty" }, "None of these cells was measured; the reasons are above and with each cell.");
    const maps = speedups(cells);
    return [
      figure("Every trial", "A dot is a trial: the median of a fresh process. The diamond is the estimate, the bar its 95 % interval. Trials that do not count are numbered at the right, never drawn.", distributions(cells), "wide"),
      figure(
        "Speed-up by threads and load",
        "How many times as fast, by p50, against the fewest threads at the same load: blue is faster, orange slower; a question mark is not decided yet.",
        maps.length ? maps.map(({ title, node }) => [maps.length > 1 ? el("h5", {}, name(title, 50)) : null, node]) : el("p", { class: "empty" }, "Only one thread count was swept, so there is no speed-up to show.")
      ),
      figure("Latency against load", "Intervals are 95 % intervals over trials.", [metricField(cells), loadLines(measured, metric)])
    ];
  }
  function metricField(cells) {
    const choose = (value) => {
      metric = value;
      change({ focus: state.focus });
    };
    return el("div", { class: "no-print" }, select("By", [["p50", "p50, the typical inference"], ["mean", "mean, every inference"], ["p95", "p95, the slow ones"]].filter(([key]) => cells.some((cell) => cell[key])), metric, choose));
  }
  function figure(title, hint, content, kind = "") {
    return el("figure", { class: kind }, el("figcaption", {}, el("h4", {}, title), el("p", { class: "hint" }, hint)), content);
  }
  var metric;
  var init_explore = __esm({
    "src/explore.js"() {
      init_distributions();
      init_load_lines();
      init_speedups();
      init_dom();
      init_format();
      init_payload();
      init_state();
      metric = "p50";
    }
  });

  // src/filters.js
  function filters() {
    const fields = el("div", { class: "fields" });
    const said = el("p", { class: "said", role: "status" });
    const search = el("input", { type: "search", id: "search", placeholder: "name, trust, id", on: { input: (event) => change({ text: event.target.value }) } });
    const draw = () => {
      replace(fields, FILTERS.map(field2));
      fields.append(el("label", { class: "field" }, el("span", {}, "Search"), search));
      const found = matchingCells().length;
      const isNarrowed = FILTERS.some((key) => state[key]) || state.text;
      replace(said, `${isNarrowed ? `${found} of ` : ""}${counted(data.cells.length, "cell")}`, isNarrowed ? clear() : null);
    };
    const clear = () => {
      const reset = () => (search.value = "", change({ device: "", model: "", delegate: "", load: "", text: "" }));
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
  function field2(key) {
    const values = [...new Set(data.cells.map((cell) => cell[key]))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
    const node = select(TITLES[key], [["", "All"], ...values.map((value) => [value, value])], state[key], (value) => change({ [key]: value }));
    node.querySelector("select").id = `filter-${key}`;
    return node;
  }
  var TITLES;
  var init_filters = __esm({
    "src/filters.js"() {
      init_dom();
      init_format();
      init_payload();
      init_state();
      TITLES = { device: "Device", model: "Model", delegate: "Delegate", load: "Load" };
    }
  });

  // src/header.js
  function header(sections2) {
    return el(
      "header",
      {},
      el(
        "div",
        { class: "masthead" },
        el("div", {}, el("p", { class: "eyebrow" }, "devbench report"), el("h1", {}, headline())),
        themeField()
      ),
      el("p", { class: "facts" }, facts2()),
      data.run.notes.map((note) => el("p", { class: "note" }, note)),
      el("ul", { class: "totals" }, totals()),
      devices(),
      el("nav", { "aria-label": "Parts of this page" }, sections2.map(([id, title]) => el("a", { href: `#${id}` }, title)))
    );
  }
  function headline() {
    const models = new Set(data.cells.map((cell) => cell.model_sha256 + cell.model));
    const names = [...new Set(data.cells.map((cell) => cell.model))];
    const machines = [...new Set(data.cells.map((cell) => cell.device))];
    if (!data.cells.length) return otherwise();
    const what = models.size === 1 ? [name(names[0], 48)] : [counted(models.size, "model")];
    return [...what, " on ", machines.length === 1 ? name(machines[0], 48) : counted(machines.length, "device")];
  }
  function otherwise() {
    if (data.sustained.length) return `${counted(data.sustained.length, "cell")} without a rest`;
    return data.ops.length ? `Operator profiles of ${counted(data.ops.length, "cell")}` : "Nothing was measured";
  }
  function facts2() {
    const { run } = data;
    const parts = [name(run.id, 60), moment(run.created_at), run.status, `seed ${run.seed}`, run.version ? `devbench ${run.version}` : null, ...run.tags.map((tag) => name(`#${tag}`, 30))];
    return parts.filter(Boolean).flatMap((part, index) => index ? [" · ", part] : [part]);
  }
  function totals() {
    const { measured = 0, ...others } = data.outcomes;
    const all = Object.values(data.outcomes).reduce((sum, count) => sum + count, 0);
    const trusted = data.cells.filter((cell) => cell.trust === "trusted").length;
    if (!all) return [];
    const rows = [[`${measured.toLocaleString("en")} of ${counted(all, "trial")}`, "count"]];
    if (data.cells.length) rows.push([`${trusted} of ${counted(data.cells.length, "cell")}`, "trusted"]);
    for (const [outcome, count] of Object.entries(others)) rows.push([counted(count, "trial"), outcome]);
    return rows.map(([figure3, word]) => el("li", {}, el("strong", {}, figure3), ` ${word}`));
  }
  function devices() {
    if (!data.devices.length) return null;
    const shown = data.devices.map(
      (device) => el(
        "li",
        {},
        el("strong", {}, name(device.name, 40)),
        " ",
        device.facts,
        findings2(device.findings),
        device.ending && device.ending !== "done" ? el("div", { class: "finding" }, `The work ended early: ${device.ending}`) : null
      )
    );
    if (data.devices.length === 1) return el("ul", { class: "devices" }, shown);
    return el("details", { class: "devices" }, el("summary", {}, counted(data.devices.length, "device")), el("ul", {}, shown));
  }
  function findings2(list) {
    const text2 = (finding) => `${finding.reason}; ${finding.remedy}`;
    const notes = list.filter((finding) => finding.severity === "note");
    const grave = list.filter((finding) => finding.severity !== "note");
    return [
      grave.map((finding) => el("div", { class: "finding" }, `${finding.severity}: ${text2(finding)}`)),
      notes.length ? el("details", {}, el("summary", {}, counted(notes.length, "note")), notes.map((finding) => el("div", {}, text2(finding)))) : null
    ];
  }
  function themeField() {
    const choose = (event) => setTheme(event.target.value);
    const options = [["", "System"], ["light", "Light"], ["dark", "Dark"]].map(([value, text2]) => el("option", { value }, text2));
    return el("label", { class: "field theme" }, el("span", {}, "Theme"), el("select", { id: "theme", on: { change: choose } }, options));
  }
  var init_header = __esm({
    "src/header.js"() {
      init_dom();
      init_format();
      init_payload();
      init_theme();
    }
  });

  // src/charts/changes.js
  function changeColour(verdict, shown) {
    if (verdict.endsWith("slower")) return shown.slower;
    if (verdict.endsWith("faster")) return shown.faster;
    return verdict === "same" ? shown.ink : shown.muted;
  }
  function changes(rows, threshold) {
    const shownRows = rows.slice().reverse();
    const ends = shownRows.flatMap((row2) => [row2.low, row2.high, row2.effect]).filter((value) => value !== null);
    const reach = Math.max(6, ...ends.map((value) => Math.min(Math.abs(value), 300))) * 1.05;
    return chart({
      label: `Change of each cell: ${rows.slice(0, 20).map((row2) => `${plain(row2.name)} ${signed(row2.effect)} ${row2.verdict}`).join("; ")}`,
      height: 60 + ROW2 * rows.length,
      onClick: (event) => event.data?.link && go(event.data.link),
      draw: (shown, width) => ({
        grid: { left: 8, right: 12, top: 8, bottom: 34, containLabel: true },
        tooltip: tooltip(shown, (event) => event.data?.words ? lines(...event.data.words) : ""),
        xAxis: valueAxis(shown, { min: -reach, max: reach, name: "change in %, slower to the right", nameLocation: "middle", nameGap: 26, axisLabel: { color: shown.muted, formatter: (value) => `${value > 0 ? "+" : ""}${Math.round(value)}`, showMinLabel: false, showMaxLabel: false } }),
        yAxis: categoryAxis(shown, shownRows.map((row2) => plain(row2.short ?? row2.name, 66)), { axisLabel: { color: shown.ink, interval: 0, width: width < 560 ? 130 : 420, overflow: "truncate" } }),
        series: [
          {
            type: "custom",
            silent: true,
            data: [[0]],
            renderItem: (params, api) => {
              const [left] = api.coord([-100 * threshold, 0]);
              const [right] = api.coord([100 * threshold, 0]);
              const { y, height } = params.coordSys;
              return { type: "rect", shape: { x: left, y, width: right - left, height }, style: { fill: shown.muted, opacity: 0.13 } };
            }
          },
          intervals(
            shownRows.flatMap((row2, at) => row2.low !== null ? [[at, Math.max(row2.low, -reach), Math.min(row2.high, reach)]] : []),
            { colour: shown.muted, isUpright: false, size: 4 }
          ),
          {
            type: "scatter",
            symbolSize: 10,
            z: 4,
            data: shownRows.map((row2, at) => ({
              value: [row2.effect ?? 0, at],
              symbol: row2.effect === null ? "none" : row2.verdict === "unknown" ? "emptyCircle" : row2.verdict.endsWith("slower") ? "triangle" : "circle",
              itemStyle: { color: changeColour(row2.verdict, shown) },
              link: cellLink(row2.cell),
              words: [`${signed(row2.effect)} ${row2.verdict.replace("_", ", ")}`, plain(row2.name, 90), row2.low === null ? null : `95 % interval ${signed(row2.low)} to ${signed(row2.high)}`, ...row2.notes.slice(0, 2)]
            }))
          }
        ]
      })
    });
  }
  var ROW2;
  var init_changes = __esm({
    "src/charts/changes.js"() {
      init_dom();
      init_format();
      init_routes();
      init_chart();
      ROW2 = 24;
    }
  });

  // src/charts/history.js
  function history2(item) {
    const points = item.points.map(([run, at, us2, low, high, n]) => ({ run, at, estimate: [us2, low, high, n] }));
    const values = points.flatMap(({ estimate }) => estimate.slice(0, 3)).filter(Boolean);
    const when = ({ at, run }) => at === null ? plain(run, 20) : moment(at * 1e3).slice(5, 16);
    return chart({
      label: `${plain(item.name)} over ${points.length} runs: ${item.changes.map((change2) => `${change2.direction} ${signed(change2.effect_percent)} since ${plain(change2.run)}`).join("; ") || "no change found"}`,
      height: 280,
      draw: (shown) => ({
        grid: { left: 8, right: 16, top: 44, bottom: 8, containLabel: true },
        tooltip: tooltip(shown, (event) => {
          const { run, at, estimate } = points[event.dataIndex];
          return lines(latency(estimate[0]), plain(run, 60), at === null ? null : moment(at * 1e3), `95 % interval ${interval(estimate) || "unknown"}`);
        }),
        xAxis: categoryAxis(shown, points.map(when), { axisLabel: { color: shown.muted, hideOverlap: true, interval: "auto" } }),
        yAxis: latencyAxis(shown, values),
        series: [
          {
            type: "line",
            step: false,
            symbol: "circle",
            symbolSize: 8,
            lineStyle: { color: shown.accent, width: 1.5 },
            itemStyle: { color: shown.accent },
            data: points.map(({ estimate }) => estimate[0]),
            markLine: {
              symbol: "none",
              silent: true,
              data: item.changes.map((change2) => ({
                xAxis: change2.index,
                lineStyle: { color: change2.direction === "slower" ? shown.slower : shown.faster, type: "dashed", width: 1.5 },
                label: { formatter: `${change2.direction} ${signed(change2.effect_percent)}`, color: shown.ink }
              }))
            }
          },
          intervals(
            points.flatMap(({ estimate }, at) => estimate[1] !== null ? [[at, estimate[1], estimate[2]]] : []),
            { colour: shown.muted, isUpright: true, size: 3, width: 1 }
          )
        ]
      })
    });
  }
  var init_history = __esm({
    "src/charts/history.js"() {
      init_dom();
      init_format();
      init_chart();
    }
  });

  // src/charts/operators.js
  function operatorTypes(profile) {
    const rows = profile.types.slice(0, ROWS_MAX);
    const rest = profile.types.slice(ROWS_MAX);
    if (rest.length) {
      const sum = (column2) => rest.reduce((total, row2) => total + (row2[column2] ?? 0), 0);
      rows.push([`${rest.length} other types`, rest.every((row2) => row2[1]), sum(2), sum(3), sum(4)]);
    }
    const shownRows = rows.reverse();
    const side = (isDelegated) => shownRows.map((row2) => row2[1] === isDelegated ? row2[3] : null);
    return chart({
      label: `Time by operator type: ${shownRows.slice().reverse().map((row2) => `${plain(row2[0])} ${percent(row2[4])}`).join(", ")}`,
      height: 70 + 24 * shownRows.length,
      draw: (shown, width) => ({
        grid: { left: 8, right: 56, top: 28, bottom: 24, containLabel: true },
        legend: { top: 0, left: 0, textStyle: { color: shown.ink }, itemWidth: 12, itemHeight: 12 },
        tooltip: tooltip(shown, (event) => {
          const [type, isDelegated, count, us2, share] = shownRows[event.dataIndex];
          return lines(plain(type, 80), `${latency(us2)}, ${percent(share)}`, `${count} operators, ${isDelegated ? "delegate" : "CPU kernels"}`);
        }),
        xAxis: latencyAxis(shown, [1e-4, ...shownRows.map((row2) => row2[3])], { type: "value", scale: false, min: 0, max: null }),
        yAxis: categoryAxis(shown, shownRows.map((row2) => plain(row2[0], 48)), { axisLabel: { color: shown.ink, interval: 0, width: width < 560 ? 130 : 320, overflow: "truncate" } }),
        series: [
          { name: "delegate", colour: shown.series[0], rows: side(true) },
          { name: "CPU kernels", colour: shown.series[1], rows: side(false) }
        ].filter(({ rows: lane }) => lane.some((value) => value !== null)).map(({ name: name2, colour: colour2, rows: lane }) => ({
          type: "bar",
          name: name2,
          stack: "one",
          barMaxWidth: 14,
          itemStyle: { color: colour2, borderRadius: 2 },
          data: lane,
          label: { show: true, position: "right", color: shown.muted, formatter: ({ dataIndex, value }) => value == null ? "" : percent(shownRows[dataIndex][4]) }
        }))
      })
    });
  }
  var ROWS_MAX;
  var init_operators = __esm({
    "src/charts/operators.js"() {
      init_dom();
      init_format();
      init_chart();
      ROWS_MAX = 14;
    }
  });

  // src/charts/pareto.js
  function pareto(sized2) {
    const points = sized2.map((one) => ({ ...one, cell: cellOf.get(one.arm ? `${one.cell}~${one.arm}` : one.cell) })).filter((one) => one.cell?.p50);
    const front = points.filter((one) => one.on_front).sort((one, other) => one.bytes - other.bytes);
    const sizes = points.map((one) => one.bytes);
    const isWide = Math.max(...sizes) / Math.min(...sizes) > 12;
    const dot = (one) => ({
      value: [one.bytes / 1e6, one.cell.p50[0]],
      link: cellLink(one.cell.id),
      name: plain(one.model, 30),
      words: [plain(one.model, 80), `${latency(one.cell.p50[0])}, ${bytes(one.bytes)}`, one.on_front ? "no other model is both smaller and faster" : "another model is smaller and faster"]
    });
    return chart({
      label: `Size against latency of ${points.length} models; not beaten in both: ${front.map((one) => plain(one.model)).join(", ")}`,
      height: 320,
      onClick: (event) => event.data?.link && go(event.data.link),
      draw: (shown) => ({
        grid: { left: 8, right: 24, top: 34, bottom: 34, containLabel: true },
        tooltip: tooltip(shown, (event) => event.data?.words ? lines(...event.data.words) : ""),
        xAxis: valueAxis(shown, { type: isWide ? "log" : "value", scale: true, name: "size in MB", nameLocation: "middle", nameGap: 26, axisLabel: { color: shown.muted, formatter: axisText, hideOverlap: true } }),
        yAxis: latencyAxis(shown, points.map((one) => one.cell.p50[0])),
        series: [
          { type: "line", silent: true, symbol: "none", z: 1, lineStyle: { color: shown.accent, type: "dashed", width: 1.5 }, data: front.map((one) => [one.bytes / 1e6, one.cell.p50[0]]) },
          scatter("none beats it", "circle", shown.accent, points.filter((one) => one.on_front).map(dot), shown),
          scatter("beaten", "emptyCircle", shown.muted, points.filter((one) => !one.on_front).map(dot), shown)
        ]
      })
    });
  }
  function scatter(title, symbol, colour2, points, shown) {
    const label = { show: points.length <= 24, position: "top", distance: 6, formatter: ({ name: name2 }) => name2, color: shown.ink };
    return { type: "scatter", name: title, symbol, symbolSize: 11, itemStyle: { color: colour2 }, label, labelLayout: { hideOverlap: true, moveOverlap: "shiftY" }, data: points };
  }
  var init_pareto = __esm({
    "src/charts/pareto.js"() {
      init_dom();
      init_chart();
      init_format();
      init_payload();
      init_routes();
    }
  });

  // src/charts/sustained.js
  function sustained(cells) {
    return chart({
      label: `Sustained latency: ${cells.map((cell) => `${plain(cell.name)} from ${latency(cell.start_us)} to ${latency(cell.end_us)}`).join("; ")}`,
      height: 320,
      draw: (shown) => ({
        grid: { left: 8, right: 16, top: 34, bottom: 30 + 22 * Math.min(cells.length, 6), containLabel: true },
        legend: { bottom: 0, orient: "vertical", left: 0, textStyle: { color: shown.ink } },
        tooltip: tooltip(shown, (event) => lines(latency(event.data.us), event.seriesName, `${Math.round(event.value[0])} s after the start`)),
        xAxis: valueAxis(shown, { name: "s", splitLine: { show: false } }),
        yAxis: valueAxis(shown, { scale: true, name: "times its start" }),
        series: cells.slice(0, 12).map((cell, number) => ({
          type: "line",
          name: plain(cell.name, 70),
          symbolSize: 5,
          lineStyle: { type: DASHES2[Math.floor(number / shown.series.length) % DASHES2.length], width: 2 },
          data: cell.curve.map(([t, us2]) => ({ value: [t, us2 / cell.start_us], us: us2 }))
        }))
      })
    });
  }
  var DASHES2;
  var init_sustained = __esm({
    "src/charts/sustained.js"() {
      init_dom();
      init_format();
      init_chart();
      DASHES2 = ["solid", "dashed", "dotted"];
    }
  });

  // src/more.js
  function chosen(label, id, options, draw) {
    const place = el("div");
    const show2 = (value) => replace(place, draw(Number(value)));
    const field3 = select(label, options.map((text2, index) => [String(index), text2]), "0", show2);
    field3.querySelector("select").id = id;
    show2(0);
    return [options.length > 1 ? el("div", { class: "no-print" }, field3) : null, place];
  }
  function operatorsPart() {
    const shown = data.ops.filter((profile) => profile.types.length);
    const failed = data.ops.filter((profile) => profile.outcome !== "measured");
    const title = (profile) => {
      const cell = cellOf.get(profile.cell);
      const mark = profile.outcome === "measured" ? "" : ` (${profile.outcome})`;
      return `${cell ? shortText(cell) : profile.name}${mark}`;
    };
    shown.sort((one, other) => (one.outcome === "measured" ? 0 : 1) - (other.outcome === "measured" ? 0 : 1));
    return [
      el("p", { class: "hint" }, "From a pass of its own, as profiling distorts timing; shares are of one inference."),
      shown.length ? chosen("Profile of", "profile", shown.map(title), (index) => profileView(shown[index])) : el("p", { class: "empty" }, "No operator profile could be read."),
      failed.length ? el("details", {}, el("summary", {}, `${counted(failed.length, "profile")} not measured as asked`), el("ul", { class: "links" }, failed.map((profile) => el("li", {}, outcomeMark(profile.outcome), " ", cellAnchor(profile.cell, profile.name), ` ${profile.reason ?? ""}`)))) : null
    ];
  }
  function profileView(profile) {
    const total = profile.total_us ?? 0;
    const delegated = total ? `, of it ${percent(profile.delegated_us / total)} by the delegate` : "";
    const cost = profile.distortion === null ? "" : `; profiling makes an inference ${times(profile.distortion)} as long`;
    const rows = profile.top.map(
      ([operator, type, isDelegated, us2]) => el("tr", {}, el("td", {}, name(operator, 60)), el("td", {}, name(type, 40)), el("td", {}, isDelegated ? "delegate" : "CPU"), el("td", { class: "figure" }, latency(us2)), el("td", { class: "figure" }, total ? percent(us2 / total) : "–"))
    );
    return [
      profile.outcome === "measured" ? null : el("p", { class: "unsettled" }, `This profile does not count: ${profile.reason}.`),
      el("p", {}, `${latency(total)} in ${counted(profile.types.reduce((sum, row2) => sum + row2[2], 0), "operator")}${delegated}${cost}. `, cellAnchor(profile.cell, profile.name)),
      figure("By type", "Operators a delegate ran are set apart from those on plain CPU kernels.", operatorTypes(profile), "wide"),
      el("details", { open: true }, el("summary", {}, "The most expensive operators"), el("div", { class: "scroller" }, el("table", {}, el("thead", {}, el("tr", {}, ["Operator", "Type", "Where"].map((text2) => el("th", { scope: "col" }, text2)), ["Time", "Share"].map((text2) => el("th", { scope: "col", class: "figure" }, text2)))), el("tbody", {}, rows))))
    ];
  }
  function sizesPart() {
    const places = /* @__PURE__ */ new Map();
    for (const one of data.sized) {
      const key = `${one.device} · ${one.load}`;
      if (!places.has(key)) places.set(key, []);
      places.get(key).push(one);
    }
    const shown = [...places].filter(([, sized2]) => sized2.length > 1);
    return chosen("Where", "sized", shown.map(([title]) => title), (index) => figure("Size against latency", "Each model by its fastest setting there. The dashed line joins the models that no other beats in both size and latency.", pareto(shown[index][1]), "wide"));
  }
  function comparisonPart() {
    const { compared } = data;
    const place = el("div");
    let metric2 = "p50";
    let page = 0;
    const fits = (row2) => {
      const cell = cellOf.get(row2.cell) ?? {};
      return ["device", "model", "delegate", "load"].every((key) => !state[key] || cell[key] === state[key]);
    };
    const draw = () => {
      const rows = compared.rows.filter((row2) => row2.metric === metric2 && fits(row2)).sort((one, other) => (other.effect ?? -1e9) - (one.effect ?? -1e9));
      const counts = /* @__PURE__ */ new Map();
      for (const row2 of rows) counts.set(row2.verdict, (counts.get(row2.verdict) ?? 0) + 1);
      const said = [...counts].map(([verdict, count]) => `${count} ${verdict.replace("_", " ")}`).join(", ") || "no cell";
      const last = Math.max(0, Math.ceil(rows.length / ROWS) - 1);
      page = Math.min(page, last);
      const step = (text2, by) => el("button", { type: "button", disabled: page + by < 0 || page + by > last, on: { click: () => (page += by, draw()) } }, text2);
      const inView = rows.slice(page * ROWS, (page + 1) * ROWS).map((row2) => ({ ...row2, short: shortName(row2) }));
      replace(
        place,
        el("p", {}, el("strong", {}, name(compared.new, 60)), " against ", el("strong", {}, name(compared.base, 60)), `: by ${metric2} ${said}.`),
        inView.length ? figure("Change with its interval", `The worst first. The band is ±${100 * compared.threshold} %, within which a change does not matter. Suspected means not interleaved: it may be the day.`, changes(inView, compared.threshold), "wide") : el("p", { class: "empty" }, "No cell matches the filters."),
        last ? el("div", { class: "pager no-print" }, step("Previous", -1), el("span", {}, `${page * ROWS + 1} to ${Math.min(rows.length, (page + 1) * ROWS)} of ${rows.length}`), step("Next", 1)) : null,
        onlySide("Only the baseline has", compared.only_base),
        onlySide("Only the new side has", compared.only_new)
      );
    };
    onChange(draw);
    draw();
    const choose = (value) => (metric2 = value, page = 0, draw());
    return [el("div", { class: "no-print" }, select("By", ["p50", "mean", "p95"].map((key) => [key, key]), "p50", choose)), place];
  }
  function shortName(row2) {
    const cell = cellOf.get(row2.cell);
    return cell ? shortText(cell) : row2.name;
  }
  function onlySide(title, cells) {
    if (!cells.length) return null;
    return el("details", {}, el("summary", {}, `${title} ${counted(cells.length, "cell")}`), el("ul", { class: "links" }, cells.slice(0, 200).map((text2) => el("li", {}, name(text2, 120)))));
  }
  function historyPart() {
    const { cells, runs_left_out: older, cells_left_out: others } = data.past;
    const changed = cells.filter((item) => item.changes.length).length;
    const title = (item) => `${item.changes.length ? `${item.changes.map((change2) => `${change2.direction} ${signed(change2.effect_percent)}`).join(", ")}: ` : ""}${cellOf.has(item.cell) ? shortText(cellOf.get(item.cell)) : item.name}`;
    const left = [older ? `${counted(older, "older run")} not read` : null, others ? `${counted(others, "cell")} not shown` : null].filter(Boolean);
    return [
      el("p", { class: "hint" }, `${changed} of ${counted(cells.length, "cell")} changed over the runs of this store${left.length ? ` (${left.join(", ")})` : ""}.`),
      chosen("History of", "history-of", cells.map(title), (index) => figure("Over the runs", cells[index].note ?? (cells[index].changes.length ? "A dashed line marks the run since which the level is another." : "No change was found."), history2(cells[index]), "wide"))
    ];
  }
  function sustainedPart() {
    const rows = data.sustained.map(
      (cell) => el("tr", {}, el("td", {}, cellAnchor(cell.id)), el("td", { class: "figure" }, `${Math.round(cell.seconds)} s`), el("td", { class: "figure" }, latency(cell.start_us)), el("td", { class: "figure" }, latency(cell.end_us)), el("td", { class: "figure" }, times(cell.end_us / cell.start_us)), el("td", {}, cell.throttled_after_s === null ? "no" : `after ${Math.round(cell.throttled_after_s)} s`))
    );
    const head = [["Cell", ""], ["Time", "figure"], ["Start", "figure"], ["End", "figure"], ["Slower", "figure"], ["Throttled", ""]];
    return [
      figure("Latency over time", "Cells that ran back to back, as a multiple of what their latency was at the start.", sustained(data.sustained), "wide"),
      el("div", { class: "scroller" }, el("table", {}, el("thead", {}, el("tr", {}, head.map(([text2, kind]) => el("th", { scope: "col", class: kind }, text2)))), el("tbody", {}, rows)))
    ];
  }
  var hasSizes, ROWS;
  var init_more = __esm({
    "src/more.js"() {
      init_changes();
      init_history();
      init_operators();
      init_pareto();
      init_sustained();
      init_dom();
      init_explore();
      init_format();
      init_marks();
      init_payload();
      init_state();
      hasSizes = () => {
        const seen2 = /* @__PURE__ */ new Map();
        for (const one of data.sized) seen2.set(`${one.device} · ${one.load}`, (seen2.get(`${one.device} · ${one.load}`) ?? 0) + 1);
        return [...seen2.values()].some((count) => count > 1);
      };
      ROWS = 40;
    }
  });

  // src/table.js
  function columns() {
    return [
      text("Device", "device"),
      text("Model", "model"),
      varies("runner") ? text("Runner", "runner") : null,
      varies("arm") ? text("Arm", "arm") : null,
      text("Delegate", "delegate"),
      varies("affinity") ? text("Affinity", "affinity") : null,
      { title: "Load", order: (one, other) => compareLoads(one.load, other.load), show: (cell) => name(cell.load, 24), plain: (cell) => cell.load },
      figure2("Threads", (cell) => cell.threads, (value) => String(value)),
      {
        ...figure2(`p50, ${inColumn.unit}`, (cell) => cell.p50?.[0], us),
        show: (cell) => el("a", { href: cellLink(cell.id) }, cell.p50 ? us(cell.p50[0]) : "not measured")
      },
      figure2("95 % interval", (cell) => cell.half, (value) => percent(value), (cell) => cell.p50 && cell.p50[1] !== null ? `${us(cell.p50[1])} – ${us(cell.p50[2])}` : ""),
      { title: "Trust", order: (one, other) => TRUST_ORDER.indexOf(one.trust) - TRUST_ORDER.indexOf(other.trust), show: (cell) => trustMark(cell.trust), plain: (cell) => cell.trust },
      figure2("Counted", (cell) => cell.outcomes.measured ?? 0, String, (cell) => `${cell.outcomes.measured ?? 0} of ${cell.trials.length}`),
      figure2(`mean, ${inColumn.unit}`, (cell) => cell.mean?.[0], us),
      figure2(`p95, ${inColumn.unit}`, (cell) => cell.p95?.[0], us),
      figure2("Varies", (cell) => cell.cv_between, (value) => percent(value)),
      figure2("Speed-up", (cell) => cell.speedup?.[0], times, (cell) => cell.speedup ? [times(cell.speedup[0]), el("span", { class: `verdict ${cell.verdict}` }, ` ${cell.verdict}`)] : ""),
      figure2("Against idle", (cell) => cell.vs_idle?.[0], times)
    ].filter(Boolean);
  }
  function text(title, key) {
    return {
      title,
      order: (one, other) => String(one[key]).localeCompare(String(other[key]), "en", { numeric: true }),
      show: (cell) => name(cell[key] ?? "", 40),
      plain: (cell) => String(cell[key] ?? "")
    };
  }
  function figure2(title, value, plain2, show2 = null) {
    return {
      title,
      value,
      isFigure: true,
      show: show2 ?? ((cell) => value(cell) === null || value(cell) === void 0 ? "–" : plain2(value(cell))),
      plain: (cell) => value(cell) === null || value(cell) === void 0 ? "" : String(plain2(value(cell))).replace(/\u202f/g, " ")
    };
  }
  function table() {
    const shownColumns = columns();
    const sort = { column: null, isDown: false };
    let page = 0;
    const body = el("tbody");
    const head = el("tr");
    const pager = el("div", { class: "pager no-print" });
    const rows = () => sorted(matchingCells(), sort);
    const draw = () => {
      const found = rows();
      page = Math.min(page, Math.max(0, Math.ceil(found.length / PAGE2) - 1));
      const inView = printing ? found.slice(0, 400) : found.slice(page * PAGE2, (page + 1) * PAGE2);
      replace(body, inView.map((cell) => row(cell, shownColumns)));
      if (!found.length) replace(body, el("tr", {}, el("td", { colspan: shownColumns.length, class: "empty" }, "No cell matches the filters.")));
      replace(head, shownColumns.map((column2) => heading(column2, sort, () => (page = 0, draw()))));
      replace(pager, pages(found.length, page, (to) => (page = to, draw())));
    };
    let printing = false;
    addEventListener("beforeprint", () => (printing = true, draw()));
    addEventListener("afterprint", () => (printing = false, draw()));
    onChange(() => (page = 0, draw()));
    draw();
    const scroller = el("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": "Table of cells" }, el("table", { id: "cells-table" }, el("thead", {}, head), body));
    const legend = "p50 is the typical trial, mean and p95 the same for each trial's mean and 95th percentile. Varies: the spread between processes. Speed-up: against the fewest threads at the same load. Against idle: how many times longer under load.";
    return [scroller, el("p", { class: "hint legend" }, legend), el("div", { class: "table-foot no-print" }, pager, copyButton(() => asTsv(rows(), shownColumns)))];
  }
  function sorted(cells, { column: column2, isDown }) {
    if (!column2) return cells;
    const turn = isDown ? -1 : 1;
    if (!column2.value) return cells.slice().sort((one, other) => turn * column2.order(one, other));
    const known = (cell) => column2.value(cell) !== null && column2.value(cell) !== void 0;
    const measured = cells.filter(known).sort((one, other) => turn * (column2.value(one) - column2.value(other)));
    return [...measured, ...cells.filter((cell) => !known(cell))];
  }
  function heading(column2, sort, redraw) {
    const isOurs = sort.column?.title === column2.title;
    const act = () => {
      sort.isDown = isOurs ? !sort.isDown : false;
      sort.column = column2;
      redraw();
      document.querySelector(`#cells-table th[aria-sort] button`)?.focus();
    };
    const arrow = isOurs ? sort.isDown ? " ↓" : " ↑" : "";
    return el(
      "th",
      { scope: "col", class: column2.isFigure ? "figure" : null, "aria-sort": isOurs ? sort.isDown ? "descending" : "ascending" : null },
      el("button", { type: "button", on: { click: act } }, `${column2.title}${arrow}`)
    );
  }
  function row(cell, shownColumns) {
    return el("tr", { class: cell.p50 ? null : "unmeasured" }, shownColumns.map((column2) => el("td", { class: column2.isFigure ? "figure" : null }, column2.show(cell))));
  }
  function pages(total, page, go2) {
    if (total <= PAGE2) return [];
    const last = Math.ceil(total / PAGE2) - 1;
    const step = (title, to, isOff) => el("button", { type: "button", disabled: isOff, on: { click: () => go2(to) } }, title);
    return [
      step("Previous", page - 1, page === 0),
      el("span", {}, `${page * PAGE2 + 1} to ${Math.min(total, (page + 1) * PAGE2)} of ${counted(total, "cell")}`),
      step("Next", page + 1, page === last)
    ];
  }
  function asTsv(cells, shownColumns) {
    const safe = (value) => {
      const line = value.replace(/[\t\r\n]+/g, " ");
      return /^[=+\-@]/.test(line) && Number.isNaN(Number(line)) ? `'${line}` : line;
    };
    const lines2 = cells.map((cell) => shownColumns.map((column2) => safe(column2.plain(cell))).join("	"));
    return [shownColumns.map((column2) => column2.title).join("	"), ...lines2].join("\n");
  }
  function copyButton(content) {
    const button = el("button", { type: "button", id: "copy-table" }, "Copy for a spreadsheet");
    button.addEventListener("click", async () => {
      const done = await copied(content());
      button.textContent = done ? "Copied" : "Copying is not allowed here";
      setTimeout(() => button.textContent = "Copy for a spreadsheet", 2e3);
    });
    return button;
  }
  async function copied(content) {
    try {
      await navigator.clipboard.writeText(content);
      return true;
    } catch {
      const area = el("textarea", { class: "offscreen", "aria-hidden": "true" });
      area.value = content;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }
  var PAGE2, TRUST_ORDER, varies, inColumn, us;
  var init_table = __esm({
    "src/table.js"() {
      init_dom();
      init_format();
      init_marks();
      init_payload();
      init_routes();
      init_state();
      PAGE2 = 50;
      TRUST_ORDER = ["trusted", "noisy", "contaminated", "insufficient"];
      varies = (key) => new Set(data.cells.map((cell) => cell[key])).size > 1;
      inColumn = columnOf(data.cells.flatMap((cell) => [cell.p50?.[0], cell.p95?.[0]]));
      us = (value) => value === null || value === void 0 ? "" : inColumn.show(value);
    }
  });

  // src/main.js
  var main_exports = {};
  function section([id, , title, content]) {
    return el("section", { id, class: "part", "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), content());
  }
  function footer() {
    const made = `Made by devbench ${data.devbench}. This file needs no network and asks for none.`;
    return el("footer", {}, made, " A trial is a fresh process; only measured trials enter an estimate. Raw samples: ", el("code", {}, `devbench export ${data.run.id}`));
  }
  var hasCells, isEmpty, PARTS, sections, before;
  var init_main = __esm({
    "src/main.js"() {
      init_answers();
      init_chart();
      init_dom();
      init_doubts();
      init_evidence();
      init_explore();
      init_filters();
      init_header();
      init_more();
      init_payload();
      init_table();
      init_theme();
      hasCells = data.cells.length > 0;
      isEmpty = !hasCells && !data.sustained.length && !data.ops.length;
      PARTS = [
        ["answers", "Answer", answersTitle(), answers, hasCells || isEmpty],
        ["doubts", "What to doubt", "What to doubt", doubts, Object.keys(data.outcomes).length > 0],
        ["compare", "Comparison", "Against the baseline", comparisonPart, data.compared !== null],
        ["charts", "Charts", "Charts", explore, hasCells],
        ["sizes", "Size and latency", "Size and latency", sizesPart, hasSizes()],
        ["operators", "Operators", "Operators", operatorsPart, data.ops.length > 0],
        ["history", "History", "History", historyPart, data.past.cells.length > 0],
        ["sustained", "Sustained", "Without a rest", sustainedPart, data.sustained.length > 0],
        ["cells", "All cells", "All cells", table, hasCells]
      ].filter(([, , , , isThere]) => isThere);
      sections = PARTS.map(section);
      if (hasCells) {
        const first = data.recommendations.length > 6 ? "answers" : data.compared ? "compare" : "charts";
        sections.splice(PARTS.findIndex(([id]) => id === first), 0, filters());
      }
      replace(
        document.getElementById("page"),
        header(PARTS.map(([id, title]) => [id, title])),
        el("main", {}, sections),
        footer(),
        evidence()
      );
      before = "";
      addEventListener("beforeprint", () => {
        before = document.documentElement.dataset.theme ?? "";
        setTheme("light");
        drawAll();
      });
      addEventListener("afterprint", () => setTheme(before));
      show();
      performance.mark("devbench-interactive");
      document.documentElement.dataset.ready = "yes";
    }
  });

  // src/boot.js
  init_packing();
  async function boot() {
    globalThis.devbench = await unpacked(document.getElementById("payload"));
    await Promise.resolve().then(() => (init_main(), main_exports));
  }
  boot().catch((error) => {
    const words = document.createElement("p");
    words.textContent = `This page could not be drawn (${error.message}). It needs a browser of 2024 or later.`;
    document.getElementById("page").append(words);
    throw error;
  });
})();
