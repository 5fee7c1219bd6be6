"""How far to trust a cell: each cause is found where it is, and clean cells stay trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orchestrator.analysis.trust import TrustVerdict, verdict_of, worse
from orchestrator.exchange import as_line, read_lines
from orchestrator.trial import Outcome, Summary, Trial
from tests.unit.disturbed_cells import cell_trials, with_findings, with_telemetry
from tests.unit.trial_factory import make_cell, make_trial

Draw = Callable[[np.random.Generator], list[Trial]]
CELLS = 25


def causes(trials: list[Trial]) -> set[str]:
    return {reason.cause for reason in verdict_of(trials).reasons}


def clocks(*khz: int) -> list[Mapping[str, Any]]:
    return [{"t_ms": [0, 100], "freq_khz": [[value, 300_000], [value, 300_000]]} for value in khz]


DISTURBED: dict[str, tuple[str, TrustVerdict, Draw]] = {
    "drift of 8 % over 12 blocks": (
        "thermal-drift",
        TrustVerdict.CONTAMINATED,
        lambda rng: cell_trials(rng, drift=0.08),
    ),
    "drift of 6 % inside each trial": (
        "thermal-drift",
        TrustVerdict.CONTAMINATED,
        lambda rng: cell_trials(rng, drift_inside=0.06),
    ),
    "two levels 10 % apart": ("bimodal", TrustVerdict.NOISY, lambda rng: cell_trials(rng, blocks=18, second_mode=0.1)),
    "a quarter of the trials under a burst": (
        "other-cpu",
        TrustVerdict.CONTAMINATED,
        lambda rng: cell_trials(rng, bursts=0.3),
    ),
    "15 % of the inferences interrupted": (
        "other-cpu",
        TrustVerdict.CONTAMINATED,
        lambda rng: cell_trials(rng, interrupted=0.15),
    ),
    "neighbouring inferences alike (0.95)": (
        "autocorrelation",
        TrustVerdict.NOISY,
        lambda rng: cell_trials(rng, sample_correlation=0.95),
    ),
    "trials that spread by 15 %": ("spread", TrustVerdict.NOISY, lambda rng: cell_trials(rng, trial_sd=0.15)),
    "five blocks": ("too-few-trials", TrustVerdict.INSUFFICIENT, lambda rng: cell_trials(rng, blocks=5)),
}


@pytest.mark.parametrize(("cause", "verdict", "draw"), DISTURBED.values(), ids=DISTURBED)
def test_a_disturbance_of_stated_strength_is_found(cause: str, verdict: TrustVerdict, draw: Draw) -> None:
    """In nine cells of ten, from latencies alone, and the verdict is the one the cause calls for, or worse."""
    rng = np.random.default_rng(11)
    found = [verdict_of(draw(rng)) for _ in range(CELLS)]
    assert sum(cause in {reason.cause for reason in trust.reasons} for trust in found) >= 0.85 * CELLS
    order = list(TrustVerdict)
    assert sum(order.index(trust.verdict) >= order.index(verdict) for trust in found) >= 0.85 * CELLS


@pytest.mark.parametrize("blocks", [8, 12, 18])
def test_clean_cells_are_trusted(blocks: int) -> None:
    """With 1 and 2 % between trials at most one clean cell in twenty is doubted; the bench has the figures."""
    rng = np.random.default_rng(blocks)
    verdicts = Counter(
        verdict_of(cell_trials(rng, blocks=blocks, trial_sd=sd)).verdict for sd in (0.01, 0.02) for _ in range(40)
    )
    assert verdicts[TrustVerdict.TRUSTED] >= 0.93 * verdicts.total()


def test_slow_change_from_block_to_block_is_noticed_in_long_runs() -> None:
    """A correlation of 0.9 between neighbours, 40 blocks: seen as autocorrelation or as drift."""
    rng = np.random.default_rng(2)
    found = [causes(cell_trials(rng, blocks=40, trial_sd=0.02, correlation=0.9)) for _ in range(20)]
    assert sum(bool(cause & {"autocorrelation", "thermal-drift"}) for cause in found) >= 16


@pytest.mark.parametrize(
    ("rule", "cause"),
    [
        ("other-cpu", "other-cpu"),
        ("steal", "other-cpu"),
        ("frequency", "frequency-change"),
        ("not-cool", "thermal-drift"),
        ("hold-not-restored", "warned"),
    ],
)
def test_findings_of_trials_speak(rule: str, cause: str) -> None:
    """A warning in a quarter of the trials is no accident; in one of twelve it is."""
    trials = cell_trials(np.random.default_rng(1))
    assert causes(with_findings(trials, rule, 0.25)) == {cause}
    assert causes(with_findings(trials, rule, 1 / 12)) == set()


def test_what_nobody_could_check_does_not_make_a_latency_wrong() -> None:
    """benchmark_model does not say how many threads it uses: that is worth knowing, and no contamination."""
    trials = cell_trials(np.random.default_rng(1))
    assert verdict_of(with_findings(trials, "threads-unverified", 1.0)).verdict is TrustVerdict.TRUSTED


def test_clocks_that_differ_between_trials_are_found_in_telemetry() -> None:
    """A third of the trials at a clock 10 % lower; one per cent is nothing."""
    trials = cell_trials(np.random.default_rng(1))
    slow = with_telemetry(trials, clocks(*[2_000_000] * 8, *[1_800_000] * 4))
    assert causes(slow) == {"frequency-change"}
    assert causes(with_telemetry(trials, clocks(*[2_000_000] * 8, *[1_980_000] * 4))) == set()


def test_drift_says_by_how_much_the_device_became_warmer() -> None:
    """Temperature stands beside the drift where it was recorded."""
    trials = cell_trials(np.random.default_rng(3), drift=0.1)
    hotter = with_telemetry(trials, [{"temp_mc": [[30_000 + 1000 * block]]} for block in range(12)])
    assert "+8 degrees warmer" in verdict_of(hotter).reasons[0].text


def test_a_load_that_was_not_there_is_found() -> None:
    """By evidence of measured trials, and by rejections."""
    short = {"loads": [{"phase": "settle", "threads": [{"offered": 0.5, "achieved": 0.2}]}]}
    trials = cell_trials(np.random.default_rng(1), load="cpu:1@50")
    assert causes([replace(trial, evidence=short) for trial in trials]) == {"load-not-achieved"}
    reason = "the load cpu:1@50 held 20 % of a CPU where 50 % was asked, before the model started"
    lost = [replace(trial, outcome=Outcome.REJECTED, reason=reason) for trial in trials[:4]]
    assert causes([*lost, *trials[4:]]) == {"load-not-achieved"}


def test_clocks_that_jump_are_found() -> None:
    """Inferences longer than their trial, telemetry that goes back, and a block that began before the one before."""
    trials = cell_trials(np.random.default_rng(1), started=True)
    assert causes(trials) == set()
    assert causes([replace(trials[0], duration_s=0.01), *trials[1:]]) == {"clock-jump"}
    assert causes([replace(trials[0], telemetry={"t_ms": [0, 100, 50]}), *trials[1:]]) == {"clock-jump"}
    assert causes([*trials[:-1], replace(trials[-1], started_at="2026-11-18T01:00:00Z")]) == {"clock-jump"}


def test_a_summary_with_an_average_far_above_its_median_was_disturbed() -> None:
    """All that a tool without samples can tell; under a load it is the load."""
    summary = Summary(count=50, median=1000.0, avg=1100.0, p95=1400.0)
    for load, expected in (("idle", {"other-cpu"}), ("cpu:1@100", set())):
        trials = [make_trial(cell=make_cell(load=load), block=block, summary=summary) for block in range(8)]
        assert causes(trials) == expected


def test_it_works_on_a_file_with_nothing_but_samples() -> None:
    """An imported line has no telemetry, no findings and no times."""
    lines = [as_line(trial) for trial in cell_trials(np.random.default_rng(4), drift=0.1)]
    assert causes(list(read_lines(lines, "file"))) == {"thermal-drift"}


@pytest.mark.parametrize(
    "telemetry", [{"freq_khz": "fast"}, {"freq_khz": [None, 3]}, {"temp_mc": [[None]]}, {"t_ms": 7}, {"temp_mc": {}}]
)
def test_strange_telemetry_of_other_tools_is_passed_over(telemetry: dict[str, Any]) -> None:
    """What cannot be read says nothing."""
    trials = [replace(trial, telemetry=telemetry) for trial in cell_trials(np.random.default_rng(1))]
    assert verdict_of(trials).verdict is TrustVerdict.TRUSTED


def test_every_reason_has_a_remedy_and_json() -> None:
    """The worst reason comes first and gives the verdict."""
    trust = verdict_of(cell_trials(np.random.default_rng(1), blocks=5, interrupted=0.5))
    content = trust.as_json()
    assert content["verdict"] == "insufficient"
    assert content["reasons"][0]["cause"] == "too-few-trials"
    assert all(reason["remedy"] for reason in content["reasons"])


def test_the_worse_of_two_counts() -> None:
    """A comparison is as good as its worse side."""
    rng = np.random.default_rng(1)
    clean, few = verdict_of(cell_trials(rng)), verdict_of(cell_trials(rng, blocks=3))
    assert worse(clean, few) == worse(few, clean) == few


def test_no_trials_are_too_few() -> None:
    """A cell that was never measured is insufficient, not an error."""
    assert verdict_of([make_trial(outcome=Outcome.SKIPPED)]).verdict is TrustVerdict.INSUFFICIENT
    assert verdict_of([]).verdict is TrustVerdict.INSUFFICIENT
