"""What the runner adds to an inference."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from functools import partial

from tests.bench.measuring import MODEL, PYTHON, RUNNER, TINY, quartiles, timed

_ROUNDS = 12
Named = tuple[str, Callable[[], float]]
_BARE = """\
import os, sys, time
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy
from ai_edge_litert.interpreter import Interpreter
model = Interpreter(model_path=sys.argv[1], num_threads=int(sys.argv[2]))
model.allocate_tensors()
for detail in model.get_input_details():
    model.set_tensor(detail["index"], numpy.zeros(detail["shape"], detail["dtype"]))
runs = int(sys.argv[3])
times = []
for _ in range(2 * runs):
    began = time.perf_counter_ns()
    model.invoke()
    times.append(time.perf_counter_ns() - began)
times = sorted(times[runs:])
print(times[len(times) // 2])
"""


_CASES = (
    ("bundled float, 1 thread", MODEL, 1, 400, "zero-copy"),
    ("bundled float, 2 threads", MODEL, 2, 400, "zero-copy"),
    ("the same with copies", MODEL, 2, 400, "copy"),
    ("a single addition", TINY, 1, 4000, "zero-copy"),
)


def runner_against_bare_loop() -> None:
    """median inference in litert_runner over that in a bare loop around the same runtime, fresh processes in turns"""
    for name, model, threads, runs, copy in _CASES:
        compare_in_turns(
            name,
            ("runner", partial(_runner_us, model, threads, runs, copy)),
            ("bare", partial(_bare_us, model, threads, runs)),
        )


def compare_in_turns(name: str, ours: Named, other: Named) -> None:
    """Print both medians in microseconds, and the ratio of neighbours in time."""
    found: dict[str, list[float]] = {ours[0]: [], other[0]: []}
    for number in range(_ROUNDS):
        for label, measure_us in (ours, other) if number % 2 else (other, ours):
            found[label].append(measure_us())
    ratios = [mine / theirs for mine, theirs in zip(found[ours[0]], found[other[0]], strict=True)]
    medians = ", ".join(f"{label} {statistics.median(values):8.2f} us" for label, values in found.items())
    print(f"  {name:26} {medians}, ratio {quartiles(ratios, '', 4)}", flush=True)


def _bare_us(model: object, threads: int, runs: int) -> float:
    return int(timed([PYTHON, "-c", _BARE, str(model), str(threads), str(runs)]).stdout) / 1000.0


def _runner_us(model: object, threads: int, runs: int, copy: str) -> float:
    return statistics.median(samples_us(timed(runner_argv(model, threads, runs, copy)).stdout))


def runner_argv(
    model: object, threads: int, runs: int, copy: str = "copy", *, program: Sequence[str] = (PYTHON, str(RUNNER))
) -> list[str]:
    """A runner's command line for so many warm-up and as many timed runs."""
    flags = ["--delegate", "xnnpack", "--copy", copy, "--warmup-runs", str(runs), "--warmup-min-ms", "0"]
    flags += ["--runs", str(runs), "--min-ms", "0", "--max-ms", "60000", "--seed", "1"]
    return [*program, f"--model={model}", "--threads", str(threads), *flags]


def samples_us(stdout: bytes) -> list[float]:
    """The timed runs in a runner's output."""
    events = [json.loads(line) for line in stdout.splitlines() if line.startswith(b'{"event":"samples"')]
    steady = [event["invoke_ns"] for event in events if event["phase"] == "steady"]
    return [value / 1000.0 for chunk in steady for value in chunk]
