"""Runs as a list shows them: counted by the database, however many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa

from orchestrator.clock import seconds_of
from orchestrator.store import schema

if TYPE_CHECKING:
    from orchestrator.store.annals import Connections

T = TypeVar("T")

KINDS = ("run", "calibration", "duel", "imported")
_AT_ONCE = 500
"""SQLite takes so many values in a list at least."""


@dataclass(frozen=True)
class RunLine:
    """What one line of the list says of a run."""

    id: str
    created_at: str
    ended_at: str | None
    status: str
    kind: str
    devices: tuple[str, ...]
    cells: int
    outcomes: Mapping[str, int]
    standing: str | None
    tags: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def duration_s(self) -> float | None:
        """How long it took, waiting and interruptions included; None as long as it has not ended."""
        begin, end = seconds_of(self.created_at), seconds_of(self.ended_at or "")
        return None if begin is None or end is None else max(0.0, end - begin)

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.id,
            "created_at": self.created_at,
            "ended_at": self.ended_at,
            "duration_s": self.duration_s,
            "status": self.status,
            "kind": self.kind,
            "devices": list(self.devices),
            "cells": self.cells,
            "trials": dict(self.outcomes),
            "standing": self.standing,
            "tags": list(self.tags),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Wanted:
    """Which runs are listed; nothing said is all of them."""

    limit: int | None = None
    tag: str | None = None
    since: str | None = None
    kind: str | None = None
    ids: tuple[str, ...] = ()


def run_lines(store: Connections, wanted: Wanted = Wanted()) -> list[RunLine]:
    """The newest first."""
    with store.reading() as connection:
        rows = list(connection.execute(_query(wanted)))
        ids = [row.id for row in rows]
        cells = _counts(connection, schema.cells.c.run_id, None, ids)
        trials = _counts(connection, schema.trials.c.run_id, schema.trials.c.outcome, ids)
        words = _Words(connection, ids)
    return [
        RunLine(
            id=row.id,
            created_at=row.created_at,
            ended_at=row.ended_at,
            status=row.status,
            kind=row.kind,
            devices=tuple(str(device["name"]) for device in row.fleet.get("devices") or ()),
            cells=sum(cells.get(row.id, {}).values()),
            outcomes=trials.get(row.id, {}),
            standing=words.standings.get(row.id),
            tags=tuple(words.tags.get(row.id, ())),
            notes=tuple(words.notes.get(row.id, ())),
        )
        for row in rows
    ]


def run_kind() -> sa.ColumnElement[str]:
    """What kind of run a row is, for the database to say."""
    table = schema.runs.c
    arms = sa.func.coalesce(sa.func.json_array_length(table.plan, "$.measure.arms"), 0)
    return sa.case(
        (table.status == "imported", "imported"),
        (sa.func.json_extract(table.fleet, "$.duel").is_not(None), "duel"),
        (arms > 0, "calibration"),
        else_="run",
    )


def run_ids(store: Connections) -> list[str]:
    """All runs, the newest first."""
    table = schema.runs.c
    with store.reading() as connection:
        return list(
            connection.execute(sa.select(table.id).order_by(table.created_at.desc(), table.id.desc())).scalars()
        )


def _query(wanted: Wanted) -> sa.Select[Any]:
    table = schema.runs.c
    kind = run_kind()
    query = sa.select(table.id, table.created_at, table.ended_at, table.status, table.fleet, kind.label("kind"))
    if wanted.tag is not None:
        query = query.where(table.id.in_(sa.select(schema.tags.c.run_id).where(schema.tags.c.tag == wanted.tag)))
    if wanted.since is not None:
        query = query.where(table.created_at >= wanted.since)
    if wanted.kind is not None:
        query = query.where(kind == wanted.kind)
    if wanted.ids:
        query = query.where(table.id.in_(wanted.ids))
    return query.order_by(table.created_at.desc(), table.id.desc()).limit(wanted.limit)


def _counts(
    connection: sa.Connection, run_id: sa.Column[str], by: sa.Column[str] | None, ids: Sequence[str]
) -> dict[str, dict[str, int]]:
    """How many rows each of the runs has, apart by a column."""
    kind = sa.literal("") if by is None else by
    found: dict[str, dict[str, int]] = {}
    for part in parts(ids):
        query = sa.select(run_id, kind.label("kind"), sa.func.count().label("many")).where(run_id.in_(part))
        for row in connection.execute(query.group_by(run_id, kind)):
            found.setdefault(row[0], {})[row.kind] = row.many
    return found


def parts(ids: Sequence[T]) -> list[Sequence[T]]:
    """The ids in lists that fit into one query."""
    return [ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE)]


class _Words:
    """What people and the gate said of these runs."""

    def __init__(self, connection: sa.Connection, ids: Sequence[str]) -> None:
        self.tags: dict[str, list[str]] = {}
        self.notes: dict[str, list[str]] = {}
        self.standings: dict[str, str] = {}
        tags, notes, judgements = schema.tags.c, schema.notes.c, schema.judgements.c
        for part in parts(ids):
            query = sa.select(tags.run_id, tags.tag).where(tags.run_id.in_(part)).order_by(tags.tag)
            for row in connection.execute(query):
                self.tags.setdefault(row.run_id, []).append(row.tag)
            query = sa.select(notes.run_id, notes.text).where(notes.run_id.in_(part)).order_by(notes.id)
            for row in connection.execute(query):
                self.notes.setdefault(row.run_id, []).append(row.text)
            query = sa.select(judgements.run_id, judgements.standing).where(judgements.run_id.in_(part))
            for row in connection.execute(query.order_by(judgements.id)):
                self.standings[row.run_id] = row.standing
