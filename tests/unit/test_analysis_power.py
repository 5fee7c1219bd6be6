"""How many blocks find a change: the stated power is what the test of compare reaches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from orchestrator.analysis.calibration import SessionNoises
from orchestrator.analysis.compare import METRIC_WEIGHTS, compare
from orchestrator.analysis.comparison import ALPHA as COMPARE_ALPHA
from orchestrator.analysis.comparison import Change
from orchestrator.analysis.paired import paired_p
from orchestrator.analysis.power import ALPHA, BLOCKS_ADVISED, blocks_needed, power_of, smallest_change
from orchestrator.analysis.randomisation import Floats
from tests.unit.comparison_models import Truth, interleaved, matching


def reached(blocks: int, effect: float, sd: float, *, runs: int, seed: int = 4) -> float:
    """How often compare's test of p50 finds the change in simulated blocks."""
    rows = np.random.default_rng(seed).normal(math.log1p(effect), sd, (runs, blocks))
    p = paired_p(rows, is_order_mixed=np.ones(runs, dtype=bool))
    return float(np.mean((p.joint <= METRIC_WEIGHTS["p50"] * COMPARE_ALPHA) & (p.typical <= COMPARE_ALPHA)))


@pytest.mark.parametrize(
    ("effect", "sd", "power"),
    [(0.03, 0.02, 0.9), (0.03, 0.04, 0.9), (0.05, 0.04, 0.8), (0.02, 0.02, 0.9), (0.01, 0.008, 0.95), (0.1, 0.2, 0.8)],
)
def test_the_stated_power_is_reached(effect: float, sd: float, power: float) -> None:
    """Within three points of what was stated for the blocks that were stated, and two standard errors."""
    blocks = blocks_needed(effect, sd, power=power)
    assert blocks is not None
    stated = power_of(blocks, effect, sd)
    assert stated >= power
    assert reached(blocks, effect, sd, runs=700) == pytest.approx(stated, abs=0.03 + 2 * 0.012)


def test_compare_itself_finds_what_was_planned() -> None:
    """With a threshold of half the change, as `plan` advises; two standard errors of 250 comparisons are allowed."""
    rng, effect, sd, runs = np.random.default_rng(6), 0.03, 0.02, 250
    blocks = blocks_needed(effect, sd, power=0.9)
    assert blocks is not None
    found = 0

    def noise(drawn: np.random.Generator, count: int) -> Floats:
        return drawn.normal(0, sd / math.sqrt(2), count)

    for _ in range(runs):
        cell = interleaved(rng, noise, blocks=blocks, truth=Truth(effect=effect))
        rows = compare(matching([cell]), is_one_run=True, noises=SessionNoises(), threshold=effect / 2)
        found += rows[0].verdict is Change.SLOWER
    assert found / runs == pytest.approx(power_of(blocks, effect, sd), abs=0.03 + 2 * 0.019)


def test_the_level_is_the_one_compare_gives_to_p50() -> None:
    """A single cell whose mean and p95 say nothing."""
    assert METRIC_WEIGHTS["p50"] * COMPARE_ALPHA == ALPHA


def test_one_block_fewer_would_not_do() -> None:
    """The number is the least, or the fewest with which there is a verdict at all."""
    for sd in (0.02, 0.05):
        blocks = blocks_needed(0.03, sd, power=0.9)
        assert blocks is not None
        assert power_of(blocks - 1, 0.03, sd) < 0.9
    assert blocks_needed(0.5, 0.001, power=0.9) == BLOCKS_ADVISED


def test_disturbed_blocks_are_added() -> None:
    """A fifth of the blocks thrown away: a quarter more are needed."""
    clean, disturbed = (blocks_needed(0.03, 0.04, power=0.9, bad_share=share) for share in (0.0, 0.2))
    assert clean is not None
    assert disturbed == math.ceil(clean / 0.8)


def test_what_nobody_would_measure_is_not_planned() -> None:
    """A change of 0.1 % in noise of 10 %."""
    assert blocks_needed(0.001, 0.1, power=0.9) is None
    assert smallest_change(8, 2.0, power=0.9) is None
    assert smallest_change(5, 0.01, power=0.9) is None


def test_the_smallest_change_and_the_blocks_for_it_agree() -> None:
    """What ten blocks just find takes ten blocks."""
    change = smallest_change(10, 0.02, power=0.9)
    assert change is not None
    assert blocks_needed(change, 0.02, power=0.9) == 10
    assert change == pytest.approx(0.028, abs=0.002)
