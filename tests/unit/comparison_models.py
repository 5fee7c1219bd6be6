"""Trials whose truth is known: the noise models that comparisons are checked against, stated in numbers.

A model gives the logarithms of the medians of base and new trials, block by block, without any change. In a block the
two run one after the other, in random order. What a trial's median is off by:

    calm            2 % for every trial
    drift           1 % for every trial, on top of +30 % from the first to the last (heat)
    autocorrelated  1 % for every trial, on top of 5 % shared by neighbours in time (correlation 0.9)
    bimodal         1 % for every trial; three in ten processes land 15 % slower (core placement)
    bursts          1.5 % for every trial; 15 % of trials hit by other programs, 10 to 60 % slower
    heavy           1.5 % times Student's t with two degrees of freedom
    sessions        1 % for every trial; half the blocks in another session, offset by 5 %
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.reduction import Reduced
from orchestrator.analysis.sides import Matched, Matching
from orchestrator.trial import Cell, Outcome
from tests.unit.trial_factory import make_cell

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Floats]
"""Noise of 2 * blocks trials in time order."""


def calm(rng: np.random.Generator, trials: int) -> Floats:
    return rng.normal(0, 0.02, trials)


def drift(rng: np.random.Generator, trials: int) -> Floats:
    return rng.normal(0, 0.01, trials) + np.linspace(0, np.log(1.3), trials)


def autocorrelated(rng: np.random.Generator, trials: int) -> Floats:
    shared = np.empty(trials)
    shared[0] = rng.normal(0, 0.05)
    for index in range(1, trials):
        shared[index] = 0.9 * shared[index - 1] + rng.normal(0, 0.05 * np.sqrt(1 - 0.81))
    return shared + rng.normal(0, 0.01, trials)


def bimodal(rng: np.random.Generator, trials: int) -> Floats:
    return rng.normal(0, 0.01, trials) + np.log(1.15) * (rng.random(trials) < 0.3)


def bursts(rng: np.random.Generator, trials: int) -> Floats:
    hit = rng.random(trials) < 0.15
    return rng.normal(0, 0.015, trials) + hit * np.log(rng.uniform(1.1, 1.6, trials))


def heavy(rng: np.random.Generator, trials: int) -> Floats:
    return 0.015 * rng.standard_t(2, trials)


def sessions(rng: np.random.Generator, trials: int) -> Floats:
    offset = rng.normal(0, 0.05)
    return rng.normal(0, 0.01, trials) + np.where(np.arange(trials) >= trials // 2, offset, 0.0)


MODELS: dict[str, Noise] = {
    "calm": calm,
    "drift": drift,
    "autocorrelated": autocorrelated,
    "bimodal": bimodal,
    "bursts": bursts,
    "heavy": heavy,
    "sessions": sessions,
}


@dataclass(frozen=True)
class Truth:
    """What is true of a simulated cell: the change of every process, and of a part of them."""

    effect: float = 0.0
    part: float = 0.0
    part_effect: float = 0.0

    def shifts(self, rng: np.random.Generator, blocks: int) -> Floats:
        return np.log1p(self.effect) + np.log1p(self.part_effect) * (rng.random(blocks) < self.part)


NOTHING = Truth()


def reduced_trial(cell: Cell, *, arm: str, block: int, log_us: float, at_s: float | None, **fields: object) -> Reduced:
    """A trial with the given median; its mean and p95 follow it."""
    p50 = float(np.exp(log_us))
    return Reduced(
        cell=cell,
        arm=arm,
        run=str(fields.get("run", "run")),
        session=str(fields.get("session", "session")),
        block=block,
        position=int(str(fields.get("position", 0))),
        outcome=Outcome.MEASURED,
        reason=None,
        started_s=at_s,
        latencies_us={
            "p50": p50,
            "mean": p50 * float(str(fields.get("mean", 1.02))),
            "p95": p50 * float(str(fields.get("p95", 1.15))),
        },
        samples=200,
    )


def interleaved(
    rng: np.random.Generator, noise: Noise, *, blocks: int, truth: Truth = NOTHING, cell: Cell | None = None
) -> Matched:
    """One cell as an interleaved run measures it: two trials a block, in random order, one after the other."""
    cell = cell or make_cell()
    levels = np.log(800.0) + noise(rng, 2 * blocks)
    shifts = truth.shifts(rng, blocks)
    base, new = [], []
    for block in range(blocks):
        first = int(rng.integers(2))
        for arm in range(2):
            place = 2 * block + (first if arm == 0 else 1 - first)
            jitter = {"mean": 1.02 * np.exp(rng.normal(0, 0.005)), "p95": 1.15 * np.exp(rng.normal(0, 0.02))}
            trial = reduced_trial(
                cell,
                arm=("baseline", "candidate")[arm],
                block=block,
                log_us=levels[place] + (shifts[block] if arm else 0.0),
                at_s=10.0 * place,
                **jitter,
            )
            (new if arm else base).append(trial)
    return Matched(tuple(base), tuple(new), ())


def one_after_the_other(
    rng: np.random.Generator, noise: Noise, *, blocks: int, truth: Truth = NOTHING, cell: Cell | None = None
) -> Matched:
    """One cell as two runs on two days measure it: all of the base, then all of the new, offset by 3 % a session."""
    cell = cell or make_cell()
    shifts = truth.shifts(rng, blocks)
    sides = []
    for arm, run in enumerate(("monday", "tuesday")):
        levels = np.log(800.0) + noise(rng, blocks) + rng.normal(0, 0.03)
        levels = levels + (shifts if arm else 0.0)
        sides.append(
            tuple(
                reduced_trial(
                    cell, arm="x", block=block, log_us=level, at_s=1e5 * arm + 10.0 * block, run=run, session=run
                )
                for block, level in enumerate(levels.tolist())
            )
        )
    return Matched(sides[0], sides[1], ())


def matching(cells: list[Matched]) -> Matching:
    return Matching(tuple(cells), (), ())
