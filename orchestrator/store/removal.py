"""Taking runs out of a store: rows first, then the files that nothing names any more, then the disk space.

Whoever dies half-way leaves whole runs and files that nobody needs; the next removal sweeps those up.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from orchestrator.store import schema
from orchestrator.store.ledger import parts
from orchestrator.store.rows import safe_name
from orchestrator.store.trouble import DATABASE, translated
from orchestrator.whole_files import TEMPORARY

if TYPE_CHECKING:
    from orchestrator.store.store import Store

_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_PAGES_AT_ONCE = 5000
_INCREMENTAL = 2
_MUCH = 0.1
_ROOM = 2.5
"""What writing anew takes on the disk: the new database, and the journal with its pages."""


@dataclass(frozen=True)
class Weight:
    """What goes with runs: so many trials, and files of so many bytes."""

    runs: int
    trials: int
    artifacts: int
    artifact_bytes: int
    blobs: int
    blob_bytes: int

    def as_json(self) -> dict[str, int]:
        return dict(vars(self))


@dataclass(frozen=True)
class Swept:
    """Files that nothing named any more, and what the database gave back. `is_alone` is False where files were left
    because somebody else uses the store."""

    is_alone: bool
    artifacts: int = 0
    artifact_bytes: int = 0
    blobs: int = 0
    blob_bytes: int = 0
    database_bytes: int = 0

    @property
    def freed_bytes(self) -> int:
        return self.artifact_bytes + self.blob_bytes + self.database_bytes

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "freed_bytes": self.freed_bytes}


def weigh(store: Store, ids: Collection[str]) -> Weight:
    """What goes when these runs do."""
    with store.reading() as connection, translated(store.folder):
        table = schema.trials.c
        trials = sum(
            connection.execute(sa.select(sa.func.count()).where(table.run_id.in_(part))).scalar() or 0
            for part in parts(list(ids))
        )
        gone = set(ids)
        others = [run_id for run_id in _run_ids(connection) if run_id not in gone]
        blobs = _loose_blobs(store.folder, needed_digests(connection, others))
    staying = {safe_name(run_id) for run_id in others}
    going = [place for run_id in ids if (place := store.folder / "artifacts" / safe_name(run_id)).name not in staying]
    artifacts = [size for place in going for size in _sizes(place)]
    blob_sizes = [size for place in blobs for size in _sizes(place)]
    return Weight(len(ids), trials, len(artifacts), sum(artifacts), len(blobs), sum(blob_sizes))


def remove_runs(store: Store, ids: Sequence[str]) -> None:
    """Take runs out, each in one piece; their files are loose then."""
    for run_id in ids:
        with store.writing() as connection:
            for table in reversed(schema.metadata.sorted_tables):
                if "run_id" in table.c:
                    connection.execute(sa.delete(table).where(table.c.run_id == run_id))
            connection.execute(sa.delete(schema.runs).where(schema.runs.c.id == run_id))


def sweep(store: Store) -> Swept:
    """Remove files that no run names, and give the database's free pages back. Where somebody else uses the store,
    files stay: they may be about to be named."""
    with store.use.alone() as is_alone:
        if not is_alone:
            return Swept(is_alone=False, database_bytes=_reclaim(store, is_alone=False))
        with store.reading() as connection:
            staying = {safe_name(run_id) for run_id in _run_ids(connection)}
            digests = needed_digests(connection, None)
        with translated(store.folder):
            artifacts = _gone([place for place in _folders(store.folder / "artifacts") if place.name not in staying])
            blobs = _loose_blobs(store.folder, digests)
            blob_bytes = sum(_gone(blobs))
            _gone([place for place in _folders(store.folder) if place.name.startswith(TEMPORARY)])
        database_bytes = _reclaim(store, is_alone=True)
    return Swept(True, len(artifacts), sum(artifacts), len(blobs), blob_bytes, database_bytes)


def needed_digests(connection: sa.Connection, ids: Sequence[str] | None) -> set[str]:
    """The SHA-256 of everything that these runs name, or all: models, inputs, libraries, runners."""
    runs, cells, sessions = schema.runs.c, schema.cells.c, schema.sessions.c
    named: set[str] = set()
    for part in [None] if ids is None else parts(ids):
        for column, run_id in (
            (sa.cast(runs.fleet, sa.Text), runs.id),
            (sa.cast(sessions.facts, sa.Text), sessions.run_id),
            (cells.model_sha256, cells.run_id),
            (cells.runner_sha256, cells.run_id),
        ):
            query = sa.select(column).distinct() if part is None else sa.select(column).where(run_id.in_(part))
            for text in connection.execute(query).scalars():
                named.update(_DIGEST.findall(text or ""))
    return named


def _run_ids(connection: sa.Connection) -> list[str]:
    return list(connection.execute(sa.select(schema.runs.c.id)).scalars())


# Files. Links are never followed: neither into what they point at, nor to find out how large it is.


def _folders(place: Path) -> list[Path]:
    """What is kept there by name; other files that somebody put there are not ours."""
    if not place.is_dir():
        return []
    return sorted(path for path in place.iterdir() if path.is_dir() and not path.is_symlink())


def _loose_blobs(folder: Path, named: Collection[str]) -> list[Path]:
    """The folders of blobs that no run names."""
    found = _folders(folder / "blobs")
    return [place for place in found if _DIGEST.fullmatch(place.name) and place.name not in named]


def _sizes(place: Path) -> Iterator[int]:
    if place.is_symlink() or not place.is_dir():
        return
    for path in place.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _sizes(path)
        else:
            yield path.lstat().st_size


def _gone(places: Sequence[Path]) -> list[int]:
    """Remove folders; gives the sizes of the files that were in them."""
    sizes = []
    for place in places:
        sizes += list(_sizes(place))
        shutil.rmtree(place)
    return sizes


# Disk space


def _reclaim(store: Store, *, is_alone: bool) -> int:
    """Give the free pages back; gives the bytes that came back. Who is alone and has the room writes the database anew
    where much of it is free, which is ten times as fast; otherwise pages go a few at a time, so that no writer waits
    long. A database of an earlier version can only be written anew."""
    database = store.folder / DATABASE
    store.outside("PRAGMA wal_checkpoint(TRUNCATE)")
    before = database.stat().st_size
    free, pages = store.outside("PRAGMA freelist_count"), store.outside("PRAGMA page_count")
    is_gradual = store.outside("PRAGMA auto_vacuum") == _INCREMENTAL
    has_room = shutil.disk_usage(store.folder).free > _ROOM * before * (1 - free / pages)
    if free and is_alone and has_room and (not is_gradual or free > pages * _MUCH):
        store.outside("PRAGMA auto_vacuum=INCREMENTAL")
        store.outside("VACUUM")
    elif free and is_gradual:
        _give_back_gradually(store)
    store.outside("PRAGMA wal_checkpoint(TRUNCATE)")
    return max(0, before - database.stat().st_size)


def _give_back_gradually(store: Store) -> None:
    while (free := store.outside("PRAGMA freelist_count")) > 0:
        store.outside(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
        if store.outside("PRAGMA freelist_count") >= free:
            return
