"""What has been measured so far: counts, giving up, precision, and time left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.plan import Measure
from orchestrator.tally import Tally
from orchestrator.trial import Outcome, Slot, Summary
from tests.unit.trial_factory import make_cell, make_trial

CELL, OTHER = make_cell(threads=1), make_cell(threads=2)


def tally(*outcomes: Outcome, precision: float = 0.02, **changes: Any) -> Tally:
    """A tally with one trial of CELL a block, of these outcomes."""
    made = Tally(Measure(precision=precision))
    for block, outcome in enumerate(outcomes):
        made.add(make_trial(cell=CELL, block=block, outcome=outcome, reason=f"reason {block}", **changes))
    return made


M, R, F = Outcome.MEASURED, Outcome.REJECTED, Outcome.FAILED


class TestGivingUp:
    def test_two_failures_in_a_row_are_the_end_of_a_cell(self) -> None:
        """The last reason is kept, and so is the number."""
        made = tally(M, F, F)
        assert made.given_up(CELL) == "given up after 2 failures in a row: reason 2"
        assert [made.is_given_up_before(CELL, block) for block in range(5)] == [False, False, False, True, True]

    @pytest.mark.parametrize("outcomes", [(F,), (F, M, F), (F, R, F), (F, M, F, M, F), (R, R, R, R), (M, M)])
    def test_failures_apart_and_rejections_are_not(self, outcomes: tuple[Outcome, ...]) -> None:
        """A success in between shows that the cell can run; a rejection says nothing against it."""
        assert tally(*outcomes).given_up(CELL) is None

    def test_a_failure_that_no_retry_can_mend_ends_a_cell_at_once(self) -> None:
        """A model without its operator fails the same way every time."""
        made = Tally(Measure())
        failed = make_trial(cell=CELL, outcome=F, reason="no operator X")
        made.add(replace(failed, evidence={"permanent": True}))
        assert made.given_up(CELL) == "given up, another try cannot help: no operator X"

    def test_cells_are_given_up_one_by_one(self) -> None:
        """Failures of two cells are not in a row."""
        made = Tally(Measure())
        for cell in (CELL, OTHER):
            made.add(make_trial(cell=cell, outcome=F, reason="crash"))
        assert made.given_up(CELL) is None
        assert made.given_up(OTHER) is None


class TestCounts:
    def test_only_measured_trials_of_earlier_blocks_count(self) -> None:
        """What a block decides never depends on itself."""
        made = tally(M, R, M, F, M)
        assert [made.measured_before(CELL, block) for block in range(6)] == [0, 1, 1, 2, 2, 3]
        assert made.measured_before(OTHER, 6) == 0
        assert (made.measured, made.trials) == (3, 5)

    def test_a_slot_is_known_by_cell_block_and_arm(self) -> None:
        """So a resumed run repeats nothing; the position does not matter."""
        made = tally(R)
        assert made.has(Slot(CELL, 0, 99))
        assert not made.has(Slot(CELL, 1, 0))
        assert not made.has(Slot(OTHER, 0, 0))
        assert not made.has(Slot(CELL, 0, 0, arm="candidate"))

    def test_a_measured_trial_without_a_usable_latency_does_not_fill_a_block(self) -> None:
        """A summary with a count only gives no number to estimate from."""
        made = Tally(Measure(blocks_min=1))
        made.add(make_trial(cell=CELL, summary=Summary(count=10)))
        assert made.measured_before(CELL, 1) == 0
        assert not made.is_complete(CELL)

    def test_a_cell_is_complete_with_its_least_number_of_trials(self) -> None:
        """Eight by default; rejected ones do not help."""
        assert tally(*[M] * 8).is_complete(CELL)
        assert not tally(*[M] * 7, R, R).is_complete(CELL)


class TestPrecision:
    def test_equal_trials_are_tight(self) -> None:
        """No spread, no doubt."""
        assert tally(*[M] * 8).is_tight(CELL, 8)

    def test_spread_trials_are_not(self) -> None:
        """The same number of trials that differ by half."""
        made = Tally(Measure())
        for block in range(8):
            made.add(make_trial(cell=CELL, block=block, median_us=1000.0 * (1 + block % 2)))
        assert not made.is_tight(CELL, 8)

    def test_the_plans_precision_decides(self) -> None:
        """What is too wide for 2 % is narrow enough for 60 %."""
        coarse, fine = Tally(Measure(precision=0.6)), Tally(Measure(precision=0.02))
        for made in (coarse, fine):
            for block in range(8):
                made.add(make_trial(cell=CELL, block=block, median_us=1000.0 + 50 * (block % 3)))
        assert coarse.is_tight(CELL, 8)
        assert not fine.is_tight(CELL, 8)

    def test_later_blocks_do_not_change_an_earlier_answer(self) -> None:
        """A replay after a break decides as the first time."""
        made = tally(*[M] * 8)
        made.add(make_trial(cell=CELL, block=8, median_us=9000.0))
        assert made.is_tight(CELL, 8)

    @pytest.mark.parametrize("count", [0, 1])
    def test_too_few_trials_are_never_tight(self, count: int) -> None:
        """One number has no interval."""
        assert not tally(*[M] * count).is_tight(CELL, 8)


class TestTime:
    def test_device_time_is_the_sum_of_all_trials(self) -> None:
        """Rejected and failed trials cost time too."""
        assert tally(M, R, F).used_s == pytest.approx(3.0)

    def test_a_cells_next_trial_takes_as_long_as_its_trials_so_far(self) -> None:
        """And before the first, as long as the plan suggests."""
        measure = Measure(settle_ms=0, warmup_min_ms=1000, min_ms=2000)
        made = Tally(measure)
        assert made.expected_s(CELL) == pytest.approx(3.6)
        for block, seconds in enumerate((1.0, 2.0)):
            made.add(replace(make_trial(cell=CELL, block=block), duration_s=seconds))
        assert made.expected_s(CELL) == pytest.approx(1.5)

    def test_what_is_left_counts_to_the_least_number_of_trials(self) -> None:
        """Cells that are done or given up are not left."""
        made = tally(*[M] * 3)
        assert made.slots_left([CELL]) == (5, pytest.approx(5.0))
        assert tally(*[M] * 9).slots_left([CELL]) == (0, 0.0)
        assert tally(F, F).slots_left([CELL]) == (0, 0.0)


class TestArms:
    def test_a_cell_counts_as_its_poorer_arm(self) -> None:
        """Two arms: a block is complete when both are."""
        made = Tally(Measure(blocks_min=2, blocks_max=2, arms=("a", "b")))
        for block, arm in ((0, "a"), (0, "b"), (1, "a")):
            made.add(make_trial(cell=CELL, block=block, arm=arm))
        assert made.measured_before(CELL, 2) == 1
        assert not made.is_complete(CELL)
        assert list(made.missing(CELL)) == [Slot(CELL, 1, 0, "b")]
        assert made.slots_left([CELL]) == (2, pytest.approx(2.0))


class TestReplay:
    def test_what_was_spent_before_a_block_does_not_depend_on_later_ones(self) -> None:
        """A budget is shared out the same way when a run is resumed."""
        made = tally(*[M] * 6)
        assert made.used_before_s(4) == pytest.approx(4.0)
        assert made.used_s == pytest.approx(6.0)
