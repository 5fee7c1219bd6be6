"""What is kept of each device over nights: its sessions, how they went, and what it was like then."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from orchestrator.analysis.health import Night
from orchestrator.clock import SYSTEM, seconds_of, timestamp
from orchestrator.store import schema
from orchestrator.store.ledger import parts
from orchestrator.trial import Outcome

if TYPE_CHECKING:
    from orchestrator.store.annals import Connections

_NIGHTS_FOR_PACE = 3


def note_trouble(store: Connections, *, run: str, session: str, device: str, fact: str) -> None:
    """Keep that a device had to be reached anew."""
    row = {"run_id": run, "session_id": session, "device": device, "fact": fact, "at": timestamp(SYSTEM.now())}
    with store.writing() as connection:
        connection.execute(sa.insert(schema.troubles).values(**row))


def device_nights(store: Connections, *, since: str, devices: Sequence[str] | None = None) -> list[Night]:
    """The sessions of these devices, or of all, since a time; those that came in bundles or files are not ours."""
    with store.reading() as connection:
        rows = list(connection.execute(_sessions(since, devices)))
        runs = list(dict.fromkeys(row.run_id for row in rows))
        wanted = {row.id for row in rows}
        outcomes, ends = _outcomes(connection, runs, wanted)
        drops = _drops(connection, runs)
        states = _states(connection, ends)
        paces = _paces(connection, runs, {row.id: row.device for row in rows})
    nothing = _State()
    return [
        Night(
            device=row.device,
            run=row.run_id,
            started_s=seconds_of(row.started_at) or 0.0,
            ending=row.ending,
            drops=drops.get(row.id, 0),
            outcomes=outcomes.get(row.id, {}),
            pace=paces.get(row.id),
            build=row.build,
            **vars(states.get(row.id, nothing)),
        )
        for row in rows
    ]


def _sessions(since: str, devices: Sequence[str] | None) -> sa.Select[Any]:
    table, runs = schema.sessions.c, schema.runs.c
    build = sa.func.json_extract(table.facts, "$.os").label("build")
    query = sa.select(table.id, table.run_id, table.device, table.started_at, table.ending, build)
    query = query.join(schema.runs, runs.id == table.run_id).where(table.started_at >= since)
    query = query.where(sa.func.json_extract(runs.host, "$.unbundled").is_(None))
    return query if devices is None else query.where(table.device.in_(devices))


def _outcomes(
    connection: sa.Connection, runs: Sequence[str], wanted: set[str]
) -> tuple[dict[str, dict[str, int]], dict[str, tuple[int, int]]]:
    """By session: how many trials ended how, and the first and the last that ran."""
    table = schema.trials.c
    counts: dict[str, dict[str, int]] = {}
    ends: dict[str, tuple[int, int]] = {}
    for part in parts(runs):
        query = sa.select(
            table.session_id, table.outcome, sa.func.count(), sa.func.min(table.id), sa.func.max(table.id)
        ).where(table.run_id.in_(part))
        for session, outcome, count, first, last in connection.execute(query.group_by(table.session_id, table.outcome)):
            if session not in wanted:
                continue
            counts.setdefault(session, {})[outcome] = count
            if outcome in (Outcome.MEASURED, Outcome.REJECTED):
                known = ends.get(session, (first, last))
                ends[session] = (min(first, known[0]), max(last, known[1]))
    return counts, ends


def _drops(connection: sa.Connection, runs: Sequence[str]) -> dict[str, int]:
    table = schema.troubles.c
    found: dict[str, int] = {}
    for part in parts(runs):
        query = sa.select(table.session_id, sa.func.count()).where(table.run_id.in_(part)).group_by(table.session_id)
        for session, count in connection.execute(query):
            found[session] = count
    return found


@dataclass(frozen=True)
class _State:
    """How a device was when its first trial began, and the best pace of its canary until the last."""

    temperature_c: float | None = None
    battery_percent: float | None = None
    battery_health: str | None = None
    canary_ns: float | None = None


def _states(connection: sa.Connection, ends: Mapping[str, tuple[int, int]]) -> dict[str, _State]:
    table = schema.trials.c
    keys = ("$.states[0].temperature_c", "$.states[0].battery_percent", "$.states[0].battery_health")
    columns = [sa.func.json_extract(table.evidence, key) for key in (*keys, "$.cool_down.canary_best_ns")]
    seen: dict[int, tuple[Any, ...]] = {}
    for part in parts(sorted({end for pair in ends.values() for end in pair})):
        for row in connection.execute(sa.select(table.id, *columns).where(table.id.in_(part))):
            seen[row[0]] = tuple(row[1:])
    found = {}
    for session, (first, last) in ends.items():
        temperature, percent, health, _ = seen[first]
        found[session] = _State(_number(temperature), _number(percent), health, _number(seen[last][3]))
    return found


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else None


def _paces(connection: sa.Connection, runs: Sequence[str], device_of: Mapping[str, str]) -> dict[str, float]:
    """By session: the log of how long cells took whose bytes are the same on several nights, against all nights."""
    table = schema.figures.c
    of_cell: dict[str, dict[str, list[float]]] = {}
    for part in parts(runs):
        query = sa.select(table.cell_id, table.session_id, table.p50)
        for cell, session, p50 in connection.execute(query.where(table.run_id.in_(part), table.arm == "")):
            if p50 and session in device_of:
                of_cell.setdefault(cell, {}).setdefault(session, []).append(p50)
    offs: dict[str, list[float]] = {}
    for sessions in of_cell.values():
        if len(sessions) < _NIGHTS_FOR_PACE:
            continue
        levels = {session: math.log(statistics.median(values)) for session, values in sessions.items()}
        middle = statistics.median(levels.values())
        for session, level in levels.items():
            offs.setdefault(session, []).append(level - middle)
    return {session: statistics.median(values) for session, values in offs.items()}
