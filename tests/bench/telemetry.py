"""What telemetry costs, and whether the measured model feels it."""

from __future__ import annotations

import statistics

from tests.bench.measuring import MODEL, agent, quartiles, timed
from tests.bench.runner import runner_argv, samples_us

_ROUNDS = 15
_SECONDS = 5


def cost_and_effect() -> None:
    """CPU the agent uses at 100 ms and at 10 ms, and the model's latency beside it over that without telemetry"""
    for sample_ms in (100, 10):
        used = timed([agent(), "sample", "--sample-ms", str(sample_ms), "--seconds", str(_SECONDS), "--detached"])
        print(f"  a sample every {sample_ms:3} ms uses {100 * used.cpu_s / used.wall_s:.2f} % of a CPU")
    for threads in (1, 2):
        ratios = [_ratio(threads, telemetry_first=bool(number % 2)) for number in range(_ROUNDS)]
        print(f"  latency with telemetry (100 ms) over without, {threads} threads: {quartiles(ratios, '', 4)}")


def _ratio(threads: int, *, telemetry_first: bool) -> float:
    order = (100, 0) if telemetry_first else (0, 100)
    medians = {sample_ms: _median_us(threads, sample_ms) for sample_ms in order}
    return medians[100] / medians[0]


def _median_us(threads: int, sample_ms: int) -> float:
    child = runner_argv(MODEL, threads, 400)
    done = timed([agent(), "run", "--sample-ms", str(sample_ms), "--detached", "--", *child])
    lines = [line.split(b" ", 2)[2] for line in done.stdout.splitlines() if line.startswith(b"O ")]
    return statistics.median(samples_us(b"\n".join(lines)))
