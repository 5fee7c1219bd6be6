"""Stage one of the gate: what becomes of cells from one night to another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.calibration import SessionNoise, SessionNoises
from orchestrator.analysis.gate import Night, stage_one
from orchestrator.analysis.gate_words import DeviceNight, Ending, GateResult, Row, Verdict
from orchestrator.trial import Cell, Outcome
from tests.unit.gate_nights import REFERENCE, UPDATE, WARM, Lab, Noises

QUIET = Noises(device=0.0, cell=0.0, block=0.0, trial=0.002, hit_share=0.0)


@pytest.fixture
def lab() -> Lab:
    return Lab(np.random.default_rng(1), noises=QUIET)


def judged(now: Night, *bases: Night, noises: SessionNoises | None = None) -> dict[str, Row]:
    """The rows by model."""
    rows, _ = stage_one(now, bases, noises=noises or SessionNoises(), threshold=0.03)
    return {row.cell.model: row for row in rows}


def devices(now: Night, *bases: Night) -> dict[str, DeviceNight]:
    _, found = stage_one(now, bases, noises=SessionNoises(), threshold=0.03)
    return {device.name: device for device in found}


def result(*rows: Row, fail_on: str = "confirmed", lost: str | None = None) -> GateResult:
    return GateResult("run", "base", 0.03, fail_on, rows, (DeviceNight("pixel8", lost=lost),))


def without(night: Night, model: str) -> Night:
    """The night as if a cell had never been asked for."""
    return replace(
        night,
        cells=[cell for cell in night.cells if cell.model != model],
        trials=[trial for trial in night.trials if trial.cell.model != model],
    )


def with_outcome(night: Night, model: str, outcome: Outcome, blocks: int = 99) -> Night:
    """The night with the first blocks of a cell not measured, for this reason."""
    return replace(
        night,
        trials=[
            replace(trial, outcome=outcome, reason="as the test says")
            if trial.cell.model == model and trial.block < blocks
            else trial
            for trial in night.trials
        ],
    )


class TestJudging:
    def test_only_the_slower_cell_is_suspected(self, lab: Lab) -> None:
        """With its effect, and what changed."""
        before, now = lab.night(), lab.night(slower={2: 0.10})
        rows = judged(now, before)
        assert [model for model, row in rows.items() if row.verdict is Verdict.SUSPECTED] == ["model-2"]
        assert rows["model-2"].effect == pytest.approx(np.log(1.1), abs=0.01)
        assert rows["model-2"].changed == ("runner_sha256",)
        assert rows["pinned"].verdict is Verdict.REFERENCE

    def test_a_faster_cell_is_no_suspect(self, lab: Lab) -> None:
        rows = judged(lab.night(slower={2: -0.10}), lab.night())
        assert rows["model-2"].verdict is Verdict.FASTER

    def test_a_warm_room_is_the_device(self, lab: Lab) -> None:
        """All cells and the reference are slower alike; without a reference all would be suspects."""
        before, now = lab.night(), replace(lab.night(shared=2 * WARM))
        verdicts = {row.verdict for model, row in judged(now, before).items() if model != "pinned"}
        assert verdicts == {Verdict.DEVICE_MOVED}
        assert devices(now, before)["pixel8"].has_moved
        blind = [replace(night, references=frozenset()) for night in (now, before)]
        assert {row.verdict for row in judged(*blind).values()} == {Verdict.SUSPECTED, Verdict.DEVICE_MOVED}

    def test_a_slow_build_is_found_on_a_device_that_moved(self, lab: Lab) -> None:
        """The reference takes away what the device does, and no more."""
        rows = judged(lab.night(slower={1: 0.10}, shared=WARM), lab.night())
        assert rows["model-1"].verdict is Verdict.SUSPECTED

    def test_a_slow_build_cannot_hide_behind_a_faster_device(self, lab: Lab) -> None:
        """The latency is what it was, and should be less."""
        before, now = lab.night(), lab.night(slower={1: 0.10}, shared=-float(np.log(1.1)))
        row = judged(now, before)["model-1"]
        assert row.verdict is Verdict.SUSPECTED
        assert row.raw is not None and abs(row.raw.location) < 0.03

    def test_a_new_system_is_named(self, lab: Lab) -> None:
        """Where it may be the reason, and for the device."""
        before, now = lab.night(), lab.night(shared=2 * UPDATE, system="Android 16")
        row = judged(now, before)["model-0"]
        assert row.verdict is Verdict.DEVICE_MOVED
        assert "its system changed from Android 15 to Android 16" in row.reason
        assert devices(now, before)["pixel8"].has_new_system

    def test_the_same_bytes_are_never_a_slow_build(self, lab: Lab) -> None:
        """Whatever was slower then is not what was measured."""
        before, now = lab.night(), lab.night(slower={1: 0.2})
        old = {cell.model: cell for cell in before.cells}
        now = replace(
            now,
            cells=before.cells,
            trials=[replace(trial, cell=old[trial.cell.model]) for trial in now.trials],
        )
        row = judged(now, before)["model-1"]
        assert row.verdict is Verdict.DEVICE_MOVED
        assert "with the same model, runner and settings as before" in row.reason

    def test_changed_settings_of_trials_are_a_change(self, lab: Lab) -> None:
        """A plan that takes other trials is named beside the hashes."""
        before, now = replace(lab.night(), settings={"runs": 50}), replace(lab.night(), settings={"runs": 20})
        assert "[measure] runs" in judged(now, before)["model-0"].changed

    def test_calibrated_noise_sets_what_is_beyond_it(self, lab: Lab) -> None:
        """A device that differs by 8 % from night to night proves nothing with 10 %; a quiet one does with 3.4."""
        before, now = lab.night(), lab.night(slower={0: 0.10, 1: 0.034})
        loud = SessionNoises([SessionNoise("pixel8", "any", 0.08, 4)])
        quiet = SessionNoises([SessionNoise("pixel8", "any", 0.002, 4)])
        assert judged(now, before, noises=loud)["model-0"].verdict is Verdict.STEADY
        assert judged(now, before, noises=quiet)["model-1"].verdict is Verdict.SUSPECTED
        assert judged(now, before)["model-1"].verdict is Verdict.STEADY


class TestTheReference:
    def test_one_whose_bytes_differ_is_not_used(self, lab: Lab) -> None:
        """And that is said; the cell itself is then judged like any other."""
        before = lab.night()
        lab.reference = Cell(**{**REFERENCE.as_json(), "model_sha256": "0" * 64})
        now = lab.night()
        assert "model_sha256 differ" in (devices(now, before)["pixel8"].unpinned or "")
        assert judged(now, before)["pinned"].verdict is Verdict.STEADY

    def test_one_on_another_runtime_is_not_used(self, lab: Lab) -> None:
        """The binary is the same, but what it loads is not."""
        nights = [
            replace(
                night, trials=[replace(trial, conditions=(("runtime_version", version),)) for trial in night.trials]
            )
            for night, version in ((lab.night(), "2.2"), (lab.night(), "2.3"))
        ]
        assert "runtime_version differ" in (devices(nights[1], nights[0])["pixel8"].unpinned or "")

    def test_a_night_without_one_is_judged_without(self, lab: Lab) -> None:
        before = lab.night()
        lab.reference = None
        now = lab.night(slower={0: 0.2})
        assert devices(now, before)["pixel8"].unpinned == "tonight has no pinned reference"
        assert judged(now, before)["model-0"].verdict is Verdict.SUSPECTED
        assert judged(now, before)["pinned"].verdict is Verdict.VANISHED


class TestWhatWasNotMeasured:
    @pytest.mark.parametrize(
        ("outcome", "verdict"),
        [
            (Outcome.FAILED, Verdict.FAILED),
            (Outcome.REJECTED, Verdict.REJECTED),
            (Outcome.NOT_RUN, Verdict.NOT_RUN),
            (Outcome.SKIPPED, Verdict.SKIPPED),
        ],
    )
    def test_it_is_neither_fast_nor_slow(self, lab: Lab, outcome: Outcome, verdict: Verdict) -> None:
        """It was measured before, so that the night is not whole."""
        before, now = lab.night(), with_outcome(lab.night(), "model-3", outcome)
        row = judged(now, before)["model-3"]
        assert (row.verdict, row.reason, row.effect, row.lost) == (verdict, "as the test says", None, True)

    def test_what_was_always_skipped_is_not_missed(self, lab: Lab) -> None:
        """A phone without that delegate never has it."""
        before, now = (with_outcome(night, "model-3", Outcome.SKIPPED) for night in (lab.night(), lab.night()))
        assert judged(now, before)["model-3"].lost is False

    def test_too_few_blocks_decide_nothing(self, lab: Lab) -> None:
        before, now = lab.night(), with_outcome(lab.night(slower={3: 0.5}), "model-3", Outcome.REJECTED, blocks=3)
        row = judged(now, before)["model-3"]
        assert (row.verdict, row.lost) == (Verdict.UNDECIDED, True)
        assert "there are 8 and 5" in row.reason

    def test_a_device_that_vanished_is_named_with_the_reason(self, lab: Lab) -> None:
        """Its cells are lost, every one."""
        before = lab.night()
        now = Night("tonight", [], [], devices=frozenset(["pixel8"]), lost={"pixel8": "lost: pixel8 went away"})
        rows = judged(now, before)
        assert {row.verdict for row in rows.values()} == {Verdict.DEVICE_VANISHED}
        assert all(row.lost and "went away" in row.reason for row in rows.values())
        assert devices(now, before)["pixel8"].lost == "lost: pixel8 went away"

    def test_a_device_that_the_fleet_no_longer_has_is_not_missed(self, lab: Lab) -> None:
        now = Night("tonight", [], [], devices=frozenset(["other"]))
        assert {(row.verdict, row.lost) for row in judged(now, lab.night()).values()} == {
            (Verdict.DEVICE_VANISHED, False)
        }

    def test_cells_come_and_go(self, lab: Lab) -> None:
        """New ones have nothing to be held against, and those of the baseline that nobody asked for are named."""
        before, now = without(lab.night(), "model-1"), without(lab.night(), "model-2")
        rows = judged(now, before)
        assert (rows["model-1"].verdict, rows["model-2"].verdict) == (Verdict.NEW, Verdict.VANISHED)
        assert not rows["model-2"].lost

    def test_other_conditions_are_not_compared(self, lab: Lab) -> None:
        before = replace(lab.night(), held={"governor": "as-found"})
        now = replace(lab.night(slower={0: 0.5}), held={"governor": "performance"})
        row = judged(now, before)["model-0"]
        assert row.verdict is Verdict.INCOMPARABLE
        assert "governor" in row.reason

    def test_a_cell_that_the_baseline_lacks_is_held_against_an_older_night(self, lab: Lab) -> None:
        """A phone that was away for a night comes back to its own level."""
        older, before, now = lab.night(), without(lab.night(), "model-1"), lab.night(slower={1: 0.2})
        row = judged(now, before, older)["model-1"]
        assert (row.verdict, row.baseline) == (Verdict.SUSPECTED, older.run)


class TestTheNight:
    CELL = REFERENCE

    def row(self, verdict: Verdict, *, lost: bool = False) -> Row:
        return Row(self.CELL, verdict, "", lost=lost)

    def test_only_a_confirmed_regression_fails(self) -> None:
        assert result(self.row(Verdict.CONFIRMED)).ending is Ending.REGRESSION
        assert result(self.row(Verdict.SUSPECTED)).ending is Ending.SUSPICION
        assert result(self.row(Verdict.SUSPECTED), fail_on="suspected").ending is Ending.REGRESSION
        for verdict in (Verdict.REFUTED, Verdict.DEVICE_MOVED, Verdict.FASTER, Verdict.NEW, Verdict.VANISHED):
            assert result(self.row(verdict)).ending is Ending.PASSED

    def test_a_regression_counts_for_more_than_a_missing_phone(self) -> None:
        rows = (self.row(Verdict.CONFIRMED), self.row(Verdict.NOT_RUN, lost=True))
        assert result(*rows).ending is Ending.REGRESSION
        assert result(rows[1]).ending is Ending.PARTIAL
        assert result(lost="went away").ending is Ending.PARTIAL


class TestManyNights:
    """What chance does; the figures of 500 nights are those of `python -m tests.bench gate`."""

    def test_suspicions_are_rare_and_slow_builds_are_found(self) -> None:
        """With the reference, in nights that differ by 2.7 %."""
        lab = Lab(np.random.default_rng(5))
        false = found = 0
        for _ in range(25):
            rows = judged(lab.night(slower={0: 0.10}), lab.night())
            found += rows.pop("model-0").verdict is Verdict.SUSPECTED
            false += sum(row.verdict is Verdict.SUSPECTED for row in rows.values())
        assert found >= 18
        assert false <= 0.06 * 25 * 7
