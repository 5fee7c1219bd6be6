"""The runner `benchmark_app`: TFLite's benchmark APK, in the foreground, from the host's cache of binaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import device_agents
from android_harness.benchmark_app_output import facts_in, install_error, read_app_output
from orchestrator.binaries import APP, Binaries
from orchestrator.delegates import Delegate, delegate_of
from orchestrator.errors import UsageError
from orchestrator.plan import Measure
from orchestrator.runners import benchmark_model_flags as flags
from orchestrator.runners.base import NO_FILES, Command, Places, Reading, RunnerError, WithoutProfiles, inputs_refused
from orchestrator.runners.benchmark_model import BinaryCache
from orchestrator.runners.benchmark_model_delegates import ROWS, Program
from orchestrator.runners.benchmark_model_flags import Invocation
from orchestrator.trial import Cell

_PLAIN = {"LC_ALL": "C"}
_GRACE_MS = 3000
"""What stopping the app may take on a slow phone."""
_SLACK_S = 60
"""Beyond its own caps on warm-up and measurement: the app's start, the model's, and a first inference that compiles."""
_HEARD_S = 5
"""The driver must give up before the agent does, so as to say why."""
_INSTALLED = {
    "same": "installed",
    "none": "not installed yet",
    "other": "another build is installed, which the first trial replaces",
}


class BenchmarkApp(WithoutProfiles):
    """Runs one APK of the cache per cell, through a script that is the agent's child. The app is another process: it
    cannot be pinned, and one app cannot run beside itself."""

    delegates = tuple(ROWS[Program.INTERPRETER])
    no_profiles = "logcat cuts an app's messages at 1 KiB; use benchmark_model"
    platforms = ("android",)
    takes_inputs = False

    def __init__(self, cache: BinaryCache) -> None:
        self._cache = cache

    @property
    def variants(self) -> Sequence[str]:
        return self._cache.names()

    def files(self, variant: str, machine: str) -> Mapping[str, Path]:
        driver = Path(device_agents.__file__).with_name("benchmark_app.sh")
        return {"runner": self._cache.find(variant, machine), "driver": driver}

    def unsupported(self, cell: Cell, delegate: Delegate, facts: Mapping[str, Any]) -> str | None:
        if cell.affinity != "any":
            return f"{cell.runner} cannot have affinity {cell.affinity}: Android places an app, and nobody can pin it"
        if cell.load.startswith("model:"):
            return f"{cell.runner} cannot have load {cell.load}: the app cannot run beside itself"
        if delegate.host_files or delegate.env or delegate.cache:
            return f"{cell.runner} cannot have delegate {cell.delegate}: an app gets no libraries, environment or cache"
        reason = flags.unsupported(self._cache.fingerprint(cell.runner_sha256), delegate)
        return None if reason is None else f"{cell.runner}: {reason}"

    def check_command(self, python: str, files: Mapping[str, str]) -> Command:
        return Command(("sh", files["driver"], "check", files["runner"]), _PLAIN)

    def read_check(self, stdout: Sequence[bytes]) -> tuple[Mapping[str, Any], RunnerError | None]:
        found = facts_in(stdout).get("installed", "unknown: the driver said nothing")
        if found not in _INSTALLED:
            return {}, install_error(found)
        facts = {"runtime": "benchmark_app", "runtime_version": _INSTALLED[found], "program": str(Program.INTERPRETER)}
        return facts, None

    def command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        if places.inputs is not None:
            raise inputs_refused(cell.runner)
        known = self._cache.fingerprint(cell.runner_sha256)
        program = places.files["driver"]
        _, *given = flags.measured_arguments(known, _invocation(cell, places), measure)
        split = next((flag for flag in given if flag.split() != [flag]), None)
        if split is not None:
            raise UsageError(
                f"{cell.runner}: the app would split {split} at its white space",
                remedy="choose a workdir without spaces in devices.toml",
            )
        results = "yes" if "result_file_path" in known.flags else "no"
        words = ("sh", program, "run", places.files["runner"], str(_wait_s(measure)), results, *given)
        return Command(words, _PLAIN, _GRACE_MS)

    def beside_command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        raise UsageError(
            f"{cell.runner}: the app cannot run beside itself",
            remedy="measure load model:FILE with benchmark_model",
        )

    def read(
        self, stdout: Sequence[bytes], stderr: Sequence[bytes], outputs: Mapping[str, bytes] = NO_FILES
    ) -> Reading:
        return read_app_output(stdout)


def _invocation(cell: Cell, places: Places) -> Invocation:
    delegate = places.delegate or delegate_of(cell.delegate)
    where = {"library": places.library, "options": delegate.option_text, "folder": None, "cache": None, "token": None}
    return Invocation(places.files["driver"], places.model, cell.threads, delegate, where, outputs={})


def _wait_s(measure: Measure) -> int:
    """How long the app may take until it has reported."""
    own_caps_s = 2 * measure.max_ms // 1000 + _SLACK_S
    return max(1, min(own_caps_s, int(measure.trial_timeout_s) - _HEARD_S))


BENCHMARK_APP = BenchmarkApp(Binaries(form=APP))
