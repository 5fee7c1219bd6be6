"""One trial as the few figures that comparisons and verdicts need, so that files of any size can be read in passing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.estimate import (
    LATENCY_US_MAX,
    LATENCY_US_MIN,
    METRICS,
    P95_SAMPLES_MIN,
    Metric,
    trial_latencies_us,
)
from orchestrator.analysis.randomisation import MAD_TO_SD, Floats
from orchestrator.analysis.shape import effective_counts, two_modes
from orchestrator.analysis.trend import has_drift, trends
from orchestrator.analysis.witness import NOTHING_KNOWN, Witness, witness_of
from orchestrator.clock import seconds_of
from orchestrator.trial import Cell, Outcome, Pass, Severity, Trial

CONDITION_KEYS = ("build", "conditions", "load_placement")
OBSERVED_KEYS = ("runtime", "runtime_version", "library_sha256", "gpu_backend")
"""What a trial's evidence says about build and conditions; trials that differ in one are not compared."""

_BATCH = 1024
_SAMPLES_FOR_TREND = 20
_TAIL = 1.5
_MODES_INSIDE_MAX = 0.12
_MODE_SHARE_MIN = 0.3


@dataclass(frozen=True, slots=True)
class Reduced:
    """A trial without its samples. `drift` is what its latency gained from start to end, if that is no chance."""

    cell: Cell
    arm: str | None
    run: str
    session: str
    block: int
    position: int
    outcome: Outcome
    reason: str | None
    started_s: float | None
    latencies_us: Mapping[Metric, float | None]
    samples: int
    within_cv: float | None = None
    slow_share: float | None = None
    drift: float | None = None
    mode_gap: float | None = None
    """How far apart two modes of its samples lie, if its median could be in either."""
    worth: float | None = None
    """How many independent samples its samples are worth."""
    warned: tuple[str, ...] = ()
    duration_s: float = 0.0
    witness: Witness = NOTHING_KNOWN
    conditions: tuple[tuple[str, str], ...] = ()


def reduced(trials: Iterable[Trial]) -> Iterator[Reduced]:
    """The ordinary trials reduced, in order; only a batch of them is held at a time. Other passes are left out."""
    cells: dict[Cell, Cell] = {}
    conditions: dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = {}
    batch: list[Trial] = []
    for trial in trials:
        if trial.slot.purpose is not Pass.LATENCY:
            continue
        batch.append(trial)
        if len(batch) == _BATCH:
            yield from _reduced_batch(batch, cells, conditions)
            batch = []
    yield from _reduced_batch(batch, cells, conditions)


def _reduced_batch(
    batch: Sequence[Trial],
    cells: dict[Cell, Cell],
    conditions: dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]],
) -> Iterator[Reduced]:
    """Trials with as many samples are worked on together; equal cells and conditions are kept once."""
    figures: dict[int, _Figures] = {}
    of_length: dict[int, list[int]] = {}
    for index, trial in enumerate(batch):
        if trial.outcome is Outcome.MEASURED and trial.samples_us:
            of_length.setdefault(len(trial.samples_us), []).append(index)
    for indices in of_length.values():
        rows = np.array([batch[index].samples_us for index in indices], dtype=np.float64)
        figures.update(zip(indices, _figures(rows), strict=True))
    for index, trial in enumerate(batch):
        found = figures.get(index) or _Figures(trial_latencies_us(trial))
        held = conditions_of(trial)
        yield Reduced(
            cell=cells.setdefault(trial.cell, trial.cell),
            arm=trial.slot.arm,
            run=trial.run,
            session=trial.session,
            block=trial.slot.block,
            position=trial.slot.position,
            outcome=trial.outcome,
            reason=trial.reason,
            started_s=seconds_of(trial.started_at),
            latencies_us=found.latencies_us,
            samples=len(trial.samples_us),
            within_cv=found.within_cv,
            slow_share=found.slow_share,
            drift=found.drift,
            mode_gap=found.mode_gap,
            worth=found.worth,
            duration_s=trial.duration_s,
            witness=witness_of(trial),
            warned=tuple(finding.rule for finding in trial.findings if finding.severity is Severity.WARN),
            conditions=conditions.setdefault(held, held),
        )


