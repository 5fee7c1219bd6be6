"""A duel on a virtual phone: two builds of one runner, interleaved, with the bytes that the store kept."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from orchestrator.analysis.comparison import Change
from orchestrator.contest import Pair
from orchestrator.duel import duel_measure, hold, prepare_duel, side_of
from orchestrator.fleet import Device
from orchestrator.plan import Conditions, Measure, Plan, Sweep
from orchestrator.reports.progress import SilentProgress
from orchestrator.store import open_store

from .adb_server import AdbServer
from .fixtures import StartPhone
from .nights import Nights

TINY = Path(__file__).parents[1] / "data" / "models" / "tiny_add.tflite"
QUICK = Measure(blocks_min=1, blocks_max=1, runs=20, min_ms=0, warmup_runs=1, warmup_min_ms=0, settle_ms=20, seed=7)
PLAN = Plan(
    sweep=Sweep(models=(str(TINY),), runners=("benchmark_model",), threads=(1,), loads=("idle",)),
    measure=QUICK,
    conditions=Conditions(other_cpu_percent_max=100_000, canary="off"),
)


def test_two_builds_run_on_one_phone_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adb_server: AdbServer, phone: StartPhone, benchmark_model: Path
) -> None:
    """The cache of binaries is not asked any more: the store has the bytes."""
    monkeypatch.setenv("DEVBENCH_BINARIES", str(tmp_path / "binaries"))
    monkeypatch.setenv("DEVBENCH_LOCKS", str(tmp_path / "locks"))
    one = phone()
    one.set_benchmark(time_scale=0.01, noise=0.02)
    pixel = Device("pixel", "adb", address={"serial": one.address, "adb_server": f"127.0.0.1:{adb_server.port}"})
    store = open_store(tmp_path / "store")
    nights = Nights(store, pixel, PLAN, tmp_path / "binaries", benchmark_model)
    old, new = nights.measure("old", 1.0), nights.measure("new", 1.1)
    shutil.rmtree(tmp_path / "binaries")
    base, slow = (side_of(store, run, store.cells(run)[0]) for run in (old, new))
    measure = duel_measure(PLAN)
    prepared = prepare_duel(store, [Pair(pixel, base, slow)], measure=measure, seed=3, origin={"command": "test"})
    found = hold(prepared, store, SilentProgress(), threading.Event())
    row = found.rows[0]
    assert (row.metric, row.verdict, row.cell) == ("p50", Change.SLOWER, slow.cell)
    assert row.low is not None and row.high is not None and row.low < 0.0953 < row.high
    assert found.missing == {}
    assert store.stops(found.run_id) == {slow.cell.id: "tight"}
    assert {(trial.slot.arm, trial.cell.runner_sha256) for trial in store.trials(found.run_id)} == {
        ("baseline", base.cell.runner_sha256),
        ("candidate", slow.cell.runner_sha256),
    }
    store.close()
