"""The conductor: makes one device ready, and turns one slot into one trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator import registry, telemetry
from orchestrator.agent import SamplesWhenRead
from orchestrator.clock import SYSTEM, Clock, Deadline, timestamp
from orchestrator.cool_down import CoolDown, Look, Pace
from orchestrator.deploy import Deployment
from orchestrator.errors import DevbenchError, DeviceUnfit, HostError, Interrupted, StoreError, UsageError, during
from orchestrator.evidence import judge
from orchestrator.evidence_terms import Asked, Readiness, process_elsewhere
from orchestrator.fleet import Device, Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.platforms.base import Facts, Platform
from orchestrator.runners.base import Command, Places, Reading, Runner, RunnerError
from orchestrator.stage import Report, Stage, Trialling
from orchestrator.transports.base import Completed
from orchestrator.trial import Finding, Severity, Slot, Trial

_CONNECT_S = 60.0
_COMMAND_S = 60.0
_LOOK_S = 0.5
_TRANSCRIPT_MAX = 32 * 1024 * 1024


@dataclass(frozen=True)
class Files:
    """The host files behind the names that cells carry."""

    models: Mapping[str, Path]
    """By SHA-256."""
    load_models: Mapping[str, Path]
    """By the load's label, such as `model:detector@1f2e3d4c`."""
    inputs: Path | None = None


