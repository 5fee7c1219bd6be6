"""System traces for a terminal: what there is, what tracing cost, and how to look at it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from orchestrator.reports.run_table import latency_text
from orchestrator.reports.runs_table import size_text
from orchestrator.trial import Outcome

if TYPE_CHECKING:
    from orchestrator.analysis.traces import CellTrace

_COUNTS = 5


def show_traces(console: Console, traces: Sequence[CellTrace], folder: Path) -> None:
    """Every pass with its file; then, once for each kind, how to look at such files."""
    for found in traces:
        _show_trace(console, found, folder)
    viewers = {found.passed.kind: found.viewer for found in traces if found.viewer}
    if viewers:
        console.print()
    for kind, viewer in viewers.items():
        _line(console, f"to look at {kind}: {viewer}")
    _line(console, f"every trial has a timeline too, traced or not: `devbench timeline {traces[0].passed.run}`")


def _show_trace(console: Console, found: CellTrace, folder: Path) -> None:
    passed, cell = found.passed, found.passed.cell
    console.print()
    kind = f" · {passed.kind}" if passed.kind else ""
    console.print(Text.assemble((cell.model, "bold"), f" · {cell.setting} · {cell.device}{kind}"), soft_wrap=True)
    if passed.why:
        _line(console, f"  traced because it is {passed.why}", "yellow")
    if passed.outcome != Outcome.MEASURED:
        _line(console, f"  {passed.outcome}: {passed.reason}", "yellow")
    if found.path:
        _line(console, f"  {folder / found.path}")
    if passed.trace:
        _line(console, f"  {_content_text(found)}")
        for note in passed.trace.notes:
            _line(console, f"  {note}", "yellow")
    if passed.latency_us:
        _line(console, f"  {_cost_text(found)}")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True)


def _content_text(found: CellTrace) -> str:
    trace = found.passed.trace
    assert trace is not None
    over = "" if trace.duration_s is None else f" over {trace.duration_s:.2f} s"
    counts = sorted(trace.counts.items(), key=lambda item: -item[1])[:_COUNTS]
    listed = ", ".join(f"{count} {name}" for name, count in counts)
    slices = "" if trace.tflite_slices is None else f"; {trace.tflite_slices} slices of TFLite's own"
    return f"{size_text(trace.size_bytes)}, {trace.events} events{over} ({listed}){slices}"


def _cost_text(found: CellTrace) -> str:
    if found.distortion is None:
        return "tracing costs: unknown, as no run in this store measured this cell without"
    distortion = found.distortion
    elsewhere = "" if distortion.run == found.passed.run else f" (measured by run {distortion.run})"
    medians = f"{latency_text(distortion.profiled_us)} over {latency_text(distortion.unprofiled_us)}"
    return f"tracing costs: {distortion.ratio:.2f}x, the median inference {medians} without{elsewhere}"
