"""Trials for tests: single ones, and grids drawn from a known truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from orchestrator.trial import Cell, Outcome, Slot, Summary, Trial


def make_cell(
    *,
    threads: int = 1,
    load: str = "idle",
    device: str = "pixel8",
    model: str = "mobilenet_v2",
    runner: str = "litert_runner",
    delegate: str = "xnnpack",
    affinity: str = "any",
    model_sha256: str = "ab" * 32,
    runner_sha256: str | None = "cd" * 32,
) -> Cell:
    return Cell(
        device=device,
        model=model,
        model_sha256=model_sha256,
        runner=runner,
        runner_sha256=runner_sha256,
        delegate=delegate,
        threads=threads,
        affinity=affinity,
        load=load,
    )


def make_trial(
    *,
    cell: Cell | None = None,
    block: int = 0,
    position: int = 0,
    arm: str | None = None,
    run: str = "run-1",
    median_us: float = 1000.0,
    samples: int = 80,
    spread: float = 0.02,
    rng: np.random.Generator | None = None,
    outcome: Outcome = Outcome.MEASURED,
    reason: str | None = None,
    summary: Summary | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> Trial:
    """A trial of log-normal samples about a median. Without `rng` they are evenly spread, in no order in time.

    A `summary` replaces the samples, as a tool that prints none would do.
    """
    slot = Slot(cell or make_cell(), block, position, arm)
    even = np.linspace(-1.0, 1.0, samples)[np.argsort(np.arange(samples) * 0.618034 % 1)]
    noise = even if rng is None else rng.normal(size=samples)
    drawn = summary is None and outcome in {Outcome.MEASURED, Outcome.REJECTED}
    return Trial(
        run=run,
        slot=slot,
        session="session-1",
        outcome=outcome,
        reason=reason,
        started_at="2026-11-18T02:00:00Z",
        duration_s=1.0,
        samples_us=tuple((median_us * np.exp(spread * noise)).tolist()) if drawn else (),
        summary=summary,
        metrics=metrics or {},
    )


def make_grid(
    truth_us: Mapping[tuple[int, str], float],
    *,
    blocks: int,
    rng: np.random.Generator,
    trial_sd: float = 0.01,
    block_sd: float = 0.1,
    samples: int = 80,
    spread: float = 0.02,
    device: str = "pixel8",
    model: str = "mobilenet_v2",
) -> list[Trial]:
    """Every (threads, load) cell once in each block, about its true latency; a block drifts as a whole."""
    trials = []
    for block in range(blocks):
        drift = rng.normal(0, block_sd)
        for position, ((threads, load), latency_us) in enumerate(truth_us.items()):
            median_us = latency_us * float(np.exp(drift + rng.normal(0, trial_sd)))
            trials.append(
                make_trial(
                    cell=make_cell(threads=threads, load=load, device=device, model=model),
                    block=block,
                    position=position,
                    median_us=median_us,
                    samples=samples,
                    spread=spread,
                    rng=rng,
                )
            )
    return trials
