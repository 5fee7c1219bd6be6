"""The runner `ios_app`: devbench's benchmark app on an iPhone behind a Mac, every iteration kept. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ios_harness import app_protocol as app
from orchestrator.delegates import Delegate
from orchestrator.errors import UsageError
from orchestrator.plan import Measure
from orchestrator.runners.base import NO_FILES, Command, Places, Reading, RunnerError, WithoutProfiles
from orchestrator.trial import Cell

PROGRAM = "ios_app"
_CHECK_ANEW = "build the app of this devbench anew and install it: ios_harness/benchmark_app/README.md"
_COREML = re.compile(r"CoreML delegate: (\d+) nodes delegated out of (\d+) nodes, with (\d+) partitions")
_PERMANENT = ("bad-request", "model", "delegate", "inputs")


class IosApp(WithoutProfiles):
    """Asks the app for one cell at a time. CPU kernels, XNNPACK, Metal (gpu) and Core ML."""

    variants: Sequence[str] = ()
    delegates = ("xnnpack", "cpu", "gpu", "coreml")
    platforms: Sequence[str] = ("ios",)
    takes_inputs = False
    no_profiles = "the app asks the runtime for none"

    def unsupported(self, cell: Cell, delegate: Delegate, facts: Mapping[str, Any]) -> str | None:
        if delegate.cache or delegate.settings or delegate.flags or delegate.env:
            return f"{cell.runner} takes no settings for delegate {delegate.name}, and keeps no cache"
        return None

    def files(self, variant: str, machine: str) -> Mapping[str, Path]:
        """None on this host: the app is signed on the Mac and installed from there."""
        return {}

    def check_command(self, python: str, files: Mapping[str, str]) -> Command:
        return _command(app.request("check", verify=True))

    def read_check(self, stdout: Sequence[bytes]) -> tuple[Mapping[str, Any], RunnerError | None]:
        try:
            launched, result = _answer(stdout)
        except app.BadResult as bad:
            return {}, RunnerError("result", str(bad), _CHECK_ANEW, permanent=True)
        if error := _error(result):
            return {}, error
        said = app.part(result, "app")
        digest = app.digest(said, "executable_sha256")
        if digest is None:
            return {}, RunnerError("result", "the app does not say its own hash", _CHECK_ANEW, permanent=True)
        facts = {"runtime": said.get("runtime"), "runtime_version": said.get("runtime_version")}
        return {**facts, "app_version": said.get("version"), "runner_sha256": digest, "way": launched["way"]}, None

    def command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        return _command(
            app.request(
                "run",
                model=places.model,
                delegate=places.delegate.base if places.delegate else cell.delegate,
                threads=cell.threads,
                warmup_runs=measure.warmup_runs,
                warmup_min_ms=measure.warmup_min_ms,
                runs=measure.runs,
                min_ms=measure.min_ms,
                max_ms=measure.max_ms,
                input_seed=measure.input_seed,
            )
        )

    def beside_command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        raise UsageError("ios_app cannot run beside another", remedy="leave loads out for this device")

    def read(
        self, stdout: Sequence[bytes], stderr: Sequence[bytes], outputs: Mapping[str, bytes] = NO_FILES
    ) -> Reading:
        console = [line.decode("utf-8", "replace") for line in stderr]
        try:
            launched, result = _answer(stdout)
            if launched["ended"] == "deadline":
                return Reading()
            if error := _error(result):
                return Reading(error=error)
            return _reading(result, console)
        except app.BadResult as bad:
            return Reading(error=_killed(console) or RunnerError("result", str(bad), _CHECK_ANEW, permanent=False))


IOS_APP = IosApp()


def _command(request: Mapping[str, Any]) -> Command:
    return Command((PROGRAM, json.dumps(request, sort_keys=True)))


def _answer(stdout: Sequence[bytes]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """How the stage launched the app, and what the app wrote, which must be for that launch."""
    if not stdout:
        raise app.BadResult("the app was not launched")
    launched = json.loads(stdout[0])
    if launched["ended"] == "deadline":
        return launched, {}
    if len(stdout) < 2:
        raise app.BadResult("the app ended without a result")
    return launched, app.read_result(b"\n".join(stdout[1:]), launched["nonce"])


def _killed(console: Sequence[str]) -> RunnerError | None:
    """iOS does not say why it kills: too much memory (jetsam) is the usual reason, a watchdog the other."""
    signal = app.ending_signal(console)
    if signal is None:
        return None
    if signal == 9:
        message = "iOS killed the app (signal 9) before it had a result: too much memory (jetsam), or a watchdog"
        remedy = (
            "close other apps, keep the phone unlocked and the app in front; try a smaller model or another delegate"
        )
        return RunnerError("killed", message, remedy, permanent=False)
    remedy = "try the model with another delegate; the crash report is in Xcode > Devices > View Device Logs"
    return RunnerError("crash", f"the app crashed (signal {signal})", remedy, permanent=False)


def _error(result: Mapping[str, Any]) -> RunnerError | None:
    error = app.part(result, "error")
    if not error:
        return None
    kind = str(error.get("kind", "internal"))[:40]
    message, remedy = (
        str(error.get("message", "no words"))[:500],
        str(error.get("remedy") or "see the trial's log")[:500],
    )
    return RunnerError(kind, message, remedy, permanent=kind in _PERMANENT)


def _reading(result: Mapping[str, Any], console: Sequence[str]) -> Reading:
    latencies = app.samples(result, "samples_us")
    return Reading(
        samples_us=latencies,
        warmup_us=app.samples(result, "warmup_us"),
        metrics=_metrics(result),
        observed=_observed(result, console),
    )


def _metrics(result: Mapping[str, Any]) -> dict[str, Any]:
    memory = app.part(result, "memory")
    found = {name: app.whole_number(memory, name) for name in ("before_bytes", "after_bytes", "peak_bytes")}
    metrics: dict[str, Any] = {f"footprint_{name}": value for name, value in found.items() if value is not None}
    if (init_us := result.get("init_us")) is not None and not isinstance(init_us, bool):
        metrics["init_us"] = init_us
    return metrics


def _observed(result: Mapping[str, Any], console: Sequence[str]) -> dict[str, Any]:
    """The app's own word, and the runtime's on the console; the C interface gives no count of delegated nodes."""
    observed: dict[str, Any] = {
        "model_sha256": app.digest(result, "model_sha256"),
        "runner_sha256": app.digest(app.part(result, "app"), "executable_sha256"),
        "threads_echo": app.whole_number(result, "threads"),
        "delegate_echo": result.get("delegate"),
        "count": app.whole_number(result, "count"),
        "stopped_by": result.get("stopped_by"),
        "states": [dict(app.part(result, key)) for key in ("state_before", "state_after")],
    }
    if any("Created TensorFlow Lite XNNPACK delegate" in line for line in console):
        observed["xnnpack_created"] = True
    if any("Created TensorFlow Lite delegate for Metal" in line for line in console):
        observed["gpu_backend"] = "metal"
    for line in console:
        if found := _COREML.search(line):
            observed["nodes_delegated"], observed["nodes_total"] = int(found[1]), int(found[2])
            observed["partitions"] = int(found[3])
    return observed
