"""The runner `benchmark_model`: TFLite's own tool, both programs of that name, from the host's cache of binaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from orchestrator.delegates import Delegate, delegate_of
from orchestrator.op_profile import OpProfile
from orchestrator.plan import Measure
from orchestrator.runners import benchmark_model_flags as flags
from orchestrator.runners.base import NO_FILES, Command, Places, Reading, RunnerError, inputs_refused
from orchestrator.runners.benchmark_model_delegates import NAMES, Program
from orchestrator.runners.benchmark_model_flags import Fingerprint, Invocation
from orchestrator.runners.benchmark_model_output import read_output, text_of
from orchestrator.runners.benchmark_model_profile import read_profile
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

    delegates = NAMES
    platforms = ("android", "linux", "ios-jailbroken")
    takes_inputs = False
    no_profiles = None

    def __init__(self, cache: BinaryCache) -> None:
        self._cache = cache

    @property
    def variants(self) -> Sequence[str]:
        return self._cache.names()

    def files(self, variant: str, machine: str) -> Mapping[str, Path]:
        return {"runner": self._cache.find(variant, machine)}

    def unsupported(self, cell: Cell, delegate: Delegate, facts: Mapping[str, Any]) -> str | None:
        """Why the cell's binary cannot be asked for its delegate, known before any try."""
        reason = flags.unsupported(self._fingerprint(cell, facts), delegate)
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

    def _fingerprint(self, cell: Cell, facts: Mapping[str, Any]) -> Fingerprint:
        """What the binary said of itself on the device; where it has no --help, what its bytes say."""
        if facts.get("flags") and facts.get("program"):
            return Fingerprint(Program(facts["program"]), frozenset(facts["flags"]))
        return self._cache.fingerprint(cell.runner_sha256)

    def command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        known = self._fingerprint(cell, places.facts)
        invocation = _invocation(cell, places, _outputs(known, places, profiled=False))
        return _command(flags.measured_arguments(known, invocation, measure), invocation, places)

    def beside_command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        known = self._fingerprint(cell, places.facts)
        invocation = _invocation(cell, places, {}, threads=1)
        return _command(flags.endless_arguments(known, invocation), invocation, places)

    def read(
        self, stdout: Sequence[bytes], stderr: Sequence[bytes], outputs: Mapping[str, bytes] = NO_FILES
    ) -> Reading:
        return read_output(stdout, stderr, outputs)

    def unprofiled(self, cell: Cell, facts: Mapping[str, Any]) -> str | None:
        reason = flags.unprofiled(self._fingerprint(cell, facts))
        return None if reason is None else f"{cell.runner}: {reason}"

    def profile_command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        known = self._fingerprint(cell, places.facts)
        invocation = _invocation(cell, places, _outputs(known, places, profiled=True))
        return _command(flags.profiled_arguments(known, invocation, measure), invocation, places)

    def read_profile(
        self, stdout: Sequence[bytes], stderr: Sequence[bytes], outputs: Mapping[str, bytes] = NO_FILES
    ) -> OpProfile | None:
        return read_profile(stdout, stderr, outputs)


def _outputs(known: Fingerprint, places: Places, *, profiled: bool) -> dict[str, str]:
    return flags.written_files(known, places.outputs, profiled=profiled) if places.outputs else {}


def _invocation(cell: Cell, places: Places, outputs: Mapping[str, str], *, threads: int | None = None) -> Invocation:
    if places.inputs is not None:
        raise inputs_refused(cell.runner)
    delegate = places.delegate or delegate_of(cell.delegate)
    return Invocation(
        program=places.files["runner"],
        model=places.model,
        threads=threads or cell.threads,
        delegate=delegate,
        places={
            "library": places.library,
            "folder": places.library_folder,
            "options": delegate.option_text,
            "cache": places.cache,
            "token": cell.id,
        },
        outputs=outputs,
    )


def _command(argv: tuple[str, ...], invocation: Invocation, places: Places) -> Command:
    """With the delegate's environment; what was deployed is found by the loader."""
    env = dict(_PLAIN)
    if places.library_folder:
        env["LD_LIBRARY_PATH"] = places.library_folder
    asked = {**invocation.delegate.env, **(invocation.delegate.cache_env if places.cache else {})}
    for name, value in asked.items():
        text = value.replace("{cache}", places.cache or "").replace("{folder}", places.library_folder or "")
        if text:
            env[name] = text
    return Command(argv, env, outputs=invocation.outputs)


def _not_runnable(lines: Sequence[str]) -> RunnerError:
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
    return RunnerError(
        "not-runnable",
        f"the binary does not run on this device: {last[:300]}",
        "see whether it was built for this CPU and system: `devbench binaries list`",
        permanent=True,
    )
