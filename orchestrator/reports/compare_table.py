"""A comparison as tables for a terminal: verdicts first, then what they rest on."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.analysis.comparison import percent

if TYPE_CHECKING:
    from orchestrator.analysis.comparison import Comparison
    from orchestrator.analysis.sides import Matching
    from orchestrator.trial import Cell

WIDE = 110
_STYLE = {
    "slower": "bold red",
    "unstable_slower": "bold red",
    "suspected_slower": "yellow",
    "faster": "green",
    "suspected_faster": "green",
    "unknown": "dim",
}
_NOTES_SHOWN = 8
_LEGEND = """
change: how much longer the new side takes, from ratios within blocks, with a 95 % interval. slower and faster need an \
adjusted p of 0.05 and a change beyond the threshold; same means proven to lie within it; unknown is not same. \
suspected: not interleaved, so it may be the day; measure both in one run to know."""


@dataclass(frozen=True)
class _Column:
    name: str
    text: Callable[[Comparison], str | Text]
    justify: Literal["left", "right"] = "right"


def _percent(effect: float | None) -> str:
    value = percent(effect)
    return "–" if value is None else f"{value:+.1f} %"


def _interval(row: Comparison) -> str:
    low, high = percent(row.low), percent(row.high)
    return "" if low is None or high is None else f"[{low:+.1f}, {high:+.1f}]"


def _verdict(row: Comparison) -> Text:
    return Text(str(row.verdict), style=_STYLE.get(str(row.verdict), ""))


def _blocks(row: Comparison) -> str:
    return str(row.n_new) if row.n_base == row.n_new else f"{row.n_base}/{row.n_new}"


def _p(row: Comparison) -> str:
    return "" if row.p_adjusted is None else f"{row.p_adjusted:.2g}"


_NARROW = (
    _Column("load", lambda row: row.cell.load, "left"),
    _Column("thr", lambda row: str(row.cell.threads)),
    _Column("metric", lambda row: row.metric, "left"),
    _Column("change", lambda row: _percent(row.effect)),
    _Column("95 % interval", _interval, "left"),
    _Column("blocks", _blocks),
    _Column("verdict", _verdict, "left"),
)
_WIDE = (
    *_NARROW[:-1],
    _Column("p adj.", _p),
    _Column("trust", lambda row: str(row.trust.verdict), "left"),
    _Column("verdict", _verdict, "left"),
    _Column("more blocks", lambda row: f"about {row.blocks_needed}" if row.blocks_needed else "", "left"),
)


def show_comparison(
    console: Console,
    rows: Sequence[Comparison],
    matching: Matching,
    *,
    names: tuple[str, str],
    ignored: Sequence[str],
    threshold: float,
) -> None:
    """The verdicts in one line, a table for each model and device, and what to know about them."""
    counts = Counter(str(row.verdict) for row in rows if row.metric == "p50")
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    console.print(
        Text.assemble((names[1], "bold"), " against ", (names[0], "bold"), f": by p50 {listed or 'no cells'}")
    )
    for _, group in itertools.groupby(rows, key=lambda row: _place(row.cell)):
        _show_group(console, list(group))
    _show_notes(console, rows, matching, ignored)
    console.print(Text(f"{_LEGEND} Threshold {100 * threshold:g} %.", style="dim"))


def _place(cell: Cell) -> tuple[str, ...]:
    return cell.device, cell.model, cell.runner, cell.delegate, cell.affinity


def _show_group(console: Console, rows: Sequence[Comparison]) -> None:
    cell = rows[0].cell
    affinity = "" if cell.affinity == "any" else f" · {cell.affinity}"
    console.print()
    console.print(Text.assemble((cell.model, "bold"), f" · {cell.runner} · {cell.delegate} · {cell.device}{affinity}"))
    columns = _WIDE if console.width >= WIDE else _NARROW
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for column in columns:
        table.add_column(column.name, justify=column.justify, no_wrap=True)
    for row in rows:
        table.add_row(*(column.text(row) for column in columns))
    console.print(table)


def _show_notes(console: Console, rows: Sequence[Comparison], matching: Matching, ignored: Sequence[str]) -> None:
    """What stands behind the numbers, each once, with how many rows it is about."""
    notes = Counter(note for row in rows for note in row.notes)
    notes.update(f"{reason.text}: {reason.remedy}" for row in rows for reason in row.trust.reasons)
    lines = [f"{note} ({count} of {len(rows)} rows)" for note, count in notes.most_common(_NOTES_SHOWN)]
    if len(notes) > _NOTES_SHOWN:
        lines.append(f"and {len(notes) - _NOTES_SHOWN} more; --json has them all")
    if ignored:
        lines.append(f"compared although these may differ: {', '.join(ignored)}")
    differs = sorted({field for row in rows for field in row.differs} - set(ignored))
    if differs:
        lines.append(f"the arms differ in {', '.join(differs)}")
    for name, cells in (("base", matching.only_base), ("new", matching.only_new)):
        if cells:
            lines.append(f"only the {name} side has {len(cells)} cells, such as {cells[0]}")
    if lines:
        console.print()
        console.print(Text("worth knowing", style="bold"))
    for line in lines:
        console.print(Text(f"  {line}"))
