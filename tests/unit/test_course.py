"""The course of the work: sessions begun anew, sustained stretches, budgets that end it, and going on after a break."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.course import BUDGET_SPENT, DONE, Course, conducted
from orchestrator.plan import Measure
from orchestrator.tally import ATTEMPT, Tally
from orchestrator.trial import Cell, Outcome, Pass, Slot, Trial
from tests.unit.trial_factory import make_cell, make_trial

ONE, TWO = make_cell(threads=1), make_cell(threads=1, load="cpu:1@100")


class Bench:
    """A device on which every trial takes as long as it is told to."""

    def __init__(self, measure: Measure, *, seconds: float = 1.0, fails: bool = False, noise: float = 0.0) -> None:
        self.tally = Tally(conducted(measure))
        self._measure = conducted(measure)
        self._seconds = seconds
        self._fails = fails
        self._noise = noise
        self.done: list[tuple[Slot, bool]] = []
        self.renewals: list[int] = []

    def do(self, slot: Slot, *, waits: bool) -> Trial:
        self.done.append((slot, waits))
        latency_us = 1000.0 * (1 + self._noise * (slot.block % 3))
        made = make_trial(cell=slot.cell, median_us=latency_us, spread=0.0)
        outcome = Outcome.FAILED if self._fails else Outcome.MEASURED
        trial = replace(made, slot=slot, duration_s=self._seconds, outcome=outcome)
        self.tally.add(trial)
        return trial

    def renew_session(self) -> None:
        self.renewals.append(self.done[-1][0].block)

    def course(self, *cells: Cell) -> Course:
        return Course(cells, self._measure, 3, self.tally, self)


def test_sessions_are_begun_anew_between_their_blocks() -> None:
    """Three sessions of two blocks: let go after blocks 1 and 3."""
    bench = Bench(Measure(blocks_min=6, blocks_max=6, sessions=3, arms=("a", "b")))
    assert bench.course(ONE).run() == DONE
    assert bench.renewals == [1, 3]
    assert [slot.arm for slot, _ in bench.done].count("a") == 6
    assert len(bench.done) == 12


def test_a_resumed_run_begins_no_session_for_what_is_done() -> None:
    """Blocks 0 to 3 are there: the first trial is of the third session, and the device was just made ready."""
    measure = Measure(blocks_min=6, blocks_max=6, sessions=3)
    bench = Bench(measure)
    for block in range(4):
        bench.tally.add(make_trial(cell=ONE, block=block))
    bench.course(ONE).run()
    assert bench.renewals == []
    assert [slot.block for slot, _ in bench.done] == [4, 5]


def test_why_cells_stopped_is_told() -> None:
    """Quiet cells are tight at the first look, noisy ones end at the most blocks."""
    measure = Measure(blocks_min=8, blocks_max=12)
    quiet, noisy = Bench(measure), Bench(measure, noise=0.2)
    for bench, reason in ((quiet, "tight"), (noisy, "max blocks")):
        course = bench.course(ONE)
        assert course.run() == DONE
        assert course.stops() == {ONE.id: reason}
    assert [len(quiet.done), len(noisy.done)] == [8, 12]


def test_a_budget_that_does_not_reach_ends_the_run() -> None:
    """Everything is stopped by it, and nothing is started that does not fit."""
    bench = Bench(Measure(budget_s=0.5), seconds=1.0)
    course = bench.course(ONE, TWO)
    assert course.run() == BUDGET_SPENT
    assert course.stops() == {ONE.id: "budget", TWO.id: "budget"}
    assert bench.done == []


def test_a_sustained_cell_runs_for_its_time_and_waits_only_once() -> None:
    """60 s in slices of 3 s; the device is waited for before the first slice of each cell."""
    bench = Bench(Measure(sustain_s=60.0), seconds=3.0)
    assert bench.course(ONE, TWO).run() == DONE
    assert len(bench.done) == 40
    assert [waits for _, waits in bench.done] == [True, *[False] * 19] * 2
    assert {slot.purpose for slot, _ in bench.done} == {Pass.SUSTAIN}
    cells = [slot.cell for slot, _ in bench.done]
    assert len(set(cells[:20])) == len(set(cells[20:])) == 1


def test_an_interrupted_cell_begins_anew_and_a_finished_one_does_not() -> None:
    """Half a stretch on a device that has since rested is worth nothing."""
    measure = Measure(sustain_s=60.0)
    bench = Bench(measure, seconds=3.0)
    for cell, count in ((ONE, 20), (TWO, 7)):
        for block in range(count):
            made = make_trial(cell=cell)
            slot = Slot(cell, block, 0, purpose=Pass.SUSTAIN)
            bench.tally.add(replace(made, slot=slot, duration_s=3.0))
    bench.course(ONE, TWO).run()
    assert {slot.cell for slot, _ in bench.done} == {TWO}
    assert [slot.block for slot, _ in bench.done] == [ATTEMPT + index for index in range(20)]


def test_a_sustained_cell_that_fails_is_given_up() -> None:
    """Two failures in a row end it, as in ordinary runs."""
    bench = Bench(Measure(sustain_s=60.0), fails=True)
    assert bench.course(ONE).run() == DONE
    assert len(bench.done) == 2
    assert [slot.purpose for slot in bench.tally.missing(ONE)] == [Pass.SUSTAIN]


@pytest.mark.parametrize(
    ("sustain_s", "slice_ms", "slices"), [(10.0, 1000, 10), (60.0, 3000, 20), (3600.0, 10_000, 360)]
)
def test_slices_suit_the_time(sustain_s: float, slice_ms: int, slices: int) -> None:
    """Short enough for a curve, long enough for the start of a process not to matter."""
    made = conducted(Measure(sustain_s=sustain_s, trial_timeout_s=5.0))
    assert (made.min_ms, made.blocks_min, made.warmup_min_ms) == (slice_ms, slices, 0)
    assert made.trial_timeout_s > made.max_ms / 1000 >= made.min_ms / 1000


def test_ordinary_trials_are_made_as_the_plan_says() -> None:
    """Nothing changes without --sustain."""
    assert conducted(Measure()) == Measure()
