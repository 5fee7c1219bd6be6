"""Two sides that were not interleaved: the shift between them, with the noise between sessions in its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.dependence import width_factors
from orchestrator.analysis.randomisation import (
    MAD_TO_SD,
    Floats,
    biweight_locations,
    student_quantile,
    student_tail,
)

LEVEL = 0.95
_BIWEIGHT_LOSS = 1.05
"""How much wider the error of the biweight is than that of a mean, under normal noise."""


@dataclass(frozen=True)
class Side:
    """The logarithms of one side's trials, in time order, and from how many sessions they are."""

    logs: Sequence[float]
    sessions: int


@dataclass(frozen=True)
class Shift:
    """How much further the new side lies, on the log scale."""

    location: float
    low: float
    high: float
    p: float


def shift(base: Side, new: Side, *, session_sd: float) -> Shift:
    """The shift between two sides; its error counts trials, neighbours that resemble each other, and sessions."""
    places, variances = zip(*(_place(np.array([side.logs])) for side in (base, new)), strict=True)
    between = session_sd**2 * (1 / base.sessions + 1 / new.sessions)
    error = math.sqrt(sum(variances) + between)
    location = places[1] - places[0]
    freedom = len(base.logs) + len(new.logs) - 2
    reach = float(student_quantile((1 + LEVEL) / 2, freedom)) * error
    p = 1.0 if error == 0 and location == 0 else 2 * float(student_tail(np.array(_ratio(location, error)), freedom))
    return Shift(location, location - reach, location + reach, min(p, 1.0))


def _ratio(location: float, error: float) -> float:
    return abs(location) / error if error > 0 else 1e9


def _place(row: Floats) -> tuple[float, float]:
    """The location of some values, and the variance of that location."""
    location = float(biweight_locations(row)[0])
    spread = MAD_TO_SD * float(np.median(np.abs(row - location)))
    error = _BIWEIGHT_LOSS * spread / math.sqrt(row.shape[1]) * float(width_factors(row)[0])
    return location, error**2
