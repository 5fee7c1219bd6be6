"""Cells run without a rest: curve, throttling, ranking; and never mixed with ordinary trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.summary import summarise
from orchestrator.analysis.sustained import Sustained, rankings, sustained
from orchestrator.tally import ATTEMPT
from orchestrator.trial import Cell, Finding, Outcome, Pass, Severity, Slot, Trial
from tests.unit.trial_factory import make_cell, make_trial

SLICE_S = 10.0


def slices(
    cell: Cell,
    *,
    count: int = 30,
    throttle_at: int | None = None,
    factor: float = 1.3,
    base_us: float = 10_000.0,
    first: int = 0,
    noise: float = 0.01,
) -> list[Trial]:
    """A cell back to back in slices of ten seconds; from slice `throttle_at` on it is slower by `factor`."""
    rng = np.random.default_rng(7)
    made = []
    for index in range(count):
        level = base_us * (factor if throttle_at is not None and index >= throttle_at else 1.0)
        samples = tuple((level * np.exp(noise * rng.normal(size=100))).tolist())
        began = f"2026-11-18T02:{index * 10 // 60:02d}:{index * 10 % 60:02d}Z"
        trial = make_trial(cell=cell)
        slot = Slot(cell, first + index, 0, purpose=Pass.SUSTAIN)
        made.append(replace(trial, slot=slot, samples_us=samples, duration_s=SLICE_S, started_at=began))
    return made


def only(trials: list[Trial]) -> Sustained:
    (found,) = sustained(trials)
    return found


def test_a_device_that_throttles_is_seen_to() -> None:
    """1.3 times slower after 120 s: when, and by how much."""
    found = only(slices(make_cell(), throttle_at=12))
    assert found.throttled_after_s == pytest.approx(120, abs=15)
    assert found.slowdown == pytest.approx(1.3, abs=0.02)
    assert found.seconds == pytest.approx(300)
    assert [point.t_s for point in found.curve] == sorted(point.t_s for point in found.curve)


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
def test_a_device_that_keeps_its_pace_is_not(noise: float) -> None:
    """Noise is no throttling."""
    assert only(slices(make_cell(), noise=noise)).throttled_after_s is None


def test_a_slow_ramp_is_throttling_too() -> None:
    """20 % over five minutes: the moment is the middle of the ramp."""
    ramp = [
        replace(trial, samples_us=tuple(value * (1 + 0.2 * index / 30) for value in trial.samples_us))
        for index, trial in enumerate(slices(make_cell()))
    ]
    found = only(ramp)
    assert found.throttled_after_s == pytest.approx(150, abs=60)


def test_a_cell_that_throttles_is_overtaken() -> None:
    """Four threads are faster at the start, one thread at the end."""
    one, four = make_cell(threads=1), make_cell(threads=4)
    trials = slices(one, base_us=12_000.0) + slices(four, throttle_at=10, factor=1.5)
    (ranking,) = rankings(sustained(trials))
    assert ranking.start == (four, one)
    assert ranking.end == (one, four)
    assert ranking.overtaken == ((four, one),)


def test_equal_cells_overtake_nobody() -> None:
    """One per cent of difference is a tie."""
    cells = [make_cell(threads=1), make_cell(threads=2)]
    trials = slices(cells[0]) + slices(cells[1], base_us=10_050.0)
    assert rankings(sustained(trials))[0].overtaken == ()


def test_only_the_last_attempt_counts() -> None:
    """A cell that was interrupted began anew, on a device that had rested."""
    cell = make_cell()
    broken = slices(cell, count=5, throttle_at=0, factor=3.0)
    found = only([*broken, *slices(cell, first=ATTEMPT)])
    assert found.slowdown == pytest.approx(1.0, abs=0.01)
    assert found.start_us == pytest.approx(10_000, rel=0.01)


def test_heat_rejects_no_slice_but_other_reasons_do() -> None:
    """A broken temperature limit is what is being looked at; a busy device is not."""
    trials = slices(make_cell())

    def rejected(rule: str) -> list[Trial]:
        finding = Finding(rule, Severity.REJECT, "reason", "remedy")
        return [replace(trials[0], outcome=Outcome.REJECTED, findings=(finding,)), *trials[1:]]

    assert only(rejected("limit")).notes == ()
    assert "1 of 30 slices do not count" in only(rejected("other-cpu")).notes[0]


def test_a_slow_down_beside_other_programs_may_be_theirs() -> None:
    """It is told with the note; where nothing slowed down there is nothing to explain."""
    finding = Finding("other-cpu", Severity.WARN, "reason", "remedy")

    def beside(trials: list[Trial]) -> list[Trial]:
        return [replace(trial, findings=(finding,)) for trial in trials[:10]] + trials[10:]

    assert "during 10 of 30 slices" in only(beside(slices(make_cell(), throttle_at=12))).notes[0]
    assert only(beside(slices(make_cell()))).notes == ()


def test_sustained_trials_never_enter_an_ordinary_estimate() -> None:
    """One file may hold both."""
    cell = make_cell()
    ordinary = [make_trial(cell=cell, block=block, median_us=5000.0) for block in range(8)]
    summary = summarise([*ordinary, *slices(cell)])
    assert summary.cells[0].estimate.latency_us["p50"].value == pytest.approx(5000.0)
    assert summary.cells[0].estimate.latency_us["p50"].n == 8
    assert len(summary.sustained) == 1
    assert summarise(slices(cell)).cells == ()


def test_json_has_the_curve_and_the_ranking() -> None:
    """Plain types, ready to print."""
    trials = slices(make_cell(threads=1)) + slices(make_cell(threads=2), throttle_at=15)
    content = summarise(trials).as_json()
    assert {"t_s", "median_us", "samples", "temperature_c", "clock_khz"} == set(content["sustained"][0]["curve"][0])
    assert len(content["rankings"][0]["start"]) == 2


def test_nothing_that_ran_is_no_curve() -> None:
    """A cell whose slices all failed has none."""
    failed = [replace(trial, outcome=Outcome.FAILED, samples_us=()) for trial in slices(make_cell(), count=2)]
    assert sustained(failed) == ()
