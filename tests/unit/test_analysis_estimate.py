"""A trial's latency, and a cell's estimate from its trials."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.estimate import (
    METRICS,
    Estimate,
    estimate,
    estimate_cell,
    estimates,
    is_average_for_median,
    quantile,
    trial_latencies_us,
    trial_latency_us,
)
from orchestrator.trial import Outcome, Summary
from tests.unit.trial_factory import make_cell, make_trial

latencies = st.lists(st.floats(1e-3, 1e9, allow_nan=False), min_size=1, max_size=18)
NOT_MEASURED = [outcome for outcome in Outcome if outcome is not Outcome.MEASURED]


def test_latencies_of_a_trial_come_from_its_samples() -> None:
    """Median, mean and interpolated 95th percentile of all samples, none dropped."""
    trial = replace(make_trial(), samples_us=tuple(float(value) for value in range(1, 102)))
    assert trial_latencies_us(trial) == {"p50": 51.0, "mean": 51.0, "p95": 96.0}


@given(values=st.lists(st.floats(1, 1e6), min_size=1, max_size=30), share=st.sampled_from([0.5, 0.95, 0.99]))
def test_quantile_agrees_with_numpy(values: list[float], share: float) -> None:
    """Our quick quantile of sorted values is numpy's."""
    assert quantile(np.sort(values), share) == pytest.approx(np.quantile(values, share))


@pytest.mark.parametrize(("samples", "has_p95"), [(59, False), (60, True)])
def test_p95_needs_sixty_samples(samples: int, has_p95: bool) -> None:
    """Fewer samples cannot say where the slowest twentieth begins, in a trial or in a tool's summary."""
    assert (trial_latency_us(make_trial(samples=samples), "p95") is not None) is has_p95
    summary = Summary(count=samples, median=10.0, p95=12.0, avg=11.0)
    assert (trial_latency_us(make_trial(summary=summary), "p95") is not None) is has_p95


def test_summary_serves_where_there_are_no_samples() -> None:
    """The tool's own median, average and p95 are used as they are."""
    trial = make_trial(summary=Summary(count=200, median=811.0, p95=830.0, avg=812.3))
    assert trial_latencies_us(trial) == {"p50": 811.0, "mean": 812.3, "p95": 830.0}
    assert not is_average_for_median(trial)


def test_average_for_a_median_is_flagged() -> None:
    """An old tool prints an average only: it stands in for the median, and the cell says so."""
    trials = [make_trial(block=block, summary=Summary(count=50, avg=812.0 + block)) for block in range(8)]
    assert all(is_average_for_median(trial) for trial in trials)
    found = estimate_cell(trials)
    assert found.latency_us["p50"].n == 8
    assert "8 of 8 measured trials have no median: their average stands in, with 2 to 6 times its noise" in found.notes


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -5.0, 1e-300, 1e300])
def test_unusable_latencies_never_enter(bad: float) -> None:
    """A nan, an infinity or a latency of zero in an imported trial is left out and counted, not averaged."""
    from_samples = replace(make_trial(), samples_us=(100.0, bad, 101.0))
    from_summary = make_trial(block=1, summary=Summary(count=100, median=bad, avg=bad, p95=bad))
    for trial in (from_samples, from_summary):
        assert trial_latencies_us(trial) == dict.fromkeys(METRICS)
    found = estimate_cell([from_samples, from_summary, make_trial(block=2, median_us=50.0)])
    assert found.latency_us["p50"].n == 1
    assert found.latency_us["p50"].value == pytest.approx(50.0)
    assert "2 of 3 measured trials carry no usable latency" in found.notes


def test_trial_without_samples_and_summary_gives_nothing() -> None:
    """A measured trial that carries no numbers has no latency."""
    assert trial_latencies_us(make_trial(samples=0)) == dict.fromkeys(METRICS)


def test_estimate_recovers_the_truth_on_the_log_scale() -> None:
    """Twelve blocks about 800 us give an interval that holds 800 us and is a few percent wide."""
    found = estimate((800 * np.exp(np.random.default_rng(1).normal(0, 0.02, 12))).tolist())
    assert found.low is not None
    assert found.high is not None
    assert found.low < 800 < found.high
    assert found.half_width == pytest.approx((found.high - found.low) / 2 / found.value)
    assert 0.005 < found.half_width < 0.03


def test_estimate_of_nothing_says_so() -> None:
    """No values give no number and a reason."""
    assert estimate([]) == Estimate(None, None, None, 0, 0.95, "nothing was measured")
    assert estimate([]).half_width is None


def test_estimate_of_few_blocks_has_no_interval() -> None:
    """Below six blocks there is a value, no interval, and the reason."""
    found = estimate([100.0, 101.0, 102.0])
    assert found.value == pytest.approx(101.0, rel=1e-4)
    assert (found.low, found.high, found.half_width) == (None, None, None)
    assert found.note == "an interval needs 6 blocks, there are 3"


