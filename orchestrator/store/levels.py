"""The latencies of many runs without their samples, as histories read them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import sqlalchemy as sa

from orchestrator.analysis.history import Circumstances
from orchestrator.analysis.reduction import Reduced
from orchestrator.pinned import reference_on
from orchestrator.store import schema
from orchestrator.store.annals import Annals
from orchestrator.store.latencies import all_latencies
from orchestrator.store.rows import RunRecord

if TYPE_CHECKING:
    from orchestrator.store.store import Store


@dataclass(frozen=True)
class Levels:
    """The trials of ordinary runs, and what each run was on each device."""

    trials: list[Reduced]
    circumstances: Mapping[tuple[str, str], Circumstances]


def levels(store: Store, *, devices: Collection[str] = (), since: str | None = None) -> Levels:
    """All ordinary runs since a moment, the oldest first: no calibrations, and no duels."""
    records = [one for one in reversed(store.runs()) if one.is_ordinary and (since is None or one.created_at >= since)]
    trials = list(all_latencies(store, tuple(devices), {record.id for record in records}))
    return Levels(trials, _circumstances(store, records, devices))


def _circumstances(
    store: Store, records: Sequence[RunRecord], devices: Collection[str]
) -> dict[tuple[str, str], Circumstances]:
    """What each run was on each device: its system, the runtimes of its runners, its reference, and its standing."""
    of_run = {record.id: record for record in records}
    judgements = Annals(store).judgements()
    verdicts = {
        run: {cell["id"]: cell["verdict"] for cell in judgement.content.get("cells") or ()}
        for run, judgement in judgements.items()
    }
    table = schema.sessions.c
    parts = [sa.func.json_extract(table.facts, f"$.{name}").label(name) for name in ("os", "kernel", "runners")]
    query = sa.select(table.run_id, table.device, *parts).order_by(table.started_at)
    if devices:
        query = query.where(table.device.in_(list(devices)))
    found: dict[tuple[str, str], Circumstances] = {}
    with store.reading() as connection:
        for row in connection.execute(query):
            record = of_run.get(row.run_id)
            if record is None or row.kernel is None:
                continue
            judgement = judgements.get(row.run_id)
            found[row.run_id, row.device] = Circumstances(
                system=f"{row.os or 'an unknown system'}, kernel {row.kernel}",
                runtimes=_runtimes(row.runners),
                standing=str(judgement.standing) if judgement else None,
                verdicts=verdicts.get(row.run_id, {}),
                reference=reference_on(record.fleet, row.device),
            )
    return found


@lru_cache(maxsize=256)
def _runtimes(text: str | None) -> Mapping[str, str]:
    """What each runner said of its runtime; most nights say the same."""
    words = ("runtime", "runtime_version", "library_sha256")
    return {
        name: " ".join(str(facts[word]) for word in words if facts.get(word))
        for name, facts in json.loads(text or "{}").items()
    }
