"""The joint test of typical block and slower mean."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.analysis.paired import P_MIN, paired_p
from orchestrator.analysis.randomisation import sign_flip_ps

MIXED = np.ones(1, dtype=bool)


def noise(name: str, size: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    return {
        "normal": rng.normal(size=size),
        "t2": rng.standard_t(2, size),
        "contaminated": np.where(rng.random(size) < 0.2, 10, 1) * rng.normal(size=size),
    }[name]


@pytest.mark.parametrize("name", ["normal", "t2", "contaminated"])
@pytest.mark.parametrize("blocks", [6, 10, 30])
def test_each_p_is_as_rare_as_it_says(name: str, blocks: int) -> None:
    """Of 1500 rows without a change at most 5 % have p up to 0.05, give or take three standard errors."""
    rows = noise(name, (1500, blocks), np.random.default_rng(blocks))
    found = paired_p(rows, is_order_mixed=np.ones(1500, dtype=bool))
    for p in (found.typical, found.slower_mean, found.joint):
        assert np.mean(p <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1500)


@pytest.mark.parametrize("name", ["normal", "t2", "contaminated"])
def test_the_refined_p_is_rare_enough_far_out(name: str) -> None:
    """Among blocks that all agree, which chance makes of ten in 2 of 1024, p of 1e-4 must be twenty times rarer yet."""
    rows = np.abs(noise(name, (4_000, 10), np.random.default_rng(3)))
    found = paired_p(rows, is_order_mixed=np.ones(4_000, dtype=bool))
    assert 2 / 1024 * np.mean(found.typical <= 1e-4) <= 1.3e-4


def test_agreement_of_many_blocks_is_refined_only_if_orders_were_mixed() -> None:
    """If the base always ran first, ten agreeing blocks may be the order: p stays at 2 / 2^10."""
    row = np.array([0.05, 0.051, 0.049, 0.052, 0.05, 0.048, 0.05, 0.051, 0.05, 0.049])[None, :]
    mixed, same_order = (paired_p(row, is_order_mixed=np.array([is_mixed])) for is_mixed in (True, False))
    assert mixed.typical[0] == P_MIN
    assert same_order.typical[0] == pytest.approx(2 / 1024)


def test_a_part_is_seen_by_the_mean_alone() -> None:
    """Six of twenty blocks far slower: the typical block did not change, the mean did."""
    rng = np.random.default_rng(4)
    row = rng.normal(0, 0.005, 20)
    row -= row.mean()
    row[:6] += 0.3
    found = paired_p(row[None, :], is_order_mixed=MIXED)
    assert found.typical[0] > 0.05
    assert found.slower_mean[0] < 0.05
    assert found.joint[0] < 0.06


def test_all_zero_is_no_evidence() -> None:
    """Ten equal blocks: every p is 1."""
    found = paired_p(np.zeros((1, 10)), is_order_mixed=MIXED)
    assert (found.typical[0], found.slower_mean[0], found.joint[0]) == (1, 1, 1)


def test_order_of_blocks_changes_nothing() -> None:
    """The typical p is that of the sign-flip test wherever it is not refined."""
    rows = np.random.default_rng(5).normal(0.3, 1.0, (20, 9))
    found = paired_p(rows, is_order_mixed=np.zeros(20, dtype=bool))
    shuffled = paired_p(rows[:, ::-1], is_order_mixed=np.zeros(20, dtype=bool))
    assert found.joint == pytest.approx(shuffled.joint)
    assert np.all(found.typical <= sign_flip_ps(rows) + 1e-12)
