"""A run as Markdown for a pull request: the answers, what to doubt, and the rest behind a fold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from orchestrator.analysis.choosing import Choice
from orchestrator.analysis.comparison import percent
from orchestrator.analysis.recommendation import Recommendation
from orchestrator.analysis.summary import CellSummary
from orchestrator.reports.counting import counted
from orchestrator.reports.doubts import doubts, missing
from orchestrator.reports.run_content import Compared, RunContent
from orchestrator.reports.run_table import latency_text
from orchestrator.trial import Cell, Outcome

_CELLS_MAX = 200
_ANSWERS_MAX = 20
_REASONS_MAX = 8
_NAME_MAX = 80
_MARKUP = re.compile(r"[\\`*{}\[\]|~$]|(?<!\w)_|_(?!\w)")
_REFERENCES = re.compile(r"(?<!\w)[@#]|://|\bwww(?=\.)", re.IGNORECASE)
"""What a forge makes a link of: people, issues, addresses."""
_NO_SPACE = "\u200b"


def run_markdown(content: RunContent) -> str:
    """The whole text, which ends in a newline; names from devices and files cannot become markup."""
    lines = [f"## devbench: {_title(content)}", "", _totals(content), ""]
    if content.compared:
        lines += _comparison(content.compared)
    lines += _answers(content.recommendations)
    lines += _doubts(content)
    lines += _cells(content)
    return "\n".join(lines).rstrip() + "\n"


def escaped(text: str) -> str:
    """Text that Markdown and HTML leave as it is, on one line; a name without end is cut."""
    line = " ".join(text.split())
    if len(line) > _NAME_MAX:
        line = f"{line[: _NAME_MAX - 1]}…"
    shown = "".join(letter if letter.isprintable() else "�" for letter in line)
    shown = _MARKUP.sub(lambda match: f"\\{match[0]}", shown)
    shown = _REFERENCES.sub(lambda match: f"{match[0][:1]}{_NO_SPACE}{match[0][1:]}", shown)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _sentence(text: str) -> str:
    """A longer text, with what could be markup made text."""
    return " ".join(escaped(word) for word in text.split())


def _title(content: RunContent) -> str:
    models = {found.cell.model for found in content.summary.cells}
    devices = {found.cell.device for found in content.summary.cells}
    return f"{_few(models, 'model')} on {_few(devices, 'device')}"


def _few(names: set[str], noun: str) -> str:
    if len(names) == 1:
        return escaped(next(iter(names)))
    return f"{len(names)} {noun}s"


def _totals(content: RunContent) -> str:
    counts = Counter(str(trial.outcome) for trial in content.trials)
    trusted = len(content.summary.cells) - len(content.summary.untrusted)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in counts.items()) or "no trials"
    run = f"Run `{re.sub(r'[^0-9A-Za-z:._-]', '?', content.record.id)}`"
    return f"{run}: {counted}; {trusted} of {len(content.summary.cells)} cells trusted."


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns whose name ends in a colon are figures, and stand to the right."""
    names = [name.removesuffix(":") for name in head]
    rule = ["---:" if name.endswith(":") else "---" for name in head]
    return [_row(names), _row(rule), *(_row(row) for row in rows), ""]


def _row(fields: Sequence[str]) -> str:
    return f"| {' | '.join(fields)} |"


def _fold(title: str, lines: Sequence[str]) -> list[str]:
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "</details>", ""]


def _answers(recommendations: Sequence[Recommendation]) -> list[str]:
    if not recommendations:
        return ["Nothing was measured, so nothing can be recommended.", ""]
    head = ("model", "device", "idle", "p50 idle:", "under load", "p50 at worst:")
    rows = [
        (escaped(item.model), escaped(item.device), *_choice(item.idle), *_choice(item.loaded))
        for item in recommendations
    ]
    said = [
        f"- **{escaped(item.model)}** on {escaped(item.device)}: {_sentence(item.text)}." for item in recommendations
    ]
    lines = ["### What to use", "", *_table(head, rows[:_ANSWERS_MAX]), *said[:_ANSWERS_MAX], ""]
    if len(rows) > _ANSWERS_MAX:
        lines += _fold(f"{len(rows) - _ANSWERS_MAX} more answers", [*_table(head, rows[_ANSWERS_MAX:])])
    return lines


