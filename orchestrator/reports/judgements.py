"""What is judged beyond the table of cells: trust with its reasons, why cells stopped, where variance lies, heat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.analysis.recommendation import recommend
from orchestrator.clock import duration_text
from orchestrator.reports.counting import counted
from orchestrator.reports.doubts import doubts
from orchestrator.reports.run_table import TRUST_STYLE, latency_text

if TYPE_CHECKING:
    from orchestrator.analysis.components import Components
    from orchestrator.analysis.summary import RunSummary
    from orchestrator.analysis.sustained import Ranking, Sustained
    from orchestrator.trial import Cell

_SHOWN = 12
_SPARKS = "▁▂▃▄▅▆▇█"


def show_recommendations(console: Console, summary: RunSummary, references: Collection[str]) -> None:
    """One sentence for each model and device: what to use, as the report says it. References are nobody's choice."""
    said = recommend(summary, references)
    if not said:
        return
    console.print()
    console.print(Text("what to use", style="bold"))
    for item in said[:_SHOWN]:
        arm = f" · {item.arm}" if item.arm else ""
        console.print(Text(f"  {item.model} · {item.runner} · {item.device}{arm}: {item.text}"))
    if len(said) > _SHOWN:
        console.print(f"  and {len(said) - _SHOWN} more; --json and `devbench report` have them all")


def show_trust(console: Console, summary: RunSummary) -> None:
    """How many cells are trusted, and for the others every reason with what to do; cells with one reason together."""
    if not summary.cells:
        return
    counts = Counter(str(found.trust.verdict) for found in summary.cells)
    console.print()
    words: list[str | tuple[str, str]] = [("trust", "bold"), ": "]
    for number, (verdict, style) in enumerate(TRUST_STYLE.items()):
        if counts[verdict]:
            words += [", " if number and len(words) > 2 else "", (f"{counts[verdict]} {verdict}", style)]
    console.print(Text.assemble(*words))
    reasons = doubts(summary)
    for doubt in reasons[:_SHOWN]:
        cell, count = doubt.cells[0].cell, len(doubt.cells)
        more = f" (and {counted(count - 1, 'more cell')})" if count > 1 else ""
        what = (f"{doubt.verdict}, {doubt.cause}", TRUST_STYLE[doubt.verdict])
        where = f"{cell.model}, {cell.setting}{more}: {doubt.text}"
        console.print(Text.assemble("  ", what, f": {where}; {doubt.remedy}"))
    if len(reasons) > _SHOWN:
        console.print(f"  and {len(reasons) - _SHOWN} more reasons; --json has them all")


def show_stops(console: Console, stops: Mapping[str, str]) -> None:
    """`stopped: 10 cells tight, 2 at the most blocks, 1 by the budget`."""
    words = {"tight": "tight enough", "max blocks": "at their most blocks", "budget": "by the budget"}
    counts = Counter(stops.values())
    if counts:
        listed = ", ".join(f"{counts[stop]} {word}" for stop, word in words.items() if counts[stop])
        console.print(Text(f"cells stopped: {listed}", style="dim"))


def show_variance(console: Console, splits: Sequence[Components]) -> None:
    """One line for the settings taken together: the middle of each part, so that one sees what to repeat."""
    if not splits:
        return
    middles = []
    for name in ("iteration", "process", "session", "device"):
        known = [sd for split in splits if (sd := getattr(split, name)) is not None]
        middles.append(f"{name} {100 * median(known):.1f} %" if known else f"{name} unknown")
    console.print(Text(f"spread by part (median over settings): {', '.join(middles)}", style="dim"))


# Sustained runs


def show_sustained(console: Console, cells: Sequence[Sustained], rankings: Sequence[Ranking]) -> None:
    """A line a cell with its curve, and who was overtaken."""
    if not cells:
        return
    console.print()
    console.print(Text("sustained", style="bold"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for name, justify in (("cell", "left"), ("time", "right"), ("start", "right"), ("end", "right")):
        table.add_column(name, justify=justify, no_wrap=name != "cell")  # type: ignore[arg-type]  # rich wants a literal
    for name in ("slower", "throttled after", "curve"):
        table.add_column(name, justify="right" if name == "slower" else "left", no_wrap=True)
    for found in cells:
        after = "no" if found.throttled_after_s is None else duration_text(found.throttled_after_s)
        table.add_row(
            _name(found.cell),
            duration_text(found.seconds),
            latency_text(found.start_us),
            latency_text(found.end_us),
            Text(f"{found.slowdown:.2f}x", style="" if found.throttled_after_s is None else "red"),
            after,
            _spark([point.median_us for point in found.curve]),
        )
    console.print(table)
    for ranking in rankings:
        _show_ranking(console, ranking)
    for found in cells:
        for note in found.notes:
            console.print(Text(f"  {_name(found.cell)}: {note}", style="yellow"))


def _show_ranking(console: Console, ranking: Ranking) -> None:
    if not ranking.overtaken:
        fastest = _name(ranking.end[0])
        console.print(f"{ranking.device}: the ranking is the same at the end as at the start; fastest: {fastest}")
        return
    for loser, winner in ranking.overtaken:
        console.print(f"{ranking.device}: {_name(winner)} overtakes {_name(loser)}")


def _name(cell: Cell) -> str:
    return f"{cell.model} ({cell.setting})"


def _spark(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    reach = max(high - low, 0.1 * low)
    return "".join(_SPARKS[min(int((value - low) / reach * len(_SPARKS)), len(_SPARKS) - 1)] for value in values)
