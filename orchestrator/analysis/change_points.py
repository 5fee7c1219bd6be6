"""Where a series of runs changed its level, with a known rate of false alarms.

Two statistics are looked at: the largest standardised rank sum over all splits in two, and over all stretches within
the series, which a regression that was mended again leaves behind. How large chance makes them is known from random
orders of the same ranks, so outlier nights and odd distributions change nothing. What is found is cut out, and all
parts are searched again. Neighbours that resemble each other count for less.
"""

from __future__ import annotations

import heapq
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
_ORDERS = 10_000
_AT_ONCE = 500
_BOUNDS_MAX = 60
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
    roots = adjusted_p([_scan(np.array(series[index])).p for index in tested], [1.0] * len(tested))
    found: list[list[ChangePoint]] = [[] for _ in series]
    for index, p in zip(tested, roots.tolist(), strict=True):
        if p <= ALARM:
            values = np.array(series[index], dtype=np.float64)
            splits = _merged(values, sorted(_splits(values, 0, len(values))), math.log1p(threshold))
            found[index] = _described(values, splits, p)
    return found


def _splits(values: Floats, start: int, end: int) -> list[int]:
    """All splits between two points: those of the strongest change, and those of the parts it leaves."""
    part = values[start:end]
    if len(part) < RUNS_MIN:
        return []
    found = _scan(part)
    if found.p > ALARM:
        return []
    bounds = [start, *(start + cut for cut in found.cuts), end]
    inner = [split for one, other in itertools.pairwise(bounds) for split in _splits(values, one, other)]
    return [*bounds[1:-1], *inner]


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
        points.append(ChangePoint(split, p, moved))
    return points


@dataclass(frozen=True)
class _Scan:
    """How often chance makes a change this strong, and where to cut."""

    p: float
    cuts: tuple[int, ...]


def _scan(values: Floats) -> _Scan:
    """The stronger of the best split in two and the best stretch, each with its share of the alarms."""
    ranks = _mid_ranks(values)[None, :]
    splits, stretches = _split_ranks(ranks)[0], _stretch_ranks(ranks)[0]
    split = (best_cut(values),)
    stretch = _stretches(len(values))[int(np.argmax(np.abs(stretches)))]
    found = [
        _Scan(_p(values, ranks[0], float(np.abs(statistics).max()), cuts, kind) / share, cuts)
        for statistics, cuts, kind, share in ((splits, split, "split", 2 / 3), (stretches, stretch, "stretch", 1 / 3))
    ]
    return min(found, key=lambda scan: scan.p)


def best_cut(values: Floats) -> int:
    """The split in two that leaves the smallest distances to the medians of the parts."""
    row = values.tolist()
    before, after = _distances(row), _distances(row[::-1])
    cuts = range(SIDE_MIN, len(row) - SIDE_MIN + 1)
    return min(cuts, key=lambda cut: before[cut - 1] + after[len(row) - cut - 1])


def _distances(row: Sequence[float]) -> list[float]:
    """For the first value, the first two and so on: the sum of their distances to their median."""
    below: list[float] = []  # negated, so that the largest is first; as many as above, or one more
    above: list[float] = []
    sum_below = sum_above = 0.0
    found = []
    for value in row:
        middle = -heapq.heappushpop(below, -value)
        heapq.heappush(above, middle)
        sum_below, sum_above = sum_below + value - middle, sum_above + middle
        if len(above) > len(below):
            least = heapq.heappop(above)
            heapq.heappush(below, -least)
            sum_below, sum_above = sum_below + least, sum_above - least
        odd = -below[0] if len(below) > len(above) else 0.0
        found.append(sum_above - sum_below + odd)
    return found


def _residuals(values: Floats, cuts: Sequence[int]) -> Floats:
    return np.concatenate([part - np.median(part) for part in np.split(values, cuts)])


def _p(values: Floats, ranks: Floats, strongest: float, cuts: Sequence[int], kind: str) -> float:
    correlation = float(neighbour_correlations(_residuals(values, cuts)[None, :])[0]) - 1 / len(values)
    if correlation > 1 / math.sqrt(len(values)):
        strongest *= math.sqrt((1 - min(correlation, 0.9)) / (1 + min(correlation, 0.9)))
    is_plain = len(np.unique(ranks)) == len(ranks)
    null = _null(len(values), kind) if is_plain else _null_of(ranks, kind)
    return (1 + int(len(null) - np.searchsorted(null, strongest - 1e-9))) / (1 + len(null))


def _mid_ranks(values: Floats) -> Floats:
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") + 1) / 2


def _split_ranks(ranks: Floats) -> Floats:
    """The rank sum of what comes before each admissible split, in standard deviations."""
    splits = np.arange(SIDE_MIN, ranks.shape[-1] - SIDE_MIN + 1)
    return _standardised(ranks, np.cumsum(ranks, axis=-1)[..., splits - 1], splits)


def _stretch_ranks(ranks: Floats) -> Floats:
    """The same for each stretch that touches neither end."""
    bounds = np.array(_stretches(ranks.shape[-1]))
    sums = np.cumsum(ranks, axis=-1)
    return _standardised(ranks, sums[..., bounds[:, 1] - 1] - sums[..., bounds[:, 0] - 1], bounds[:, 1] - bounds[:, 0])


@lru_cache(maxsize=256)
def _stretches(count: int) -> tuple[tuple[int, int], ...]:
    """Where stretches begin and end; in long series not every one is tried."""
    step = math.ceil(count / _BOUNDS_MAX)
    bounds = range(SIDE_MIN, count - SIDE_MIN + 1, step)
    found = [(one, other) for one in bounds for other in bounds if other - one >= SIDE_MIN]
    return tuple(found) or ((1, count - 1),)


def _standardised(ranks: Floats, sums: Floats, sizes: Floats) -> Floats:
    count = ranks.shape[-1]
    expected = sizes * ranks.mean(axis=-1, keepdims=True)
    variance = ranks.var(axis=-1, keepdims=True) * sizes * (count - sizes) / (count - 1)
    standardised: Floats = (expected - sums) / np.sqrt(np.maximum(variance, 1e-12))
    return standardised


@lru_cache(maxsize=256)
def _null(count: int, kind: str) -> Floats:
    return _null_of(np.arange(1.0, count + 1), kind)


def _null_of(ranks: Floats, kind: str) -> Floats:
    """The largest statistic of many random orders of these ranks, sorted."""
    statistic = _split_ranks if kind == "split" else _stretch_ranks
    rng = np.random.default_rng(_SEED)
    orders = max(2000, min(_ORDERS, 2_000_000 // len(ranks)))
    largest = []
    for _ in range(0, orders, _AT_ONCE):
        shuffled = rng.permuted(np.broadcast_to(ranks, (_AT_ONCE, len(ranks))), axis=1)
        largest.append(np.abs(statistic(shuffled)).max(axis=1))
    return np.sort(np.concatenate(largest))