def _choice(choice: Choice | None) -> tuple[str, str]:
    if choice is None:
        return "not measured", "–"
    mark = "" if choice.reason is None else " (not settled)"
    return f"{escaped(choice.setting.text())}{mark}", _p50(choice.worst)


def _p50(found: CellSummary) -> str:
    p50 = found.estimate.latency_us["p50"]
    if p50.value is None:
        return "not measured"
    half = found.estimate.half_width
    return latency_text(p50.value) + (" ± ?" if half is None else f" ±{100 * half:.1f} %")


def _doubts(content: RunContent) -> list[str]:
    untrusted = [
        f"- {doubt.verdict}, {_sentence(doubt.cause)} ({counted(len(doubt.cells), 'cell')}): "
        f"{_sentence(doubt.text)}; {_sentence(doubt.remedy)}"
        for doubt in doubts(content.summary)
    ]
    unmeasured = [
        f"- {item.trials} {item.outcome} in {counted(len(item.cells), 'cell')}: {_sentence(item.reason)}"
        for item in missing(content.trials)
    ]
    lines = []
    for title, listed in (("Not trusted", untrusted), ("Not measured", unmeasured)):
        if listed:
            more = [f"- and {len(listed) - _REASONS_MAX} more reasons"] if len(listed) > _REASONS_MAX else []
            lines += [f"### {title}", "", *listed[:_REASONS_MAX], *more, ""]
    return lines


def _cells(content: RunContent) -> list[str]:
    cells = content.summary.cells
    if not cells:
        return []
    head = ("device", "model", "setting", "p50:", "mean:", "p95:", "between processes:", "counted:", "trust")
    rows = [_cell_row(found) for found in cells[:_CELLS_MAX]]
    more = [f"and {len(cells) - _CELLS_MAX} more cells", ""] if len(cells) > _CELLS_MAX else []
    return _fold(f"All {len(cells)} cells", [*_table(head, rows), *more])


def _cell_row(found: CellSummary) -> tuple[str, ...]:
    mean, p95 = (latency_text(found.estimate.latency_us[metric].value) for metric in ("mean", "p95"))
    spread = found.variability.between_cv
    total = sum(found.estimate.outcomes.values())
    return (
        escaped(found.cell.device),
        escaped(found.cell.model),
        _setting(found.cell),
        _p50(found),
        mean,
        p95,
        "–" if spread is None else f"{100 * spread:.1f} %",
        f"{found.estimate.outcomes.get(Outcome.MEASURED, 0)} of {total}",
        str(found.trust.verdict),
    )


def _setting(cell: Cell) -> str:
    return _sentence(cell.setting)


def _comparison(compared: Compared) -> list[str]:
    rows = [row for row in compared.rows if row.metric == "p50"]
    rows.sort(key=lambda row: -(row.effect if row.effect is not None else -1e9))
    counts = Counter(str(row.verdict) for row in rows)
    listed = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items())
    names = " against ".join(escaped(name) for name in reversed(compared.names))
    head = ("cell", "change:", "95 % interval:", "verdict")
    fields = [
        (_sentence(str(row.cell)), _signed(row.effect), _interval(row.low, row.high), _verdict(str(row.verdict)))
        for row in rows
    ]
    telling = [row for row, found in zip(fields, rows, strict=True) if found.verdict not in ("same", "unknown")]
    lines = ["### Against the baseline", "", f"{names}: by p50 {listed or 'no cells'}.", ""]
    if telling:
        lines += _table(head, telling[:_CELLS_MAX])
    return lines + (_fold(f"All {len(fields)} cells compared", _table(head, fields[:_CELLS_MAX])) if fields else [])


def _verdict(verdict: str) -> str:
    words = verdict.replace("_", " ")
    return f"**{words}**" if words.endswith("slower") else words


def _signed(effect: float | None) -> str:
    value = percent(effect)
    return "–" if value is None else f"{value:+.1f} %"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{_signed(low)} to {_signed(high)}"
