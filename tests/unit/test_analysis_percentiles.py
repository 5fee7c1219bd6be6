"""p90 and p99 of a cell, with intervals where the samples allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.estimate import entering
from orchestrator.analysis.percentiles import percentiles_us
from orchestrator.trial import Summary, Trial
from tests.unit.trial_factory import make_trial


def trials(rng: np.random.Generator, *, blocks: int, samples: int, between: float = 0.0) -> list[Trial]:
    return [
        replace(
            make_trial(block=block),
            samples_us=tuple((1000 * np.exp(rng.normal(0, between) + rng.normal(0, 0.1, samples))).tolist()),
        )
        for block in range(blocks)
    ]


@pytest.mark.parametrize(("name", "z"), [("p90", 1.2816), ("p99", 2.3263)])
@pytest.mark.parametrize("between", [0.0, 0.03])
def test_intervals_hold_the_truth(name: str, z: float, between: float) -> None:
    """Twelve trials of 200 samples, processes alike or 3 % apart: 93 of a hundred, less two standard errors."""
    truth = 1000 * np.exp(z * np.hypot(0.1, between))
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        found = percentiles_us(entering(trials(rng, blocks=12, samples=200, between=between)))[name]
        assert found.low is not None
        held += found.low <= truth <= (found.high or np.inf)
    assert held >= 200 * (0.93 - 2 * np.sqrt(0.93 * 0.07 / 200))


def test_too_few_samples_are_said() -> None:
    """A p99 needs 500 samples of the cell, a p90 fifty."""
    found = percentiles_us(entering(trials(np.random.default_rng(2), blocks=6, samples=8)))
    assert (found["p90"].value, found["p90"].note) == (None, "a p90 needs 50 samples, there are 48")
    assert (found["p99"].value, found["p99"].note) == (None, "a p99 needs 500 samples, there are 48")


def test_too_few_blocks_give_no_interval() -> None:
    """Thousands of samples of three processes are three observations."""
    found = percentiles_us(entering(trials(np.random.default_rng(3), blocks=3, samples=1000)))["p90"]
    assert found.value is not None
    assert (found.low, found.note) == (None, "an interval needs 6 blocks, there are 3")


def test_an_upper_end_beyond_all_samples_is_not_made_up() -> None:
    """Six trials of 100 samples know where a p99 begins, not where it ends."""
    found = percentiles_us(entering(trials(np.random.default_rng(4), blocks=6, samples=100, between=0.1)))["p99"]
    assert found.low is not None
    assert found.high is None
    assert "the upper end of a p99 needs more" in (found.note or "")


def test_summaries_have_none() -> None:
    """A tool's summary cannot be pooled."""
    only = make_trial(summary=Summary(count=200, median=811.0, p95=830.0))
    assert percentiles_us(entering([only]))["p99"].value is None
