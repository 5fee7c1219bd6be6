"""Deleting and pruning: what goes goes whole, what is needed stays, and nothing outside the store is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from orchestrator.analysis.noise import Noise
from orchestrator.clock import SystemClock
from orchestrator.content_hash import sha256
from orchestrator.errors import UsageError
from orchestrator.housekeeping import check_deletion, close_regression, plan_pruning, remove
from orchestrator.retention import BASELINE, LAST_GOOD, NOISE, NOTED, OPEN_REGRESSION, TAGGED, UNDER_WAY, Policy
from orchestrator.store import Annals, Standing, Store, open_store, schema
from orchestrator.store.ledger import Wanted, run_ids, run_lines
from orchestrator.store.removal import remove_runs, sweep, weigh
from tests.unit.nights import LAST_NIGHT, add_night, night_id

WEEK = Policy(keep_s=7 * 86400.0)


class Morning(SystemClock):
    def now(self):  # type: ignore[no-untyped-def]  # as the clock says
        return LAST_NIGHT


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    path.write_bytes(b"model" * 1000)
    return path


def rows_left(store: Store) -> dict[str, int]:
    """How many rows every table has that is about runs."""
    with store.reading() as connection:
        return {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() or 0
            for table in schema.metadata.sorted_tables
        }


def test_a_deleted_run_leaves_nothing(store: Store, model: Path) -> None:
    """Rows of every table, artifacts and blobs are gone, and the disk has its space back."""
    run_id = add_night(store, 3, blocks=200, model=model)
    Annals(store).note(run_id, "x")
    Annals(store).judge(run_id, "other", Standing.GOOD, {})
    weight = weigh(store, [run_id])
    assert (weight.trials, weight.artifacts, weight.artifact_bytes) == (200, 200, 1200)
    assert (weight.blobs, weight.blob_bytes) == (1, 5000)
    swept = remove(store, [run_id])
    assert set(rows_left(store).values()) == {0}
    assert (swept.is_alone, swept.artifacts, swept.blobs) == (True, 200, 1)
    assert swept.database_bytes > 100_000
    assert list((store.folder / "artifacts").iterdir()) == list((store.folder / "blobs").iterdir()) == []


def test_a_blob_that_another_run_names_stays(store: Store, model: Path) -> None:
    add_night(store, 3, model=model)
    remaining = add_night(store, 2, model=model)
    assert weigh(store, [night_id(3)]).blobs == 0
    assert remove(store, [night_id(3)]).blobs == 0
    assert store.blob(sha256(model)) is not None
    assert run_ids(store) == [remaining]


def test_files_stay_while_another_process_measures(store: Store, model: Path) -> None:
    """It may have put a blob there that no row names yet; its rows and space are no concern of it."""
    add_night(store, 3, model=model)
    store.use.release()  # the one who measured has ended
    other = open_store(store.folder)
    other.keep_blob(model)
    swept = remove(store, [night_id(3)])
    assert not swept.is_alone
    assert run_ids(store) == []
    assert other.blob(sha256(model)) is not None
    other.close()
    assert sweep(store).blobs == 1


def test_the_process_that_measured_may_sweep_up_itself(store: Store, model: Path) -> None:
    """A night that prunes at its end holds the lock itself."""
    add_night(store, 3, model=model)
    assert remove(store, [night_id(3)]).is_alone
    store.keep_blob(model)
    other = open_store(store.folder)
    assert not sweep(other).is_alone, "and it holds it on afterwards"


def test_a_run_under_way_is_neither_deleted_nor_pruned(store: Store) -> None:
    """One that was killed says `running` too, but nobody holds the store for it."""
    run_id = add_night(store, 300, status="running")
    other = open_store(store.folder)
    other.set_status(run_id, "running", None)
    with pytest.raises(UsageError, match="is under way"):
        check_deletion(store, [run_id], force=True)
    assert plan_pruning(store, Policy(keep_last=1), Morning()).decision.staying[run_id]
    assert plan_pruning(store, WEEK, Morning()).decision.staying[run_id] == UNDER_WAY
    other.close()
    check_deletion(store, [run_id], force=False)


def test_tagged_runs_and_what_regressions_need_are_not_deleted_unless_forced(store: Store) -> None:
    for age in (1, 2, 3, 4):
        add_night(store, age)
    Annals(store).tag(night_id(4), "v1")
    Annals(store).judge(night_id(1), night_id(2), Standing.BAD, {"cells": [{"duel_run": night_id(3)}]})
    for age, message in ((4, "is tagged: v1"), (1, "needs run"), (2, "needs run"), (3, "needs run")):
        with pytest.raises(UsageError, match=message):
            check_deletion(store, [night_id(age)], force=False)
        check_deletion(store, [night_id(age)], force=True)
    close_regression(store, night_id(1), "mended")
    check_deletion(store, [night_id(2), night_id(3)], force=False)
    closed = Annals(store).judgements()[night_id(1)]
    assert (closed.standing, closed.content["closed_because"]) == (Standing.CLOSED, "mended")
    with pytest.raises(UsageError, match="no open regression: it is closed"):
        close_regression(store, night_id(1), "again")


def test_pruning_keeps_what_is_needed_and_says_why(store: Store) -> None:
    for age in range(1, 20):
        add_night(store, age)
    add_night(store, 30, devices=["retired"])
    add_night(store, 40, arms=["a", "b"])
    add_night(store, 41, arms=["a", "b"])
    store.keep_noise(night_id(40), "2026-10-01", [Noise("pixel8", "any", "p50", 0.01, 0.0, None, 1, 8, 1.0)])
    store.keep_noise(night_id(41), "2026-09-01", [Noise("pixel8", "any", "p50", 0.01, 0.0, None, 1, 8, 1.0)])
    annals = Annals(store)
    annals.tag(night_id(19), "v1")
    annals.note(night_id(18), "the fan was off")
    annals.judge(night_id(8), night_id(17), Standing.BAD, {"duel": {"run": night_id(16)}})
    annals.judge(night_id(14), night_id(15), Standing.GOOD, {})
    decision = plan_pruning(store, WEEK, Morning()).decision
    old = {run: reason for run, reason in decision.staying.items() if run < night_id(7)}
    assert old == {
        night_id(8): OPEN_REGRESSION,
        night_id(14): LAST_GOOD,
        night_id(16): OPEN_REGRESSION,
        night_id(17): OPEN_REGRESSION,
        night_id(18): NOTED,
        night_id(19): TAGGED,
        night_id(30): BASELINE,
        night_id(40): NOISE,
    }
    remove(store, decision.going)
    assert set(run_ids(store)) == set(decision.staying)
    assert plan_pruning(store, WEEK, Morning()).decision.going == (), "what stays does not depend on what went"


def test_links_are_not_followed(store: Store, tmp_path: Path) -> None:
    """Whatever somebody links into the store, only the link goes."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    run_id = add_night(store, 3)
    (store.folder / "artifacts" / "linked").symlink_to(outside)
    (store.folder / "artifacts" / "orphan").mkdir()
    (store.folder / "artifacts" / "orphan" / "linked").symlink_to(outside)
    (store.folder / "artifacts" / run_id.replace(":", "_") / "up").symlink_to(tmp_path)
    assert weigh(store, [run_id]).artifact_bytes < 1000
    remove(store, [run_id])
    assert (outside / "precious").read_text() == "x"
    assert not (store.folder / "artifacts" / "orphan").exists()


