"""How well the judgements hold on simulated data whose truth is known."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from orchestrator.analysis.calibration import SessionNoises
from orchestrator.analysis.compare import compare
from orchestrator.analysis.comparison import Change
from orchestrator.analysis.power import blocks_needed, power_of
from orchestrator.analysis.trust import verdict_of
from orchestrator.plan import Measure
from tests.unit.comparison_models import Truth, interleaved, matching
from tests.unit.disturbed_cells import cell_trials
from tests.unit.sequential_models import MODELS, block_values, stopped

CELLS = 300
RUNS = 2000
COMPARISONS = 400
DISTURBANCES = {
    "clean": "",
    "drift 5 %": "thermal-drift",
    "drift 8 %": "thermal-drift",
    "drift 6 % in trials": "thermal-drift",
    "two levels 10 % apart": "bimodal",
    "bursts of 30 %": "other-cpu",
    "15 % interrupted": "other-cpu",
    "inferences alike 0.9": "autocorrelation",
    "blocks alike 0.85": "autocorrelation",
}
STRENGTHS: dict[str, dict[str, float]] = {
    "clean": {},
    "drift 5 %": {"drift": 0.05},
    "drift 8 %": {"drift": 0.08},
    "drift 6 % in trials": {"drift_inside": 0.06},
    "two levels 10 % apart": {"second_mode": 0.1},
    "bursts of 30 %": {"bursts": 0.3},
    "15 % interrupted": {"interrupted": 0.15},
    "inferences alike 0.9": {"sample_correlation": 0.9},
    "blocks alike 0.85": {"correlation": 0.85},
}


def causes_found() -> None:
    """Cells that are not trusted, and those where the cause is named, in % (300 cells of 80 samples, 1 % noise)"""
    rng = np.random.default_rng(1)
    print(f"{'':24}" + "".join(f"{blocks:>4} blocks        " for blocks in (8, 12, 18)))
    for name, cause in DISTURBANCES.items():
        shown = []
        for blocks in (8, 12, 18):
            counts: Counter[str] = Counter()
            for _ in range(CELLS):
                trust = verdict_of(cell_trials(rng, blocks=blocks, **STRENGTHS[name]))  # type: ignore[arg-type]  # floats only
                counts["doubted"] += not trust.is_trusted
                counts["named"] += cause in {reason.cause for reason in trust.reasons}
            named = f"named {100 * counts['named'] / CELLS:3.0f}" if cause else ""
            shown.append(f"{100 * counts['doubted'] / CELLS:5.1f} {named:12}")
        print(f"{name:24}" + " ".join(shown))


def coverage_with_looks() -> None:
    """Intervals that hold the truth, in %, and blocks used: looks from 8 to 40 for ±2 %, against a look at any block"""
    print(f"{'model':12}{'noise':>7}  {'at looks':>16}  {'after any block, uncorrected':>30}")
    for model in MODELS:
        for sd in (0.005, 0.02, 0.04):
            rng = np.random.default_rng(2)
            looked = stopped(rng, model, Measure(blocks_min=8, blocks_max=40), runs=RUNS // 2, sd=sd)
            coverage, blocks = _peeking(rng, model, sd)
            ours = f"{100 * looked.coverage:5.1f} ({looked.blocks:4.1f})"
            print(f"{model:12}{100 * sd:5.1f} %  {ours:>16}  {100 * coverage:22.1f} ({blocks:4.1f})")


def _peeking(rng: np.random.Generator, model: str, sd: float) -> tuple[float, float]:
    """The same with a plain 95 % Student's interval looked at after every block: what one would write first."""
    from scipy.stats import t

    runs = RUNS // 2
    values = block_values(rng, model, runs=runs, blocks=40, sd=sd)
    live, holds, used = np.arange(runs), np.zeros(runs, dtype=bool), np.zeros(runs)
    for block in range(3, 41):
        rows = values[live, :block]
        reach = t.ppf(0.975, block - 1) * rows.std(axis=1, ddof=1) / math.sqrt(block)
        done = (reach <= 0.02) | (block == 40)
        truth = sd * 3.0 * float(np.linspace(-0.5, 0.5, 40)[:block].mean()) if model == "drift" else 0.0
        holds[live[done]] = (np.abs(rows.mean(axis=1) - truth) <= reach)[done]
        used[live[done]] = block
        live = live[~done]
    return float(holds.mean()), float(used.mean())


def power_stated_and_reached() -> None:
    """Changes called slower by p50 by `compare`, in % of 400, against what `plan --detect` states"""
    print(f"{'change':>8}{'noise':>8}{'blocks':>8}{'stated':>8}{'reached':>9}")
    rng = np.random.default_rng(3)
    for effect in (0.02, 0.03, 0.05, 0.10):
        for sd in (0.01, 0.02, 0.04, 0.08):
            blocks = blocks_needed(effect, sd, power=0.9)
            if blocks is None or blocks > 100:
                continue
            reached = _reached(rng, blocks, effect, sd)
            stated = power_of(blocks, effect, sd)
            print(f"{100 * effect:6.0f} %{100 * sd:6.1f} %{blocks:8d}{100 * stated:8.1f}{100 * reached:9.1f}")


def _reached(rng: np.random.Generator, blocks: int, effect: float, sd: float) -> float:
    found = 0
    for _ in range(COMPARISONS):
        cell = interleaved(
            rng, lambda draw, count: draw.normal(0, sd / math.sqrt(2), count), blocks=blocks, truth=Truth(effect=effect)
        )
        rows = compare(matching([cell]), is_one_run=True, noises=SessionNoises(), threshold=effect / 2)
        found += rows[0].verdict is Change.SLOWER
    return found / COMPARISONS
