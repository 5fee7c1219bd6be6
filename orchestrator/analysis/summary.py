"""What the trials of a run say, all together and in a stable order."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.analysis.components import Components, components
from orchestrator.analysis.contrast import IDLE, Contrast, load_contrasts, sweeps, thread_contrasts
from orchestrator.analysis.crossover import Crossover, CrossoverAnswer, answers, crossover
from orchestrator.analysis.estimate import LEVEL, CellEstimate, Estimate, entering, estimate_cells
from orchestrator.analysis.percentiles import percentiles_us
from orchestrator.analysis.reduction import Reduced, reduced
from orchestrator.analysis.remarks import Remark, remarks
from orchestrator.analysis.sustained import Ranking, Sustained, rankings, sustained
from orchestrator.analysis.trust import Trust, trust_of
from orchestrator.analysis.variability import Variability, variability
from orchestrator.analysis.waiting import Waiting, waits
from orchestrator.trial import Cell, Pass, Trial


@dataclass(frozen=True)
class CellSummary:
    """A cell's latency, its spread, its slow end, and how far to trust all that."""

    estimate: CellEstimate
    variability: Variability
    percentiles_us: Mapping[str, Estimate]
    trust: Trust
    drifting: int

    @property
    def cell(self) -> Cell:
        return self.estimate.cell

    @property
    def _drift_notes(self) -> list[str]:
        return [f"latency drifts, or changes its level, within {self.drifting} trials"] if self.drifting else []

    def as_json(self) -> dict[str, Any]:
        found = self.estimate
        return {
            **found.cell.as_json(),
            "id": found.cell.id,
            "arm": found.arm,
            "outcomes": {str(outcome): count for outcome, count in found.outcomes.items()},
            "latency_us": {
                name: estimate.as_json() for name, estimate in (*found.latency_us.items(), *self.percentiles_us.items())
            },
            "half_width": found.half_width,
            "variability": self.variability.as_json() | {"trials_drifting": self.drifting},
            "trust": self.trust.as_json(),
            "reasons": [{"reason": reason, "count": count} for reason, count in found.reasons],
            "notes": [*found.notes, *self._drift_notes],
            **found.medians,
        }


@dataclass(frozen=True)
class RunSummary:
    """Every cell, every ratio between cells, the answers, and what to know about the trials behind them.

    `crossovers` hold the thread contrasts.
    """

    cells: tuple[CellSummary, ...]
    crossovers: tuple[Crossover, ...]
    load_sensitivities: tuple[Contrast, ...]
    answers: tuple[CrossoverAnswer, ...]
    remarks: tuple[Remark, ...]
    components: tuple[Components, ...] = ()
    waits: tuple[Waiting, ...] = ()
    sustained: tuple[Sustained, ...] = ()
    rankings: tuple[Ranking, ...] = ()

    @property
    def untrusted(self) -> list[CellSummary]:
        return [cell for cell in self.cells if not cell.trust.is_trusted]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON types only; what is absent is null, never NaN."""
        return {
            "cells": [cell.as_json() for cell in self.cells],
            "speedups": [_speedup_as_json(crossover.contrast) for crossover in self.crossovers],
            "load_sensitivity": [contrast.as_json(contrast.ratio) for contrast in self.load_sensitivities],
            "crossover": [crossover.as_json() for crossover in self.crossovers],
            "answers": [answer.as_json() for answer in self.answers],
            "remarks": [remark.as_json() for remark in self.remarks],
            "waits": [waiting.as_json() for waiting in self.waits],
            "variance": [split.as_json() for split in self.components],
            "sustained": [found.as_json() for found in self.sustained],
            "rankings": [ranking.as_json() for ranking in self.rankings],
        }


def summarise(trials: Sequence[Trial], *, level: float = LEVEL) -> RunSummary:
    """The summary of trials in the order in which they were made, whatever became of them.

    `level` is that of the cells' intervals: a run that may stop at several looks needs a higher one (`look_level`) for
    its intervals to hold the truth in 95 % of runs.
    """
    ordinary = [trial for trial in trials if trial.slot.purpose is Pass.LATENCY]
    of_cell: dict[tuple[Cell, str | None], list[Trial]] = defaultdict(list)
    lights: dict[tuple[Cell, str | None], list[Reduced]] = defaultdict(list)
    for trial, light in zip(ordinary, reduced(ordinary), strict=True):
        of_cell[trial.cell, trial.slot.arm].append(trial)
        lights[trial.cell, trial.slot.arm].append(light)
    keys = sorted(of_cell, key=lambda key: cell_order(*key))
    estimates = estimate_cells([of_cell[key] for key in keys], level=level)
    cells = tuple(
        _summarise_cell(of_cell[key], lights[key], estimate) for key, estimate in zip(keys, estimates, strict=True)
    )
    swept = sweeps(cell.estimate for cell in cells)
    crossovers = tuple(crossover(contrast) for contrast in thread_contrasts(swept))
    long = sustained(trials)
    return RunSummary(
        cells=cells,
        crossovers=crossovers,
        load_sensitivities=tuple(load_contrasts(swept)),
        answers=tuple(answers(swept, crossovers)),
        remarks=remarks(trials),
        components=tuple(components([light for key in keys for light in lights[key]])),
        waits=waits(trials),
        sustained=long,
        rankings=rankings(long),
    )


def _summarise_cell(trials: Sequence[Trial], lights: Sequence[Reduced], estimate: CellEstimate) -> CellSummary:
    counted = entering(trials)
    drifting = sum(light.drift is not None for light in lights)
    spread = variability(list(counted.values()), p50_us=estimate.latency_us["p50"].value)
    return CellSummary(estimate, spread, percentiles_us(counted), trust_of(lights), drifting)


def _speedup_as_json(contrast: Contrast) -> dict[str, Any]:
    return contrast.as_json(contrast.ratio.inverse) | {"base_threads": contrast.base.threads}


def cell_order(cell: Cell, arm: str | None) -> tuple[Any, ...]:
    """The key by which cells are listed: idle before loads, numbers by size."""
    return (
        *(cell.device, cell.model, cell.runner, cell.delegate, cell.affinity),
        *(cell.model_sha256, cell.runner_sha256 or "", arm or ""),
        *(cell.load != IDLE, _natural(cell.load), cell.threads),
    )


def _natural(text: str) -> tuple[str | int, ...]:
    """A key that puts cpu:2@50 before cpu:10@50."""
    return tuple(int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", text))
