"""Ratios between cells, against grids with a known truth."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.analysis.contrast import load_contrasts, sweeps, thread_contrasts
from orchestrator.analysis.estimate import METRICS, estimate_cell
from orchestrator.analysis.summary import RunSummary, summarise
from orchestrator.trial import Outcome, Trial
from tests.unit.trial_factory import make_cell, make_grid, make_trial

TRUTH = {(1, "idle"): 1000.0, (2, "idle"): 520.0, (1, "app"): 1050.0, (2, "app"): 1300.0}
GRIDS = 150


def by_cell(trials: list[Trial]) -> list[list[Trial]]:
    return [[trial for trial in trials if trial.cell == cell] for cell in dict.fromkeys(t.cell for t in trials)]


@pytest.fixture(scope="module")
def drifting() -> RunSummary:
    """Many grids whose blocks drift by 20 %, while neighbours in a block differ by 1 %."""
    rng = np.random.default_rng(7)
    trials: list[Trial] = []
    for index in range(GRIDS):
        trials += make_grid(TRUTH, blocks=10, rng=rng, block_sd=0.2, samples=60, model=f"m{index}")
    return summarise(trials)


@pytest.mark.parametrize(("load", "truth"), [("idle", 1000 / 520), ("app", 1050 / 1300)])
def test_speedup_is_recovered_under_drift(drifting: RunSummary, load: str, truth: float) -> None:
    """Pairing inside the block cancels the drift: within 2 % of the truth, the interval holding it as often as
    it promises."""
    found = [
        crossover.contrast.ratio.inverse
        for crossover in drifting.crossovers
        if crossover.contrast.cell.load == load and crossover.contrast.metric == "p50"
    ]
    assert len(found) == GRIDS
    assert all(ratio.value == pytest.approx(truth, rel=0.03) for ratio in found)
    assert np.median([ratio.half_width for ratio in found]) < 0.02
    assert np.mean([ratio.low <= truth <= ratio.high for ratio in found]) >= 0.95 - 3 * (0.0475 / GRIDS) ** 0.5


@pytest.mark.parametrize(("threads", "truth"), [(1, 1.05), (2, 2.5)])
@pytest.mark.parametrize("metric", METRICS)
def test_load_sensitivity_is_recovered_under_drift(
    drifting: RunSummary, threads: int, truth: float, metric: str
) -> None:
    """Loaded over idle, paired by block, for every metric."""
    found = [
        contrast.ratio
        for contrast in drifting.load_sensitivities
        if contrast.cell.threads == threads and contrast.metric == metric
    ]
    assert len(found) == GRIDS
    assert np.median([ratio.value for ratio in found]) == pytest.approx(truth, rel=0.005)
    assert np.mean([ratio.low <= truth <= ratio.high for ratio in found]) >= 0.95 - 3 * (0.0475 / GRIDS) ** 0.5


def test_missing_blocks_are_not_paired() -> None:
    """A ratio uses only the blocks in which both cells were measured."""
    one, two = make_cell(threads=1), make_cell(threads=2)
    trials = [make_trial(cell=one, block=block, median_us=1000.0) for block in range(8)]
    trials += [make_trial(cell=two, block=block, median_us=500.0) for block in range(3, 12)]
    trials += [make_trial(cell=two, block=2, median_us=9.0, outcome=Outcome.REJECTED)]
    swept = sweeps(estimate_cell(group) for group in by_cell(trials))
    ratio = thread_contrasts(swept)[0].ratio
    assert ratio.n == 5
    assert ratio.value == pytest.approx(0.5)


def test_cells_that_never_met_have_no_ratio() -> None:
    """Without a common block there is no number, and the note says why."""
    trials = [make_trial(cell=make_cell(threads=1), block=0), make_trial(cell=make_cell(threads=2), block=1)]
    ratio = thread_contrasts(sweeps(estimate_cell(group) for group in by_cell(trials)))[0].ratio
    assert (ratio.value, ratio.low, ratio.n) == (None, None, 0)
    assert ratio.note == "no block has both cells measured"


def test_base_is_the_fewest_threads_swept() -> None:
    """One thread if it was swept, else the smallest count."""
    trials = make_grid({(4, "idle"): 300.0, (2, "idle"): 500.0}, blocks=6, rng=np.random.default_rng(1))
    swept = sweeps(estimate_cell(group) for group in by_cell(trials))
    assert [sweep.base_threads for sweep in swept] == [2]
    assert {contrast.base.threads for contrast in thread_contrasts(swept)} == {2}


def test_only_what_differs_in_threads_or_load_is_contrasted() -> None:
    """Another model file, runner, delegate, affinity or device is another sweep."""
    others = [
        make_cell(threads=2, model_sha256="ef" * 32),
        make_cell(threads=2, runner="benchmark_model"),
        make_cell(threads=2, runner_sha256=None),
        make_cell(threads=2, delegate="gpu"),
        make_cell(threads=2, affinity="f0"),
        make_cell(threads=2, device="pi5"),
    ]
    trials = [make_trial(cell=cell) for cell in [make_cell(), *others]]
    swept = sweeps(estimate_cell(group) for group in by_cell(trials))
    assert len(swept) == 7
    assert thread_contrasts(swept) == []
    assert load_contrasts(swept) == []


def test_arms_are_never_mixed() -> None:
    """Baseline and candidate of one cell are two sweeps, each paired with its own."""
    trials = [
        make_trial(cell=make_cell(threads=threads), block=block, arm=arm, median_us=latency / threads)
        for arm, latency in (("baseline", 1000.0), ("candidate", 2000.0))
        for threads in (1, 2)
        for block in range(6)
    ]
    found = summarise(trials)
    p50_us = [(cell.estimate.arm, cell.estimate.latency_us["p50"].value) for cell in found.cells]
    assert p50_us == [
        ("baseline", pytest.approx(1000)),
        ("baseline", pytest.approx(500)),
        ("candidate", pytest.approx(2000)),
        ("candidate", pytest.approx(1000)),
    ]
    assert all(crossover.contrast.ratio.value == pytest.approx(0.5) for crossover in found.crossovers)
