"""The summary of a run as a whole, and its JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.summary import summarise
from orchestrator.trial import Outcome, Summary, Trial
from tests.unit.trial_factory import make_cell, make_grid, make_trial

CELL_KEYS = {
    *("device", "model", "model_sha256", "runner", "runner_sha256", "delegate", "threads", "affinity", "load"),
    *("id", "arm", "outcomes", "latency_us", "half_width", "variability", "trust", "reasons", "notes"),
    *("init_us", "first_us", "warmup_avg_us", "copy_in_us", "copy_out_us"),
    *("memory_peak_kb", "memory_init_mb", "memory_overall_mb", "process_maxrss_kb"),
}
RATIO_KEYS = {
    *("device", "model", "runner", "delegate", "affinity", "arm", "load", "threads", "metric"),
    *("ratio", "low", "high", "n", "note", "cell", "base_cell"),
}
SECTIONS = {
    *("cells", "speedups", "load_sensitivity", "crossover", "answers"),
    *("remarks", "waits", "variance", "sustained", "rankings"),
}


def as_plain_json(trials: list[Trial]) -> dict[str, Any]:
    """The summary through a strict encoder: a nan, an enum key or a numpy number would fail here."""
    content = summarise(trials).as_json()
    decoded = json.loads(json.dumps(content, allow_nan=False))
    assert decoded == content, "not plain JSON types"
    return content


def test_json_is_complete() -> None:
    """Every section has its fields, in plain types."""
    truth = {(n, load): 1000.0 / n for n in (1, 2) for load in ("idle", "app")}
    content = as_plain_json(make_grid(truth, blocks=6, rng=np.random.default_rng(1)))
    assert set(content) == SECTIONS
    assert {frozenset(cell) for cell in content["cells"]} == {frozenset(CELL_KEYS)}
    assert set(content["cells"][0]["latency_us"]) == {"p50", "mean", "p90", "p95", "p99"}
    assert set(content["cells"][0]["latency_us"]["p50"]) == {"value", "low", "high", "n", "note"}
    assert set(content["cells"][0]["outcomes"]) == {str(outcome) for outcome in Outcome}
    assert {frozenset(row) for row in content["load_sensitivity"]} == {frozenset(RATIO_KEYS)}
    assert {frozenset(row) for row in content["speedups"]} == {frozenset(RATIO_KEYS | {"base_threads"})}
    verdict_keys = RATIO_KEYS | {"base_threads", "verdict", "blocks_needed"}
    assert {frozenset(row) for row in content["crossover"]} == {frozenset(verdict_keys)}
    assert [len(content[section]) for section in ("speedups", "load_sensitivity", "crossover")] == [6, 6, 6]
    assert set(content["answers"][0]["by_metric"]) == {"p50", "mean", "p95"}


def test_speedup_is_the_inverse_of_the_ratio_judged() -> None:
    """The table of speed-ups and that of verdicts can never contradict each other."""
    truth = {(n, "idle"): 1000.0 / n for n in (1, 2)}
    content = as_plain_json(make_grid(truth, blocks=8, rng=np.random.default_rng(2)))
    for speedup, verdict in zip(content["speedups"], content["crossover"], strict=True):
        assert speedup["ratio"] == pytest.approx(1 / verdict["ratio"])
        assert speedup["low"] == pytest.approx(1 / verdict["high"])


def test_order_is_stable_with_idle_first_and_numbers_by_size() -> None:
    """Cells come by device, model, load and threads, in whatever order the trials were made."""
    cells = [
        make_cell(device=device, load=load, threads=threads)
        for device in ("pi5", "pixel8")
        for load in ("idle", "app", "cpu:2@50", "cpu:2@100", "cpu:10@50")
        for threads in (1, 2, 16)
    ]
    trials = [make_trial(cell=cell) for cell in cells]
    shuffled = np.random.default_rng(1).permutation(len(trials))
    found = summarise([trials[index] for index in shuffled])
    assert [cell.cell for cell in found.cells] == cells


def test_summary_does_not_depend_on_the_order_of_trials() -> None:
    """With one trial a cell and block, the order in which they are read changes nothing at all."""
    trials = make_grid({(n, "idle"): 900.0 / n for n in (1, 2)}, blocks=9, rng=np.random.default_rng(3))
    assert summarise(trials).as_json() == summarise(trials[::-1]).as_json()


def test_no_trials_give_an_empty_summary() -> None:
    """Nothing in, nothing out."""
    assert as_plain_json([]) == {section: [] for section in SECTIONS}


def test_one_trial_gives_a_value_and_no_claim() -> None:
    """A single trial has a latency, no interval and no answer."""
    content = as_plain_json([make_trial(median_us=812.0)])
    p50 = content["cells"][0]["latency_us"]["p50"]
    assert p50["value"] == pytest.approx(812.0)
    assert (p50["low"], p50["n"], p50["note"]) == (None, 1, "an interval needs 6 blocks, there is 1")
    assert content["answers"][0]["answer"] == "unknown"


def test_run_with_nothing_measured_is_summarised() -> None:
    """All failed: counts and reasons stand, numbers are absent, answers are unknown."""
    cells = [make_cell(threads=threads, load=load) for threads in (1, 2) for load in ("idle", "app")]
    content = as_plain_json([make_trial(cell=cell, outcome=Outcome.FAILED, reason="exit 1") for cell in cells])
    assert [cell["outcomes"]["failed"] for cell in content["cells"]] == [1, 1, 1, 1]
    assert content["cells"][0]["reasons"] == [{"reason": "exit 1", "count": 1}]
    assert content["cells"][0]["latency_us"]["p50"]["value"] is None
    assert {row["verdict"] for row in content["crossover"]} == {"undecided"}
    assert {row["note"] for row in content["speedups"]} == {"no block has both cells measured"}
    assert content["answers"][0]["answer"] == "unknown"


def test_imported_summaries_are_enough() -> None:
    """Trials that carry the tool's summary only give estimates, ratios and an answer."""
    truth = {(1, "idle"): 1000.0, (2, "idle"): 500.0, (1, "app"): 1000.0, (2, "app"): 1500.0}
    trials = [
        make_trial(
            cell=make_cell(threads=threads, load=load, runner="benchmark_model", runner_sha256=None),
            block=block,
            summary=Summary(count=200, median=us + block, avg=us + 2 * block, p95=us * 1.1 + block),
        )
        for block in range(8)
        for (threads, load), us in truth.items()
    ]
    content = as_plain_json(trials)
    assert content["answers"][0]["answer"] == "yes"
    assert content["cells"][0]["notes"] == ["8 of 8 measured trials have the tool's own summary only, no samples"]


