"""Verdicts on thread counts and the answer over all loads, on simulated grids."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.crossover import Answer, Crossover, Verdict
from orchestrator.analysis.summary import RunSummary, summarise
from orchestrator.trial import Outcome, Trial
from tests.unit.trial_factory import make_cell, make_grid, make_trial

BASE_US = 1000.0
Grid = dict[tuple[int, str], float]


def grid_of(slowdowns: dict[str, float], threads: int = 2, base: int = 1) -> Grid:
    """Truth in which `threads` take `slowdowns[load]` times as long as the base."""
    return {
        (count, load): BASE_US * (factor if count == threads else 1.0)
        for load, factor in slowdowns.items()
        for count in (base, threads)
    }


def simulate(slowdowns: dict[str, float], *, blocks: int = 12, trial_sd: float = 0.01, seed: int = 1) -> RunSummary:
    rng = np.random.default_rng(seed)
    return summarise(make_grid(grid_of(slowdowns), blocks=blocks, rng=rng, trial_sd=trial_sd))


def p50_verdicts(summary: RunSummary) -> dict[str, Verdict]:
    return {
        crossover.contrast.cell.load: crossover.verdict
        for crossover in summary.crossovers
        if crossover.contrast.metric == "p50"
    }


def p50_crossovers(grids: list[list[Trial]]) -> list[Crossover]:
    found = summarise([trial for grid in grids for trial in grid]).crossovers
    return [crossover for crossover in found if crossover.contrast.metric == "p50"]


def test_verdicts_on_a_grid_with_known_truth() -> None:
    """Clear wins, clear losses and clear equality are called by their names, without assuming monotonicity."""
    found = simulate({"idle": 0.52, "cpu:1@50": 1.0, "cpu:1@100": 1.2, "cpu:2@100": 0.8})
    assert p50_verdicts(found) == {
        "idle": Verdict.WINS,
        "cpu:1@50": Verdict.SAME,
        "cpu:1@100": Verdict.LOSES,
        "cpu:2@100": Verdict.WINS,
    }
    assert all(crossover.blocks_needed == 0 for crossover in found.crossovers)


def test_answer_is_yes_where_threads_win_idle_and_lose_under_load() -> None:
    """The loads lost are listed one by one: a heavier load at which threads win again does not hide them."""
    found = simulate({"idle": 1 / 1.93, "cpu:1@100": 1 / 0.84, "cpu:2@100": 0.8}, trial_sd=0.001)
    (answer,) = found.answers
    assert answer.answer is Answer.YES
    assert answer.loads_lost == ("cpu:1@100",)
    assert answer.text == "2 threads are 1.93x as fast as 1 thread when idle and 0.84x under cpu:1@100 (p50)"
    assert {by_metric.answer for by_metric in answer.by_metric.values()} == {Answer.YES}


def test_answer_is_no_where_threads_never_lose() -> None:
    """Winning or equal under every load swept is a no, and the worst load is named."""
    (answer,) = simulate({"idle": 0.5, "app": 0.8, "mem:1": 0.625}, trial_sd=0.001).answers
    assert answer.answer is Answer.NO
    assert answer.loads_lost == ()
    assert answer.text == (
        "2 threads are 2.00x as fast as 1 thread when idle and lose under no load swept: at worst 1.25x under app (p50)"
    )


def test_answer_is_no_where_threads_do_not_pay_at_all() -> None:
    """Threads that are no faster even when idle have nothing to lose."""
    (answer,) = simulate({"idle": 1.0, "app": 1.5}, trial_sd=0.001).answers
    assert answer.answer is Answer.NO
    assert answer.text.startswith("2 threads are not faster than 1 thread when idle: 1.00x (p50)")


@pytest.mark.parametrize(
    ("slowdowns", "reason"),
    [
        ({"app": 1.5}, "idle was not swept"),
        ({"idle": 0.5}, "no load besides idle was swept"),
    ],
)
def test_answer_is_unknown_where_a_side_was_not_swept(slowdowns: dict[str, float], reason: str) -> None:
    """Without idle, or without a load, the question cannot be answered, and the reason is given."""
    (answer,) = simulate(slowdowns).answers
    assert answer.answer is Answer.UNKNOWN
    assert answer.text == f"unknown whether 2 threads beat 1 thread when idle and lose under load: {reason} (p50)"


def test_answer_is_unknown_where_one_thread_count_was_swept() -> None:
    """One thread count alone has nothing to be held against."""
    (answer,) = summarise([make_trial(cell=make_cell(load=load)) for load in ("idle", "app")]).answers
    assert (answer.answer, answer.threads) == (Answer.UNKNOWN, None)
    assert answer.text == "unknown whether more threads pay: only one thread count (1) was swept"


def test_answer_names_the_loads_in_doubt_and_the_blocks_they_need() -> None:
    """A load on the margin leaves the answer open and says how much more to measure."""
    (answer,) = simulate({"idle": 0.5, "app": 1.08}, trial_sd=0.06).answers
    assert answer.answer is Answer.UNKNOWN
    assert answer.by_metric["p50"].loads_undecided == ("app",)
    assert "undecided under app (0.9" in answer.text
    assert "more blocks" in answer.text


def test_answer_is_unknown_where_only_the_loss_is_sure() -> None:
    """A loss under load is half of the question: with idle undecided the answer stays open, the loss is listed."""
    (answer,) = simulate({"idle": 0.93, "app": 2.0}, blocks=8, trial_sd=0.05).answers
    assert answer.answer is Answer.UNKNOWN
    assert answer.loads_lost == ("app",)
    assert "undecided when idle (1." in answer.text
    assert "undecided under" not in answer.text


def test_answer_is_no_without_a_verdict_on_idle_where_no_load_is_lost() -> None:
    """Threads that lose under no load cannot have crossed over, whatever idle turns out to be."""
    (answer,) = simulate({"idle": 0.95, "app": 0.5}, blocks=8, trial_sd=0.02).answers
    assert answer.answer is Answer.NO
    assert answer.text.startswith("against 1 thread, 2 threads lose under no load swept: at worst ")
    assert "undecided when idle" in answer.text


def test_answer_is_open_where_a_load_was_swept_for_one_thread_count_only() -> None:
    """A load without its base cannot be judged and is named."""
    truth = {**grid_of({"idle": 0.5}), (2, "app"): 700.0}
    (answer,) = summarise(make_grid(truth, blocks=8, rng=np.random.default_rng(1))).answers
    assert answer.answer is Answer.UNKNOWN
    assert "undecided under app (not swept for both thread counts)" in answer.text


def test_metrics_that_disagree_are_mentioned() -> None:
    """Where the median says no and the mean says yes, the sentence says both: under load they do disagree."""
    rng = np.random.default_rng(3)
    trials = make_grid(grid_of({"idle": 0.5, "app": 0.7}), blocks=10, rng=rng)
    stutter = np.where(np.arange(80) % 5 == 0, 6.0, 1.0)
    spoilt = make_cell(threads=2, load="app")
    stuttering = [
        replace(trial, samples_us=tuple((np.array(trial.samples_us) * stutter).tolist()))
        if trial.cell == spoilt
        else trial
        for trial in trials
    ]
    (answer,) = summarise(stuttering).answers
    assert answer.by_metric["mean"].answer is Answer.YES
    assert answer.answer is Answer.NO
    assert answer.text.endswith("; by mean they lose under app; by p95 they lose under app")


def test_base_other_than_one_thread_is_named() -> None:
    """Where one thread was not swept the sentence names the count that stands for it."""
    truth = grid_of({"idle": 0.5, "app": 1.5}, threads=4, base=2)
    (answer,) = summarise(make_grid(truth, blocks=8, rng=np.random.default_rng(1))).answers
    assert answer.base_threads == 2
    assert "as fast as 2 threads when idle" in answer.text


def test_each_thread_count_gets_its_answer() -> None:
    """Two and four threads are two questions."""
    truth = {(threads, load): BASE_US / threads for threads in (1, 2, 4) for load in ("idle", "app")}
    truth[4, "app"] = 1500.0
    found = summarise(make_grid(truth, blocks=8, rng=np.random.default_rng(1)))
    assert [(answer.threads, answer.answer) for answer in found.answers] == [(2, Answer.NO), (4, Answer.YES)]


@pytest.mark.parametrize("blocks", [1, 3, 5])
def test_nothing_is_definite_below_six_blocks(blocks: int) -> None:
    """However clear it looks, five blocks decide nothing."""
    found = simulate({"idle": 0.1, "app": 10.0}, blocks=blocks, trial_sd=0.0001)
    assert {crossover.verdict for crossover in found.crossovers} == {Verdict.UNDECIDED}
    assert {crossover.blocks_needed for crossover in found.crossovers} == {8 - blocks}
    (answer,) = found.answers
    assert answer.answer is Answer.UNKNOWN
    assert f"({blocks} paired blocks, at least 6 are needed)" in answer.text


@pytest.mark.parametrize("blocks", [6, 8, 12])
def test_equal_thread_counts_are_hardly_ever_told_apart(blocks: int) -> None:
    """A/A: with no difference at all, `wins` and `loses` together stay at or below 5 %, noisy cells included."""
    rng = np.random.default_rng(blocks)
    trials: list[Trial] = []
    for index in range(120):
        noise = (0.01, 0.05, 0.2)[index % 3]
        truth = grid_of({"idle": 1.0})
        trials += make_grid(truth, blocks=blocks, rng=rng, trial_sd=noise, samples=20, model=f"m{index}")
    verdicts = Counter(p50.verdict for p50 in summarise(trials).crossovers if p50.contrast.metric == "p50")
    assert verdicts.total() == 120
    assert verdicts[Verdict.WINS] + verdicts[Verdict.LOSES] <= 6
    assert verdicts[Verdict.SAME] > 0


def test_a_loss_on_the_margin_is_seldom_called() -> None:
    """With the truth exactly on the margin, `loses` is called no more often than a 95 % interval may be wrong."""
    rng = np.random.default_rng(11)
    trials: list[Trial] = []
    for index in range(200):
        truth = grid_of({"idle": 1.05})
        trials += make_grid(truth, blocks=8, rng=rng, trial_sd=0.01, samples=20, model=f"m{index}")
    verdicts = Counter(p50.verdict for p50 in summarise(trials).crossovers if p50.contrast.metric == "p50")
    assert verdicts[Verdict.LOSES] <= 200 * 0.025 + 3 * (200 * 0.025) ** 0.5


def test_predicted_blocks_suffice_nine_times_in_ten() -> None:
    """A verdict that was said to need k more blocks is reached when a new run has that many more."""
    rng = np.random.default_rng(12)

    def equal(model: str, blocks: int) -> list[Trial]:
        return make_grid(grid_of({"idle": 1.0}), blocks=blocks, rng=rng, trial_sd=0.03, samples=20, model=model)

    first = p50_crossovers([equal(f"m{index}", 8) for index in range(120)])
    needed = {found.contrast.cell.model: found.blocks_needed for found in first if found.verdict is Verdict.UNDECIDED}
    assert len(needed) > 30
    assert all(more is None or more >= 1 for more in needed.values())
    again = p50_crossovers([equal(model, 8 + more) for model, more in needed.items() if more and more < 60])
    assert np.mean([found.verdict is Verdict.SAME for found in again]) >= 0.9


def test_a_ratio_on_the_margin_has_no_plan() -> None:
    """Where the estimate sits on the margin no number of blocks is promised."""
    rng = np.random.default_rng(13)
    noise = rng.permutation(np.linspace(-0.02, 0.02, 12))
    trials = [make_trial(cell=make_cell(threads=1), block=block, spread=0.0) for block in range(12)]
    trials += [
        make_trial(cell=make_cell(threads=2), block=block, median_us=1050.0 * float(np.exp(shift)), spread=0.0)
        for block, shift in enumerate(noise)
    ]
    p50 = summarise(trials).crossovers[0]
    assert (p50.verdict, p50.blocks_needed) == (Verdict.UNDECIDED, None)


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.MEASURED])
def test_trials_that_were_not_measured_decide_nothing(outcome: Outcome) -> None:
    """A rejected or failed trial never turns a verdict."""
    rng = np.random.default_rng(14)
    good = make_grid(grid_of({"idle": 0.5, "app": 1.0}), blocks=8, rng=rng)
    bad = [
        make_trial(cell=make_cell(threads=2, load="app"), block=block, median_us=9e5, outcome=outcome)
        for block in range(8)
    ]
    plain, mixed = summarise(good), summarise([*good, *bad])
    assert p50_verdicts(plain) == p50_verdicts(mixed)
    assert [answer.text for answer in plain.answers] == [answer.text for answer in mixed.answers]
