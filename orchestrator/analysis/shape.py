"""The shape of samples, row by row: two modes, and how much neighbours in time resemble each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.randomisation import MAD_TO_SD, SCORE_CUT, Floats
from orchestrator.analysis.trend import lag_one

_SMALLER_MIN = 0.1


@dataclass(frozen=True)
class Modes:
    """The best split of each row in two: how far apart the means lie, the share of the smaller part, and how much of
    the variance is left inside the parts (0.36 for normal values, near 0 for two clear modes)."""

    apart: Floats
    smaller_share: Floats
    left_inside: Floats


def two_modes(rows: Floats, *, smaller_min: float = _SMALLER_MIN) -> Modes:
    """The split of each row (of logarithms) that leaves the least variance inside; neither part may be tiny."""
    ordered = np.sort(rows, axis=1)
    ordered = ordered - ordered.mean(axis=1, keepdims=True)
    count = ordered.shape[1]
    least = max(2, int(np.ceil(smaller_min * count)))
    sizes = np.arange(least, count - least + 1)
    assert sizes.size, "too few values to split"
    sums = np.cumsum(ordered, axis=1)[:, sizes - 1]
    # The values add up to zero, so that the two parts' sums are opposite.
    explained = np.square(sums) * (1 / sizes + 1 / (count - sizes))
    best = explained.argmax(axis=1)
    at = np.arange(len(ordered))
    total = np.square(ordered).sum(axis=1)
    size = sizes[best]
    apart: Floats = -sums[at, best] * (1 / size + 1 / (count - size))
    smaller: Floats = np.minimum(size, count - size) / count
    inside: Floats = np.where(total > 0, 1 - explained[at, best] / np.where(total > 0, total, 1.0), 1.0)
    return Modes(apart, smaller, np.maximum(inside, 0.0))


def effective_counts(rows: Floats) -> Floats:
    """How many independent values each row (in time order) is worth, if each resembles only the one before."""
    middle = np.median(rows, axis=1, keepdims=True)
    reach = SCORE_CUT * MAD_TO_SD * np.median(np.abs(rows - middle), axis=1, keepdims=True)
    residuals = np.clip(rows - middle, -reach, reach)
    neighbours = lag_one(residuals - residuals.mean(axis=1, keepdims=True))
    found: Floats = rows.shape[1] * (1 - neighbours) / (1 + neighbours)
    return found