trial_strategy = st.builds(
    make_trial,
    cell=st.builds(make_cell, threads=st.sampled_from([1, 2, 4]), load=st.sampled_from(["idle", "app", "cpu:1@100"])),
    block=st.integers(0, 7),
    median_us=st.floats(1e-2, 1e8),
    samples=st.sampled_from([0, 1, 3, 59, 60]),
    outcome=st.sampled_from([Outcome.MEASURED, Outcome.MEASURED, Outcome.MEASURED, Outcome.FAILED]),
    metrics=st.dictionaries(st.sampled_from(["init_us", "first_us"]), st.floats() | st.none() | st.text(max_size=3)),
    summary=st.none()
    | st.builds(Summary, count=st.integers(0, 99), median=st.none() | st.floats(), avg=st.none() | st.floats()),
)


@settings(max_examples=40, deadline=None)
@given(trials=st.lists(trial_strategy, max_size=40))
def test_any_trials_give_strict_json(trials: list[Trial]) -> None:
    """Whatever an import brings, nan and infinities among it, the summary is complete and strict JSON."""
    content = as_plain_json(trials)
    assert sum(sum(cell["outcomes"].values()) for cell in content["cells"]) == len(trials)
    for row in content["crossover"]:
        assert row["n"] >= 6 or row["verdict"] == "undecided"


@settings(max_examples=10, deadline=None)
@given(power=st.integers(-6, 6))
def test_ratios_and_answers_have_no_unit(power: int) -> None:
    """A device a thousand times slower throughout gives the same ratios, verdicts and sentences."""

    def at(scale: float) -> dict[str, Any]:
        truth = {(1, "idle"): 900.0, (2, "idle"): 500.0, (1, "app"): 950.0, (2, "app"): 990.0}
        scaled = {key: value * scale for key, value in truth.items()}
        return as_plain_json(make_grid(scaled, blocks=8, rng=np.random.default_rng(5)))

    plain, scaled = at(1.0), at(2.0**power)
    assert [row["verdict"] for row in plain["crossover"]] == [row["verdict"] for row in scaled["crossover"]]
    assert [row["text"] for row in plain["answers"]] == [row["text"] for row in scaled["answers"]]
