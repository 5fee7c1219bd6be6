"""Drift within a trial or over a run."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.analysis.trend import has_drift, trends


def autoregressive(rng: np.random.Generator, rows: int, count: int, correlation: float) -> np.ndarray:
    values = np.empty((rows, count))
    values[:, 0] = rng.normal(size=rows)
    for index in range(1, count):
        fresh = rng.normal(size=rows) * np.sqrt(1 - correlation**2)
        values[:, index] = correlation * values[:, index - 1] + fresh
    return values


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_unchanged_traces_are_seldom_flagged(correlation: float) -> None:
    """Also where neighbours resemble each other: below 5 % of traces."""
    rows = 0.05 * autoregressive(np.random.default_rng(1), 1000, 100, correlation)
    assert has_drift(trends(rows)).mean() < 0.05


@pytest.mark.parametrize("drift", [0.05, -0.05])
def test_five_percent_over_a_trial_are_seen(drift: float) -> None:
    """An even rise or fall, which a check of the first half against the second would pass."""
    rows = 0.02 * np.random.default_rng(2).normal(size=(200, 100)) + np.linspace(0, drift, 100)
    found = trends(rows)
    assert has_drift(found).mean() > 0.95
    assert np.median(found.change) == pytest.approx(drift, rel=0.2)


def test_a_change_of_level_on_the_way_is_seen() -> None:
    """A step half way is no steady state either."""
    rows = 0.02 * np.random.default_rng(3).normal(size=(100, 100)) + np.where(np.arange(100) < 50, 0, 0.1)
    assert has_drift(trends(rows)).mean() > 0.95


def test_a_coarse_clock_is_no_drift() -> None:
    """Ties share their rank: constant rows and rows of two values have no trend."""
    coarse = np.round(np.random.default_rng(4).normal(size=(500, 60)))
    assert not has_drift(trends(np.zeros((1, 60)))).any()
    assert has_drift(trends(0.05 * coarse)).mean() < 0.05
