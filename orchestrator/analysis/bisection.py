"""The search for the first bad one of a list: which to try next, and what is left. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Standing(StrEnum):
    """What is known of an item."""

    GOOD = "good"
    BAD = "bad"
    UNCLEAR = "unclear"
    """Measured as often as allowed, and like neither end."""
    SKIPPED = "skipped"
    """It cannot be built or run."""


def bounds(known: Mapping[int, Standing]) -> tuple[int, int]:
    """The last that is good before the first that is bad."""
    bad = min(index for index, standing in known.items() if standing is Standing.BAD)
    good = max(index for index, standing in known.items() if standing is Standing.GOOD and index < bad)
    return good, bad


def next_index(known: Mapping[int, Standing]) -> int | None:
    """The untried item nearest to the middle between the bounds; None when none is left there."""
    good, bad = bounds(known)
    untried = [index for index in range(good + 1, bad) if index not in known]
    return min(untried, key=lambda index: (abs(2 * index - good - bad), index), default=None)


def steps_left(known: Mapping[int, Standing]) -> int:
    """About how many more decisions it takes."""
    good, bad = bounds(known)
    untried = sum(index not in known for index in range(good + 1, bad))
    return untried.bit_length()
