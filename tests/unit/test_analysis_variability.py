"""The spread of a cell, against noise of known size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.variability import reaches_steady_state, robust_cv, variability
from orchestrator.trial import Summary, Trial
from tests.unit.trial_factory import make_trial


def trial_of(samples: np.ndarray) -> Trial:
    return replace(make_trial(), samples_us=tuple(samples.tolist()))


def test_spread_inside_and_between_trials_is_told_apart() -> None:
    """2 % inside a process and 8 % between processes come back as such."""
    rng = np.random.default_rng(1)
    medians = 1000 * np.exp(rng.normal(0, 0.08, 60))
    trials = [make_trial(block=block, median_us=median, rng=rng) for block, median in enumerate(medians.tolist())]
    found = variability(trials, p50_us=1000.0)
    assert found.within_cv == pytest.approx(0.02, rel=0.15)
    assert found.between_cv == pytest.approx(0.08, rel=0.35)
    assert found.notes == ()


def test_tail_is_taken_about_each_process_median() -> None:
    """Processes at different levels do not look like a tail: only their own slow iterations do."""
    rng = np.random.default_rng(2)
    trials = [make_trial(median_us=median, samples=500, rng=rng) for median in (500.0, 1000.0, 2000.0)]
    found = variability(trials, p50_us=1000.0)
    assert found.p95_over_p50 == pytest.approx(np.exp(1.645 * 0.02), rel=0.01)
    assert found.p99_over_p50 == pytest.approx(np.exp(2.326 * 0.02), rel=0.02)


def test_slow_fraction_counts_iterations_well_above_the_typical_one() -> None:
    """One iteration in ten at twice the usual time is a slow fraction of 0.1."""
    samples = np.full(100, 1000.0)
    samples[::10] = 2000.0
    assert variability([trial_of(samples)], p50_us=1000.0).slow_fraction == pytest.approx(0.1)
    assert variability([trial_of(samples)], p50_us=None).slow_fraction is None


def test_what_cannot_be_computed_is_absent_with_a_note() -> None:
    """Too few samples or trials give None and the reason, never a guess."""
    found = variability([make_trial(samples=30)], p50_us=1000.0)
    assert (found.p95_over_p50, found.p99_over_p50, found.between_cv) == (None, None, None)
    assert found.notes == (
        "a p95 needs 60 samples, there are 30",
        "a p99 needs 500 samples, there are 30",
        "the spread between trials needs 3 of them, there are 1",
    )


def test_summaries_give_the_spread_between_trials_only() -> None:
    """Without samples nothing can be said about iterations, but trials can still be held against each other."""
    trials = [make_trial(block=block, summary=Summary(count=50, median=100.0 + block)) for block in range(5)]
    found = variability(trials, p50_us=102.0)
    assert found.between_cv == pytest.approx(1.4826 / 102)
    assert (found.within_cv, found.slow_fraction, found.samples) == (None, None, 0)
    assert found.trials_checked_steady == 0


def test_nothing_measured_gives_nothing() -> None:
    """A cell without measured trials has no spread."""
    found = variability([], p50_us=None)
    assert (found.within_cv, found.between_cv, found.samples, found.slow_fraction) == (None, None, 0, None)


@pytest.mark.parametrize("warmup", [0, 10, 39])
def test_trial_that_settles_early_is_steady(warmup: int) -> None:
    """A slow start that ends within the first half is a warm-up."""
    samples = 1000 * np.exp(np.random.default_rng(warmup).normal(0, 0.01, 100))
    samples[:warmup] *= 1.3
    assert reaches_steady_state(trial_of(samples)) is True


def test_trial_that_never_settles_is_counted_not_cut() -> None:
    """A trace that is slow for its first 70 % is flagged, and its samples all stay in the statistics."""
    samples = 1000 * np.exp(np.random.default_rng(1).normal(0, 0.01, 100))
    samples[:70] *= 1.3
    late = trial_of(samples)
    assert reaches_steady_state(late) is False
    found = variability([late, make_trial(samples=100)], p50_us=1000.0)
    assert (found.trials_checked_steady, found.trials_not_steady, found.samples) == (2, 1, 200)
    assert "1 of 2 trials did not settle in their first half: more warm-up may help" in found.notes


def test_few_samples_cannot_tell_a_steady_state() -> None:
    """Below twenty samples the question is left open."""
    assert reaches_steady_state(make_trial(samples=19)) is None


def test_steady_noise_is_seldom_flagged() -> None:
    """Of traces with no warm-up at all, heavy-tailed noise included, fewer than 2 % are flagged."""
    rng = np.random.default_rng(4)
    traces = 1000 * np.exp(0.02 * rng.standard_t(3, (400, 80)))
    flagged = sum(reaches_steady_state(trial_of(trace)) is False for trace in traces)
    assert flagged <= 8


@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.floats(1, 1e6), min_size=1, max_size=40), power=st.integers(-8, 8))
def test_robust_cv_has_no_unit(values: list[float], power: int) -> None:
    """The coefficient of variation is the same in any unit and never negative."""
    ordered = np.sort(values)
    assert robust_cv(ordered) >= 0
    assert robust_cv(ordered * 2.0**power) == pytest.approx(robust_cv(ordered))