class Conductor:
    """One device made ready: connected, its stage set, probed."""

    def __init__(
        self,
        device: Device,
        *,
        measure: Measure,
        conditions: Conditions,
        files: Files,
        lock: Callable[[str], AbstractContextManager[None]] | None = None,
        pace: Pace | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        """`lock` is asked for the hardware behind the address, before anything on the device is changed; `pace` is what
        is remembered of its canary."""
        self.device = device
        self._measure = measure
        self._conditions = conditions
        self._files = files
        self._clock = clock
        kind = registry.transport(device.transport)
        self._python = kind.python(device)
        self._runner_files: dict[str, Mapping[str, Path]] = {}
        self.platform = platform_of(device)
        self._limits = device.limits.over(self.platform.default_limits)
        self._held = ExitStack()  # the hardware's lock first, so that it is let go last
        self._transport = kind.open(device, deadline=Deadline.after(_CONNECT_S))
        try:
            if lock and self._transport.hardware_id:
                self._held.enter_context(lock(self._transport.hardware_id))
            workdir = device.workdir or kind.default_workdir(device)
            own = self.platform.stage(self._transport, device, workdir)
            self._stage: Stage = own or Deployment(self._transport, self.platform, workdir)
            with during(f"probing {device.name}"):
                probed = self._stage.probe(Deadline.after(_COMMAND_S))
                self.facts: Facts = self.platform.facts(probed, self._ask)
            self._holds, held_findings = self.platform.holds(conditions, self.facts)
            session_findings = self._held.enter_context(self.platform.session(conditions, self.facts, self._ask))
            self._has_canary, canary_findings = self._try_canary()
        except BaseException:
            self.close()
            raise
        self._cool_down = CoolDown(
            self._look,
            self.platform.breach,
            limits=self._limits,
            slack=conditions.canary_slack,
            cap_s=conditions.cool_down_max_s,
            pace=pace or Pace(),
            clock=clock,
        )
        self.findings: tuple[Finding, ...] = (
            *self.platform.fitness(self.facts),
            *held_findings,
            *session_findings,
            *canary_findings,
        )

    def close(self) -> None:
        """Undo what was held, then let go."""
        try:
            self._held.close()
        finally:
            self._transport.close()

    def prune(self) -> None:
        """Make room on the device; called when the work there is done."""
        self._stage.prune()

    def _ask(self, argv: Sequence[str]) -> Completed:
        return self._transport.run(list(argv), deadline=Deadline.after(_COMMAND_S))

    def use_runner(self, name: str, files: Mapping[str, Path]) -> None:
        """The host files of a runner, by role, for all cells that name it."""
        self._runner_files[name] = files

    def runner_facts(self, name: str) -> tuple[Mapping[str, Any], RunnerError | None]:
        """What the runner says of its runtime on this device, or why it cannot run here."""
        runner = registry.runner(name)
        command = runner.check_command(self._python, self._runner_places(name))
        completed = self._stage.check(command, Deadline.after(_COMMAND_S))
        facts, error = runner.read_check(completed.stdout.splitlines())
        if completed.exit != 0 and error is None:
            words = completed.stderr.decode("utf-8", "replace").strip().splitlines()
            message = words[-1] if words else f"status {completed.exit}"
            error = RunnerError("internal", message, f"run it by hand: {' '.join(command.argv)}", permanent=True)
        return facts, error

    def look(self) -> tuple[Sequence[Mapping[str, Any]], str | None]:
        """Telemetry of half a second, and which limit the device breaks now."""
        samples = self._stage.sample(_LOOK_S, Deadline.after(_COMMAND_S)).samples
        return samples, self.platform.breach(self._limits, self.platform.state(samples, self._ask, self.facts))

    def conduct(
        self,
        slot: Slot,
        *,
        run: str,
        session: str,
        stopped: Callable[[], bool],
        waiting: Callable[[str], None] | None = lambda _: None,
    ) -> tuple[Trial, bytes]:
        """The slot's trial and the agent's transcript of it; `waiting` is told what the device is waited for. Without
        it the trial follows the one before as it is."""
        runner = registry.runner(slot.cell.runner)
        readiness = self._cool_down.wait(stopped, waiting) if waiting else Readiness(self._state())
        started_at, began_s = timestamp(self._clock.now()), self._clock.monotonic_s()
        with during(f"running {slot.cell}"):
            trialling = self._trialling(slot, runner)
            report = self._stage.run(trialling, stopped)
        if stopped():
            raise Interrupted("stopped", remedy="`devbench run --resume` goes on where it was")
        states = (readiness.state, self._state(report.samples))
        reading = runner.read(report.stdout, report.stderr)
        asked = Asked(
            slot.cell,
            self._measure,
            self._conditions,
            self.device.limits,
            trialling.affinity,
            trialling.holds,
            states,
            tuple(broken for state in states if (broken := self.platform.breach(self._limits, state))),
            readiness,
        )
        outcome, reason, findings = judge(asked, report, reading)
        trial = Trial(
            run=run,
            slot=slot,
            session=session,
            outcome=outcome,
            reason=reason,
            started_at=started_at,
            duration_s=round(self._clock.monotonic_s() - began_s, 3),
            samples_us=reading.samples_us,
            warmup_us=reading.warmup_us,
            summary=reading.summary,
            metrics=_child_metrics(report, reading) | dict(reading.metrics) | {"cool_down_s": readiness.waited_s},
            telemetry=telemetry.columns(report),
            evidence=_evidence(trialling, report, reading)
            | {"states": [dict(state) for state in states], "cool_down": readiness.as_json()},
            findings=findings,
        )
        return trial, bytes(report.transcript[:_TRANSCRIPT_MAX])

    def _trialling(self, slot: Slot, runner: Runner) -> Trialling:
        cell, measure = slot.cell, self._measure
        files = self._runner_places(cell.runner)
        inputs = self._push(self._files.inputs) if self._files.inputs else None
        model = self._push(self._files.models[cell.model_sha256])
        beside: Command | None = None
        if cell.load in self._files.load_models:
            load_model = self._push(self._files.load_models[cell.load])
            beside = runner.beside_command(cell, Places(self._python, files, load_model), measure)
        return Trialling(
            command=runner.command(cell, Places(self._python, files, model, inputs), measure),
            load=cell.load,
            beside=beside,
            placement=self._conditions.load_placement,
            settle_ms=measure.settle_ms,
            sample_ms=measure.sample_ms,
            affinity=self.platform.affinity_mask(cell.affinity, self.facts),
            holds=self._holds,
            deadline_s=measure.trial_timeout_s,
        )

    def _runner_places(self, name: str) -> dict[str, str]:
        return {role: self._push(path, executable=True) for role, path in self._runner_files[name].items()}

    def _push(self, path: Path, *, executable: bool = False) -> str:
        """Where the file is on the device. The host's copy is in the store: if it is gone, that is the store's loss."""
        try:
            return self._stage.ensure(path, executable=executable)
        except OSError as error:
            remedy = "see whether the store was moved or deleted"
            raise StoreError(f"cannot read {path}: {error.strerror}", remedy=remedy) from error

    def _state(self, samples: Sequence[Mapping[str, Any]] | None = None) -> Mapping[str, Any]:
        """How the device is, or was during these samples; nothing is asked when nobody limits it."""
        if self._limits == Limits():
            return {}
        if samples is None:
            samples = SamplesWhenRead(lambda: self._stage.sample(0.0, Deadline.after(_COMMAND_S)).samples)
        return self.platform.state(samples, self._ask, self.facts)

    def _look(self) -> Look:
        state = self._state()
        return Look(state, self._canary_ns() if self._has_canary else None)

    def _canary_ns(self) -> int:
        fastest = self.platform.affinity_mask("big", self.facts)
        return self._stage.canary(fastest, Deadline.after(_COMMAND_S))

    def _try_canary(self) -> tuple[bool, tuple[Finding, ...]]:
        """Whether trials are preceded by a canary; a device that cannot run one is measured without."""
        wanted = self._conditions.canary
        if wanted == "off" or (wanted == "auto" and not self.platform.is_slowed_by_heat(self.facts)):
            return False, ()
        try:
            self._canary_ns()
        except (DeviceUnfit, ValueError) as error:
            remedy = "limit temperature_c_max, or watch for drifting latencies"
            return False, (Finding("no-canary", Severity.WARN, f"no canary probe can run here: {error}", remedy),)
        return True, ()


def platform_of(device: Device) -> Platform:
    """The device's platform, which must be able to check every limit that is set."""
    name = device.platform or registry.transport(device.transport).platform_name(device)
    if name is None:
        raise DeviceUnfit(
            f"{device.name}: its platform cannot be told from its address",
            remedy=f"set platform to one of: {', '.join(registry.platform_names())}",
        )
    platform = registry.platform(name).for_device(device)
    for key, value in vars(device.limits).items():
        if value is not None and key not in platform.limits:
            raise UsageError(
                f"{device.name}: limits.{key} cannot be checked on platform {name}",
                remedy=f"remove it; {name} can check: {', '.join(platform.limits) or 'none'}",
            )
    return platform


def runner_trouble(device: Device, error: RunnerError) -> DevbenchError:
    """What the runner says it lacks, as an error: on this very machine the host can mend it."""
    if device.transport == "local" and error.kind == "runtime-missing":
        return HostError(error.message, remedy="install it: pip install 'devbench[local]'")
    return DeviceUnfit(error.message, remedy=error.remedy)


def _child_metrics(report: Report, reading: Reading) -> dict[str, Any]:
    """What the kernel counted for the child, where that is what inferred."""
    if process_elsewhere(reading) is not None:
        return {}
    closing = report.closing
    names = ("wall_ns", "user_ns", "system_ns", "maxrss_kb", "major_faults", "involuntary_switches")
    return {f"process_{name}": closing[name] for name in names if closing.get(name) is not None}


def _evidence(trialling: Trialling, report: Report, reading: Reading) -> dict[str, Any]:
    return {
        "argv": list(trialling.command.argv),
        "env": dict(trialling.command.env),
        "beside": list(trialling.beside.argv) if trialling.beside else None,
        "load_placement": trialling.placement,
        "observed": dict(reading.observed),
        "permanent": reading.error is not None and reading.error.permanent,
        "started": dict(report.started),
        "loads": [dict(load) for load in report.loads],
        "warnings": [dict(warning) for warning in report.warnings],
        "closing": dict(report.closing),
    }
