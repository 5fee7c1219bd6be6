"""Where the variance lies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.components import components
from orchestrator.analysis.reduction import Reduced
from orchestrator.trial import Outcome
from tests.unit.comparison_models import reduced_trial
from tests.unit.trial_factory import make_cell


def fleet(rng: np.random.Generator, *, devices: int, sessions: int, blocks: int) -> list[Reduced]:
    """Devices 20 % apart, sessions 5 %, processes 2 %; iterations 1 %."""
    trials = []
    for device in range(devices):
        place = rng.normal(0, 0.2)
        for session in range(sessions):
            day = rng.normal(0, 0.05)
            for block in range(blocks):
                made = reduced_trial(
                    make_cell(device=f"phone{device}"),
                    arm="x",
                    block=block,
                    log_us=6 + place + day + rng.normal(0, 0.02),
                    at_s=None,
                    session=f"day{session}",
                )
                trials.append(replace(made, within_cv=0.01))
    return trials


def test_each_part_is_recovered() -> None:
    """From 30 devices and 10 days the four spreads come out as they went in."""
    (found,) = components(fleet(np.random.default_rng(1), devices=30, sessions=10, blocks=8))
    assert found.iteration == pytest.approx(0.01)
    assert found.process == pytest.approx(0.02, rel=0.1)
    assert found.session == pytest.approx(0.05, rel=0.15)
    assert found.device == pytest.approx(0.2, rel=0.35)
    assert found.devices == 30


def test_what_is_too_few_is_not_stated() -> None:
    """One day on one device says nothing of days or devices; a single trial nothing at all."""
    (found,) = components(fleet(np.random.default_rng(2), devices=1, sessions=1, blocks=8))
    assert found.process is not None
    assert (found.session, found.device) == (None, None)
    (single,) = components(fleet(np.random.default_rng(3), devices=1, sessions=1, blocks=1))
    assert single.process is None


def test_only_measured_trials_enter() -> None:
    """And nothing gives nothing."""
    trials = [
        replace(trial, outcome=Outcome.FAILED)
        for trial in fleet(np.random.default_rng(4), devices=1, sessions=1, blocks=2)
    ]
    assert components(trials) == []
