"""Runs that may stop at looks, many at a time: block values from stated models, and what the stop rule does to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.dependence import width_factors
from orchestrator.analysis.randomisation import Floats, centres, walked_level
from orchestrator.plan import Measure
from orchestrator.schedule import is_look, look_level

MODELS = ("normal", "t3", "disturbed", "drift", "alike 0.3", "alike 0.6")
_DRIFT = 3.0
"""In standard deviations, from the first block to the last."""


@dataclass(frozen=True)
class Stopped:
    """What became of the runs: how many hold the truth, and how many blocks they took on average."""

    coverage: float
    blocks: float


def block_values(rng: np.random.Generator, model: str, *, runs: int, blocks: int, sd: float) -> Floats:
    """Logarithms of block latencies about 0."""
    drawn = rng.normal(size=(runs, blocks))
    if model == "t3":
        drawn = rng.standard_t(3, size=(runs, blocks))
    elif model == "disturbed":
        drawn += (rng.random((runs, blocks)) < 0.1) * rng.exponential(8, (runs, blocks))
    elif model == "drift":
        drawn += _drift(blocks)
    elif model.startswith("alike"):
        correlation = float(model.split()[1])
        for block in range(1, blocks):
            fresh = np.sqrt(1 - correlation**2) * drawn[:, block]
            drawn[:, block] = correlation * drawn[:, block - 1] + fresh
    return sd * drawn


def _drift(blocks: int) -> Floats:
    return _DRIFT * np.linspace(-0.5, 0.5, blocks)


def intervals(rows: Floats, level: float) -> tuple[Floats, Floats, Floats]:
    """Low and high ends on the log scale, and half the width as a share: as `Tally` works them out for one cell."""
    found, factors = centres(rows, level=walked_level(level)), width_factors(rows)
    location = np.array([centre.location for centre in found])
    low = location + factors * (np.array([centre.low for centre in found], dtype=np.float64) - location)
    high = location + factors * (np.array([centre.high for centre in found], dtype=np.float64) - location)
    return low, high, (np.exp(high) - np.exp(low)) / 2 / np.exp(location)


def stopped(rng: np.random.Generator, model: str, measure: Measure, *, runs: int, sd: float) -> Stopped:
    """Many cells measured until they are tight at a look; the last interval is the one that is reported.

    Under drift the truth is the mean level of the blocks that were measured.
    """
    values = block_values(rng, model, runs=runs, blocks=measure.blocks_max, sd=sd)
    live, level = np.arange(runs), look_level(measure)
    holds, used = np.zeros(runs, dtype=bool), np.zeros(runs)
    for block in range(measure.blocks_min, measure.blocks_max + 1):
        is_last = block == measure.blocks_max
        if not live.size or not (is_last or is_look(block, measure)):
            continue
        low, high, half_width = intervals(values[live, :block], level)
        truth = sd * float(_drift(measure.blocks_max)[:block].mean()) if model == "drift" else 0.0
        done = (half_width <= measure.precision) | is_last
        holds[live[done]] = ((low <= truth) & (truth <= high))[done]
        used[live[done]] = block
        live = live[~done]
    return Stopped(float(holds.mean()), float(used.mean()))
