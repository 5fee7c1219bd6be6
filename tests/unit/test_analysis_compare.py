"""Comparisons with known truth: what is said, how often it is wrong, and how much is found."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.calibration import SessionNoise, SessionNoises
from orchestrator.analysis.compare import compare
from orchestrator.analysis.comparison import Change, Comparison
from orchestrator.analysis.reduction import Reduced, reduced
from orchestrator.analysis.sides import Matched, matched
from orchestrator.errors import ComparisonRefused
from orchestrator.trial import Outcome, Summary, Trial
from tests.unit.comparison_models import (
    MODELS,
    NOTHING,
    Floats,
    Truth,
    calm,
    interleaved,
    matching,
    one_after_the_other,
    reduced_trial,
)
from tests.unit.test_analysis_trend import autoregressive
from tests.unit.trial_factory import make_cell, make_trial

TRACES = Path(__file__).parents[1] / "data" / "traces" / "contended.csv"
DEFINITE = {Change.SLOWER, Change.FASTER, Change.UNSTABLE_SLOWER}


def quiet(rng: np.random.Generator, trials: int) -> Floats:
    return rng.normal(0, 0.01, trials)


def silent(rng: np.random.Generator, trials: int) -> Floats:
    return rng.normal(0, 0.002, trials)


def judged(*cells: Matched, noises: SessionNoises | None = None, is_one_run: bool = True) -> list[Comparison]:
    return compare(matching(list(cells)), is_one_run=is_one_run, noises=noises or SessionNoises())


def p50(cell: Matched, *, is_one_run: bool = True) -> Comparison:
    return judged(cell, is_one_run=is_one_run)[0]


@cache
def rates(model: str, effect: float, *, repeats: int = 120) -> dict[str, float]:
    """How often, over comparisons of ten blocks, each verdict is given by p50, and the interval holds the truth."""
    rng = np.random.default_rng([list(MODELS).index(model), round(100 * effect)])
    counts: Counter[str] = Counter()
    for _ in range(repeats):
        rows = judged(interleaved(rng, MODELS[model], blocks=10, truth=Truth(effect)))
        counts[str(rows[0].verdict)] += 1
        counts["any false"] += any(row.verdict in DEFINITE for row in rows)
        counts["any same"] += any(row.verdict is Change.SAME for row in rows)
        for row in rows:
            assert row.low is not None
            assert row.high is not None
            counts["covered"] += row.low <= np.log1p(effect) <= row.high
    return {name: count / repeats / (3 if name == "covered" else 1) for name, count in counts.items()}


class TestRates:
    """Bounds lie three standard errors off what is promised, so that a seed cannot fail them by chance."""

    @pytest.mark.parametrize("model", MODELS)
    def test_nothing_changed_is_seldom_called_a_change(self, model: str) -> None:
        """By any of the three metrics together: at most one comparison in twenty."""
        assert rates(model, 0.0).get("any false", 0.0) <= 0.05

    @pytest.mark.parametrize("model", ["calm", "drift", "autocorrelated", "sessions"])
    def test_five_percent_are_found(self, model: str) -> None:
        """Ten interleaved blocks, noise up to 2 % a trial: at least nine in ten."""
        assert rates(model, 0.05).get("slower", 0.0) >= 0.90

    @pytest.mark.parametrize("model", MODELS)
    def test_same_is_never_said_of_five_percent(self, model: str) -> None:
        """By no metric."""
        assert rates(model, 0.05).get("any same", 0.0) == 0.0

    @pytest.mark.parametrize("effect", [0.0, 0.05])
    def test_intervals_hold_the_truth(self, effect: float) -> None:
        """Over all models together at least 94 in a hundred; a single model is too few comparisons to tell."""
        assert np.mean([rates(model, effect)["covered"] for model in MODELS]) >= 0.94

    def test_a_hundred_cells_give_no_false_alarm(self) -> None:
        """The rate of false alarms is that of the whole family: here 12 families of 100 cells and three metrics."""
        rng = np.random.default_rng(8)
        cells = [make_cell(model=f"model{index}") for index in range(100)]
        noises = list(MODELS.values())
        alarms = 0
        for _ in range(12):
            family = [interleaved(rng, noises[i % 7], blocks=10, cell=cell) for i, cell in enumerate(cells)]
            alarms += any(row.verdict in DEFINITE for row in judged(*family))
        assert alarms <= 3

    def test_a_few_changes_among_a_hundred_cells_are_found(self) -> None:
        """Twelve blocks and 1 % noise find all five, and nothing else."""
        rng = np.random.default_rng(9)

        cells = [
            interleaved(rng, quiet, blocks=12, truth=Truth(0.05 if i < 5 else 0.0), cell=make_cell(model=f"m{i:02}"))
            for i in range(100)
        ]
        rows = [row for row in judged(*cells) if row.metric == "p50"]
        assert {row.cell.model for row in rows if row.verdict in DEFINITE} == {f"m{i:02}" for i in range(5)}

    def test_real_contended_traces(self) -> None:
        """Windows of ten blocks of identical builds, labels swapped at random; one made 5 % slower is found by p50 in
        at least three of four, and false alarms stay rare."""
        rng = np.random.default_rng(10)
        found = false = total = 0
        for pairs in _traces().values():
            for _ in range(12):
                start = int(rng.integers(0, len(pairs) - 9))
                window = pairs[start : start + 10]
                false += any(row.verdict in DEFINITE for row in judged(_from_traces(rng, window, 0.0)))
                found += p50(_from_traces(rng, window, 0.05)).verdict is Change.SLOWER
                total += 1
        assert found >= 0.75 * total
        assert false <= 0.05 * total

    def test_a_part_that_got_slower_is_found_with_enough_blocks(self) -> None:
        """Three in ten processes 40 % slower, 30 blocks: called unstable or slower, and never the same."""
        rng = np.random.default_rng(11)
        truth = Truth(part=0.3, part_effect=0.4)

        verdicts = [p50(interleaved(rng, quiet, blocks=30, truth=truth)).verdict for _ in range(30)]
        assert verdicts.count(Change.UNSTABLE_SLOWER) >= 24
        assert Change.SAME not in verdicts

    def test_sessions_apart_are_suspected_at_most(self) -> None:
        """Two days give no definite verdict: the unchanged are seldom suspected, the doubled always."""
        rng = np.random.default_rng(12)
        unchanged = [p50(one_after_the_other(rng, calm, blocks=10), is_one_run=False).verdict for _ in range(100)]
        doubled = [
            p50(one_after_the_other(rng, calm, blocks=10, truth=Truth(1.0)), is_one_run=False).verdict
            for _ in range(10)
        ]
        assert set(doubled) == {Change.SUSPECTED_SLOWER}
        assert set(unchanged) <= {Change.UNKNOWN, Change.SUSPECTED_SLOWER, Change.SUSPECTED_FASTER}
        assert unchanged.count(Change.UNKNOWN) >= 92

    def test_ratios_that_wander_are_seldom_called_a_change(self) -> None:
        """Noise of 2 % that each side shares with its own neighbours (correlation 0.5), which pairing cannot cancel."""
        rng = np.random.default_rng(14)
        alarms = 0
        for _ in range(150):
            ratios = 0.02 * autoregressive(rng, 2, 10, 0.5)
            sides = [
                tuple(
                    reduced_trial(
                        make_cell(), arm="x", block=b, log_us=6 + ratios[arm, b], at_s=20.0 * b + 10 * (arm ^ b % 2)
                    )
                    for b in range(10)
                )
                for arm in range(2)
            ]
            alarms += p50(Matched(sides[0], sides[1], ())).verdict in DEFINITE
        assert alarms <= 0.05 * 150 + 3


class TestVerdicts:
    @pytest.mark.parametrize("blocks", [1, 2, 5])
    def test_below_six_blocks_there_is_no_verdict(self, blocks: int) -> None:
        """Not even for a doubled latency; the effect stands, the interval does not."""
        found = p50(interleaved(np.random.default_rng(1), calm, blocks=blocks, truth=Truth(1.0)))
        assert (found.verdict, found.low, found.p_adjusted) == (Change.UNKNOWN, None, None)
        assert found.effect == pytest.approx(np.log(2), abs=0.1)
        assert found.blocks_needed == 8 - blocks

    @pytest.mark.parametrize(("effect", "verdict"), [(1.0, Change.SLOWER), (-0.5, Change.FASTER)])
    def test_six_blocks_show_a_huge_change(self, effect: float, verdict: Change) -> None:
        """All six agree, and that is enough."""
        assert p50(interleaved(np.random.default_rng(2), calm, blocks=6, truth=Truth(effect))).verdict is verdict

    def test_constant_latencies(self) -> None:
        """A clock so coarse that all trials are equal: the same, or slower by exactly what it shows."""
        cell = make_cell()

        def side(level: float) -> tuple[Reduced, ...]:
            return tuple(
                reduced_trial(cell, arm="x", block=block, log_us=np.log(level), at_s=None) for block in range(10)
            )

        same = p50(Matched(side(100.0), side(100.0), ()))
        slower = p50(Matched(side(100.0), side(110.0), ()))
        assert (same.verdict, same.low, same.high) == (Change.SAME, 0.0, 0.0)
        assert slower.verdict is Change.SLOWER
        assert slower.effect == pytest.approx(np.log(1.1))

    def test_a_small_real_change_is_the_same(self) -> None:
        """1 % slower with 0.2 % noise is proven, and proven not to matter."""

        found = p50(interleaved(np.random.default_rng(3), silent, blocks=10, truth=Truth(0.01)))
        assert found.verdict is Change.SAME
        assert found.low is not None
        assert found.low > 0

    def test_blocks_off_to_one_side_are_not_the_same(self) -> None:
        """Nine blocks agree and two are 40 % slower: that may be a part of the processes, and it is said."""
        whole = interleaved(np.random.default_rng(4), silent, blocks=11)
        slow = [
            reduced_trial(new.cell, arm="x", block=new.block, log_us=np.log(1120.0), at_s=new.started_s)
            for new in whole.new[:2]
        ]
        found = p50(Matched(whole.base, (*slow, *whole.new[2:]), ()))
        assert found.verdict is Change.UNKNOWN
        assert found.slower_blocks == 2
        assert any("a part of the processes may have changed" in note for note in found.notes)

    def test_drift_with_one_order_is_taken_off(self) -> None:
        """The base always first on a device that heats up by half: what is left is no change."""
        cell, rng = make_cell(), np.random.default_rng(5)
        levels = np.log(800) + np.linspace(0, np.log(1.5), 20) + rng.normal(0, 0.003, 20)
        base, new = (
            tuple(
                reduced_trial(cell, arm="x", block=b, log_us=levels[2 * b + a], at_s=20.0 * b + 10 * a, position=a)
                for b in range(10)
            )
            for a in range(2)
        )
        found = p50(Matched(base, new, ()))
        assert found.verdict is Change.SAME
        assert any("drift was taken off" in note for note in found.notes)

    def test_missing_p95_is_said(self) -> None:
        """Trials too short for a p95 give a row that says so, and the other metrics their verdicts."""
        whole = interleaved(np.random.default_rng(6), calm, blocks=8, truth=Truth(0.5))
        base, new = (
            tuple(replace(trial, latencies_us={**trial.latencies_us, "p95": None}) for trial in side)
            for side in (whole.base, whole.new)
        )
        rows = judged(Matched(base, new, ()))
        assert [str(row.verdict) for row in rows] == ["slower", "slower", "unknown"]
        assert rows[2].n_new == 0
        assert "8 of 8 blocks give no p95: a p95 needs 60 samples" in rows[2].notes


class TestSessionNoise:
    def test_calibration_narrows_what_is_assumed(self) -> None:
        """A device known to be steady from day to day needs less to be suspected."""
        cell = one_after_the_other(np.random.default_rng(13), calm, blocks=12, truth=Truth(0.07))
        steady = SessionNoises([SessionNoise("pixel8", "any", 0.002, 12)])
        assumed, known = (judged(cell, noises=noises, is_one_run=False)[0] for noises in (SessionNoises(), steady))
        assert known.high is not None and known.low is not None and assumed.high is not None and assumed.low is not None
        assert known.high - known.low < 0.5 * (assumed.high - assumed.low)
        assert any("noise between sessions 3.0 % (assumed)" in note for note in assumed.notes)
        assert any("0.2 % (calibrated for the device)" in note for note in known.notes)

    def test_the_family_comes_before_the_device_and_the_user_before_both(self) -> None:
        """What is known best counts."""
        cell = make_cell(threads=2)
        known = [
            SessionNoise("pixel8", "any", 0.02, 9),
            SessionNoise("pixel8", "xnnpack, threads 2, load idle", 0.01, 9),
            SessionNoise("pi5", "xnnpack, threads 2, load idle", 0.5, 9),
        ]
        assert SessionNoises(known).sd_log(cell) == (0.01, "calibrated")
        assert SessionNoises(known[:1]).sd_log(cell) == (0.02, "calibrated for the device")
        assert SessionNoises(known, override=0.1).sd_log(cell) == (0.1, "given")
        assert SessionNoises().sd_log(cell) == (0.03, "assumed")


Pair = tuple[tuple[float, float, float], tuple[float, float, float]]


@cache
def _traces() -> dict[tuple[str, str, str], list[Pair]]:
    arms: dict[tuple[str, str, str], dict[tuple[int, str], tuple[float, float, float]]] = {}
    with TRACES.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            place = arms.setdefault((row["model"], row["threads"], row["load"]), {})
            place[int(row["block"]), row["arm"]] = float(row["p50_us"]), float(row["mean_us"]), float(row["p95_us"])
    return {key: [(found[block, "A"], found[block, "B"]) for block in range(80)] for key, found in arms.items()}


def _from_traces(rng: np.random.Generator, pairs: list[Pair], effect: float) -> Matched:
    cell = make_cell()
    base, new = [], []
    for block, pair in enumerate(pairs):
        swap = int(rng.integers(2))
        for arm, side in ((0, base), (1, new)):
            p50_us, mean_us, p95_us = pair[arm ^ swap]
            shift = np.log1p(effect) * arm
            trial = reduced_trial(
                cell,
                arm="x",
                block=block,
                log_us=np.log(p50_us) + shift,
                at_s=20.0 * block + 10.0 * (arm ^ swap),
                mean=mean_us / p50_us,
                p95=p95_us / p50_us,
            )
            side.append(trial)
    return Matched(tuple(base), tuple(new), ())


def test_truth_of_nothing() -> None:
    """The default truth of a simulated cell is that nothing changed."""
    assert not NOTHING.shifts(np.random.default_rng(1), 5).any()


any_trial = st.builds(
    make_trial,
    cell=st.builds(make_cell, threads=st.sampled_from([1, 2])),
    arm=st.sampled_from(["baseline", "candidate", "candidate"]),
    block=st.integers(0, 9),
    position=st.integers(0, 3),
    run=st.sampled_from(["run-1", "run-1", "run-2"]),
    median_us=st.sampled_from([1e-3, 1.0, 800.0, 801.0, 1e9]),
    samples=st.sampled_from([0, 1, 3, 60]),
    outcome=st.sampled_from([Outcome.MEASURED, Outcome.MEASURED, Outcome.MEASURED, Outcome.REJECTED]),
    summary=st.none() | st.builds(Summary, count=st.integers(0, 99), median=st.none() | st.floats()),
)


@settings(max_examples=60, deadline=None)
@given(trials=st.lists(any_trial, min_size=1, max_size=60), is_one_run=st.booleans())
def test_any_trials_give_strict_json(trials: list[Trial], is_one_run: bool) -> None:
    """Whatever a file brings: plain JSON, an interval round every definite verdict, and none below six blocks."""
    light = list(reduced(trials))
    base, new = ([trial for trial in light if trial.arm == arm] for arm in ("baseline", "candidate"))
    try:
        found = matched(base, new, ignored=())
    except ComparisonRefused:
        return
    for row in compare(found, is_one_run=is_one_run, noises=SessionNoises()):
        content = json.loads(json.dumps(row.as_json(), allow_nan=False))
        assert content == row.as_json()
        if row.verdict is not Change.UNKNOWN:
            assert min(row.n_base, row.n_new) >= 6
            assert content["ci_low_percent"] <= content["effect_percent"] <= content["ci_high_percent"]
        assert is_one_run or row.verdict not in {*DEFINITE, Change.SAME}
