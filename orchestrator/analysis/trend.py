"""Whether values in time order rise or fall: by ranks, with room for neighbours that resemble each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.randomisation import Floats

DRIFT_MIN = 0.02
"""A drift below this share of the latency is not worth a word."""
_Z_FOR_DRIFT = 2.576
_CORRELATION_MAX = 0.95


@dataclass(frozen=True)
class Trends:
    """For each row: the change from its first third to its last, scaled to the whole, how sure it is, and how much
    neighbours resemble each other once the trend is taken out."""

    change: Floats
    z: Floats
    correlation: Floats


def trends(rows: Floats) -> Trends:
    """The trend of each row of values in time order (logarithms, for shares).

    The z-score is Spearman's, divided by what a first-order autocorrelation of the residual ranks does to it: plain
    rank tests flag a third of unchanged traces.
    """
    count = rows.shape[1]
    ranks = _mid_ranks(rows)
    time = np.arange(count) - (count - 1) / 2
    length = float(np.square(time).sum())
    slope = ranks @ time / length
    spread = np.sqrt(np.square(ranks).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.where(spread > 0, slope * np.sqrt(length) / spread, 0.0)
    neighbours = lag_one(ranks - slope[:, None] * time)
    inflation = np.sqrt((1 + neighbours) / (1 - neighbours))
    third = max(1, count // 3)
    change = 1.5 * (np.median(rows[:, -third:], axis=1) - np.median(rows[:, :third], axis=1))
    return Trends(change, correlation * np.sqrt(count - 1) / inflation, neighbours)


def has_drift(found: Trends) -> NDArray[np.bool_]:
    """Rows whose trend is neither chance nor too small to matter."""
    return (np.abs(found.z) > _Z_FOR_DRIFT) & (np.abs(found.change) > DRIFT_MIN)


def lag_one(residuals: Floats) -> Floats:
    """The correlation of neighbours in each row, from 0 to 0.95."""
    total = np.square(residuals).sum(axis=1)
    products = (residuals[:, 1:] * residuals[:, :-1]).sum(axis=1)
    found: Floats = np.clip(products / np.where(total > 0, total, 1.0), 0.0, _CORRELATION_MAX)
    return found


def _mid_ranks(rows: Floats) -> Floats:
    """Centred ranks; ties, as a coarse clock makes them, share one."""
    count = rows.shape[1]
    forward = np.argsort(np.argsort(rows, axis=1, kind="stable"), axis=1, kind="stable")
    backward = np.argsort(np.argsort(rows[:, ::-1], axis=1, kind="stable"), axis=1, kind="stable")[:, ::-1]
    ranks: Floats = (forward + backward) / 2 - (count - 1) / 2
    return ranks
