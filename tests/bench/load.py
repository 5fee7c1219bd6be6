"""How well a CPU load is held, beside stress-ng in the same run."""

from __future__ import annotations

import json
import shutil

from tests.bench.measuring import agent, timed

_SECONDS = 3


def offered_against_achieved() -> None:
    """percent of one CPU a thread, offered against achieved (CPU time of the processes over wall time)"""
    stress = shutil.which("stress-ng")
    print(
        f"  {'threads':>7} {'offered':>8} {'agent says':>11} {'agent':>7} {'error':>7}   {'stress-ng':>9} {'error':>7}"
    )
    for threads in (1, 2):
        for percent in (25, 50, 75, 100):
            said, measured = _agent(threads, percent)
            line = f"  {threads:>7} {percent:>8} {said:>11.2f} {measured:>7.2f} {said - percent:>+7.2f}"
            if stress:
                achieved = _stress_ng(stress, threads, percent)
                line += f"   {achieved:>9.2f} {achieved - percent:>+7.2f}"
            print(line, flush=True)
    if not stress:
        print("  stress-ng is not installed: no comparison (apt-get install stress-ng)")


def _agent(threads: int, percent: int) -> tuple[float, float]:
    done = timed([agent(), "load", f"cpu:{threads}@{percent}", "--seconds", str(_SECONDS), "--detached"])
    phases = [json.loads(line[2:]) for line in done.stdout.splitlines() if line.startswith(b"L ")]
    said = [100 * thread["achieved"] for thread in phases[-1]["threads"]]
    return sum(said) / threads, 100 * done.cpu_s / done.wall_s / threads


def _stress_ng(program: str, threads: int, percent: int) -> float:
    done = timed([program, "--cpu", str(threads), "--cpu-load", str(percent), "--timeout", f"{_SECONDS}s", "--quiet"])
    return 100 * done.cpu_s / done.wall_s / threads
