"""What `devbench bisect` says in the end: the first bad one, how sure, and the evidence of every step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.bisection import ENDS, Result

if TYPE_CHECKING:
    from orchestrator.bisection import Ended, Step

_STYLES = {"good": "green", "bad": "red"}


def _name(names: Sequence[str], index: int) -> str:
    return Path(names[index]).name


def change_text(step: Step) -> str:
    """`+7.2 % [5.9, 8.4]`."""
    if step.effect is None:
        return "–"
    interval = "" if step.low is None or step.high is None else f" [{step.low:.1f}, {step.high:.1f}]"
    return f"{step.effect:+.1f} %{interval}"


def headline(ended: Ended, names: Sequence[str]) -> str:
    """The one line that matters."""
    listed = ", ".join(_name(names, index) for index in ended.suspects)
    if ended.result is Result.FOUND and ended.change and ended.last_good is not None:
        place = f"item {ended.suspects[0] + 1} of {len(names)}"
        against = f"{change_text(ended.change)} against {_name(names, ended.last_good)}"
        return f"first bad: {listed} ({place}), {against}"
    if ended.result is Result.NO_DIFFERENCE:
        return f"no difference: {ended.reason}"
    return f"undecided: {ended.reason}" + (f"; it is one of: {listed}" if ended.suspects else "")


def show_bisection(console: Console, ended: Ended, names: Sequence[str]) -> None:
    """The headline, then the evidence."""
    style = "bold red" if ended.result is Result.FOUND else "bold"
    console.print(Text(headline(ended, names), style=style), soft_wrap=True)
    if ended.result is Result.FOUND:
        decisions = sum(step.p is not None for step in ended.steps)
        sure = math.floor(10_000 * ended.sure) / 100  # never rounded up to certainty
        console.print(f"  sure to {sure:.2f} % at the least, if one change did it: {decisions} decisions")
    for note in ended.notes:
        console.print(Text(f"  {note}", style="yellow"), soft_wrap=True)
    for index, reason in ended.skipped.items():
        console.print(Text(f"  skipped {_name(names, index)}: {reason}", style="yellow"), soft_wrap=True)
    if ended.steps:
        console.print(_evidence(ended, names))


def _evidence(ended: Ended, names: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for column in ("step", "item", "is", "change", "against", "blocks", "p", "run"):
        table.add_column(column, no_wrap=column != "run", justify="right" if column in ("blocks", "p") else "left")
    for step in ended.steps:
        what = step.purpose if step.attempt == 0 else f"{step.purpose}, again"
        p = "" if step.p is None else f"{step.p:.1g}"
        standing = str(step.standing) if step.purpose != ENDS else {"bad": "slower"}.get(str(step.standing), "")
        verdict = Text(standing or str(step.standing), style=_STYLES.get(str(step.standing), "yellow"))
        run = step.run or step.note or ""
        against = _name(names, step.against)
        table.add_row(what, _name(names, step.index), verdict, change_text(step), against, str(step.blocks), p, run)
    return table


def bisection_document(ended: Ended, names: Sequence[str]) -> dict[str, Any]:
    """The same for machines."""
    return {
        "result": str(ended.result),
        "reason": ended.reason or None,
        "items": list(names),
        "first_bad": names[ended.suspects[0]] if ended.result is Result.FOUND else None,
        "suspects": [names[index] for index in ended.suspects],
        "last_good": None if ended.last_good is None else names[ended.last_good],
        "change": _step_document(ended.change, names) if ended.change else None,
        "sure": ended.sure,
        "notes": list(ended.notes),
        "skipped": {names[index]: reason for index, reason in ended.skipped.items()},
        "steps": [_step_document(step, names) for step in ended.steps],
    }


def _step_document(step: Step, names: Sequence[str]) -> dict[str, Any]:
    return {
        "purpose": step.purpose,
        "item": names[step.index],
        "against": names[step.against],
        "attempt": step.attempt,
        "standing": str(step.standing),
        "effect_percent": step.effect,
        "ci_low_percent": step.low,
        "ci_high_percent": step.high,
        "p": step.p,
        "looks": step.looks,
        "blocks": step.blocks,
        "beyond_both_ends": step.is_beyond,
        "note": step.note,
        "run": step.run,
    }
