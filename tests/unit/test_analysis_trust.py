"""How far to trust a cell: each verdict with its reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.reduction import Reduced
from orchestrator.analysis.trust import Trust, TrustVerdict, bimodal_gap, trust_of, verdict_of, worse
from orchestrator.trial import Outcome
from tests.unit.comparison_models import reduced_trial
from tests.unit.trial_factory import make_cell, make_trial


def cell(logs: np.ndarray, **changes: object) -> list[Reduced]:
    trials = [
        reduced_trial(make_cell(), arm="x", block=block, log_us=6 + value, at_s=None)
        for block, value in enumerate(logs)
    ]
    return [replace(trial, **changes) for trial in trials]  # type: ignore[arg-type]  # any field


def causes(found: Trust) -> set[str]:
    return {reason.cause for reason in found.reasons}


NOISE = np.random.default_rng(1)


def test_a_quiet_cell_is_trusted() -> None:
    """Ten blocks within 1 %."""
    found = trust_of(cell(NOISE.normal(0, 0.01, 10)))
    assert (found.verdict, found.reasons) == (TrustVerdict.TRUSTED, ())


def test_most_quiet_cells_are_trusted() -> None:
    """No reason is found by chance in more than one of twenty."""
    rng = np.random.default_rng(2)
    verdicts = [trust_of(cell(rng.normal(0, 0.02, 12))).verdict for _ in range(200)]
    assert verdicts.count(TrustVerdict.TRUSTED) >= 190


def test_too_few_blocks_are_insufficient() -> None:
    """Whatever else is the case."""
    found = trust_of(cell(NOISE.normal(0, 0.5, 5)))
    assert found.verdict is TrustVerdict.INSUFFICIENT
    assert found.reasons[0].text == "5 measured blocks, at least 6 are needed"
    assert trust_of([]).verdict is TrustVerdict.INSUFFICIENT


def test_rejected_trials_contaminate() -> None:
    """A third rejected: the rest may be what was left of a bad night."""
    trials = cell(NOISE.normal(0, 0.01, 12))
    lost = [replace(trial, outcome=Outcome.REJECTED, reason="too hot") for trial in trials[:4]]
    found = trust_of([*trials[4:], *lost])
    assert found.verdict is TrustVerdict.CONTAMINATED
    assert "4 of 12 trials were rejected or failed: too hot" in found.reasons[0].text


def test_bursts_contaminate() -> None:
    """Three of ten trials half as slow again."""
    logs = NOISE.normal(0, 0.01, 10)
    logs[:3] += 0.4
    assert trust_of(cell(logs)).verdict is TrustVerdict.CONTAMINATED


@pytest.mark.parametrize(
    ("logs", "cause"),
    [
        (np.random.default_rng(3).normal(0, 0.2, 12), "spread"),
        (np.linspace(0, 0.2, 12) + np.random.default_rng(4).normal(0, 0.01, 12), "drift"),
        (np.tile([0.0, 0.0, 0.12], 5) + np.random.default_rng(5).normal(0, 0.004, 15), "bimodal"),
        (np.repeat([0.0, 0.05, -0.02, 0.04], 5) + np.random.default_rng(6).normal(0, 0.004, 20), "autocorrelation"),
    ],
)
def test_each_kind_of_noise_is_named(logs: np.ndarray, cause: str) -> None:
    """Noisy, with the cause."""
    found = trust_of(cell(logs))
    assert cause in causes(found)
    assert all(reason.remedy for reason in found.reasons)


def test_drift_within_trials() -> None:
    """Samples that rise from start to end in most trials."""
    rising = [replace(make_trial(block=block), samples_us=tuple(np.linspace(100, 110, 80))) for block in range(8)]
    found = verdict_of(rising)
    assert found.verdict is TrustVerdict.NOISY
    assert "drift-within" in causes(found)


def test_the_worse_of_two_counts() -> None:
    """A comparison is as good as its worse side."""
    good, few = trust_of(cell(NOISE.normal(0, 0.01, 10))), trust_of(cell(NOISE.normal(0, 0.01, 2)))
    assert worse(good, few).verdict is worse(few, good).verdict is TrustVerdict.INSUFFICIENT
    assert worse(few, few).reasons == few.reasons


def test_two_groups_are_told_from_one() -> None:
    """One normal crowd is not two groups; two tight ones are, with their distance."""
    rng = np.random.default_rng(7)
    assert np.mean([bimodal_gap(rng.normal(0, 0.05, 14)) is not None for _ in range(300)]) < 0.02
    gap = bimodal_gap(np.array([0.0] * 6 + [0.1] * 6) + rng.normal(0, 0.001, 12))
    assert gap == pytest.approx(0.1, abs=0.01)
