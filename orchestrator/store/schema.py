"""The tables of the store and the numbered steps that brought them there."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from orchestrator.store.figures import stored_figure_rows

metadata = sa.MetaData()

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("created_at", sa.Text, nullable=False),
    sa.Column("ended_at", sa.Text),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("plan", sa.JSON, nullable=False),
    sa.Column("fleet", sa.JSON, nullable=False),
    sa.Column("host", sa.JSON, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("devbench_version", sa.Text, nullable=False),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("device", sa.Text, nullable=False),
    sa.Column("started_at", sa.Text, nullable=False),
    sa.Column("ended_at", sa.Text),
    sa.Column("facts", sa.JSON, nullable=False),
    sa.Column("findings", sa.JSON, nullable=False),
    sa.Column("ending", sa.Text),
)

cells = sa.Table(
    "cells",
    metadata,
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("device", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("model_sha256", sa.Text, nullable=False),
    sa.Column("runner", sa.Text, nullable=False),
    sa.Column("runner_sha256", sa.Text),
    sa.Column("delegate", sa.Text, nullable=False),
    sa.Column("threads", sa.Integer, nullable=False),
    sa.Column("affinity", sa.Text, nullable=False),
    sa.Column("load", sa.Text, nullable=False),
    sa.Column("stopped", sa.Text),
)

trials = sa.Table(
    "trials",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("cell_id", sa.Text, nullable=False),
    sa.Column("device", sa.Text, nullable=False),
    sa.Column("block", sa.Integer, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("arm", sa.Text, nullable=False, server_default=""),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("started_at", sa.Text, nullable=False),
    sa.Column("duration_s", sa.Float, nullable=False),
    sa.Column("samples_us", sa.LargeBinary),
    sa.Column("warmup_us", sa.LargeBinary),
    sa.Column("summary", sa.JSON),
    sa.Column("metrics", sa.JSON, nullable=False),
    sa.Column("telemetry", sa.JSON, nullable=False),
    sa.Column("evidence", sa.JSON, nullable=False),
    sa.Column("findings", sa.JSON, nullable=False),
    sa.Column("log", sa.Text),
    sa.Column("purpose", sa.Text, nullable=False, server_default="latency"),
    sa.ForeignKeyConstraint(["run_id", "cell_id"], ["cells.run_id", "cells.id"], ondelete="CASCADE"),
    sa.UniqueConstraint("run_id", "cell_id", "block", "arm", name="one_trial_per_slot"),
)

passes = sa.Table(
    "passes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.Text, nullable=False, index=True),
    sa.Column("cell_id", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("device", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("started_at", sa.Text, nullable=False),
    sa.Column("duration_s", sa.Float, nullable=False),
    sa.Column("latency_us", sa.Float),
    sa.Column("content", sa.JSON),
    sa.Column("evidence", sa.JSON, nullable=False),
    sa.Column("findings", sa.JSON, nullable=False),
    sa.Column("log", sa.Text),
    sa.Column("artifacts", sa.JSON, nullable=False),
    sa.ForeignKeyConstraint(["run_id", "cell_id"], ["cells.run_id", "cells.id"], ondelete="CASCADE"),
)
"""Passes that are no trials: a cell's operator profile. No reader of trials can meet one."""


noise = sa.Table(
    "noise",
    metadata,
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("device", sa.Text, primary_key=True),
    sa.Column("family", sa.Text, primary_key=True),
    sa.Column("metric", sa.Text, primary_key=True),
    sa.Column("made_at", sa.Text, nullable=False),
    sa.Column("block_sd", sa.Float, nullable=False),
    sa.Column("bad_share", sa.Float, nullable=False),
    sa.Column("session_sd", sa.Float),
    sa.Column("sessions", sa.Integer, nullable=False),
    sa.Column("blocks", sa.Integer, nullable=False),
    sa.Column("trial_s", sa.Float, nullable=False),
)


