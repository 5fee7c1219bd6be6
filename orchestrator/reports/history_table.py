"""Cells over time for a terminal: the level of each run as a small curve, and the runs at which it changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from orchestrator.analysis.comparison import percent
from orchestrator.analysis.history import changed_fields
from orchestrator.reports.run_table import latency_text

if TYPE_CHECKING:
    from orchestrator.analysis.change_points import ChangePoint
    from orchestrator.analysis.history import History, Point

_BARS = "▁▂▃▄▅▆▇█"
_CURVE_MAX = 60


def show_histories(console: Console, histories: Sequence[History]) -> None:
    """One curve a cell with its change points under it; cells that changed come first."""
    changed = [item for item in histories if item.changes]
    console.print(Text(f"{len(changed)} of {len(histories)} cells changed", style="bold"))
    for item in sorted(histories, key=lambda item: not item.changes):
        _show(console, item)


def _show(console: Console, item: History) -> None:
    arm = f" · {item.arm}" if item.arm else ""
    arm += " · pinned reference" if item.points[-1].is_reference else ""
    values = [point.latency_us.value or 0.0 for point in item.points]
    console.print()
    console.print(Text.assemble((str(item.cell), "bold"), f"{arm} · {item.metric} · {len(values)} runs"))
    span = f"{latency_text(values[0])} to {latency_text(values[-1])}"
    console.print(f"  {_curve(values, min(_CURVE_MAX, console.width - 30))}  {span}")
    for change in item.changes:
        console.print(_change_text(item, change))
    slower = [f"{point.run} ({point.verdict})" for point in item.points if point.verdict in ("confirmed", "suspected")]
    if slower:
        console.print(Text(f"  slower, says the gate: {', '.join(slower[-3:])}", style="yellow"))
    if item.note:
        console.print(Text(f"  {item.note}", style="dim"))
    elif not item.changes:
        console.print(Text("  no change found", style="dim"))


def _change_text(item: History, change: ChangePoint) -> Text:
    before, after = item.points[change.index - 1], item.points[change.index]
    moved = change.moved
    low, high = percent(moved.low) or 0.0, percent(moved.high) or 0.0
    word = ("slower", "bold red") if moved.location > 0 else ("faster", "green")
    what = ", ".join(_changed_text(name, before, after) for name in changed_fields(before, after))
    since = after.run if after.session is None else f"{after.run}, session {after.session}"
    return Text.assemble(
        f"  since {since}: ",
        word,
        f" {percent(moved.location) or 0.0:+.1f} % [{low:+.1f}, {high:+.1f}], p {change.p:.2g}",
        f"; changed there: {what}" if what else "; nothing that is known of changed there",
    )


def _changed_text(name: str, before: Point, after: Point) -> str:
    """`runner_sha256 1f2e3d4c → 5a6b7c8d`, `system Android 15 … → Android 16 …`."""
    was, now = (str(point.build[name]) for point in (before, after))
    if name.endswith("sha256"):
        was, now = was[:8], now[:8]
    return f"{name} {was} → {now}"


def _curve(values: Sequence[float], width: int) -> str:
    """The values as bars; where there are more than fit, the last ones."""
    shown = list(values)[-max(width, 10) :]
    low, high = min(shown), max(shown)
    if high <= low:
        return _BARS[0] * len(shown)
    return "".join(_BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] for value in shown)
