"""A candidate between two ends that are known to differ: which of them is it like?

In every block good end, bad end and candidate run beside each other. The midpoint of the ends is the question: the log
of the candidate less the mean of the ends' logs lies half of their difference above zero if it is like the bad end, and
as far below if it is like the good one. That is a test of zero with the whole difference between the two answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from orchestrator.analysis.comparison import interval_alpha, percent
from orchestrator.analysis.duels import CANDIDATE
from orchestrator.analysis.estimate import Metric
from orchestrator.analysis.paired import paired_p
from orchestrator.analysis.randomisation import Floats, blocks_for_interval, centre
from orchestrator.analysis.reduction import Reduced
from orchestrator.trial import Outcome

GOOD, BAD = "good", "bad"
END_ARMS = (GOOD, BAD, CANDIDATE)
_BEYOND = 1.0
"""Further outside an end than the ends are apart, a candidate is something else."""


class Like(StrEnum):
    """What a candidate is like."""

    GOOD = "good"
    BAD = "bad"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Likeness:
    """What a candidate is like, and where it lies: `effect` is the log of it over the good end, `apart` that of the bad
    end over the good one, `p` how often chance alone would say this of one that lies in the middle."""

    like: Like
    blocks: int
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    apart: float | None = None
    p: float | None = None

    @property
    def is_beyond(self) -> bool:
        """Whether it lies so far outside the ends that they are not its measure."""
        if self.low is None or self.high is None or self.apart is None:
            return False
        return self.high < -_BEYOND * self.apart or self.low > (1 + _BEYOND) * self.apart

    def as_json(self) -> dict[str, Any]:
        return {
            "like": str(self.like),
            "blocks": self.blocks,
            "effect_percent": percent(self.effect),
            "ci_low_percent": percent(self.low),
            "ci_high_percent": percent(self.high),
            "ends_apart_percent": percent(self.apart),
            "p": self.p,
            "beyond": self.is_beyond,
        }


def end_logs(trials: Sequence[Reduced], metric: Metric) -> Floats:
    """A row for each block that measured all three: the logs of good end, bad end and candidate."""
    found: dict[tuple[str, int], dict[str, float]] = {}
    for trial in trials:
        latency_us = trial.latencies_us[metric]
        if trial.outcome is Outcome.MEASURED and trial.arm in END_ARMS and latency_us is not None:
            found.setdefault((trial.session, trial.block), {})[str(trial.arm)] = math.log(latency_us)
    rows = [[arms[arm] for arm in END_ARMS] for arms in found.values() if len(arms) == len(END_ARMS)]
    return np.array(rows, dtype=np.float64).reshape(-1, len(END_ARMS))


def likeness(logs: Floats, *, alpha: float) -> Likeness:
    """What the candidate is like; `alpha` allows for all looks."""
    blocks, level = len(logs), 1 - interval_alpha(alpha)
    if blocks < blocks_for_interval(level):
        return Likeness(Like.UNCLEAR, blocks)
    good, bad, candidate = logs.T
    middle = candidate - (good + bad) / 2
    found, over_good = centre(middle, level=level, probes=(0.0,)), centre(candidate - good, level=level)
    p = float(paired_p(middle[None, :], is_order_mixed=np.array([True])).typical[0])
    assert found.low is not None and found.high is not None
    like = Like.BAD if found.low > 0 else Like.GOOD if found.high < 0 else Like.UNCLEAR
    apart = centre(bad - good, level=level).location
    return Likeness(like, blocks, over_good.location, over_good.low, over_good.high, apart, p)
