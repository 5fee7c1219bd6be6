"""The gate's verdict for GitHub Actions: annotations, and the text of the step's summary."""

from __future__ import annotations

from orchestrator.analysis.gate_words import GateResult, Row, Verdict, worst_first
from orchestrator.reports.gate_markdown import gate_markdown
from orchestrator.reports.gate_text import change_text, device_lines, headline, why_text

_SHOWN_MAX = 10
"""GitHub shows as many annotations of one kind in a step."""
_SUMMARY_MAX = 60_000
_MISSING = (Verdict.FAILED, Verdict.REJECTED, Verdict.NOT_RUN, Verdict.DEVICE_VANISHED, Verdict.UNDECIDED)


def workflow_commands(result: GateResult) -> list[str]:
    """Workflow commands: an error for each cell that fails the night, warnings for suspects and what is missing."""
    failing = worst_first(result.failing)
    suspects = [row for row in worst_first(result.of(Verdict.SUSPECTED)) if row not in failing]
    missing = [row for row in result.of(*_MISSING) if row.lost]
    warnings = [_of_row("warning", row, result) for row in (*suspects, *missing)]
    warnings += [_command("warning", "devbench", line) for line in device_lines(result)]
    return [
        *_capped("error", [_of_row("error", row, result) for row in failing]),
        *_capped("warning", warnings),
        _command("notice", "devbench gate", headline(result)),
    ]


def step_summary(result: GateResult) -> str:
    """The Markdown of the step's summary; it may be longer than a chat message."""
    return gate_markdown(result, longest=_SUMMARY_MAX)


def _capped(kind: str, lines: list[str]) -> list[str]:
    if len(lines) <= _SHOWN_MAX:
        return lines
    left = len(lines) - _SHOWN_MAX + 1
    return [*lines[: _SHOWN_MAX - 1], _command(kind, "devbench gate", f"and {left} more; the step's summary has them")]


def _of_row(kind: str, row: Row, result: GateResult) -> str:
    change = change_text(row)
    title = f"{row.verdict}: {row.cell}"
    return _command(kind, title, f"{change + '; ' if change else ''}{why_text(row, result)}")


def _command(kind: str, title: str, message: str) -> str:
    return f"::{kind} title={_escaped_property(title)}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