def test_estimates_keep_their_order_whatever_their_lengths() -> None:
    """Series are grouped by length for speed, and come back where they belong."""
    series = [[5.0] * 7, [], [2.0], [6.0] * 7, [3.0]]
    assert [found.value for found in estimates(series)] == pytest.approx([5, None, 2, 6, 3])
    assert [found.n for found in estimates(series)] == [7, 0, 1, 7, 1]


@settings(max_examples=50, deadline=None)
@given(values=latencies, power=st.integers(-8, 8))
def test_estimate_scales_with_its_unit(values: list[float], power: int) -> None:
    """Microseconds or milliseconds: the relative answer is the same, and nothing is ever nan."""
    plain, scaled = estimate(values), estimate([value * 2.0**power for value in values])
    for before, after in ((plain.value, scaled.value), (plain.low, scaled.low), (plain.high, scaled.high)):
        assert (before is None) == (after is None)
        if before is not None and after is not None:
            assert math.isfinite(before)
            assert after == pytest.approx(before * 2.0**power, rel=1e-6)


@settings(max_examples=50, deadline=None)
@given(values=latencies)
def test_inverse_of_an_estimate_swaps_its_ends(values: list[float]) -> None:
    """Seen from the other side the ends change places and the inverse of the inverse is the estimate."""
    found = estimate(values)
    inverse = found.inverse
    if inverse.low is not None and inverse.high is not None and inverse.value is not None:
        assert inverse.low <= inverse.value * (1 + 1e-12)
        assert inverse.value <= inverse.high * (1 + 1e-12)
    assert inverse.inverse.value == pytest.approx(found.value)
    assert inverse.inverse.low == pytest.approx(found.low)


@pytest.mark.parametrize("outcome", NOT_MEASURED)
def test_only_measured_trials_enter(outcome: Outcome) -> None:
    """A rejected, failed, skipped or not-run trial is counted with its reason and changes no number."""
    good = [make_trial(block=block, median_us=100.0 + block) for block in range(8)]
    bad = [make_trial(block=8 + index, median_us=9e6, outcome=outcome, reason="too hot") for index in range(8)]
    found = estimate_cell([*good, *bad])
    assert found.latency_us == estimate_cell(good).latency_us
    assert found.outcomes[Outcome.MEASURED] == 8
    assert found.outcomes[outcome] == 8
    assert found.reasons == (("too hot", 8),)


def test_reasons_are_counted_the_most_common_first() -> None:
    """The reader sees first what went wrong most; a missing reason is named by its outcome."""
    reasons = ["crashed", "too hot", "too hot", None]
    trials = [make_trial(block=block, outcome=Outcome.FAILED, reason=reason) for block, reason in enumerate(reasons)]
    expected = (("too hot", 2), ("crashed", 1), ("failed, no reason recorded", 1))
    assert estimate_cell(trials).reasons == expected


def test_last_measured_trial_of_a_block_counts() -> None:
    """A block that was repeated enters once, with its last measured attempt."""
    first = make_trial(block=0, median_us=900.0)
    second = make_trial(block=0, median_us=100.0)
    third = make_trial(block=0, median_us=700.0, outcome=Outcome.REJECTED, reason="load not reached")
    found = estimate_cell([first, second, third])
    assert found.latency_us["p50"].n == 1
    assert found.latency_us["p50"].value == pytest.approx(100.0)
    assert found.outcomes[Outcome.MEASURED] == 2


def test_blocks_of_different_runs_are_different_blocks() -> None:
    """Block 0 of two imported runs are two blocks, not one repeated."""
    found = estimate_cell([make_trial(block=0, run="a"), make_trial(block=0, run="b")])
    assert found.latency_us["p50"].n == 2


def test_cell_without_a_measured_trial_has_no_number() -> None:
    """Nothing measured is said, not made up."""
    found = estimate_cell([make_trial(outcome=Outcome.SKIPPED, reason="no GPU")])
    assert found.latency_us["p50"] == Estimate(None, None, None, 0, 0.95, "nothing was measured")
    assert found.half_width is None
    assert set(found.medians.values()) == {None}


def test_medians_of_further_figures() -> None:
    """Start-up, memory and copies are medians over the measured trials that carry them as numbers."""
    figures = [
        {"init_us": 10, "memory_peak_kb": 2048.0},
        {"init_us": 30},
        {"init_us": 20, "first_us": "?"},
        {"first_us": math.nan},
    ]
    trials = [make_trial(block=block, metrics=metrics) for block, metrics in enumerate(figures)]
    trials.append(make_trial(block=9, outcome=Outcome.REJECTED, metrics={"init_us": 9999}))
    medians = estimate_cell(trials).medians
    assert medians["init_us"] == 20, "rejected trials do not enter"
    assert medians["memory_peak_kb"] == 2048
    assert medians["first_us"] is None
    assert medians["copy_in_us"] is None


def test_trials_of_two_cells_are_our_mistake() -> None:
    """An estimate refuses to mix what differs."""
    with pytest.raises(AssertionError):
        estimate_cell([make_trial(), make_trial(cell=make_cell(threads=2))])
