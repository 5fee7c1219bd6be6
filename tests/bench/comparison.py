"""How often comparisons are wrong, beside what others do, and how long they take."""

from __future__ import annotations

import json
import resource
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.calibration import SessionNoises
from orchestrator.analysis.compare import compare
from orchestrator.analysis.comparison import Change
from orchestrator.analysis.sides import Matched
from orchestrator.clock import SYSTEM
from tests.bench.measuring import PYTHON
from tests.unit.comparison_models import MODELS, Noise, matching, reduced_trial
from tests.unit.test_analysis_compare import DEFINITE, _from_traces, _traces
from tests.unit.trial_factory import make_cell

Floats = NDArray[np.float64]
_REPEATS = 400
_BLOCKS, _ITERATIONS = 10, 70


def _cell(rng: np.random.Generator, noise: Noise, effect: float) -> tuple[Floats, Floats, Matched]:
    """The iterations of both sides, and the same as trials. They vary by 3 %, and one in fifty takes twice as long."""
    levels = np.log(800.0) + noise(rng, 2 * _BLOCKS)
    first = rng.integers(2, size=_BLOCKS)
    cell = make_cell()
    samples, sides = [], []
    for arm in range(2):
        places = 2 * np.arange(_BLOCKS) + (first ^ arm)
        iterations = rng.normal(0, 0.03, (_BLOCKS, _ITERATIONS))
        iterations += np.where(rng.random(iterations.shape) < 0.02, np.log(2), 0)
        values = np.exp(levels[places][:, None] + iterations + arm * np.log1p(effect))
        samples.append(values)
        p50, mean, p95 = np.median(values, axis=1), values.mean(axis=1), np.quantile(values, 0.95, axis=1)
        sides.append(
            tuple(
                reduced_trial(
                    cell,
                    arm="x",
                    block=block,
                    log_us=np.log(p50[block]),
                    at_s=10.0 * places[block],
                    mean=mean[block] / p50[block],
                    p95=p95[block] / p50[block],
                )
                for block in range(_BLOCKS)
            )
        )
    return samples[0], samples[1], Matched(sides[0], sides[1], ())


def _naive() -> dict[str, Callable[[Floats, Floats], bool]]:
    from scipy.stats import mannwhitneyu, ttest_ind

    return {
        "mean differs by 5 %": lambda base, new: bool(abs(new.mean() / base.mean() - 1) > 0.05),
        "t-test over iterations": lambda base, new: bool(ttest_ind(base.ravel(), new.ravel()).pvalue < 0.05),
        "Mann-Whitney over it.": lambda base, new: bool(mannwhitneyu(base.ravel(), new.ravel()).pvalue < 0.05),
    }


def wrong_and_found() -> None:
    """share of changes announced, 10 interleaved blocks of 70 iterations: nothing changed | 5 % slower"""
    naive = _naive()
    print(f"  {'':16}{''.join(f'{name:>26}' for name in naive)}{'devbench p50':>26}{'any metric':>14}{'coverage':>10}")
    for name, noise in MODELS.items():
        rng = np.random.default_rng(1)
        flagged = {method: [0, 0] for method in (*naive, "p50", "any", "covered")}
        for index, effect in enumerate((0.0, 0.05)):
            for _ in range(_REPEATS):
                base, new, cell = _cell(rng, noise, effect)
                for method, test in naive.items():
                    flagged[method][index] += test(base, new)
                rows = compare(matching([cell]), is_one_run=True, noises=SessionNoises())
                flagged["p50"][index] += rows[0].verdict in DEFINITE
                flagged["any"][index] += any(row.verdict in DEFINITE for row in rows)
                low, high = rows[0].low, rows[0].high
                flagged["covered"][index] += low is not None and high is not None and low <= np.log1p(effect) <= high
        cells = "".join(f"{_both(flagged[method]):>26}" for method in (*naive, "p50"))
        covered = sum(flagged["covered"]) / 2 / _REPEATS
        print(f"  {name:16}{cells}{100 * flagged['any'][0] / _REPEATS:>12.1f} %{100 * covered:>8.1f} %")


def _both(counts: list[int]) -> str:
    return " | ".join(f"{100 * count / _REPEATS:5.1f} %" for count in counts)


