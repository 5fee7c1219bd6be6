"""The gate's verdict as Markdown that fits a chat message or a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.analysis.gate_words import GateResult, Row, worst_first
from orchestrator.reports.gate_text import (
    against,
    change_text,
    counts_text,
    device_lines,
    headline,
    next_step,
    unusual,
)

CHAT_MAX = 1500
"""Characters that every chat takes in one message."""
_SPECIAL = re.compile(r"([\\`*\[\]<>|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|&(?=#|\w+;))")
"""What Markdown would not show as it is in the middle of a line; an underscore inside a word stays."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_TEXT_MAX = 160
_HEAD = "| verdict | cell | device | change |\n|---|---|---|---|"


def escaped(text: str, longest: int = _TEXT_MAX) -> str:
    """Text that Markdown shows as it is, on one line, cut where it is too long; nobody is notified by an @."""
    flat = _CONTROL.sub(" ", text).strip()
    flat = flat if len(flat) <= longest else f"{flat[: longest - 1]}…"
    return _SPECIAL.sub(r"\\\1", flat).replace("@", "@\u200b")


def code(text: str) -> str:
    """A command or a name, in a code span that nothing in it can end."""
    flat = _CONTROL.sub(" ", text).strip()
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", flat)), default=0))
    space = " " if fence != "`" else ""
    return f"{fence}{space}{flat}{space}{fence}"


def gate_markdown(result: GateResult, *, longest: int = CHAT_MAX, extra: Sequence[str] = ()) -> str:
    """The verdict first; as many of the worst cells, and as much else, as fits. `extra` comes before other remarks."""
    held = f"{escaped(against(result), 200)} · {escaped(counts_text(result), 300)}"
    head = f"**{escaped(headline(result), 300)}**\n\n{held}\n"
    command = next_step(result)
    foot = f"\n{code(command)}\n" if command else ""
    rows = [_row(row) for row in worst_first(unusual(result))]
    lines = [f"- {escaped(line)}" for line in (*extra, *device_lines(result), *result.notes)]
    shown_lines = _fitting(lines, (longest - len(head) - len(foot)) // 3)
    room = longest - len(head) - len(foot) - sum(len(line) + 1 for line in shown_lines) - len(_HEAD) - 40
    shown = _fitting(rows, room)
    table = "\n".join(["", _HEAD, *shown, ""]) if shown else ""
    left = len(rows) - len(shown)
    more = f"\nand {left} more cells\n" if left else ""
    notes = "\n" + "\n".join(shown_lines) + "\n" if shown_lines else ""
    return f"{head}{table}{more}{notes}{foot}"


def _row(row: Row) -> str:
    cell = escaped(f"{row.cell.model} ({row.cell.setting})", 80)
    change = escaped(change_text(row)) or "–"
    return f"| {row.verdict} | {cell} | {escaped(row.cell.device, 40)} | {change} |"


def _fitting(lines: list[str], room: int) -> list[str]:
    """As many of the first lines as fit."""
    shown: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    return shown
