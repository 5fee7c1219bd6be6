"""A cell over time: points, change points, and what changed with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.change_points import ALARM, SIDE_MIN, best_cut, change_points
from orchestrator.analysis.history import histories
from orchestrator.analysis.reduction import Reduced
from tests.unit.comparison_models import reduced_trial
from tests.unit.test_analysis_trend import autoregressive
from tests.unit.trial_factory import make_cell


def alarms(rows: np.ndarray) -> float:
    return float(np.mean([bool(change_points([row.tolist()], threshold=0.0001)[0]) for row in rows]))


@pytest.mark.parametrize("nights", [8, 12, 30])
def test_unchanged_series_seldom_alarm(nights: int) -> None:
    """Without any help from the threshold: at most 3 in a hundred, and three standard errors."""
    rows = 0.02 * np.random.default_rng(nights).normal(size=(200, nights))
    assert alarms(rows) <= ALARM + 3 * np.sqrt(ALARM * (1 - ALARM) / 200)


def test_outlier_nights_are_no_change() -> None:
    """One night in twenty far slower."""
    rng = np.random.default_rng(1)
    rows = 0.015 * rng.normal(size=(150, 40)) + np.where(rng.random((150, 40)) < 0.05, 0.3, 0.0)
    assert alarms(rows) <= 0.07


def test_slow_wandering_is_mostly_no_change() -> None:
    """Nights that resemble each other (correlation 0.4), and a threshold of 3 %."""
    rows = 0.015 * autoregressive(np.random.default_rng(2), 150, 40, 0.4)
    found = [bool(change_points([row.tolist()], threshold=0.03)[0]) for row in rows]
    assert np.mean(found) <= 0.05


def test_a_step_is_found_where_it_is() -> None:
    """5 % after 20 of 30 nights with 1.5 % noise: found nearly always, to within a night."""
    rng = np.random.default_rng(3)
    places = []
    for _ in range(60):
        row = 0.015 * rng.normal(size=30) + np.where(np.arange(30) >= 20, np.log(1.05), 0.0)
        places += [change.index for change in change_points([row.tolist()], threshold=0.03)[0]]
    assert len(places) >= 55
    assert np.mean(np.abs(np.array(places) - 20) <= 1) >= 0.9


def test_up_and_down_again_are_two_changes() -> None:
    """A regression and its fix."""
    row = 0.01 * np.random.default_rng(4).normal(size=45)
    row[15:30] += 0.1
    found = change_points([row.tolist()], threshold=0.03)[0]
    assert [change.index for change in found] == [15, 30]
    assert found[0].moved.location > 0 > found[1].moved.location


def test_a_step_below_the_threshold_is_not_reported() -> None:
    """1 % is there, and nobody would act on it."""
    row = 0.001 * np.random.default_rng(5).normal(size=40) + np.where(np.arange(40) >= 20, 0.01, 0.0)
    assert change_points([row.tolist()], threshold=0.03)[0] == []


@pytest.mark.parametrize("row", [[], [1.0], [1.0] * 7, [1.0] * 30])
def test_short_and_constant_series(row: list[float]) -> None:
    """Nothing to find."""
    assert change_points([row], threshold=0.03)[0] == []


def runs(levels: list[float], *, at: bool = True, changed_at: int = 10**6) -> list[Reduced]:
    """Runs of six blocks each; from one of them on, another build."""
    rng = np.random.default_rng(6)
    return [
        reduced_trial(
            make_cell(runner_sha256="new" if night >= changed_at else "old"),
            arm="x",
            block=block,
            log_us=np.log(level) + rng.normal(0, 0.005),
            at_s=86400.0 * night + block if at else None,
            run=f"run{night:02}",
            session=f"night{night:02}",
        )
        for night, level in enumerate(levels)
        for block in range(6)
    ]


def test_a_change_names_its_run_and_its_build() -> None:
    """One point a run, in time order whatever the order of the file; the hash that changed there is named."""
    trials = runs([800.0] * 10 + [900.0] * 6, changed_at=10)
    (found,) = histories(trials[::-1], metric="p50", threshold=0.03)
    assert [point.run for point in found.points] == [f"run{night:02}" for night in range(16)]
    content = found.as_json()
    (change,) = content["change_points"]
    assert (change["run"], change["previous_run"], change["direction"]) == ("run10", "run09", "slower")
    assert change["effect_percent"] == pytest.approx(12.5, abs=1)
    assert change["ci_low_percent"] < 12.5 < change["ci_high_percent"]
    assert (change["changed_fields"], change["runner_sha256"]) == (["runner_sha256"], "new")
    assert len(content["points"]) == 16
    assert content["points"][0]["n"] == 6


def test_without_times_the_order_of_the_file_counts() -> None:
    """Runs come in the order in which they are first seen."""
    (found,) = histories(runs([900.0] * 8 + [800.0] * 8, at=False), metric="p50", threshold=0.03)
    assert [change.index for change in found.changes] == [8]
    assert found.changes[0].moved.location < 0


def test_few_runs_are_said_to_be_few() -> None:
    """Below eight there is nothing to search."""
    (found,) = histories(runs([800.0] * 3), metric="p50", threshold=0.03)
    assert (found.changes, found.note) == ((), "change points need 8 runs, there are 3")


def test_sessions_of_one_run_stand_for_runs() -> None:
    """A run that was resumed night after night has a point a session."""
    trials = [replace(trial, run="one") for trial in runs([800.0] * 9)]
    (found,) = histories(trials, metric="p50", threshold=0.03)
    assert [point.session for point in found.points] == [f"night{night:02}" for night in range(9)]


def test_the_best_cut_is_the_one_that_trying_all_finds() -> None:
    """The running medians are only a quicker way to the same cut."""
    rng = np.random.default_rng(8)
    for count in (8, 9, 30, 61):
        values = rng.normal(0, 1, count) + 2.0 * (np.arange(count) > count // 3)
        left = [
            sum(float(np.abs(part - np.median(part)).sum()) for part in np.split(values, [cut]))
            for cut in range(SIDE_MIN, count - SIDE_MIN + 1)
        ]
        assert best_cut(values) == SIDE_MIN + int(np.argmin(left))