def test_names_of_runs_and_logs_cannot_lead_out_of_the_store(store: Store, tmp_path: Path) -> None:
    """Neither the id nor the path of a log, as an imported file may have them, says which files go."""
    precious = tmp_path / "precious.log"
    precious.write_text("x")
    add_night(store, 3)
    with store.writing() as connection:
        connection.execute(sa.text("UPDATE trials SET log = '../precious.log'"))
    for name in ("..", "../..", ".", "/"):
        record = store.runs()[0]
        with store.writing() as connection:
            values = vars(record) | {"id": name}
            connection.execute(sa.insert(schema.runs).values(**values))
        assert weigh(store, [name]).artifacts == 0
        remove(store, [name])
    remove(store, [night_id(3)])
    assert precious.exists()
    assert (store.folder / "devbench.sqlite").exists()


def test_what_is_not_ours_in_the_folder_stays(store: Store) -> None:
    """A file beside the artifacts, and a folder among the blobs that is called by no hash."""
    add_night(store, 3)
    readme, mine = store.folder / "artifacts" / "README", store.folder / "blobs" / "mine"
    readme.write_text("x")
    mine.mkdir(parents=True)
    (store.folder / "blobs" / ("f" * 64)).mkdir()
    remove(store, [night_id(3)])
    assert readme.exists()
    assert mine.exists()
    assert not (store.folder / "blobs" / ("f" * 64)).exists()


