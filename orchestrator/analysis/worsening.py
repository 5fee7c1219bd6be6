"""Whether a figure has risen over nights: to a new level in the last of them, or slowly over all. Pure.

Change points by ranks (see `change_points`) control their alarms but need many nights on either side; a device that
decays must be named within a week. So the last nights are held against the first half in units of the nights' own
noise, neighbours that resemble each other counting for less, and a slow drift is found by its rank correlation. The
thresholds are set by simulation (`python -m tests.bench health`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.change_points import best_cut
from orchestrator.analysis.randomisation import MAD_TO_SD, Floats
from orchestrator.analysis.trend import lag_one, trends

NIGHTS_MIN = 10
RECENT = 5
_LEVEL_Z, _DRIFT_Z = 4.5, 3.0
_SD_MIN = 0.003
_CORRELATION_MAX = 0.8
_MEDIAN_LOSS = 1.57
"""How much larger the variance of a median is than that of a mean."""


@dataclass(frozen=True)
class Worsening:
    """By how much a figure has risen, and the first night of its new level."""

    by: float
    index: int


def worsening(values: Sequence[float], least: float) -> Worsening | None:
    """The rise of values in time order; None where it is below `least`, may be chance, or there are too few nights."""
    if len(values) < NIGHTS_MIN:
        return None
    row = np.array(values, dtype=np.float64)
    risen = [by for by in (_new_level(row, least), _drift(row)) if by is not None and by >= least]
    return Worsening(risen[0], best_cut(row)) if risen else None


def _new_level(row: Floats, least: float) -> float | None:
    """How far the last nights lie above the first half, if all but one of them do, and noise cannot explain it."""
    before, recent = row[: max(RECENT, len(row) // 2)], row[-RECENT:]
    level = float(np.median(before))
    by = float(np.median(recent)) - level
    if np.sort(recent)[1] - level < least / 2:
        return None
    own = before - level
    residuals = np.concatenate([own, recent - np.median(recent)])
    sd = max(_SD_MIN, MAD_TO_SD * float(np.median(np.abs(residuals))))
    correlation = min(_CORRELATION_MAX, float(lag_one(own[None, :])[0]) + 1 / len(own))
    sd *= math.sqrt((1 + correlation) / (1 - correlation))
    return by if by > _LEVEL_Z * sd * math.sqrt(_MEDIAN_LOSS / len(before) + _MEDIAN_LOSS / len(recent)) else None


def _drift(row: Floats) -> float | None:
    found = trends(row[None, :])
    return float(found.change[0]) if found.z[0] > _DRIFT_Z else None
