"""Which end a candidate is like, by simulated blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from orchestrator.analysis.ends import END_ARMS, Like, end_logs, likeness
from orchestrator.analysis.randomisation import Floats
from orchestrator.analysis.reduction import Reduced
from orchestrator.trial import Cell, Outcome

CELL = Cell("d", "m", "a" * 64, "benchmark_model", "b" * 64, "xnnpack", 1, "any", "idle")


def blocks(rng: np.random.Generator, count: int, place: float, *, sd: float = 0.015, apart: float = 0.05) -> Floats:
    """Blocks whose level wanders; one process in ten is disturbed. `place` is 0 at the good end and 1 at the bad."""
    level = np.cumsum(rng.normal(0, 0.02, (count, 1)), axis=0)
    noise = rng.normal(0, sd, (count, 3)) + (rng.random((count, 3)) < 0.1) * rng.normal(0, 0.3, (count, 3))
    return level + noise + np.array([0.0, 1.0, place]) * math.log1p(apart)


@pytest.mark.parametrize(("place", "right"), [(0.0, Like.GOOD), (1.0, Like.BAD)])
def test_it_is_like_the_end_that_it_is(place: float, right: Like) -> None:
    """At a 5 % difference, 1.5 % noise and a quarter of the blocks disturbed: mostly by 27 blocks, and hardly ever the
    wrong one."""
    rng = np.random.default_rng(5)
    found = [likeness(blocks(rng, 27, place), alpha=0.0158).like for _ in range(100)]
    assert found.count(right) >= 80
    assert len(found) - found.count(right) - found.count(Like.UNCLEAR) <= 1


def test_one_in_the_middle_is_unclear() -> None:
    """It is called by either name no more often than alpha says."""
    rng = np.random.default_rng(6)
    found = [likeness(blocks(rng, 18, 0.5), alpha=0.05).like for _ in range(100)]
    assert found.count(Like.UNCLEAR) >= 90


def test_too_few_blocks_say_nothing() -> None:
    """And none at all raises nothing."""
    rng = np.random.default_rng(7)
    assert likeness(blocks(rng, 5, 1.0, sd=1e-4), alpha=0.05).like is Like.UNCLEAR
    assert likeness(np.empty((0, 3)), alpha=0.05).blocks == 0


def test_where_it_lies_is_stated() -> None:
    """Against the good end, with an interval; one far outside both is said to be."""
    rng = np.random.default_rng(8)
    found = likeness(blocks(rng, 18, 1.0, sd=0.003), alpha=0.05)
    assert found.low is not None and found.high is not None and found.low < math.log1p(0.05) < found.high
    assert not found.is_beyond
    assert likeness(blocks(rng, 18, 6.0, sd=0.003), alpha=0.05).is_beyond
    assert likeness(blocks(rng, 18, -6.0, sd=0.003), alpha=0.05).is_beyond


def test_only_blocks_that_hold_all_three_count() -> None:
    """A block in which one was rejected, or that another session began, is left out."""

    def trial(block: int, arm: str, outcome: Outcome = Outcome.MEASURED, session: str = "s") -> Reduced:
        latencies = {"p50": 100.0, "mean": 100.0, "p95": None}
        return Reduced(CELL, arm, "r", session, block, 0, outcome, None, None, latencies, 5)  # type: ignore[arg-type]  # metrics as a test has them

    whole = [trial(0, arm) for arm in END_ARMS]
    rejected = [trial(1, arm, Outcome.REJECTED if arm == "bad" else Outcome.MEASURED) for arm in END_ARMS]
    torn = [trial(2, arm, session="t" if arm == "good" else "s") for arm in END_ARMS]
    assert end_logs([*whole, *rejected, *torn], "p50").shape == (1, 3)
    assert end_logs(whole, "p95").shape == (0, 3)
