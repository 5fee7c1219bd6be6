"""What of the past is still needed: the newest run of every cell, and the calibrations in force."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import sqlalchemy as sa

from orchestrator.store import schema
from orchestrator.store.ledger import run_kind
from orchestrator.trial import Outcome

if TYPE_CHECKING:
    from orchestrator.store.annals import Connections

_LASTING = ("device", "model", "runner", "delegate", "threads", "affinity", "load")
"""What a cell is whatever its bytes were: over time they change, and are compared."""


def newest_of_cells(store: Connections, among: Collection[str] | None = None) -> set[str]:
    """For every cell, the newest ordinary run that measured it; `among` looks at these runs only."""
    cells, trials, runs = schema.cells.c, schema.trials.c, schema.runs.c
    measured = sa.exists().where(
        trials.run_id == cells.run_id, trials.cell_id == cells.id, trials.outcome == str(Outcome.MEASURED)
    )
    query = (
        sa.select(runs.id, *(cells[name] for name in _LASTING))
        .join_from(schema.cells, schema.runs, runs.id == cells.run_id)
        .where(run_kind().in_(("run", "imported")), measured)
        .order_by(runs.created_at.desc(), runs.id.desc())
    )
    newest: dict[tuple[object, ...], str] = {}
    with store.reading() as connection:
        for row in connection.execute(query):
            if among is None or row.id in among:
                newest.setdefault(tuple(row[1:]), row.id)
    return set(newest.values())


def calibrations_in_force(store: Connections) -> set[str]:
    """The runs that the noise of any device and family now comes from."""
    table = schema.noise.c
    newest: dict[tuple[str, str, str], str] = {}
    with store.reading() as connection:
        query = sa.select(table.run_id, table.device, table.family, table.metric)
        for row in connection.execute(query.order_by(table.made_at, table.run_id)):
            newest[row.device, row.family, row.metric] = row.run_id
    return set(newest.values())
