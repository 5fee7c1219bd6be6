"""The sign-flip test and its interval, against exact counting and against simulations with a known truth."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.randomisation import (
    BLOCKS_MIN,
    biweight_locations,
    blocks_for_interval,
    centre,
    centres,
    sign_flip_p,
)

REPEATS = 1000
MC_ERROR = 3 * (0.05 * 0.95 / REPEATS) ** 0.5
"""Three standard errors of a simulated coverage near 95 %."""

block_values = st.lists(st.floats(-20, 20, allow_nan=False, width=32), min_size=1, max_size=20)


def draw(noise: str, blocks: int) -> np.ndarray:
    """Block noise about a true centre of 0."""
    rng = np.random.default_rng([blocks, *noise.encode()])
    shape = (REPEATS, blocks)
    if noise == "normal":
        return rng.normal(0, 0.01, shape)
    if noise == "heavy-tailed":
        return 0.01 * rng.standard_t(3, shape)
    bad = (rng.random(shape) < 0.15) * rng.uniform(0.2, 0.7, shape)
    direction = 1 if noise == "slow blocks" else rng.choice([-1, 1], shape)
    return rng.normal(0, 0.01, shape) + bad * direction


def brute_force_p(values: np.ndarray) -> float:
    """The same test written as slowly and plainly as can be: all 2^n patterns, one at a time."""
    units = values / (1.4826 * np.median(np.abs(values)))
    scores = np.where(np.abs(units) < 3, units * (1 - (units / 3) ** 2) ** 2, 0)
    flips = [abs(sum(np.array(signs) * scores)) for signs in product([-1, 1], repeat=len(values))]
    return float(np.mean(np.array(flips) >= abs(scores.sum()) - 1e-9))


@pytest.mark.parametrize("noise", ["normal", "heavy-tailed", "contaminated", "slow blocks"])
@pytest.mark.parametrize("blocks", [8, 12, 18])
def test_interval_covers_the_truth(noise: str, blocks: int) -> None:
    """A 95 % interval holds the true centre at least 93 % of the time, with 15 % of the blocks spoilt too."""
    found = centres(draw(noise, blocks))
    covered = np.mean([interval.low <= 0 <= interval.high for interval in found])
    print(f"coverage {noise} n={blocks}: {covered:.3f}")
    assert covered >= 0.95 - MC_ERROR
    assert covered >= 0.93


@pytest.mark.parametrize("blocks", [8, 13, 14, 18])
def test_p_is_uniform_when_nothing_is_there(blocks: int) -> None:
    """Under symmetric noise p falls below a level about as often as the level says, never clearly more."""
    p = np.array([sign_flip_p(row) for row in draw("heavy-tailed", blocks)[:600]])
    assert np.mean(p <= 0.05) <= 0.05 + 3 * (0.05 * 0.95 / 600) ** 0.5
    assert np.mean(p <= 0.5) == pytest.approx(0.5, abs=0.07)


def test_spoilt_blocks_hardly_widen_the_interval() -> None:
    """With 15 % of the blocks off by 20 to 70 %, the interval stays within twice that of clean noise."""
    widths = {
        noise: np.median([found.high - found.low for found in centres(draw(noise, 18))])
        for noise in ("normal", "slow blocks")
    }
    assert widths["slow blocks"] < 2 * widths["normal"]


@pytest.mark.parametrize("blocks", [2, 5, 8, 11])
def test_p_equals_exhaustive_counting(blocks: int) -> None:
    """Up to 13 values p is exact: it equals the count over all sign patterns."""
    values = np.random.default_rng(blocks).normal(0.5, 1, blocks)
    assert sign_flip_p(values) == pytest.approx(brute_force_p(values))


def test_p_from_random_patterns_is_near_the_exact_one() -> None:
    """From 14 values on p comes from 4096 patterns and stays within their sampling error of the exact p."""
    values = np.random.default_rng(3).normal(0.5, 1, 14)
    exact = brute_force_p(values)
    assert 0.01 < exact < 0.5
    assert sign_flip_p(values) == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 4096) ** 0.5)


@pytest.mark.parametrize("blocks", [6, 13, 14, 40])
def test_p_is_never_zero(blocks: int) -> None:
    """However far off the hypothesis, the observed pattern itself counts."""
    assert sign_flip_p(np.full(blocks, 5.0)) >= min(1 / 4096, 2.0 ** (1 - blocks))


def test_p_is_one_when_all_values_equal_the_hypothesis() -> None:
    """No deviation at all is no evidence at all."""
    assert sign_flip_p([2.0] * 8, hypothesis=2.0) == 1.0


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_no_interval_below_six_blocks(blocks: int) -> None:
    """Five agreeing blocks prove nothing at 95 %: there is a location, no interval, and a reason."""
    found = centre(np.arange(blocks, dtype=float))
    assert found.location == pytest.approx((blocks - 1) / 2)
    assert (found.low, found.high) == (None, None)
    assert found.note is not None
    assert found.note.startswith("an interval needs 6 blocks, there ")


def test_stricter_levels_need_more_blocks() -> None:
    """An interval exists from the block count at which full agreement is rarer than the level allows."""
    assert blocks_for_interval(0.95) == BLOCKS_MIN
    assert blocks_for_interval(0.90) == BLOCKS_MIN
    assert blocks_for_interval(0.99) == 8
    assert centre(np.arange(7.0), level=0.99).low is None
    assert centre(np.arange(8.0), level=0.99).low is not None


def test_equal_values_give_an_interval_of_no_width() -> None:
    """A clock too coarse to see any difference says so with low = high."""
    found = centre([7.25] * 8)
    assert (found.location, found.low, found.high) == (7.25, 7.25, 7.25)


def test_mostly_equal_values_stay_finite() -> None:
    """With most values equal their deviation is zero; the interval still holds them and is finite."""
    found = centre([1.0] * 7 + [1.5, 2.0, 0.25])
    assert found.low is not None
    assert found.high is not None
    assert 0.9 < found.low <= found.location <= found.high < 1.1


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_mostly_equal_values_have_no_unit(unit: float) -> None:
    """The deviation that stands in for a zero one scales with the values too."""
    values = np.array([0.0] * 5 + [0.5, 0.6, 0.55, 0.7])
    assert sign_flip_p(values * unit) == 2 / 16


def test_values_that_are_not_finite_are_our_mistake() -> None:
    """A nan or an infinity must have been filtered before."""
    for bad in (float("nan"), float("inf")):
        with pytest.raises(AssertionError):
            centre([1.0] * 7 + [bad])


def test_location_ignores_a_wild_minority() -> None:
    """Two blocks of ten, a thousand times off, move the location by less than the spread of the others."""
    calm = np.linspace(-0.01, 0.01, 8)
    located = biweight_locations([[*calm, 7.0, 7.0]])[0]
    assert abs(located) < 0.005


def test_accepted_probe_is_inside_the_interval() -> None:
    """A hypothesis on which a verdict turns is inside whenever the test accepts it, also beyond a gap."""
    rows = draw("normal", 8)
    plain, probed = centres(rows), centres(rows, probes=(0.0,))
    accepted = [sign_flip_p(row, 0.0) > 0.05 for row in rows]
    inside = [found.low <= 0 <= found.high for found in probed]
    assert all(is_in for is_in, is_accepted in zip(inside, accepted, strict=True) if is_accepted)
    gaps = sum(
        is_accepted and not found.low <= 0 <= found.high for found, is_accepted in zip(plain, accepted, strict=True)
    )
    assert gaps > 0, "the simulation never met a gap, so this test shows nothing"


def test_many_rows_agree_with_one_at_a_time() -> None:
    """Working on rows together is a matter of speed only."""
    rows = np.random.default_rng(6).standard_t(3, (70, 9))
    for together, alone in zip(centres(rows), [centre(row) for row in rows], strict=True):
        assert together.location == pytest.approx(alone.location, abs=1e-9)
        assert (together.low, together.high) == pytest.approx((alone.low, alone.high), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(values=block_values)
def test_interval_is_finite_and_holds_the_location(values: list[float]) -> None:
    """Whatever the values, the location lies among them and inside its interval, and nothing is nan."""
    found = centre(values)
    assert min(values) - 1e-9 <= found.location <= max(values) + 1e-9
    if len(values) < BLOCKS_MIN:
        assert found.low is None
    else:
        assert found.low is not None
        assert found.high is not None
        assert np.isfinite([found.low, found.high]).all()
        assert found.low <= found.location <= found.high


@settings(max_examples=40, deadline=None)
@given(values=block_values, seed=st.integers(0, 99))
def test_order_of_blocks_changes_nothing(values: list[float], seed: int) -> None:
    """The same values in another order give the very same answer, random patterns or not."""
    assert centre(values) == centre(np.random.default_rng(seed).permutation(values))


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.integers(-1000, 1000), min_size=6, max_size=18),
    shift=st.integers(-64, 64),
    power=st.integers(-6, 6),
)
def test_interval_moves_and_stretches_with_the_values(values: list[int], shift: int, power: int) -> None:
    """Shifting or scaling all values shifts or scales the answer: units do not matter."""
    scale = 2.0**power
    plain, moved = centre(values), centre(np.array(values) * scale + shift)
    for before, after in ((plain.location, moved.location), (plain.low, moved.low), (plain.high, moved.high)):
        assert before is not None
        assert after == pytest.approx(before * scale + shift, abs=1e-6 * scale * (1 + max(map(abs, values))))
