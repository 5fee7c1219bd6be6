"""What the figures share: commands with their CPU time, medians, and where things are."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from device_agents import agent_binary
from orchestrator.bundled import bundled_models
from orchestrator.clock import SYSTEM

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "data" / "models" / "tiny_add.tflite"
MODEL = bundled_models()[0]
RUNNER = ROOT / "device_agents" / "litert_runner.py"
PYTHON = sys.executable


def agent() -> str:
    path = agent_binary(platform.machine())
    if path is None:
        raise SystemExit("no agent for this machine: run `make agents`")
    return str(path)


@dataclass(frozen=True)
class Timed:
    """A command that ended: its output, wall time and CPU time, children that it waited for included."""

    stdout: bytes
    wall_s: float
    cpu_s: float


def timed(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    accepted: Sequence[int] = (0,),
) -> Timed:
    with tempfile.TemporaryFile() as errors:
        began = SYSTEM.monotonic_s()
        process = subprocess.Popen(
            [str(word) for word in argv], cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=errors
        )
        with process:
            assert process.stdout
            stdout = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in accepted:
            errors.seek(0)
            raise SystemExit(f"{argv[0]} ended with {process.returncode}:\n{errors.read().decode(errors='replace')}")
        return Timed(stdout, SYSTEM.monotonic_s() - began, usage.ru_utime + usage.ru_stime)


def quartiles(values: Sequence[float], unit: str, digits: int = 2) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.{digits}f} {unit} (quartiles {low:.{digits}f} to {high:.{digits}f}, n {len(values)})"
