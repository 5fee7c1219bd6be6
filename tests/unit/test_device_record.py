"""The record of devices as the store has it: sessions, drops, states, canary, and the pace of unchanged bytes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.analysis.estimate import trial_latencies_us
from orchestrator.analysis.history import histories
from orchestrator.analysis.reduction import reduced
from orchestrator.store import SessionRecord, Store, open_store
from orchestrator.store.device_record import device_nights, note_trouble
from orchestrator.store.latencies import all_latencies
from orchestrator.trial import Outcome
from tests.unit.nights import add_night, night_id
from tests.unit.trial_factory import make_cell, make_trial


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store")


def test_a_night_is_read_from_its_session_and_trials(store: Store) -> None:
    """The state before its first trial, the canary's best until its last, outcomes, drops, build and ending."""
    run_id = add_night(store, 1, blocks=0)
    cell = make_cell()
    store.add_session(SessionRecord("s", run_id, "pixel8", "2026-11-17T02:30:00.000Z", {"os": "Android 14"}))
    for block, (celsius, canary_ns) in enumerate([(31.5, 2000), (40.0, 1900)]):
        state = {"temperature_c": celsius, "battery_percent": 77, "battery_health": "good"}
        evidence = {"states": [state, {}], "cool_down": {"canary_best_ns": canary_ns}}
        store.add_trial(replace(make_trial(cell=cell, block=block, run=run_id), session="s", evidence=evidence))
    failed = replace(make_trial(cell=cell, block=2, run=run_id), session="s", outcome=Outcome.FAILED, reason="x")
    store.add_trial(failed)
    for _ in range(2):
        note_trouble(store, run=run_id, session="s", device="pixel8", fact="went away")
    store.end_session("s", "2026-11-17T03:00:00.000Z", "lost: went away")
    (night,) = [night for night in device_nights(store, since="2026-11-17T02:10") if night.build]
    assert (night.temperature_c, night.battery_percent, night.battery_health) == (31.5, 77.0, "good")
    assert (night.canary_ns, night.drops, night.outcomes) == (1900.0, 2, {"measured": 2, "failed": 1})
    assert (night.build, night.is_lost, night.pace) == ("Android 14", True, None)


def test_pace_is_about_the_same_bytes_only(store: Store) -> None:
    """A cell whose model changed is another cell; of those that stayed, each night is held against all."""
    for ago, median_us in ((4, 1000.0), (3, 1000.0), (2, 1000.0), (1, 1100.0)):
        run_id = add_night(store, ago, blocks=0)
        for block in range(3):
            trial = make_trial(cell=make_cell(), block=block, run=run_id, median_us=median_us)
            store.add_trial(replace(trial, session=f"{run_id}-pixel8"))
        other = make_cell(model_sha256=f"{ago:064x}")
        store.add_cells(run_id, [other])
        store.add_trial(replace(make_trial(cell=other, run=run_id, median_us=ago * 5000.0), session=f"{run_id}-pixel8"))
    paces = {night.run: night.pace for night in device_nights(store, since="2026")}
    assert paces[night_id(1)] == pytest.approx(math.log(1.1))
    assert paces[night_id(2)] == pytest.approx(0.0)


def test_devices_and_time_are_chosen(store: Store) -> None:
    for ago in (1, 5):
        add_night(store, ago, devices=["a", "b"])
    assert {night.device for night in device_nights(store, since="2026", devices=["a"])} == {"a"}
    assert {night.run for night in device_nights(store, since="2026-11-15")} == {night_id(1)}


def test_a_device_that_was_never_reached_has_a_night_too(store: Store) -> None:
    run_id = add_night(store, 1, blocks=0)
    store.add_session(SessionRecord("s", run_id, "dead", "2026-11-17T02:00:00.000Z", {}))
    store.end_session("s", "2026-11-17T02:01:00.000Z", "lost: no such phone")
    (night,) = device_nights(store, since="2026", devices=["dead"])
    assert (night.is_lost, night.outcomes, night.canary_ns) == (True, {}, None)


def test_figures_are_what_the_trials_come_to(store: Store) -> None:
    """Also in a store of before there were any: its first opening works them out."""
    add_night(store, 1, blocks=1200, logs=False)
    add_night(store, 2, logs=False)
    figures = "SELECT p50 || ' ' || mean || ' ' || p95 FROM figures ORDER BY run_id DESC, block"
    trials = [*store.trials(night_id(1)), *store.trials(night_id(2))]
    written = [trial_latencies_us(trial)["p50"] for trial in trials]
    with store.reading() as connection:
        before = connection.exec_driver_sql(figures).scalars().all()
        stored = connection.exec_driver_sql("SELECT p50 FROM figures ORDER BY run_id DESC, block").scalars().all()
    assert stored == written
    with store.writing() as connection:
        connection.exec_driver_sql("DROP TABLE figures")
        connection.exec_driver_sql("DROP TABLE troubles")
        connection.exec_driver_sql("DROP INDEX trials_by_outcome")
        connection.exec_driver_sql("UPDATE schema_version SET version = 4")
    store.close()
    with open_store(store.folder).reading() as connection:
        assert connection.exec_driver_sql(figures).scalars().all() == before
        assert connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE name = 'trials_by_outcome'").all()


def test_histories_from_figures_are_those_from_trials(store: Store) -> None:
    """A year is read without its samples, and says the same."""
    for ago in range(12, 0, -1):
        add_night(store, ago, blocks=3, devices=["a", "b"])
    trials = [trial for run in reversed(store.runs()) for trial in reduced(store.trials(run.id))]
    from_trials = histories(trials, metric="p50", threshold=0.03)
    from_figures = histories(all_latencies(store), metric="p50", threshold=0.03)
    assert [item.as_json() for item in from_figures] == [item.as_json() for item in from_trials]
    assert {trial.cell.device for trial in all_latencies(store, ["b"])} == {"b"}