def contended_traces() -> None:
    """the same on real traces of a busy machine (trial means for the 5 % rule): nothing changed | 5 % slower"""
    rng = np.random.default_rng(2)
    counts: dict[str, list[int]] = {"mean differs by 5 %": [0, 0], "devbench p50": [0, 0]}
    total = 0
    for pairs in _traces().values():
        for _ in range(60):
            start = int(rng.integers(0, len(pairs) - 9))
            total += 1
            for index, effect in enumerate((0.0, 0.05)):
                cell = _from_traces(rng, pairs[start : start + 10], effect)
                means = [np.mean([trial.latencies_us["mean"] or 0 for trial in side]) for side in (cell.base, cell.new)]
                counts["mean differs by 5 %"][index] += abs(means[1] / means[0] - 1) > 0.05
                (p50, *_) = compare(matching([cell]), is_one_run=True, noises=SessionNoises())
                wanted = {Change.SLOWER} if effect else DEFINITE
                counts["devbench p50"][index] += p50.verdict in wanted
    for name, found in counts.items():
        print(f"  {name:24}" + " | ".join(f"{100 * count / total:5.1f} %" for count in found) + f"   (n {total})")


def families() -> None:
    """100 unchanged cells at once, all models mixed: families with any false alarm; and 5 changed among 100 found"""
    rng = np.random.default_rng(3)
    noises = list(MODELS.values())
    alarms = found = 0
    rounds = 60
    for _ in range(rounds):
        for changed in (0, 5):
            cells = []
            for index in range(100):
                noise = noises[index % len(noises)] if not changed else MODELS["calm"]
                _, _, cell = _cell(rng, noise, 0.05 if index < changed else 0.0)
                named = make_cell(model=f"m{index:03}")
                cells.append(_renamed(cell, named))
            rows = compare(matching(cells), is_one_run=True, noises=SessionNoises())
            if changed:
                hits = {row.cell.model for row in rows if row.verdict in DEFINITE and row.metric == "p50"}
                found += len(hits & {f"m{index:03}" for index in range(changed)})
            else:
                alarms += any(row.verdict in DEFINITE for row in rows)
    print(f"  families with a false alarm: {alarms} of {rounds}; found of 5 changed among 100: {found / rounds:.1f}")


def _renamed(cell: Matched, name: object) -> Matched:
    from dataclasses import replace

    return Matched(
        tuple(replace(trial, cell=name) for trial in cell.base),  # type: ignore[arg-type]  # a cell
        tuple(replace(trial, cell=name) for trial in cell.new),  # type: ignore[arg-type]  # a cell
        (),
    )


def speed() -> None:
    """`compare` over 100,000 trials of 200 samples in a file, and `show` of a run of 10,000 trials in a store"""
    devbench = [PYTHON, "-c", "from orchestrator.cli import main; main()"]
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "large.jsonl", Path(folder) / "small.jsonl"
        _write_trials(large, cells=1000, blocks=50)
        _write_trials(small, cells=500, blocks=10)
        store = ["--store", str(Path(folder) / "store")]
        subprocess.run([*devbench, "import", str(small), *store], check=True, capture_output=True)
        commands = {
            f"compare, 100,000 trials, {large.stat().st_size / 1e6:.0f} MB": ["compare", str(large), "--json"],
            "show, 10,000 trials of a store": ["show", "last", "--json", *store],
            "show, 10,000 trials of a file": ["show", str(small), "--json"],
        }
        for name, arguments in commands.items():
            began, before = SYSTEM.monotonic_s(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([*devbench, *arguments], stdout=subprocess.DEVNULL, check=False)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            wall = SYSTEM.monotonic_s() - began
            print(f"  {name:40} {wall:6.1f} s ({cpu:.1f} s of CPU), peak so far {after.ru_maxrss / 1024:.0f} MB")


def _write_trials(path: Path, *, cells: int, blocks: int) -> None:
    rng = np.random.default_rng(4)
    fixed = {"schema": "devbench.trial", "version": 1, "run": "r", "model_sha256": "ab" * 32, "runner": "litert_runner"}
    fixed |= {
        "delegate": "xnnpack",
        "affinity": "any",
        "session": "s",
        "outcome": "measured",
        "threads": 1,
        "load": "idle",
    }
    with path.open("w", encoding="utf-8") as out:
        for block in range(blocks):
            for cell in range(cells):
                for place, arm in enumerate(rng.permutation(["baseline", "candidate"])):
                    samples = (800 * np.exp(rng.normal(0, 0.02) + rng.normal(0, 0.02, 200))).round(3).tolist()
                    line = {"device": f"phone{cell % 10}", "model": f"model{cell // 10}", "arm": str(arm)}
                    line |= {"block": block, "position": 2 * cell + place, "samples_us": samples}
                    out.write(json.dumps(fixed | line) + "\n")
