"""What the same thing measured twice says of a device: noise between neighbours, and between sessions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.calibration import ANY_FAMILY, cell_family
from orchestrator.analysis.noise import ARMS, Noise, false_alarms, noises
from orchestrator.trial import Outcome, Trial
from tests.unit.trial_factory import make_cell, make_trial


def twice(
    rng: np.random.Generator,
    *,
    sessions: int = 6,
    blocks: int = 10,
    ratio_sd: float = 0.02,
    session_sd: float = 0.05,
    models: int = 4,
    change: float = 0.0,
    threads: int = 1,
) -> list[Trial]:
    """A calibration with known truth: arms of one block share its level, blocks of one session share theirs."""
    trials = []
    for model in range(models):
        cell = make_cell(model=f"model-{model}", model_sha256=f"{model:064x}", threads=threads)
        for session in range(sessions):
            level = rng.normal(0, session_sd)
            for block in range(blocks):
                for arm in ARMS:
                    log = level + rng.normal(0, ratio_sd / np.sqrt(2)) + (np.log1p(change) if arm == "b" else 0.0)
                    at = session * blocks + block
                    made = make_trial(cell=cell, block=at, arm=arm, median_us=1000 * float(np.exp(log)), spread=0.0)
                    trials.append(replace(made, session=f"session-{session}", duration_s=2.0))
    return trials


def noise_of(trials: list[Trial], family: str | None = None) -> Noise:
    wanted = family or cell_family(trials[0].cell)
    return next(noise for noise in noises(trials) if noise.family == wanted and noise.metric == "p50")


def test_the_noise_that_was_put_in_is_found() -> None:
    """Both kinds within a third, from 240 blocks in 6 sessions of 4 models."""
    found = noise_of(twice(np.random.default_rng(3)))
    assert found.block_sd == pytest.approx(0.02, rel=0.2)
    assert found.session_sd == pytest.approx(0.05, rel=0.4)
    assert (found.sessions, found.blocks, found.trial_s) == (6, 240, 2.0)
    assert found.bad_share < 0.02


def test_sessions_that_do_not_differ_have_no_noise_of_their_own() -> None:
    """What trials explain is taken off."""
    found = noise_of(twice(np.random.default_rng(3), session_sd=0.0))
    assert found.session_sd is not None
    assert found.session_sd < 0.006


def test_one_session_says_nothing_about_sessions() -> None:
    """And so nothing is handed to compare."""
    found = noise_of(twice(np.random.default_rng(3), sessions=1))
    assert found.session_sd is None
    assert found.of_sessions is None


def test_families_are_kept_apart_and_the_device_as_a_whole_is_known_too() -> None:
    """Two threads are noisier than one; a cell of neither family gets the device's noise."""
    rng = np.random.default_rng(3)
    trials = twice(rng, ratio_sd=0.01) + twice(rng, ratio_sd=0.06, threads=2)
    one, two, whole = (
        noise_of(trials, family) for family in (cell_family(make_cell()), cell_family(make_cell(threads=2)), ANY_FAMILY)
    )
    assert one.block_sd < 0.015 < 0.04 < two.block_sd
    assert one.block_sd < whole.block_sd < two.block_sd


def test_trials_that_do_not_count_and_arms_without_a_partner_are_left_out() -> None:
    """A rejected arm takes its block with it."""
    trials = twice(np.random.default_rng(3), models=1, sessions=1)
    trials[0] = replace(trials[0], outcome=Outcome.REJECTED)
    assert noise_of(trials).blocks == 9


def test_too_few_pairs_are_no_noise() -> None:
    """Five pairs: nothing is said, for no metric."""
    assert noises(twice(np.random.default_rng(3), models=1, sessions=1, blocks=5)) == []
    assert noises([]) == []


def test_disturbed_blocks_are_counted_and_do_not_widen_the_noise() -> None:
    """One block in five is half as slow again."""
    trials = twice(np.random.default_rng(3), sessions=2)
    worse = [
        replace(trial, samples_us=tuple(1.5 * value for value in trial.samples_us))
        if trial.slot.arm == "b" and trial.slot.block % 5 == 0
        else trial
        for trial in trials
    ]
    found = noise_of(worse)
    assert found.bad_share == pytest.approx(0.2, abs=0.03)
    assert found.block_sd < 0.03


def test_the_same_thing_is_not_called_changed_and_a_change_is() -> None:
    """The check that calibration prints can fail."""
    (clean,) = false_alarms(twice(np.random.default_rng(3)), threshold=0.03)
    assert (clean.comparisons, clean.alarms) == (4, 0)
    (changed,) = false_alarms(twice(np.random.default_rng(3), change=0.1), threshold=0.03)
    assert changed.alarms == 4
