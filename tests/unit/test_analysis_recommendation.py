"""What to use on which device: settings chosen from simulated grids whose best is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from orchestrator.analysis.recommendation import Certainty, Recommendation, recommend
from orchestrator.analysis.summary import summarise
from orchestrator.trial import Outcome, Trial
from tests.unit.trial_factory import make_cell, make_grid, make_trial

Grid = dict[tuple[int, str], float]
CROSSING: Grid = {
    (1, "idle"): 1000,
    (2, "idle"): 600,
    (4, "idle"): 400,
    (1, "cpu:2@50"): 1050,
    (2, "cpu:2@50"): 800,
    (4, "cpu:2@50"): 1600,
}


def grid(truth: Grid, *, blocks: int = 12, trial_sd: float = 0.005, delegate: str = "xnnpack") -> list[Trial]:
    drawn = make_grid(truth, blocks=blocks, rng=np.random.default_rng(1), trial_sd=trial_sd)
    return [
        replace(
            trial, slot=replace(trial.slot, cell=replace(trial.cell, delegate=delegate)), session=f"s{trial.slot.block}"
        )
        for trial in drawn
    ]


def only(trials: list[Trial]) -> Recommendation:
    found = recommend(summarise(trials))
    assert len(found) == 1
    return found[0]


def test_idle_and_loaded_have_settings_of_their_own() -> None:
    """Four threads when idle, two under load, and the sentence says why, as the crossing does."""
    found = only(grid(CROSSING))
    assert found.idle and found.loaded
    assert (found.idle.setting.threads, found.loaded.setting.threads) == (4, 2)
    assert (found.idle.certainty, found.loaded.certainty) == (Certainty.SETTLED, Certainty.SETTLED)
    assert found.text.startswith("4 threads are 2.5")
    assert found.text.endswith("x under cpu:2@50: use 4 threads when idle, 2 threads under load")


def test_one_setting_for_both_is_said_once() -> None:
    """Nobody is told to switch from two threads to two threads."""
    found = only(grid({key: us for key, us in CROSSING.items() if key[0] != 4}))
    assert found.idle and found.loaded
    assert found.idle.setting == found.loaded.setting
    assert ": use 2 threads" in found.text
    assert found.text.count("2 threads") == 2


def test_of_settings_as_good_as_each_other_the_fewest_threads_win() -> None:
    """Two threads that gain a proven 1 % are not worth a core."""
    found = only(grid({(1, "idle"): 1000, (2, "idle"): 990}, trial_sd=0.002))
    assert found.idle and found.idle.setting.threads == 1
    assert found.idle.certainty is Certainty.SETTLED


def test_a_close_call_is_not_settled() -> None:
    """Where intervals overlap, the leader leads and the rival is named."""
    found = only(grid({(1, "idle"): 1000, (2, "idle"): 960}, trial_sd=0.08))
    assert found.idle
    assert found.idle.certainty is Certainty.LEADING
    assert found.idle.reason in ("1 thread may be as good", "2 threads may be as good")
    assert "(not settled: " in found.text and found.text.endswith("nothing was swept under load")


def test_under_several_loads_the_worst_case_decides() -> None:
    """A setting that is best twice and terrible once gives way to one that is never far from the best."""
    truth = {(1, "idle"): 1000.0, (2, "idle"): 900.0}
    truth |= {(1, "app"): 1000.0, (2, "app"): 900.0, (1, "cpu:2@100"): 1000.0, (2, "cpu:2@100"): 2500.0}
    found = only(grid(truth))
    assert found.loaded and found.loaded.setting.threads == 1
    assert {one.cell.load for one in found.loaded.cells} == {"app", "cpu:2@100"}
    turned = only(grid({(1, "app"): 3000, (2, "app"): 900, (1, "cpu:2@100"): 1000, (2, "cpu:2@100"): 1200}))
    assert turned.loaded and turned.loaded.setting.threads == 2
    assert turned.loaded.worst.cell.load == "cpu:2@100"


def test_delegates_are_chosen_between() -> None:
    """The sentence holds the chosen delegate against the best of the others."""
    found = only([*grid(CROSSING), *grid({(1, "idle"): 200, (1, "cpu:2@50"): 210}, delegate="gpu")])
    assert found.idle and found.loaded
    assert found.idle.setting.delegate == found.loaded.setting.delegate == "gpu"
    assert found.text.startswith("gpu is 2.0")
    assert "as fast as xnnpack, 4 threads when idle and " in found.text
    assert found.text.endswith("under cpu:2@50: use gpu, 1 thread")


def test_too_few_blocks_make_no_settled_answer() -> None:
    """Three blocks lead somewhere, and the answer says that it rests on too little."""
    found = only(grid(CROSSING, blocks=3))
    assert found.idle and found.idle.setting.threads == 4
    assert found.idle.reason == "what was measured of it is insufficient"
    assert found.text.count("not settled") == 1


def test_nothing_measured_recommends_nothing() -> None:
    """Trials that failed are neither fast nor slow."""
    found = only([make_trial(block=block, outcome=Outcome.FAILED, reason="crash") for block in range(6)])
    assert (found.idle, found.loaded) == (None, None)
    assert found.text == "no setting was measured, so none can be recommended"
    assert found.as_json()["idle"] is None


def test_a_run_without_cells_has_no_recommendations() -> None:
    """An empty run is no reason to fail."""
    assert recommend(summarise([])) == ()


def test_a_setting_not_measured_under_every_load_is_named() -> None:
    """Its worst is unknown, so it is not chosen, and the choice is not settled."""
    truth = {(1, "app"): 1000.0, (2, "app"): 500.0, (1, "cpu:2@100"): 1000.0}
    found = only(grid(truth))
    assert found.loaded and found.loaded.setting.threads == 1
    assert found.loaded.reason == "2 threads was not measured under every load"
    assert found.text.endswith("; nothing was swept when idle")


def test_runners_devices_and_models_are_never_mixed() -> None:
    """Each has a recommendation of its own, in the order of the cells."""
    cells = [make_cell(device=device, runner=runner) for device in ("a", "b") for runner in ("x", "y")]
    found = recommend(summarise([make_trial(cell=cell, block=block) for cell in cells for block in range(2)]))
    assert [(item.device, item.runner) for item in found] == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]


def test_numbers_that_cannot_be_trusted_lead_but_settle_nothing() -> None:
    """A contaminated cell is not passed over in favour of a slower one, nor is it called settled."""
    trials = grid({(1, "idle"): 1000, (2, "idle"): 500})
    rejected = [
        replace(trial, outcome=Outcome.REJECTED, reason="other programs used the CPUs")
        for trial in grid({(2, "idle"): 500}, blocks=18)[12:]
    ]
    found = only([*trials, *rejected])
    assert found.idle and found.idle.setting.threads == 2
    assert found.idle.reason == "what was measured of it is contaminated"


def test_a_pinned_reference_is_nobodys_choice() -> None:
    """It is measured to watch the device, not to be used."""
    trials = grid(CROSSING)
    reference = {trial.cell.id for trial in trials if trial.cell.threads == 4}
    found = recommend(summarise(trials), reference)[0]
    assert found.idle and found.idle.setting.threads == 2
    assert recommend(summarise(trials), {trial.cell.id for trial in trials}) == ()