def test_a_database_made_without_it_gives_its_space_back_too(store: Store) -> None:
    """Stores of earlier versions are written anew once."""
    add_night(store, 3, blocks=300, logs=False)
    store.outside("PRAGMA auto_vacuum=NONE")
    store.outside("VACUUM")
    assert store.outside("PRAGMA auto_vacuum") == 0
    assert remove(store, [night_id(3)]).database_bytes > 100_000
    assert store.outside("PRAGMA auto_vacuum") == 2


def test_a_removal_that_is_killed_leaves_whole_runs(store: Store, model: Path) -> None:
    """SIGKILL at several moments: every run that is left is whole, and the next removal takes the loose files."""
    for age in range(1, 49):
        add_night(store, age, blocks=5, model=model if age > 30 else None)
    store.close()
    script = textwrap.dedent(f"""
        from orchestrator.housekeeping import remove
        from orchestrator.store import open_store
        from tests.unit.nights import night_id
        store = open_store({str(store.folder)!r})
        print("begin", flush=True)
        remove(store, [night_id(age) for age in range(1, 49) if age % 8])
    """)
    for delay_s in (0.02, 0.1):
        with subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
        ) as process:
            assert process.stdout
            process.stdout.readline()
            time.sleep(delay_s)
            os.kill(process.pid, signal.SIGKILL)
        left = run_lines(store)
        assert {line.outcomes["measured"] for line in left} == {5}
        assert {night_id(age) for age in range(8, 49, 8)} <= {line.id for line in left}
        assert store.outside("PRAGMA integrity_check") == "ok"
        assert store.outside("PRAGMA foreign_key_check") is None
        counts = rows_left(store)
        assert counts["trials"] == counts["figures"] == 5 * len(left)
        for line in left:
            assert len(list((store.folder / "artifacts" / line.id.replace(":", "_")).iterdir())) == 5
    remove_runs(store, [line.id for line in left if line.id not in {night_id(age) for age in range(8, 49, 8)}])
    sweep(store)
    assert len(list((store.folder / "artifacts").iterdir())) == 6
    assert store.blob(sha256(model)) is not None


def test_runs_are_counted_and_chosen(store: Store) -> None:
    """By tag, time, kind and number, the newest first."""
    for age in (1, 2, 3):
        add_night(store, age, devices=["a", "b"])
    add_night(store, 4, arms=["a", "b"])
    Annals(store).tag(night_id(2), "v1")
    Annals(store).judge(night_id(2), night_id(3), Standing.GOOD, {})
    Annals(store).judge(night_id(2), night_id(3), Standing.BAD, {})
    found = run_lines(store, Wanted(tag="v1"))[0]
    assert (found.id, found.cells, found.outcomes, found.standing) == (night_id(2), 2, {"measured": 4}, "bad")
    assert (found.devices, found.duration_s) == (("a", "b"), 2400.0)
    assert [line.id for line in run_lines(store, Wanted(limit=2))] == [night_id(1), night_id(2)]
    assert [line.id for line in run_lines(store, Wanted(kind="calibration"))] == [night_id(4)]
    assert len(run_lines(store, Wanted(since="2026-11-16"))) == 2
