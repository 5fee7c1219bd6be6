"""A duel on a virtual phone: two builds of one runner, interleaved, with the bytes that the store kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator import campaign
from orchestrator.analysis.comparison import Change
from orchestrator.binaries import Binaries
from orchestrator.contest import Pair
from orchestrator.duel import DuelResult, duel_measure, hold, prepare_duel, side_of
from orchestrator.fleet import Device
from orchestrator.plan import Conditions, Measure, Plan, Sweep
from orchestrator.prepare import prepare
from orchestrator.reports.progress import SilentProgress
from orchestrator.store import Store, open_store
from orchestrator.trial import Cell

from .adb_server import AdbServer
from .build import build_variant
from .fixtures import StartPhone

TINY = Path(__file__).parents[1] / "data" / "models" / "tiny_add.tflite"
QUICK = Measure(blocks_min=1, blocks_max=1, runs=20, min_ms=0, warmup_runs=1, warmup_min_ms=0, settle_ms=20, seed=7)
PLAN = Plan(
    sweep=Sweep(models=(str(TINY),), runners=("benchmark_model",), threads=(1,), loads=("idle",)),
    measure=QUICK,
    conditions=Conditions(other_cpu_percent_max=100_000, canary="off"),
)


@dataclass
class Lab:
    """A store and a phone, on which builds are measured one night after the other."""

    store: Store
    device: Device
    binaries: Path
    original: Path
    nights: int = 0

    def night(self, slowdown: float) -> tuple[str, Cell]:
        """One run of a build that is so many times slower."""
        self.nights += 1
        name = f"night-{self.nights}"
        built = build_variant(self.original, self.binaries / name, slowdown=slowdown, name=name)
        Binaries(self.binaries).add(built, name)
        prepared = prepare(PLAN, [self.device])
        (result,) = campaign.measure(prepared, self.store, SilentProgress(), threading.Event())
        assert result.measured == 1, result
        (cell,) = self.store.cells(prepared.record.id)
        return prepared.record.id, cell

    def duel(self, base: tuple[str, Cell], new: tuple[str, Cell], *, blocks: tuple[int, int] = (8, 40)) -> DuelResult:
        pair = Pair(self.device, side_of(self.store, *base), side_of(self.store, *new))
        prepared = prepare_duel(
            self.store, [pair], measure=duel_measure(PLAN, blocks=blocks), seed=3, origin={"command": "test"}
        )
        return hold(prepared, self.store, SilentProgress(), threading.Event())


@pytest.fixture
def lab(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    adb_server: AdbServer,
    phone: StartPhone,
    benchmark_model: Path,
) -> Iterator[Lab]:
    monkeypatch.setenv("DEVBENCH_BINARIES", str(tmp_path / "binaries"))
    monkeypatch.setenv("DEVBENCH_LOCKS", str(tmp_path / "locks"))
    (tmp_path / "binaries").mkdir()
    one = phone()
    one.set_benchmark(time_scale=0.01, noise=0.02)
    address = {"serial": one.address, "adb_server": f"127.0.0.1:{adb_server.port}"}
    store = open_store(tmp_path / "store")
    yield Lab(store, Device("pixel", "adb", address=address), tmp_path / "binaries", benchmark_model)
    store.close()


def test_a_slower_build_is_told_from_one_that_is_the_same(lab: Lab) -> None:
    """Two builds on one phone at once; the cache of binaries is not asked any more, the store has the bytes."""
    old, same, slow = lab.night(1.0), lab.night(1.0), lab.night(1.1)
    assert len({cell.runner_sha256 for _, cell in (old, same, slow)}) == 3
    for path in lab.binaries.rglob("*"):
        if path.is_file():
            path.unlink()
    found = lab.duel(old, slow)
    row = found.rows[0]
    assert (row.metric, row.verdict, row.cell) == ("p50", Change.SLOWER, slow[1])
    assert row.low is not None and row.high is not None and row.low < 0.0953 < row.high
    assert found.missing == {}
    trials = lab.store.trials(found.run_id)
    assert {(trial.slot.arm, trial.cell.runner_sha256) for trial in trials} == {
        ("baseline", old[1].runner_sha256),
        ("candidate", slow[1].runner_sha256),
    }
    assert lab.duel(old, same).rows[0].verdict is Change.SAME
