"""How many blocks find a change of a given size, and which change a number of blocks finds.

The sum is that of Student's t, whose noncentral distribution is known, at the level that `compare` gives to p50 of a
single cell, and with as many blocks as its test is worth: it flips signs and throws wild blocks away, and pays for that
with a part of the blocks when noise is normal. What it is worth was found by simulation (2000 comparisons each).
"""

from __future__ import annotations

import itertools
import math

from orchestrator.analysis.randomisation import BLOCKS_MIN

ALPHA = 0.025
"""Half of 0.05: compare shares the chance of a false alarm out between p50, mean and p95."""
BLOCKS_ADVISED = 8
"""With fewer blocks a verdict is possible, but hangs on each one of them."""
BLOCKS_WORTH_PLANNING = 1000
"""Nobody measures more blocks than this."""
_WORTH = ((6, 0.65), (7, 0.65), (8, 0.84), (10, 0.88), (13, 0.90), (24, 0.90), (25, 0.86), (100, 0.85))
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
    """The fewest blocks, at least eight, that find such a change so often; None if nobody would measure that many.

    `bad_share` of the blocks are expected to be thrown away, and are added.
    """
    high = next(
        (count for count in range(BLOCKS_ADVISED, BLOCKS_WORTH_PLANNING + 1) if power_of(count, effect, sd) >= power),
        None,
    )
    if high is None:
        return None
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
