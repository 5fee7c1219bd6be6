"""The runner `benchmark_model`: TFLite's own tool, both programs of that name, from the host's cache of binaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from orchestrator.plan import Measure
from orchestrator.runners import benchmark_model_flags as flags
from orchestrator.runners.base import Command, Places, Reading, RunnerError, inputs_refused
from orchestrator.runners.benchmark_model_flags import Fingerprint, Program
from orchestrator.runners.benchmark_model_output import read_output, text_of
from orchestrator.trial import Cell

RUNTIME = "benchmark_model"
_PLAIN = {"LC_ALL": "C"}
_HELP = '"$1" --help 2>&1; exit 0'
"""Usage goes to standard error, and the Interpreter program ends with 1 for it; the path is an argument, not quoted."""


class BinaryCache(Protocol):
    """The binaries of this host, as the runner needs them."""

    def names(self) -> Sequence[str]:
        """The names that may follow `benchmark_model:`."""

    def find(self, name: str, machine: str) -> Path:
        """The binary of that name (or, without one, the newest) for such a machine. HostError where there is none."""

    def fingerprint(self, digest: str | None) -> Fingerprint:
        """What the binary of this hash is. HostError where the cache does not know it."""


class BenchmarkModel:
    """Runs one binary of the cache per cell. It gives a summary of its samples, never the samples."""

    delegates = flags.NAMES
    platforms = ("android", "linux", "ios-jailbroken")
    takes_inputs = False

    def __init__(self, cache: BinaryCache) -> None:
        self._cache = cache

    @property
    def variants(self) -> Sequence[str]:
        return self._cache.names()

    def files(self, variant: str, machine: str) -> Mapping[str, Path]:
        return {"runner": self._cache.find(variant, machine)}

    def unsupported(self, cell: Cell) -> str | None:
        """Why the cell's binary cannot be asked for its delegate, known before any try."""
        reason = flags.unsupported(self._cache.fingerprint(cell.runner_sha256), cell.delegate)
        return None if reason is None else f"{cell.runner}: {reason}"

    def check_command(self, python: str, files: Mapping[str, str]) -> Command:
        return Command(("sh", "-c", _HELP, "sh", files["runner"]), _PLAIN)

    def read_check(self, stdout: Sequence[bytes]) -> tuple[Mapping[str, Any], RunnerError | None]:
        lines = [text_of(line) for line in stdout]
        found = flags.flags_in_usage(lines)
        program = flags.program_of(found)
        if program is None and any("STARTING!" in line for line in lines):
            # Before TensorFlow 2.6 there is no --help; that it started is what this check can know.
            program = Program.INTERPRETER
        if program is None:
            return {}, _not_runnable(lines)
        release = Fingerprint(program, found).release if found else "unknown"
        facts = {"runtime": RUNTIME, "runtime_version": release, "program": str(program), "flags": sorted(found)}
        return facts, None

    def command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        if places.inputs is not None:
            raise inputs_refused(cell.runner)
        known = self._cache.fingerprint(cell.runner_sha256)
        program = places.files["runner"]
        return Command(
            flags.measured_arguments(known, cell, program=program, model=places.model, measure=measure), _PLAIN
        )

    def beside_command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        known, alone = self._cache.fingerprint(cell.runner_sha256), replace(cell, threads=1)
        program = places.files["runner"]
        return Command(flags.endless_arguments(known, alone, program=program, model=places.model), _PLAIN)

    def read(self, stdout: Sequence[bytes], stderr: Sequence[bytes]) -> Reading:
        return read_output(stdout, stderr)


def _not_runnable(lines: Sequence[str]) -> RunnerError:
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
    return RunnerError(
        "not-runnable",
        f"the binary does not run on this device: {last[:300]}",
        "see whether it was built for this CPU and system: `devbench binaries list`",
        permanent=True,
    )
