"""What `devbench reproduce` says: before it starts, and in the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from orchestrator.analysis.comparison import percent
from orchestrator.reports.operators import show_ops_comparison
from orchestrator.reproduce import Answer, change_text

if TYPE_CHECKING:
    from orchestrator.reproduce import Attempt, Case
    from orchestrator.then_and_now import Difference

_STYLES = {Answer.REPRODUCED: "bold red", Answer.NOT_REPRODUCED: "bold green", Answer.UNKNOWN: "bold yellow"}


def case_lines(case: Case, device: str, found: Sequence[Difference]) -> list[str]:
    """What is held against what, and what differs about the device now."""
    cell = case.suspect.cell
    differ = ", ".join(case.differs)
    effect = percent(case.then_effect)
    then = "" if effect is None else f"; the two runs differ by {effect:+.1f} %, but were not interleaved"
    lines = [
        f"{cell.model} ({cell.setting}): run {case.run.id} against {case.baseline.id}{then}",
        f"what differs: {differ}" if differ else "what differs: nothing",
    ]
    lines += [f"warning: {warning}" for warning in case.warnings]
    if not found:
        return [*lines, f"{device} is now as {cell.device} was in run {case.run.id}, as far as can be told"]
    lines.append(f"{device} now against {cell.device} in run {case.run.id}:")
    return [*lines, *(f"  {difference.text}" for difference in found)]


def show_attempt(console: Console, case: Case, attempt: Attempt) -> None:
    """The answer first, then the other metrics, then operators."""
    console.print(Text(attempt.text, style=_STYLES[attempt.answer]), soft_wrap=True)
    if attempt.row:
        row = attempt.row
        console.print(f"  by {row.metric}, {row.n_new} blocks, run {attempt.run_id}", soft_wrap=True)
        for note in row.notes:
            console.print(f"  {note}", soft_wrap=True)
    for other in attempt.rows:
        if other is not attempt.row and other.effect is not None:
            console.print(f"  by {other.metric}: {other.verdict} {change_text(other)}", soft_wrap=True)
    if attempt.reason and attempt.row:
        console.print(Text(f"  {attempt.reason}", style="yellow"), soft_wrap=True)
    if attempt.ops_missing:
        console.print(Text(f"  no operators: {attempt.ops_missing}", style="yellow"), soft_wrap=True)
    if attempt.ops:
        show_ops_comparison(console, [attempt.ops], (case.baseline.id, case.run.id))
