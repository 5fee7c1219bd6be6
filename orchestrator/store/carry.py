"""A run as plain rows: everything the store knows of it but its files, to be carried to another store."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from orchestrator.exchange import as_json, read_lines
from orchestrator.store import schema
from orchestrator.store.figures import figure_rows
from orchestrator.store.rows import UNBUNDLED, trial_row
from orchestrator.trial import Summary, Trial

if TYPE_CHECKING:
    from orchestrator.store.store import Store

_APART = ("cells", "trials", "figures", "tags", "notes", "judgements", "noise")
_SAID = ("notes", "judgements")
"""What is said of a run afterwards: it grows, and is no part of what the run is. Tags are names within one store."""

Rows = dict[str, list[dict[str, Any]]]


def run_document(store: Store, run_id: str) -> dict[str, Any]:
    """What a run is, trials apart: its record, its cells, and its rows of every table."""
    with store.reading() as connection:
        record = connection.execute(sa.select(schema.runs).where(schema.runs.c.id == run_id)).mappings().one()
        cells = _rows(connection, schema.cells, run_id)
        tables = [table for table in schema.metadata.sorted_tables if table.name not in _APART and "run_id" in table.c]
        rows = {table.name: found for table in tables if (found := _rows(connection, table, run_id))}
    host = {key: value for key, value in record["host"].items() if key != UNBUNDLED}
    return {"run": dict(record) | {"host": host}, "cells": cells, "rows": rows}


def said_document(store: Store, run_id: str) -> dict[str, Any]:
    """What was said of the run, and the noise of its devices as it is known now."""
    with store.reading() as connection:
        said: dict[str, Any] = {name: _rows(connection, schema.metadata.tables[name], run_id) for name in _SAID}
        devices = set(connection.execute(sa.select(schema.cells.c.device).filter_by(run_id=run_id)).scalars())
        newest: dict[tuple[str, ...], dict[str, Any]] = {}
        table = schema.noise
        query = sa.select(table).where(table.c.device.in_(devices)).order_by(table.c.made_at, table.c.run_id)
        for row in connection.execute(query).mappings():
            newest[row["device"], row["family"], row["metric"]] = {**row, "run_id": run_id}
    return said | {"noise": list(newest.values())}


def trial_lines(store: Store, run_id: str) -> Iterator[str]:
    """Its trials as export writes them, and the two things that an export line leaves out."""
    for trial in store.trials(run_id):
        summary = trial.summary.as_json() if trial.summary else None
        yield json.dumps(as_json(trial) | {"log": trial.log, "summary": summary}, ensure_ascii=False)


def read_trials(lines: Iterable[str], source: str) -> list[Trial]:
    """The trials of such lines; ImportRefused names the line that is wrong."""
    written = [line for line in lines if line.strip()]
    return [
        replace(trial, **_left_out(json.loads(line)))
        for trial, line in zip(read_lines(written, source), written, strict=True)
    ]


def _left_out(content: Mapping[str, Any]) -> dict[str, Any]:
    summary, log = content.get("summary"), content.get("log")
    return {"summary": Summary(**summary) if summary else None, "log": None if log is None else str(log)}


def add_carried(
    store: Store,
    document: Mapping[str, Any],
    said: Mapping[str, Any],
    trials: list[Trial],
    *,
    origin: Mapping[str, Any],
) -> None:
    """Take a run in, in one piece. What is no row of a table of ours raises ValueError."""
    run = dict(document["run"])
    run["host"] = {**run["host"], UNBUNDLED: dict(origin)}
    rows: Rows = {"runs": [run], "cells": document["cells"], **document["rows"]}
    rows |= {name: said[name] for name in (*_SAID, "noise")}
    with store.writing() as connection:
        for table in schema.metadata.sorted_tables:
            checked = [_checked(table, row, run["id"]) for row in rows.pop(table.name, ())]
            if checked:
                connection.execute(sa.insert(table), checked)
            if table.name == "cells" and trials:
                connection.execute(sa.insert(schema.trials), [trial_row(trial) for trial in trials])
                if figures := figure_rows(trials):
                    connection.execute(sa.insert(schema.figures), figures)
        if rows:
            raise ValueError(f"it has rows of {', '.join(map(repr, rows))}, which this devbench does not know")


def _rows(connection: sa.Connection, table: sa.Table, run_id: str) -> list[dict[str, Any]]:
    """The run's rows in a fixed order, without the numbers that the database gave them."""
    columns = [column for column in table.c if not _is_numbered(column)]
    order = list(table.primary_key.columns)
    found = connection.execute(sa.select(table).filter_by(run_id=run_id).order_by(*order)).mappings()
    return [{column.name: _plain(row[column.name]) for column in columns} for row in found]


def _is_numbered(column: sa.Column[Any]) -> bool:
    return column.primary_key and column.autoincrement is True


def _plain(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _checked(table: sa.Table, row: Any, run_id: str) -> dict[str, Any]:
    """A row as the table takes it."""
    if not isinstance(row, dict):
        raise ValueError(f"a row of {table.name} is no object")
    known = {column.name: column for column in table.c if not _is_numbered(column)}
    if unknown := set(row) - set(known):
        raise ValueError(f"{table.name} has no {', '.join(sorted(map(str, unknown)))}")
    if row.get("id" if table is schema.runs else "run_id") != run_id:
        raise ValueError(f"a row of {table.name} is of another run")
    return {name: _typed(column, row.get(name)) for name, column in known.items()}


def _typed(column: sa.Column[Any], value: Any) -> Any:
    """A value that the column can hold; JSON takes anything."""
    where = f"{column.table.name}.{column.name}"
    if isinstance(column.type, sa.JSON):
        return value
    if value is None:
        if not column.nullable:
            raise ValueError(f"{where} is missing")
        return None
    if isinstance(column.type, sa.LargeBinary):
        return base64.b64decode(value["base64"], validate=True)
    kinds: tuple[type, ...] = (str,)
    if isinstance(column.type, sa.Float):
        kinds = (float, int)
    elif isinstance(column.type, sa.Integer):
        kinds = (int,)
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise ValueError(f"{where} is {value!r:.40}")
    return value
