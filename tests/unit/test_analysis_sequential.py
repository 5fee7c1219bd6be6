"""The shift between two sides that were measured one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.analysis.sequential import Side, shift


def test_intervals_hold_the_truth_if_the_session_noise_is_right() -> None:
    """600 pairs of days, 3 % apart by chance: 93 in a hundred and two standard errors less at worst."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(600):
        sides = [Side((rng.normal(0, 0.03) + rng.normal(0, 0.02, 10)).tolist(), 1) for _ in range(2)]
        found = shift(sides[0], sides[1], session_sd=0.03)
        held += found.low <= 0 <= found.high
    assert held >= 600 * 0.91


def test_more_sessions_know_more() -> None:
    """The noise between sessions counts once for each."""
    logs = np.random.default_rng(2).normal(0, 0.01, 12).tolist()
    one, four = (shift(Side(logs, count), Side(logs, count), session_sd=0.03) for count in (1, 4))
    assert four.high - four.low < 0.6 * (one.high - one.low)


def test_equal_sides_without_noise() -> None:
    """Constant and equal: no shift, no evidence of one; constant and different: certain."""
    flat, higher = Side([1.0] * 6, 1), Side([1.1] * 6, 1)
    assert shift(flat, flat, session_sd=0.0).p == 1.0
    assert shift(flat, higher, session_sd=0.0).p == pytest.approx(0.0, abs=1e-12)
