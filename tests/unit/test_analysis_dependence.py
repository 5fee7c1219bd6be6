"""Intervals of blocks and sessions that resemble each other."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.analysis.dependence import neighbour_correlations, session_reach, width_factors
from orchestrator.analysis.estimate import SESSIONS_DIFFER, estimate_cell
from orchestrator.analysis.randomisation import centres
from orchestrator.trial import Trial
from tests.unit.test_analysis_trend import autoregressive
from tests.unit.trial_factory import make_trial


def coverage(rows: np.ndarray, *, is_widened: bool) -> float:
    found = centres(rows)
    factors = width_factors(rows) if is_widened else np.ones(len(rows))
    held = [
        item.location - (item.location - item.low) * factor <= 0 <= item.location + (item.high - item.location) * factor
        for item, factor in zip(found, factors, strict=True)
        if item.low is not None and item.high is not None
    ]
    return float(np.mean(held))


@pytest.mark.parametrize(("blocks", "correlation"), [(10, 0.0), (10, 0.3), (18, 0.3), (27, 0.5), (40, 0.6)])
def test_widened_intervals_hold_the_truth(blocks: int, correlation: float) -> None:
    """93 in a hundred, of 800 series; two standard errors are allowed for."""
    rows = autoregressive(np.random.default_rng(blocks), 800, blocks, correlation)
    assert coverage(rows, is_widened=True) >= 0.93 - 2 * np.sqrt(0.93 * 0.07 / 800)


def test_intervals_of_independent_blocks_would_not() -> None:
    """Which is why they are widened: 72 instead of 95 in a hundred."""
    rows = autoregressive(np.random.default_rng(1), 400, 18, 0.6)
    assert coverage(rows, is_widened=False) < 0.80


def test_correlation_of_neighbours_is_estimated_without_much_bias() -> None:
    """Also from short series; and constant ones have none."""
    rows = autoregressive(np.random.default_rng(2), 2000, 20, 0.4)
    assert np.mean(neighbour_correlations(rows)) == pytest.approx(0.4, abs=0.08)
    assert neighbour_correlations(np.ones((1, 10)))[0] == -1
    assert width_factors(np.ones((1, 10)))[0] == 1


class TestSessions:
    def test_sessions_that_agree_change_nothing(self) -> None:
        """Two sessions of one night."""
        logs = np.random.default_rng(3).normal(0, 0.01, 12).tolist()
        assert session_reach(logs, [0] * 6 + [1] * 6, level=0.95) is None

    def test_two_sessions_that_differ_leave_little_to_say(self) -> None:
        """With 10 % between them the interval is wider than that."""
        logs = (np.random.default_rng(4).normal(0, 0.01, 12) + np.repeat([0.0, 0.1], 6)).tolist()
        reach = session_reach(logs, [0] * 6 + [1] * 6, level=0.95)
        assert reach is not None
        assert reach > 0.1

    def test_intervals_over_many_sessions_hold_the_truth(self) -> None:
        """Six sessions offset by 3 % each: 300 times, at least 93 less two standard errors."""
        rng = np.random.default_rng(5)
        held = 0
        for _ in range(300):
            logs = rng.normal(0, 0.01, 36) + np.repeat(rng.normal(0, 0.03, 6), 6)
            reach = session_reach(logs.tolist(), np.repeat(np.arange(6), 6).tolist(), level=0.95)
            held += abs(float(logs.mean())) <= (reach or 0.0)
        assert held >= 300 * 0.90

    def test_a_cell_says_that_its_sessions_differ(self) -> None:
        """The estimate's note names the reason for its width."""
        from dataclasses import replace

        def trial(session: int, block: int) -> Trial:
            made = make_trial(block=block, median_us=1000.0 * (1 + 0.2 * session) + block)
            return replace(made, session=f"session-{session}")

        found = estimate_cell([trial(session, block) for session in range(2) for block in range(6)])
        assert found.latency_us["p50"].n == 12
        assert found.latency_us["p50"].note == SESSIONS_DIFFER
