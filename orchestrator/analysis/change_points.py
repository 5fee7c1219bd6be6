"""Where a series of runs changed its level, with a known rate of false alarms.

The statistic is the largest standardised Mann-Whitney rank sum over all splits; how large chance makes it is known from
random orders of the same ranks, so outlier nights and odd distributions change nothing. A split that is found is made,
and both parts are searched again. Neighbours that resemble each other count for less.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from orchestrator.analysis.dependence import neighbour_correlations
from orchestrator.analysis.discovery import adjusted_p
from orchestrator.analysis.randomisation import Floats
from orchestrator.analysis.sequential import Shift, Side, shift

ALARM = 0.03
"""How often an unchanged history of any length may show a change."""
SIDE_MIN = 3
RUNS_MIN = 8
_ORDERS = 20_000
_SEED = 0


@dataclass(frozen=True)
class ChangePoint:
    """`index` is the first point of the new level; `moved` how far it lies from the level before."""

    index: int
    p: float
    moved: Shift


def change_points(series: Sequence[Sequence[float]], *, threshold: float) -> list[list[ChangePoint]]:
    """The change points of each series of logarithms, false alarms controlled over all series together.

    Steps smaller than the threshold are not reported: nobody would act on them.
    """
    tested = [index for index, values in enumerate(series) if len(values) >= RUNS_MIN]
    roots = adjusted_p([_scan(np.array(series[index])) for index in tested], [1.0] * len(tested))
    found: list[list[ChangePoint]] = [[] for _ in series]
    for index, p in zip(tested, roots.tolist(), strict=True):
        if p <= ALARM:
            values = np.array(series[index], dtype=np.float64)
            splits = _merged(values, sorted(_splits(values, 0, len(values))), math.log1p(threshold))
            found[index] = _described(values, splits, p)
    return found


def _splits(values: Floats, start: int, end: int) -> list[int]:
    """All splits between two points: the strongest, and those of its two sides."""
    part = values[start:end]
    if len(part) < RUNS_MIN or _scan(part) > ALARM:
        return []
    middle = start + _best_split(part)
    return [*_splits(values, start, middle), middle, *_splits(values, middle, end)]


def _merged(values: Floats, splits: list[int], edge: float) -> list[int]:
    """The splits at which the level moves by the threshold at least; the smallest step goes first."""
    while splits:
        bounds = [0, *splits, len(values)]
        levels = [float(np.median(values[one:other])) for one, other in itertools.pairwise(bounds)]
        steps = [abs(after - before) for before, after in itertools.pairwise(levels)]
        least = int(np.argmin(steps))
        if steps[least] >= edge:
            return splits
        splits = splits[:least] + splits[least + 1 :]
    return splits


def _described(values: Floats, splits: Sequence[int], p: float) -> list[ChangePoint]:
    bounds = [0, *splits, len(values)]
    points = []
    for place, split in enumerate(splits):
        before, after = values[bounds[place] : split], values[split : bounds[place + 2]]
        moved = shift(Side(before.tolist(), 1), Side(after.tolist(), 1), session_sd=0.0)
        points.append(ChangePoint(split, max(p, _scan(values[bounds[place] : bounds[place + 2]])), moved))
    return points


def _best_split(values: Floats) -> int:
    """The split that leaves the smallest distances to the medians of both sides."""
    candidates = range(SIDE_MIN, len(values) - SIDE_MIN + 1)

    def distance(split: int) -> float:
        return sum(float(np.abs(side - np.median(side)).sum()) for side in (values[:split], values[split:]))

    return min(candidates, key=distance)


def _scan(values: Floats) -> float:
    """How often chance makes a split this strong."""
    ranks = _mid_ranks(values)
    strongest = float(np.abs(_standardised(ranks[None, :])).max())
    split = _best_split(values)
    residuals = np.concatenate([side - np.median(side) for side in (values[:split], values[split:])])
    correlation = float(neighbour_correlations(residuals[None, :])[0]) - 1 / len(values)
    if correlation > 1 / math.sqrt(len(values)):
        strongest *= math.sqrt((1 - min(correlation, 0.9)) / (1 + min(correlation, 0.9)))
    null = _null(len(values)) if len(np.unique(ranks)) == len(ranks) else _null_of(ranks)
    return (1 + int(len(null) - np.searchsorted(null, strongest - 1e-9))) / (1 + len(null))


def _mid_ranks(values: Floats) -> Floats:
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") + 1) / 2


def _standardised(ranks: Floats) -> Floats:
    """The rank sum of what comes before each admissible split, in standard deviations."""
    count = ranks.shape[-1]
    splits = np.arange(SIDE_MIN, count - SIDE_MIN + 1)
    sums = np.cumsum(ranks, axis=-1)[..., splits - 1]
    expected = splits * ranks.mean(axis=-1, keepdims=True)
    variance = ranks.var(axis=-1, keepdims=True) * count / (count - 1) * splits * (count - splits) / count
    standardised: Floats = (expected - sums) / np.sqrt(np.maximum(variance, 1e-12))
    return standardised


@lru_cache(maxsize=256)
def _null(count: int) -> Floats:
    return _null_of(np.arange(1.0, count + 1))


def _null_of(ranks: Floats) -> Floats:
    """The largest statistic of many random orders of these ranks, sorted."""
    rng = np.random.default_rng(_SEED)
    orders = max(2000, min(_ORDERS, 2_000_000 // len(ranks)))
    shuffled = rng.permuted(np.broadcast_to(ranks, (orders, len(ranks))), axis=1)
    return np.sort(np.abs(_standardised(shuffled)).max(axis=1))
