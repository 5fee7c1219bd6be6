"""Blocks that are not independent: how much wider an interval must be when neighbours or sessions resemble each other.

Simulated with blocks in a first-order autoregression: an interval that takes them as independent holds the truth in
89 % (correlation 0.3, 10 blocks) and 72 % (0.6, 18 blocks) of cases, the widened one in 94 and 92 %. From few blocks no
correlation can be told for sure: at 0.6 the widened interval of 8 blocks still holds the truth in 86 % only.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from orchestrator.analysis.randomisation import (
    BLOCKS_MIN,
    MAD_TO_SD,
    SCORE_CUT,
    Floats,
    biweight_locations,
    student_quantile,
    student_tail,
)

_CORRELATION_MAX = 0.9
_SESSION_BLOCKS_MIN = 3
_SESSIONS_TRUSTED = 4


def width_factors(rows: Floats) -> Floats:
    """By how much the interval of each row of values in time order is to be widened: 1 if neighbours differ freely."""
    correlation = np.clip(neighbour_correlations(rows) + 0.5 / math.sqrt(rows.shape[1]), 0.0, _CORRELATION_MAX)
    factors: Floats = np.sqrt((1 + correlation) / (1 - correlation))
    return factors


def neighbour_correlations(rows: Floats) -> Floats:
    """The correlation between neighbours in each row; wild values are pulled in, and the bias of short rows mended."""
    count = rows.shape[1]
    residuals = rows - biweight_locations(rows)[:, None]
    reach = SCORE_CUT * MAD_TO_SD * np.median(np.abs(residuals), axis=1, keepdims=True)
    residuals = np.clip(residuals, -reach, reach)
    residuals = residuals - residuals.mean(axis=1, keepdims=True)
    total = np.square(residuals).sum(axis=1)
    raw = (residuals[:, 1:] * residuals[:, :-1]).sum(axis=1) / np.where(total > 0, total, 1.0)
    mended = raw + (1 + 3 * np.maximum(raw, -0.3)) / count
    found: Floats = np.where(total > 0, mended, -1.0)
    return found


def session_reach(logs: Sequence[float], sessions: Sequence[Hashable], *, level: float) -> float | None:
    """Half an interval as wide as the sessions demand; None where they do not differ, or cannot be told apart.

    Two or three sessions of one night may differ by chance, and so few would widen every interval beyond use: they
    count only if they differ more than their blocks explain.
    """
    groups: dict[Hashable, list[float]] = {}
    for value, session in zip(logs, sessions, strict=True):
        groups.setdefault(session, []).append(value)
    count = len(groups)
    if count < 2 or len(logs) < BLOCKS_MIN or min(map(len, groups.values())) < _SESSION_BLOCKS_MIN:
        return None
    means = np.array([np.mean(values) for values in groups.values()])
    within = sum(float(np.square(np.array(values) - np.mean(values)).sum()) for values in groups.values())
    freedom = len(logs) - count
    error = float(means.std(ddof=1)) / math.sqrt(count)
    if count < _SESSIONS_TRUSTED and not _differ(groups, within / freedom, freedom):
        return None
    return float(student_quantile((1 + level) / 2, count - 1)) * error


def _differ(groups: dict[Hashable, list[float]], variance: float, freedom: int) -> bool:
    """Whether some session lies further from the mean of all than its blocks explain (Bonferroni over sessions)."""
    centre = np.mean([value for values in groups.values() for value in values])
    for values in groups.values():
        error = math.sqrt(variance / len(values))
        off = abs(float(np.mean(values) - centre))
        t = off / error if error > 0 else 1e9 * off
        if 2 * float(student_tail(np.array(t), freedom)) < 0.05 / len(groups):
            return True
    return False
