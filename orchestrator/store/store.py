"""The store: a folder with a database, the logs of trials, and the models and runners by their hash."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from orchestrator.analysis.noise import Noise
from orchestrator.cell_pass import CellPass
from orchestrator.content_hash import sha256
from orchestrator.errors import ImportRefused, RunNotFound, StoreError, StoreNewer
from orchestrator.op_profile import ProfilePass
from orchestrator.store import schema
from orchestrator.store.annals import Annals
from orchestrator.store.figures import figure_rows
from orchestrator.store.passes import PROFILE, TRACE, kind_of, pass_row, profile_of, trace_of
from orchestrator.store.references import find_baseline, find_run
from orchestrator.store.rows import (
    RunRecord,
    SessionRecord,
    cell_of,
    imported_run,
    safe_name,
    slot_key,
    trial_of,
    trial_row,
)
from orchestrator.store.trouble import DATABASE, translated
from orchestrator.store.use_lock import UseLock
from orchestrator.trace import TracePass
from orchestrator.trial import Cell, Finding, Outcome, Trial
from orchestrator.whole_files import TEMPORARY, copy_whole, write_whole


def open_store(place: str | Path, *, create: bool = True) -> Store:
    """The store in folder `place`, made or brought up to date if need be."""
    if "://" in str(place):
        raise StoreError(
            f"{str(place).partition('://')[0]}:// stores are not supported by this version",
            remedy="give --store a folder",
        )
    folder = Path(place)
    database = folder / DATABASE
    if not create and not database.exists():
        raise StoreError(
            f"no store in {folder}",
            remedy="measure something with `devbench run`, or point --store to another folder",
        )
    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True)
        store = Store(folder)
        store.migrate()
    return store


def has_store(place: str | Path) -> bool:
    """Whether there is a store to open."""
    return (Path(place) / DATABASE).exists()


class Store:
    """Reads and writes runs. Safe to use from several threads: writes take turns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writing = threading.RLock()
        self._keeping = threading.Lock()
        self.use = UseLock(folder)
        self._engine = sa.create_engine(
            f"sqlite:///{folder / DATABASE}", connect_args={"timeout": 30, "check_same_thread": False}
        )
        sa.event.listen(self._engine, "connect", _configure)

    def close(self) -> None:
        self.use.release()
        self._engine.dispose()

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction of the store's own modules; nobody else writes SQL."""
        with self._writing, translated(self.folder), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        with translated(self.folder), self._engine.connect() as connection:
            yield connection

    def outside(self, statement: str) -> Any:
        """Have the database do some housekeeping, in no transaction; gives its first answer, if there is one."""
        with self._writing, translated(self.folder), self._engine.connect() as connection:
            plain = connection.execution_options(isolation_level="AUTOCOMMIT").connection.driver_connection
            rows = plain.execute(statement).fetchall() if plain else []
            return rows[0][0] if rows else None

    def migrate(self) -> None:
        with self.writing() as connection:
            schema.schema_version.create(connection, checkfirst=True)
            found = connection.execute(sa.select(schema.schema_version.c.version)).scalar() or 0
            if found > schema.VERSION:
                raise StoreNewer(
                    f"the store {self.folder} was written by a newer devbench "
                    f"(schema {found}, this one knows {schema.VERSION})",
                    remedy="upgrade devbench, or point --store to another folder",
                )
            for step in schema.MIGRATIONS[found:]:
                step(connection)
            if found != schema.VERSION:
                connection.execute(sa.delete(schema.schema_version))
                connection.execute(sa.insert(schema.schema_version).values(version=schema.VERSION))

    # Runs

    def add_run(self, record: RunRecord, cells: Sequence[Cell], tags: Sequence[str] = ()) -> None:
        with self.writing() as connection:
            connection.execute(sa.insert(schema.runs).values(**vars(record)))
            _insert_cells(connection, record.id, cells)
            for tag in dict.fromkeys(tags):
                row = {"run_id": record.id, "tag": tag, "made_at": record.created_at}
                connection.execute(sa.insert(schema.tags).values(**row))

    def add_cells(self, run_id: str, cells: Sequence[Cell]) -> None:
        """Cells that became known after the run began; those already there are left as they are."""
        with self.writing() as connection:
            known = set(
                connection.execute(sa.select(schema.cells.c.id).where(schema.cells.c.run_id == run_id)).scalars()
            )
            _insert_cells(connection, run_id, [cell for cell in cells if cell.id not in known])

    def set_status(self, run_id: str, status: str, ended_at: str | None) -> None:
        update = sa.update(schema.runs).where(schema.runs.c.id == run_id)
        if status == "running":
            self.use.share()
        with self.writing() as connection:
            connection.execute(update.values(status=status, ended_at=ended_at))

    def runs(self, limit: int | None = None) -> list[RunRecord]:
        """All runs, newest first."""
        query = sa.select(schema.runs).order_by(schema.runs.c.created_at.desc(), schema.runs.c.id.desc()).limit(limit)
        with self.reading() as connection:
            return [RunRecord(**row) for row in connection.execute(query).mappings()]

    def last_resumable(self) -> RunRecord:
        """The newest run that has work left; failing that, the newest that was measured here."""
        begun = ("running", "interrupted", "finished")
        own = [record for record in self.runs() if record.duel is None and record.is_from_here]
        here = [record for record in own if record.status in begun]
        unfinished = [record for record in here if record.status != "finished"]
        if not here:
            raise RunNotFound(f"no run to go on with in {self.folder}", remedy="start one with `devbench run`")
        return (unfinished or here)[0]

    def find_run(self, reference: str) -> RunRecord:
        """A run as a user names it; see `references`."""
        return find_run(self.runs(), Annals(self).tagged(), reference, self.folder)

    def find_baseline(self, reference: str, of: RunRecord) -> RunRecord:
        """The run that another is held against, as a user names it."""
        annals = Annals(self)
        return find_baseline(self.runs(), annals.tagged(), annals.good_runs(), reference, of, self.folder)

    # Sessions

    def add_session(self, record: SessionRecord) -> None:
        row = record.__dict__ | {"findings": [finding.as_json() for finding in record.findings]}
        with self.writing() as connection:
            connection.execute(sa.insert(schema.sessions).values(**row))

    def end_session(self, session_id: str, ended_at: str, ending: str) -> None:
        update = sa.update(schema.sessions).where(schema.sessions.c.id == session_id)
        with self.writing() as connection:
            connection.execute(update.values(ended_at=ended_at, ending=ending))

    def sessions(self, run_id: str) -> list[SessionRecord]:
        query = sa.select(schema.sessions).where(schema.sessions.c.run_id == run_id)
        query = query.order_by(schema.sessions.c.started_at)
        with self.reading() as connection:
            rows = [dict(row) for row in connection.execute(query).mappings()]
        return [
            SessionRecord(**(row | {"findings": tuple(Finding.from_json(item) for item in row["findings"])}))
            for row in rows
        ]

    def runner_hashes(self, run_id: str, device: str) -> Mapping[str, Mapping[str, str]]:
        """The files of each runner, by role, that this run has used on the device."""
        for session in self.sessions(run_id):
            if session.device == device and session.facts:
                runners = session.facts.get("runners") or {}
                return {name: facts["files"] for name, facts in runners.items() if facts.get("files")}
        return {}

    def last_facts(self, device: str) -> Mapping[str, Any] | None:
        """What the device was when it was last measured."""
        query = sa.select(schema.sessions.c.facts).where(schema.sessions.c.device == device)
        query = query.order_by(schema.sessions.c.started_at.desc())
        with self.reading() as connection:
            return next((facts for facts in connection.execute(query).scalars() if facts), None)

    # Trials

    def add_trial(self, trial: Trial) -> None:
        """Committed when this returns."""
        self.add_trials([trial])

    def add_trials(self, trials: Sequence[Trial]) -> None:
        if not trials:
            return
        with self.writing() as connection:
            connection.execute(sa.insert(schema.trials), [trial_row(trial) for trial in trials])
            if figures := figure_rows(trials):
                connection.execute(sa.insert(schema.figures), figures)

    def take_in(self, trials: Sequence[Trial], entered_at: str) -> int:
        """Add trials made elsewhere, with runs of their own; gives how many were new. A run that was measured here
        takes no trials from elsewhere."""
        status = {record.id: record.status for record in self.runs()}
        fresh: dict[str, dict[tuple[str, int, str], Trial]] = {}
        for trial in trials:
            fresh.setdefault(trial.run, {})[slot_key(trial)] = trial
        for run_id, of_run in fresh.items():
            for slot in self.finished_slots(run_id) & set(of_run):
                del of_run[slot]
            if of_run and status.get(run_id, "imported") != "imported":
                raise ImportRefused(
                    f"run {run_id} was measured here, and {len(of_run)} trials of the file are not part of it",
                    remedy="import them into another store",
                )
        for run_id, of_run in fresh.items():
            if run_id not in status:
                self.add_run(imported_run(run_id, list(of_run.values()), entered_at), [])
            self.add_cells(run_id, list(dict.fromkeys(trial.cell for trial in of_run.values())))
            self.add_trials(list(of_run.values()))
        return sum(len(of_run) for of_run in fresh.values())

    def forget_not_run(self, run_id: str, device: str) -> None:
        """Drop the notes that slots of a device were not run, because they are about to be."""
        table = schema.trials
        gone = sa.delete(table).where(
            table.c.run_id == run_id, table.c.device == device, table.c.outcome == str(Outcome.NOT_RUN)
        )
        with self.writing() as connection:
            connection.execute(gone)

    def trials(self, run_id: str) -> list[Trial]:
        """All trials of a run in the order they were made."""
        query = (
            sa.select(schema.trials, *[column.label(f"its_{column.name}") for column in schema.cells.c])
            .join(schema.cells)
            .where(schema.trials.c.run_id == run_id)
            .order_by(schema.trials.c.id)
        )
        cells: dict[str, Cell] = {}
        with self.reading() as connection:
            return [trial_of(row, cells) for row in connection.execute(query).mappings()]

    def cells(self, run_id: str) -> list[Cell]:
        query = sa.select(schema.cells).where(schema.cells.c.run_id == run_id)
        with self.reading() as connection:
            return [cell_of(row, "") for row in connection.execute(query).mappings()]

    def set_stops(self, run_id: str, stops: Mapping[str, str]) -> None:
        """Note why cells, by their id, got no further block."""
        table = schema.cells
        with self.writing() as connection:
            for cell_id, reason in stops.items():
                update = sa.update(table).where(table.c.run_id == run_id, table.c.id == cell_id)
                connection.execute(update.values(stopped=reason))

    def stops(self, run_id: str) -> dict[str, str]:
        """Why cells got no further block, by their id, as far as that was decided."""
        query = sa.select(schema.cells.c.id, schema.cells.c.stopped).where(schema.cells.c.run_id == run_id)
        with self.reading() as connection:
            return {row.id: row.stopped for row in connection.execute(query) if row.stopped}

    def finished_slots(self, run_id: str) -> set[tuple[str, int, str]]:
        """(cell id, block, arm) of every slot that has a trial."""
        table = schema.trials.c
        query = sa.select(table.cell_id, table.block, table.arm).where(table.run_id == run_id)
        with self.reading() as connection:
            return {(row.cell_id, row.block, row.arm) for row in connection.execute(query)}

    # Noise

    def keep_noise(self, run_id: str, made_at: str, found: Sequence[Noise]) -> None:
        """Keep what a calibration run says, in place of what it said before."""
        table = schema.noise
        rows = [noise.as_json() | {"run_id": run_id, "made_at": made_at} for noise in found]
        with self.writing() as connection:
            connection.execute(sa.delete(table).where(table.c.run_id == run_id))
            if rows:
                connection.execute(sa.insert(table), rows)

    def noise(self) -> list[Noise]:
        """What is known of the noise of each device, family of cells and metric: the newest of each."""
        query = sa.select(schema.noise).order_by(schema.noise.c.made_at, schema.noise.c.run_id)
        newest: dict[tuple[str, str, str], Noise] = {}
        with self.reading() as connection:
            for row in connection.execute(query).mappings():
                content = {key: value for key, value in row.items() if key not in ("run_id", "made_at")}
                newest[row["device"], row["family"], row["metric"]] = Noise(**content)
        return list(newest.values())

    # Profiles and traces

    def add_pass(self, passed: CellPass) -> None:
        """Committed when this returns; an earlier pass of its kind over the cell in this run gives way."""
        table = schema.passes.c
        earlier = sa.delete(schema.passes).where(
            table.run_id == passed.run, table.cell_id == passed.cell.id, table.kind == kind_of(passed)
        )
        with self.writing() as connection:
            connection.execute(earlier)
            connection.execute(sa.insert(schema.passes).values(**pass_row(passed)))

    def profiles(self, run_id: str) -> list[ProfilePass]:
        """The profile passes of a run in the order they were made."""
        return [profile_of(row, cell) for row, cell in self._passes(run_id, schema.passes.c.kind == PROFILE)]

    def traces(self, run_id: str) -> list[TracePass]:
        """The trace passes of a run in the order they were made."""
        return [trace_of(row, cell) for row, cell in self._passes(run_id, schema.passes.c.kind.startswith(TRACE))]

    def _passes(self, run_id: str, wanted: sa.ColumnElement[bool]) -> list[tuple[Any, Cell]]:
        query = sa.select(schema.passes).where(schema.passes.c.run_id == run_id, wanted).order_by(schema.passes.c.id)
        cells = {cell.id: cell for cell in self.cells(run_id)}
        with self.reading() as connection:
            return [(row, cells[row["cell_id"]]) for row in connection.execute(query).mappings()]

    def unprofiled_trials(self, run_id: str, cell_id: str) -> list[Trial]:
        """The measured trials of a cell in this run, or in the newest that has some: its id is its content."""
        table = schema.trials.c
        query = (
            sa.select(table.run_id)
            .join(schema.runs, schema.runs.c.id == table.run_id)
            .where(table.cell_id == cell_id, table.outcome == str(Outcome.MEASURED))
            .order_by((table.run_id != run_id), schema.runs.c.created_at.desc())
        )
        with self.reading() as connection:
            found = connection.execute(query).scalar()
        trials = self.trials(found) if found else []
        return [trial for trial in trials if trial.cell.id == cell_id and trial.outcome == Outcome.MEASURED]

    # Files

    def keep_blob(self, source: Path) -> None:
        """Keep a model or runner by its hash, so that the run can be reproduced later."""
        digest = sha256(source)
        self.use.share()
        with self._keeping, translated(self.folder):
            if self.blob(digest) is None:
                copy_whole(source, self.folder / "blobs" / digest / source.name)

    def blob(self, digest: str) -> Path | None:
        """The kept file of this hash, if it is there and unharmed."""
        found = sorted((self.folder / "blobs" / digest).glob("*"))
        whole = [path for path in found if path.is_file() and not path.name.startswith(TEMPORARY)]
        return next((path for path in whole if sha256(path) == digest), None)

    def keep_log(self, trial_name: str, run_id: str, content: bytes) -> str:
        """Keep a trial's transcript; gives its path inside the store."""
        place = Path("artifacts") / safe_name(run_id) / f"{safe_name(trial_name)}.log"
        with translated(self.folder):
            (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / place).write_bytes(content)
        return str(place)

    def keep_artifact(self, name: str, run_id: str, content: bytes) -> str:
        """Keep a file that a device wrote; gives its path inside the store. Equal content is kept once."""
        digest = hashlib.sha256(content).hexdigest()[:12]
        place = Path("artifacts") / safe_name(run_id) / f"{safe_name(name)}-{digest}"
        with translated(self.folder):
            if not (self.folder / place).exists():
                write_whole(self.folder / place, content)
        return str(place)


def _configure(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # of a new database: what is deleted gives its space back
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")


def _insert_cells(connection: sa.Connection, run_id: str, cells: Sequence[Cell]) -> None:
    if cells:
        rows = [cell.as_json() | {"run_id": run_id, "id": cell.id} for cell in cells]
        connection.execute(sa.insert(schema.cells), rows)
