"""Runs as a list for a terminal, and what goes when they go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.clock import duration_text

if TYPE_CHECKING:
    from orchestrator.housekeeping import Pruning
    from orchestrator.store.ledger import RunLine
    from orchestrator.store.removal import Weight

_STANDING_STYLE = {"good": "green", "bad": "bold red", "undecided": "yellow", "closed": "dim"}
_NAMES_SHOWN = 3
_NOTE_MAX = 60
_RUNS_SHOWN = 10


def show_runs(console: Console, lines: Sequence[RunLine], total: int) -> None:
    """One line a run; what nothing was said of is left empty."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for name in ("run", "took", "devices", "cells", "trials", "status", "gate", "tags", "note"):
        table.add_column(
            name, no_wrap=name in ("run", "took"), justify="right" if name in ("took", "cells") else "left"
        )
    for line in lines:
        table.add_row(
            line.id,
            "" if line.duration_s is None else duration_text(line.duration_s),
            _devices(line.devices),
            str(line.cells),
            _outcomes(line),
            line.status if line.kind in ("run", "imported") else f"{line.status}, {line.kind}",
            Text(line.standing or "", style=_STANDING_STYLE.get(line.standing or "", "")),
            Text(", ".join(line.tags)),
            Text(_shortened(line.notes[0]) if line.notes else ""),
        )
    if lines:
        console.print(table)
    if len(lines) < total:
        console.print(Text(f"{len(lines)} of {total} runs; --limit 0 lists all", style="dim"))
    elif not lines:
        console.print("no runs are kept here")


def _devices(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more


def _outcomes(line: RunLine) -> str:
    order = ("measured", "rejected", "failed", "skipped", "not-run")
    return ", ".join(f"{line.outcomes[name]} {name}" for name in order if line.outcomes.get(name))


def _shortened(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _NOTE_MAX else f"{plain[: _NOTE_MAX - 1]}…"


def size_text(count: int) -> str:
    """`812 bytes`, `3.4 MB`: for people."""
    if count < 1000:
        return f"{count} bytes"
    for unit, size in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if count < 1000 * size or unit == "GB":
            return f"{count / size:.1f} {unit}"
    raise AssertionError


def weight_text(weight: Weight) -> str:
    """What goes with runs, with sizes."""
    return (
        f"{_many(weight.runs, 'run')} with {_many(weight.trials, 'trial')}, "
        f"{_many(weight.artifacts, 'artifact')} ({size_text(weight.artifact_bytes)}) and "
        f"{_many(weight.blobs, 'model or runner', 'models and runners')} that nothing else needs "
        f"({size_text(weight.blob_bytes)})"
    )


def _many(count: int, one: str, several: str | None = None) -> str:
    return f"{count} {one if count == 1 else several or one + 's'}"


def show_pruning(pruning: Pruning, *, is_done: bool) -> None:
    """Which runs went or would go, and how many stay though they are old, and why."""
    going = pruning.decision.going
    if not going:
        print("no run is old enough and not needed")
    else:
        print(f"{'removed' if is_done else 'would remove'} {weight_text(pruning.weight)}")
    for run_id in going[:_RUNS_SHOWN]:
        print(f"  {run_id}")
    if len(going) > _RUNS_SHOWN:
        print(f"  and {len(going) - _RUNS_SHOWN} more, up to {going[-1]}")
    for reason, count in pruning.decision.kept_though_old.items():
        print(f"{_many(count, 'old run')} kept: {reason}")
