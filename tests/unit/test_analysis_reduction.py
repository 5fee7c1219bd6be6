"""Trials without their samples: the figures agree with those of the trials themselves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.estimate import METRICS, trial_latencies_us
from orchestrator.analysis.reduction import reduced
from orchestrator.analysis.variability import robust_cv
from orchestrator.trial import Finding, Outcome, Severity, Summary, Trial
from tests.unit.trial_factory import make_trial


def some_trials() -> list[Trial]:
    rng = np.random.default_rng(1)
    of_samples = [make_trial(block=block, samples=count, rng=rng) for block, count in enumerate([1, 4, 30, 60, 80, 80])]
    of_summaries = [make_trial(summary=Summary(count=99, avg=5.0)), make_trial(samples=0)]
    bad = [replace(make_trial(), samples_us=(1.0, value, 2.0)) for value in (math.nan, math.inf, -1.0, 0.0, 1e300)]
    return [*of_samples, *of_summaries, *bad, make_trial(outcome=Outcome.REJECTED, reason="too hot")]


def test_latencies_are_those_of_the_trial() -> None:
    """In order, for samples, summaries and what cannot be a latency."""
    trials = some_trials()
    for trial, light in zip(trials, reduced(trials), strict=True):
        expected = trial_latencies_us(trial)
        for metric in METRICS:
            assert light.latencies_us[metric] == (expected[metric] and pytest.approx(expected[metric], rel=1e-12))
        assert (light.outcome, light.samples, light.block) == (trial.outcome, len(trial.samples_us), trial.slot.block)


def test_spread_is_that_of_the_trial() -> None:
    """The robust coefficient of variation, from five samples on."""
    trial = make_trial(rng=np.random.default_rng(2))
    assert next(reduced([trial])).within_cv == pytest.approx(robust_cv(np.sort(trial.samples_us)))
    assert next(reduced([make_trial(samples=4)])).within_cv is None


def test_batches_do_not_show() -> None:
    """More trials than are worked on at once come back in order."""
    trials = [make_trial(block=block, samples=3 + block % 2) for block in range(2500)]
    assert [light.block for light in reduced(trials)] == list(range(2500))


def test_times_and_warnings_come_along() -> None:
    """A time is read where it is one; warnings by rule."""
    finding = Finding("other-programs", Severity.WARN, "busy", "wait")
    made = replace(make_trial(), findings=(finding,))
    light, odd = reduced([made, replace(make_trial(), started_at="yesterday")])
    assert light.started_s == pytest.approx(1794967200.0)
    assert light.warned == ("other-programs",)
    assert odd.started_s is None
