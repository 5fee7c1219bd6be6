"""The gate on a store: many nights in a row, and what each makes of the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.analysis.duels import PAIR_ARMS, pair_rows
from orchestrator.analysis.gate import Night
from orchestrator.analysis.gate_words import Ending, GateResult, Verdict
from orchestrator.confirming import decided
from orchestrator.duel import DuelResult
from orchestrator.errors import RunNotFound, UsageError
from orchestrator.gating import concluded, judge
from orchestrator.gating import keep as kept
from orchestrator.store import Annals, RunRecord, Standing, Store, open_store
from orchestrator.trial import Outcome
from tests.unit.comparison_models import Truth, calm, interleaved
from tests.unit.gate_nights import UPDATE, WARM, Lab, fleet_cells, put


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store")
    yield opened
    opened.close()


def confirmed(result: GateResult, rng: np.random.Generator, slower: dict[str, float]) -> GateResult:
    """Stage two as a duel would answer: each suspect interleaved, slower by its true effect."""
    rows = list(result.rows)
    for place, row in enumerate(rows):
        if row.verdict is Verdict.SUSPECTED:
            truth = Truth(slower.get(row.cell.model, 0.0))
            pair = interleaved(rng, calm, blocks=40, truth=truth, cell=row.cell)
            found = pair_rows([*pair.base, *pair.new], threshold=0.03, alpha=0.0158, arms=PAIR_ARMS)
            rows[place] = decided(row, DuelResult("duel", tuple(found), {}, ()))
    return replace(result, rows=tuple(rows))


def keep(store: Store, result: GateResult) -> tuple[GateResult, Standing]:
    result, standing = concluded(store, result)
    kept(store, result, standing)
    return result, standing


def gate(store: Store, record: RunRecord, reference: str = "last-good", fail_on: str = "confirmed") -> GateResult:
    return judge(store, record, reference, threshold=0.03, fail_on=fail_on)


def test_unchanged_nights_stay_green_and_a_slow_build_does_not(store: Store) -> None:
    """Twenty-four nights of new builds that are all as fast, with warm rooms and a new system among them: none fails;
    the night after, one cell is 10 % slower, and the gate fails with that cell alone."""
    rng = np.random.default_rng(11)
    lab = Lab(rng, cells=fleet_cells(6))
    suspects = 0
    for number in range(24):
        shared = WARM if number in (7, 15) else UPDATE if number >= 18 else 0.0
        record = put(store, lab.night(shared=shared, system="Android 16" if number >= 18 else "Android 15"))
        result, standing = keep(store, confirmed(first := gate(store, record), rng, {}))
        suspects += len(first.of(Verdict.SUSPECTED))
        assert result.ending is (Ending.PASSED if number else Ending.FIRST), (number, result.counts)
        assert standing is Standing.GOOD, number
    assert suspects <= 24 * 6 * 0.06

    slow = put(store, lab.night(slower={4: 0.10}, shared=UPDATE, system="Android 16"))
    result, standing = keep(store, confirmed(gate(store, slow), rng, {"model-4": 0.10}))
    assert (result.ending, standing) == (Ending.REGRESSION, Standing.BAD)
    assert [row.cell.model for row in result.failing] == ["model-4"]
    assert Annals(store).judgements()[slow.id].content["ending"] == "regression"

    after = put(store, lab.night(shared=UPDATE, system="Android 16"))
    assert gate(store, after).baseline == "night-024", "a bad night is nobody's baseline"


class TestBaselines:
    def test_a_first_night_has_nothing_to_be_held_against(self, store: Store) -> None:
        """It passes, says so, and is good for the next."""
        result, standing = keep(store, gate(store, put(store, Lab(np.random.default_rng(11)).night())))
        assert (result.ending, standing) == (Ending.FIRST, Standing.GOOD)
        assert "there is no earlier run, and so nothing to compare with" in result.notes

    def test_where_no_run_is_good_the_newest_is_the_baseline(self, store: Store) -> None:
        """A fleet that is never trusted would never be gated otherwise; a bad run is passed over."""
        lab = Lab(np.random.default_rng(2))
        first, second, third = (put(store, lab.night()) for _ in range(3))
        Annals(store).judge(second.id, "", Standing.BAD, {})
        assert gate(store, third).baseline == first.id

    def test_an_unknown_baseline_is_refused(self, store: Store) -> None:
        record = put(store, Lab(np.random.default_rng(2)).night())
        with pytest.raises(RunNotFound, match='no run "realese"'):
            gate(store, record, "realese")

    def test_tags_and_dates_name_baselines(self, store: Store) -> None:
        lab = Lab(np.random.default_rng(2))
        first, second, third = (put(store, lab.night()) for _ in range(3))
        Annals(store).tag(first.id, "release")
        assert gate(store, third, "release").baseline == first.id
        assert gate(store, third, second.id).baseline == second.id
        assert gate(store, third, "last").baseline == second.id

    def test_a_phone_that_was_away_is_held_against_its_own_last_good_night(self, store: Store) -> None:
        """The night without it was good, too; it is not forgotten, and its regression is found."""
        rng = np.random.default_rng(4)
        home = Lab(rng, cells=[*fleet_cells(3), *fleet_cells(3, "traveller")])
        for _ in range(2):
            keep(store, gate(store, put(store, home.night())))
        alone = home.night()
        away = replace(
            alone,
            cells=[cell for cell in alone.cells if cell.device != "traveller"],
            trials=[trial for trial in alone.trials if trial.cell.device != "traveller"],
            systems={"pixel8": "Android 15"},
        )
        result, standing = keep(store, gate(store, put(store, away)))
        assert (result.ending, standing) == (Ending.PARTIAL, Standing.GOOD)
        assert [device.name for device in result.lost_devices] == ["traveller"]
        back = gate(store, put(store, home.night(slower={3: 0.25})))
        (suspect,) = [row for row in back.of(Verdict.SUSPECTED) if row.cell.device == "traveller"]
        assert (suspect.baseline, back.baseline) == ("night-002", "night-003")
        assert "3 cells are held against night-002" in back.notes

    def test_a_calibration_is_nothing_to_gate(self, store: Store) -> None:
        record = put(store, Lab(np.random.default_rng(2)).night(), measure={"arms": ["a", "b"]})
        with pytest.raises(UsageError, match="nothing to gate"):
            gate(store, record)

    def test_a_run_without_trials_is_refused(self, store: Store) -> None:
        with pytest.raises(UsageError, match="has no trials"):
            gate(store, put(store, Night("night-001", [], [])))


class TestStanding:
    def test_a_suspicion_leaves_the_night_undecided(self, store: Store) -> None:
        """Neither a baseline, nor a regression."""
        lab = Lab(np.random.default_rng(3))
        keep(store, gate(store, put(store, lab.night())))
        result, standing = keep(store, gate(store, put(store, lab.night(slower={0: 0.3}))))
        assert (result.ending, standing) == (Ending.SUSPICION, Standing.UNDECIDED)

    def test_one_who_fails_on_suspicions_calls_it_bad(self, store: Store) -> None:
        lab = Lab(np.random.default_rng(3))
        keep(store, gate(store, put(store, lab.night())))
        result = gate(store, put(store, lab.night(slower={0: 0.3})), fail_on="suspected")
        assert keep(store, result)[1] is Standing.BAD

    def test_a_night_that_measured_next_to_nothing_is_no_baseline(self, store: Store) -> None:
        night = Lab(np.random.default_rng(3)).night()
        empty = [
            trial if trial.cell.model == "model-0" else replace(trial, outcome=Outcome.FAILED, reason="crashed")
            for trial in night.trials
        ]
        result, standing = keep(store, gate(store, put(store, replace(night, trials=empty))))
        assert (result.ending, standing) == (Ending.PARTIAL, Standing.UNDECIDED)