tags = sa.Table(
    "tags",
    metadata,
    sa.Column("tag", sa.Text, primary_key=True),
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("made_at", sa.Text, nullable=False),
)

notes = sa.Table(
    "notes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("made_at", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
)

judgements = sa.Table(
    "judgements",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("baseline_id", sa.Text, nullable=False),
    sa.Column("made_at", sa.Text, nullable=False),
    sa.Column("standing", sa.Text, nullable=False),
    sa.Column("content", sa.JSON, nullable=False),
)
"""What the gate said of runs. The baseline may have been pruned since, so it is a name and no reference."""


troubles = sa.Table(
    "troubles",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("device", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("fact", sa.Text, nullable=False),
)
"""Each time a device had to be reached anew during a run."""

figures = sa.Table(
    "figures",
    metadata,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("cell_id", sa.Text, primary_key=True),
    sa.Column("block", sa.Integer, primary_key=True),
    sa.Column("arm", sa.Text, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("started_at", sa.Text, nullable=False),
    sa.Column("p50", sa.Float),
    sa.Column("mean", sa.Float),
    sa.Column("p95", sa.Float),
    sa.ForeignKeyConstraint(["run_id", "cell_id"], ["cells.run_id", "cells.id"], ondelete="CASCADE"),
    sqlite_with_rowid=False,
)
"""What a measured trial of the latency pass comes to: a year of nights is read without its samples."""

INDEXES = (
    sa.Index("trials_by_outcome", trials.c.run_id, trials.c.cell_id, trials.c.outcome, trials.c.session_id),
    sa.Index("sessions_by_device", sessions.c.device, sessions.c.started_at),
    sa.Index("runs_by_time", runs.c.created_at),
)


def _create_everything(connection: sa.Connection) -> None:
    metadata.create_all(connection)


def _add_passes_stops_and_noise(connection: sa.Connection) -> None:
    """Why a trial was made, why a cell stopped, and what calibration found. A new store has them already."""
    noise.create(connection, checkfirst=True)
    _add_column(connection, trials.c.purpose)
    _add_column(connection, cells.c.stopped)


def _add_column(connection: sa.Connection, column: sa.Column[str]) -> None:
    present = {found["name"] for found in sa.inspect(connection).get_columns(column.table.name)}
    if column.name not in present:
        definition = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
        connection.execute(sa.text(f"ALTER TABLE {column.table.name} ADD COLUMN {definition}"))


def _add_profiles(connection: sa.Connection) -> None:
    passes.create(connection, checkfirst=True)


def _add_annals(connection: sa.Connection) -> None:
    for table in (tags, notes, judgements):
        table.create(connection, checkfirst=True)


def _add_figures_and_troubles(connection: sa.Connection) -> None:
    """What lists, histories and the record of devices read instead of whole trials."""
    troubles.create(connection, checkfirst=True)
    figures.create(connection, checkfirst=True)
    for index in INDEXES:
        index.create(connection, checkfirst=True)
    table = trials.c
    wanted = ("run_id", "cell_id", "block", "arm", "position", "session_id", "started_at", "samples_us", "summary")
    measured = sa.select(*(table[name] for name in wanted)).where(
        table.outcome == "measured", table.purpose == "latency"
    )
    for run_id in connection.execute(sa.select(runs.c.id).where(runs.c.id.not_in(sa.select(figures.c.run_id)))).all():
        rows = connection.execute(measured.where(table.run_id == run_id[0])).mappings().all()
        if rows:
            connection.execute(sa.insert(figures), list(stored_figure_rows(rows)))


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (
    _create_everything,
    _add_passes_stops_and_noise,
    _add_profiles,
    _add_annals,
    _add_figures_and_troubles,
)
"""Step N brings a store of version N to N + 1. Steps are only ever appended."""

VERSION = len(MIGRATIONS)

# Outside `metadata`, because it must exist before any step can be counted.
schema_version = sa.Table("schema_version", sa.MetaData(), sa.Column("version", sa.Integer, nullable=False))
