"""Operator profiles for a terminal: what costs most, what ran where, and where two profiles differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.reports.run_table import latency_text
from orchestrator.trial import Outcome

if TYPE_CHECKING:
    from orchestrator.analysis.operators import CellOps, OpChange, OpsComparison

_TOP = 10
_TYPES = 12
_CHANGES = 15
_NAME_WIDTH = 60


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else f"…{name[-_NAME_WIDTH + 1 :]}"


def show_ops(console: Console, cells: Sequence[CellOps]) -> None:
    """Every cell's profile: types, the most expensive operators, delegated against CPU time, the distortion."""
    for found in cells:
        console.print()
        console.print(Text.assemble((found.cell.model, "bold"), f" · {found.cell.setting} · {found.cell.device}"))
        if found.passed.outcome != Outcome.MEASURED:
            console.print(Text(f"  {found.passed.outcome}: {found.passed.reason}", style="yellow"))
        if found.profile and found.profile.ops:
            _show_profile(console, found)


def _show_profile(console: Console, found: CellOps) -> None:
    profile = found.profile
    assert profile is not None
    total_us = profile.time_us
    counted = f"{len(profile.ops)} operators over {profile.runs} inferences" if profile.runs else "operators"
    where = ""
    if total_us:
        on_cpu_us = total_us - profile.delegated_us
        where = f"; delegated {latency_text(profile.delegated_us)} ({_percent(profile.delegated_us / total_us)})"
        where += f", plain CPU kernels {latency_text(on_cpu_us)} ({_percent(on_cpu_us / total_us)})"
    console.print(f"  {latency_text(total_us)} in {counted}{where}", soft_wrap=True)
    console.print(f"  {_distortion_text(found)}")
    for note in profile.notes:
        console.print(Text(f"  {note}", style="yellow"))
    types = _table("type", "operators", "time", "share", "where")
    for row in found.types[:_TYPES]:
        place = "delegate" if row.is_delegated else "CPU"
        types.add_row(row.type, str(row.count), latency_text(row.time_us), _percent(row.share), place)
    console.print(types)
    top = _table("operator", "type", "node", "time", "share")
    for op in found.top(_TOP):
        node = "" if op.node is None else str(op.node)
        share = _percent(op.time_us / total_us) if total_us else ""
        top.add_row(_shortened(op.name), op.type, node, latency_text(op.time_us), share)
    console.print(top)


def _distortion_text(found: CellOps) -> str:
    if found.distortion is None:
        return "profiling costs: unknown, as no run in this store measured this cell without"
    ratio, run = found.distortion.ratio, found.distortion.run
    elsewhere = "" if run == found.passed.run else f" (measured by run {run})"
    medians = f"{latency_text(found.distortion.profiled_us)} over {latency_text(found.distortion.unprofiled_us)}"
    return f"profiling costs: {ratio:.2f}x, the median inference {medians} without{elsewhere}"


def show_ops_comparison(
    console: Console, comparisons: Sequence[OpsComparison], names: tuple[str, str] | None = None
) -> None:
    """Cell by cell, where the time went. The two sides are called by their runs, where they have no other names."""
    for found in comparisons:
        cell = found.new.cell
        console.print()
        console.print(Text.assemble((cell.model, "bold"), f" · {cell.setting} · {cell.device}"))
        delta_us = found.new_us - found.base_us
        share = f" ({100 * delta_us / found.base_us:+.1f} %)" if found.base_us else ""
        base, new = names or (found.base.passed.run, found.new.passed.run)
        sums = f"{latency_text(found.base_us)} in {base}, {latency_text(found.new_us)} in {new}"
        console.print(f"  {sums}: {_signed(delta_us)}{share}, one profile each")
        console.print(_changes("type", found.types, _TYPES))
        console.print(_changes("operator", found.ops, _CHANGES))
        if len(found.ops) > _CHANGES:
            console.print(f"  and {len(found.ops) - _CHANGES} operators with smaller differences; --json has them all")


def _changes(what: str, changes: Sequence[OpChange], most: int) -> Table:
    table = _table(what, "before", "after", "difference", "")
    for change in changes[:most]:
        ratio = change.new_us / change.base_us if change.base_us and change.new_us is not None else None
        mark = (
            "gone" if change.new_us is None else "new" if change.base_us is None else f"{ratio:.2f}x" if ratio else ""
        )
        style = "red" if change.delta_us > 0 else "green"
        before, after = latency_text(change.base_us), latency_text(change.new_us)
        table.add_row(_shortened(change.name), before, after, Text(_signed(change.delta_us), style=style), mark)
    return table


def _signed(delta_us: float) -> str:
    return f"{'+' if delta_us >= 0 else '-'}{latency_text(abs(delta_us))}"
