"""The native runner against the one in Python."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Sequence
from functools import partial

from device_agents import native_runner_binary
from orchestrator.bundled import bundled_models
from orchestrator.litert_runtimes import Runtimes
from tests.bench.measuring import MODEL, PYTHON, RUNNER, timed
from tests.bench.runner import compare_in_turns, runner_argv, samples_us

_IN_PYTHON = (PYTHON, str(RUNNER))
_CASES = (
    ("bundled float, 1 thread", MODEL, 1),
    ("bundled float, 2 threads", MODEL, 2),
    ("bundled int8, 1 thread", bundled_models()[1], 1),
    ("bundled int8, 2 threads", bundled_models()[1], 2),
)


def native_against_python() -> None:
    """inference in the native runner over that in litert_runner, fresh processes in turns; and whole processes"""
    binary = native_runner_binary(platform.machine())
    if binary is None:
        raise SystemExit("no native runner for this machine: run `make agents`")
    native = (str(binary), f"--runtime={Runtimes().find(platform.machine())}")
    for name, model, threads in _CASES:
        compare_in_turns(
            name,
            ("native", partial(_median_us, native, model, threads)),
            ("Python", partial(_median_us, _IN_PYTHON, model, threads)),
        )
    compare_in_turns(
        "a process with one run",
        ("native", partial(_process_us, native)),
        ("Python", partial(_process_us, _IN_PYTHON)),
    )


def _median_us(program: Sequence[str], model: object, threads: int) -> float:
    return statistics.median(samples_us(timed(runner_argv(model, threads, 400, "zero-copy", program=program)).stdout))


def _process_us(program: Sequence[str]) -> float:
    return 1e6 * timed(runner_argv(MODEL, 1, 1, program=program)).wall_s