def conditions_of(trial: Trial) -> tuple[tuple[str, str], ...]:
    """Build and conditions by name, as far as the evidence knows them."""
    evidence = trial.evidence
    if not evidence:
        return ()
    seen = evidence.get("observed")
    observed = seen if isinstance(seen, Mapping) else {}
    pairs = [(key, evidence.get(key)) for key in CONDITION_KEYS] + [(key, observed.get(key)) for key in OBSERVED_KEYS]
    return tuple((key, _as_text(value)) for key, value in pairs if value not in (None, "", {}, []))


def _as_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={value[key]}" for key in sorted(value, key=str))
    return str(value)


@dataclass(frozen=True, slots=True)
class _Figures:
    latencies_us: Mapping[Metric, float | None]
    within_cv: float | None = None
    slow_share: float | None = None
    drift: float | None = None
    mode_gap: float | None = None
    worth: float | None = None


def _figures(rows: Floats) -> list[_Figures]:
    """The figures of trials with as many samples each."""
    count = rows.shape[1]
    is_sound = (
        np.isfinite(rows).all(axis=1) & (rows.min(axis=1) >= LATENCY_US_MIN) & (rows.max(axis=1) <= LATENCY_US_MAX)
    )
    rows = np.where(is_sound[:, None], rows, 1.0)
    ordered = np.sort(rows, axis=1)
    middle = row_quantiles(ordered, 0.5)
    deviation = row_quantiles(np.sort(np.abs(ordered - middle[:, None]), axis=1), 0.5)
    slow = np.count_nonzero(ordered > _TAIL * middle[:, None], axis=1) / count
    values = {"p50": middle, "mean": rows.mean(axis=1), "p95": row_quantiles(ordered, 0.95)}
    lists = {metric: values[metric].tolist() for metric in METRICS}
    if count < P95_SAMPLES_MIN:
        lists["p95"] = [None] * len(rows)
    drift, flagged = _drifts(rows) if count >= _SAMPLES_FOR_TREND else ([0.0] * len(rows), [False] * len(rows))
    spread = (MAD_TO_SD * deviation / middle).tolist()
    gaps, worth = _shapes(rows) if count >= _SAMPLES_FOR_TREND else ([None] * len(rows), [None] * len(rows))
    return [
        _Figures(
            {metric: lists[metric][index] if sound else None for metric in METRICS},
            within_cv=spread[index] if sound and count >= 5 else None,
            slow_share=float(slow[index]) if sound else None,
            drift=drift[index] if sound and flagged[index] else None,
            mode_gap=gaps[index] if sound else None,
            worth=worth[index] if sound else None,
        )
        for index, sound in enumerate(is_sound.tolist())
    ]


def _drifts(rows: Floats) -> tuple[list[float], list[bool]]:
    found = trends(np.log(rows))
    return np.expm1(found.change).tolist(), has_drift(found).tolist()


def _shapes(rows: Floats) -> tuple[list[float | None], list[float | None]]:
    """The gap between two modes where the median could be in either, and what the samples are worth."""
    logs = np.log(rows)
    modes = two_modes(logs)
    is_split = (modes.left_inside < _MODES_INSIDE_MAX) & (modes.smaller_share > _MODE_SHARE_MIN)
    gaps = [gap if split else None for gap, split in zip(np.expm1(modes.apart).tolist(), is_split, strict=True)]
    return gaps, effective_counts(logs).tolist()


def row_quantiles(ordered: Floats, share: float) -> Floats:
    """The quantile of each sorted row, interpolated linearly."""
    position = share * (ordered.shape[1] - 1)
    below = math.floor(position)
    above = min(below + 1, ordered.shape[1] - 1)
    found: Floats = ordered[:, below] + (ordered[:, above] - ordered[:, below]) * (position - below)
    return found
