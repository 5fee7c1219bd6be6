"""How many blocks find a change of a given size, and which change a number of blocks finds.

The sum is that of Student's t, whose noncentral distribution is known, with as many blocks as the test of `compare` is
worth: it looks at ranks of signs and throws wild blocks away, and pays for that with a part of the blocks when noise is
normal. What it is worth was found by simulation (1500 comparisons for each size and power).
"""

from __future__ import annotations

import itertools
import math

from orchestrator.analysis.randomisation import BLOCKS_MIN

ALPHA = 0.05
BLOCKS_WORTH_PLANNING = 1000
"""Nobody measures more blocks than this."""
_WORTH = ((6, 0.63), (7, 0.71), (8, 0.84), (12, 0.84), (16, 0.81), (24, 0.785), (40, 0.75))
"""What one block counts for, by the number of blocks; in between by straight lines."""
_BISECTIONS = 40


def power_of(blocks: int, effect: float, sd: float) -> float:
    """How often a change by this share is found, with block log-ratios of this standard deviation."""
    if blocks < BLOCKS_MIN:
        return 0.0
    if sd <= 0:
        return 1.0
    from scipy.special import nctdtr, stdtrit

    shift = min(math.log1p(effect) * math.sqrt(blocks * _worth(blocks)) / sd, 30.0)
    return 1.0 - float(nctdtr(blocks - 1, shift, float(stdtrit(blocks - 1, 1 - ALPHA / 2))))


def _worth(blocks: int) -> float:
    for (low, worth), (high, next_worth) in itertools.pairwise(_WORTH):
        if blocks <= high:
            return worth + (next_worth - worth) * max(0, blocks - low) / (high - low)
    return _WORTH[-1][1]


def blocks_needed(effect: float, sd: float, *, power: float, bad_share: float = 0.0) -> int | None:
    """The fewest blocks that find such a change so often; None if nobody would measure that many.

    `bad_share` of the blocks are expected to be thrown away, and are added.
    """
    high = BLOCKS_MIN
    while power_of(high, effect, sd) < power:
        high *= 2
        if high > 2 * BLOCKS_WORTH_PLANNING:
            return None
    low = max(BLOCKS_MIN - 1, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(middle, effect, sd) >= power else (middle, high)
    needed = math.ceil(high / (1 - min(bad_share, 0.9)))
    return needed if needed <= BLOCKS_WORTH_PLANNING else None


def smallest_change(blocks: int, sd: float, *, power: float) -> float | None:
    """The smallest change that so many blocks find so often; None if that takes more than a doubling."""
    low, high = 0.0, 1.0
    if power_of(blocks, high, sd) < power:
        return None
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(blocks, middle, sd) >= power else (middle, high)
    return high
