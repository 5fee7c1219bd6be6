"""Cells drawn from stated models: clean, or with one known disturbance, as trials and as a batch of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from orchestrator.trial import Finding, Severity, Trial
from tests.unit.trial_factory import make_cell, make_trial

SAMPLES = 80
TYPICAL_US = 1000.0


def cell_trials(
    rng: np.random.Generator,
    *,
    blocks: int = 12,
    trial_sd: float = 0.01,
    sample_sd: float = 0.02,
    drift: float = 0.0,
    drift_inside: float = 0.0,
    second_mode: float = 0.0,
    correlation: float = 0.0,
    sample_correlation: float = 0.0,
    bursts: float = 0.0,
    interrupted: float = 0.0,
    load: str = "idle",
    started: bool = False,
) -> list[Trial]:
    """One cell's trials. `drift` and `drift_inside` are the growth from start to end over the run and in each trial;
    `second_mode` puts each trial on another level with probability 0.4; `bursts` slows a quarter of the trials by so
    much; `interrupted` is the share of inferences that take twice as long."""
    noise = _correlated(rng, blocks, correlation) * trial_sd
    levels = np.linspace(0, np.log1p(drift), blocks) + noise
    levels += np.log1p(second_mode) * (rng.random(blocks) < 0.4)
    if bursts:
        levels[rng.choice(blocks, size=-(-blocks // 4), replace=False)] += np.log1p(bursts)
    trials = []
    for block, level in enumerate(levels):
        logs = level + sample_sd * _correlated(rng, SAMPLES, sample_correlation)
        logs += np.linspace(0, np.log1p(drift_inside), SAMPLES)
        logs += np.log(2) * (rng.random(SAMPLES) < interrupted)
        trial = make_trial(cell=make_cell(load=load), block=block, samples=SAMPLES)
        began = f"2026-11-18T02:{block:02d}:00Z" if started else ""
        trials.append(replace(trial, samples_us=tuple((TYPICAL_US * np.exp(logs)).tolist()), started_at=began))
    return trials


def with_findings(trials: list[Trial], rule: str, share: float) -> list[Trial]:
    """The first so many trials carry a warning of this kind."""
    finding = Finding(rule, Severity.WARN, f"{rule} was seen", "mend it")
    count = round(share * len(trials))
    return [replace(trial, findings=(finding,) if index < count else ()) for index, trial in enumerate(trials)]


def with_telemetry(trials: list[Trial], telemetry: list[Mapping[str, Any]]) -> list[Trial]:
    return [replace(trial, telemetry=columns) for trial, columns in zip(trials, telemetry, strict=True)]


def _correlated(rng: np.random.Generator, count: int, correlation: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Standard normal values in a first-order autoregression."""
    steps = rng.normal(size=count)
    for index in range(1, count):
        steps[index] = correlation * steps[index - 1] + np.sqrt(1 - correlation**2) * steps[index]
    return steps
