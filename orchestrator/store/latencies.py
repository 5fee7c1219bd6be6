"""The latencies of many runs at once, from their figures: what histories need of a year of nights."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from orchestrator.analysis.reduction import Reduced
from orchestrator.clock import seconds_of
from orchestrator.store import schema
from orchestrator.store.rows import cell_of
from orchestrator.trial import Cell, Outcome

if TYPE_CHECKING:
    from orchestrator.store.annals import Connections


def all_latencies(
    store: Connections, devices: Sequence[str] = (), of_runs: Collection[str] | None = None
) -> Iterator[Reduced]:
    """Every measured trial of the latency pass, the oldest run first, with its latencies and nothing else that takes
    its samples to know; of these devices and runs, or of all."""
    figures, runs, cells = schema.figures.c, schema.runs.c, schema.cells.c
    wanted = sa.select(schema.cells)
    if devices:
        wanted = wanted.where(cells.device.in_(devices))
    oldest_first = sa.select(runs.id).order_by(runs.created_at, runs.id)
    of_run = (
        sa.select(schema.figures).where(figures.run_id == sa.bindparam("run")).order_by(figures.block, figures.position)
    )
    known: dict[str, Cell] = {}
    with store.reading() as connection:
        measured_in: dict[str, set[str]] = {}
        for row in connection.execute(wanted).mappings():
            if row["id"] not in known:
                known[row["id"]] = cell_of(row, "")
            measured_in.setdefault(row["run_id"], set()).add(row["id"])
        for run in connection.execute(oldest_first).scalars().all():
            if run in measured_in and (of_runs is None or run in of_runs):
                for figure in connection.execute(of_run, {"run": run}):
                    if figure.cell_id in measured_in[run]:
                        yield _reduced(figure, known[figure.cell_id])


def _reduced(figure: sa.Row[Any], cell: Cell) -> Reduced:
    return Reduced(
        cell=cell,
        arm=figure.arm or None,
        run=figure.run_id,
        session=figure.session_id,
        block=figure.block,
        position=figure.position,
        outcome=Outcome.MEASURED,
        reason=None,
        started_s=seconds_of(figure.started_at),
        latencies_us={"p50": figure.p50, "mean": figure.mean, "p95": figure.p95},
        samples=0,
    )
