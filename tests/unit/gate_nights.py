"""Nights whose truth is known: a fleet measured night after night, with what nights differ by stated in numbers.

What the logarithm of a trial's median is off by, on top of its cell's level:

    the device     2.5 % from night to night, the same for all its cells and its reference
    the cell       1 % from night to night, each on its own
    the block      1.5 %, shared by the cells of a block
    the trial      1.5 %; one in twenty is hit by another program, 10 to 60 % slower
    a warm room    8 % for the whole device, of which each cell takes 0.8 to 1.2 times as much
    a new system   6 % for the whole device, and its name changes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from orchestrator.analysis.gate import Night
from orchestrator.analysis.reduction import Reduced
from orchestrator.pinned import described
from orchestrator.store import RunRecord, SessionRecord, Store
from orchestrator.trial import Cell, Outcome, Slot, Summary, Trial
from tests.unit.comparison_models import reduced_trial
from tests.unit.trial_factory import make_cell

WARM, UPDATE = 0.08, 0.06
REFERENCE = make_cell(model="pinned", runner="benchmark_model:pinned", runner_sha256="fe" * 32)


def fleet_cells(count: int, device: str = "pixel8") -> list[Cell]:
    return [make_cell(device=device, model=f"model-{number}") for number in range(count)]


@dataclass(frozen=True)
class Noises:
    """Robust standard deviations on the log scale."""

    device: float = 0.025
    cell: float = 0.01
    block: float = 0.015
    trial: float = 0.015
    hit_share: float = 0.05


@dataclass
class Lab:
    """One device that is measured night after night; every night has a build of its own."""

    rng: np.random.Generator
    cells: list[Cell] = field(default_factory=lambda: fleet_cells(8))
    blocks: int = 8
    noises: Noises = Noises()
    reference: Cell | None = REFERENCE
    nights: int = 0

    def night(
        self, *, slower: Mapping[int, float] | None = None, shared: float = 0.0, system: str = "Android 15"
    ) -> Night:
        """A night in which cells, by their place, are slower by a share, and the whole device is by `shared`."""
        self.nights += 1
        run, rng, noises = f"night-{self.nights:03d}", self.rng, self.noises
        build = 16 * f"{self.nights:04x}"
        cells = [Cell(**{**cell.as_json(), "runner_sha256": build}) for cell in self.cells]
        if self.reference:
            cells.append(self.reference)
        device = rng.normal(0, noises.device)
        offsets = [
            device
            + shared * rng.uniform(0.8, 1.2)
            + rng.normal(0, noises.cell)
            + np.log1p((slower or {}).get(place, 0.0))
            for place in range(len(cells))
        ]
        trials = [
            self._trial(cell, run, block, np.log(800.0) + offsets[place] + drift, position=place)
            for block in range(self.blocks)
            for drift in [rng.normal(0, noises.block)]
            for place, cell in enumerate(cells)
        ]
        return Night(
            run,
            cells,
            trials,
            references=frozenset([self.reference.id] if self.reference else []),
            devices=frozenset(cell.device for cell in cells),
            systems={cell.device: system for cell in cells},
        )

    def _trial(self, cell: Cell, run: str, block: int, log_us: float, *, position: int) -> Reduced:
        hit = np.log(self.rng.uniform(1.1, 1.6)) if self.rng.random() < self.noises.hit_share else 0.0
        log_us += self.rng.normal(0, self.noises.trial) + hit
        at_s = 86400.0 * self.nights + 100.0 * block + position
        return reduced_trial(
            cell, arm="", block=block, log_us=log_us, at_s=at_s, run=run, session=run, position=position
        )


def as_trial(light: Reduced) -> Trial:
    p50, mean, p95 = (light.latencies_us[metric] for metric in ("p50", "mean", "p95"))
    return Trial(
        run=light.run,
        slot=Slot(light.cell, light.block, light.position),
        session=light.session,
        outcome=light.outcome,
        reason=light.reason,
        started_at="2026-11-18T02:00:00Z",
        duration_s=1.0,
        summary=Summary(count=200, median=p50, avg=mean, p95=p95) if light.outcome is Outcome.MEASURED else None,
    )


def put(store: Store, night: Night, *, measure: dict[str, object] | None = None, status: str = "finished") -> RunRecord:
    """The night as a run of the store, a day after the one before."""
    day = int(night.run.rpartition("-")[2])
    record = RunRecord(
        id=night.run,
        created_at=f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}T02:00:00.000000Z",
        status=status,
        plan={"measure": measure or {}},
        fleet={
            "devices": [{"name": name} for name in sorted(night.devices)],
            "reference": described({REFERENCE.device: REFERENCE} if night.references else {}),
        },
        host={},
        seed=1,
        devbench_version="0",
    )
    store.add_run(record, night.cells)
    for device, system in night.systems.items():
        facts = {"os": system, "kernel": "6.1"}
        store.add_session(SessionRecord(f"{night.run}-{device}", night.run, device, "2026-11-18T02:00:00Z", facts))
    store.add_trials([as_trial(trial) for trial in night.trials])
    return record
