"""The conductor: makes one device ready, and turns one slot into one trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from orchestrator import registry, telemetry
from orchestrator.agent import SamplesWhenRead
from orchestrator.arrange import Arranger
from orchestrator.arrange import Files as Files
from orchestrator.clock import SYSTEM, Clock, Deadline, timestamp
from orchestrator.cool_down import CoolDown, Look, Pace
from orchestrator.deploy import Deployment
from orchestrator.errors import DevbenchError, DeviceUnfit, HostError, Interrupted, UsageError, during
from orchestrator.evidence import judge
from orchestrator.evidence_terms import Asked, Readiness, process_elsewhere
from orchestrator.fleet import Device, Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.platforms.base import Facts, Hold, Platform
from orchestrator.platforms.tracing import Recording, Tracer
from orchestrator.recorder import Recorder
from orchestrator.runners.base import Command, Places, Reading, RunnerError
from orchestrator.stage import Report, Stage, Trialling
from orchestrator.transports.base import Completed
from orchestrator.trial import Cell, Finding, Outcome, Severity, Slot, Trial
from orchestrator.trial_files import TrialFiles

_CONNECT_S = 60.0
_COMMAND_S = 60.0
_LOOK_S = 0.5
_TRANSCRIPT_MAX = 32 * 1024 * 1024


@dataclass(frozen=True)
class Kept:
    """What of a trial goes to the store beside its record."""

    transcript: bytes
    outputs: Mapping[str, bytes] = field(default_factory=dict)
    """The files that the runner wrote on the device, by role."""


@dataclass(frozen=True)
class Execution:
    """One run of a cell's command, judged."""

    started_at: str
    duration_s: float
    cool_down_s: float
    trialling: Trialling
    report: Report
    reading: Reading
    outcome: Outcome
    reason: str | None
    findings: tuple[Finding, ...]
    evidence: Mapping[str, Any]
    kept: Kept


class MakeCommand(Protocol):
    """A runner's `command`, or its `profile_command`."""

    def __call__(self, cell: Cell, places: Places, measure: Measure) -> Command: ...


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
            self._written = TrialFiles(self._transport, workdir)
            with during(f"probing {device.name}"):
                probed = self._stage.probe(Deadline.after(_COMMAND_S))
                self.facts: Facts = self.platform.facts(probed, self._ask)
            holds, held_findings = self.platform.holds(conditions, self.facts)
            self._arranger = self._an_arranger(kind.python(device), holds)
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

    def _an_arranger(self, python: str, holds: Sequence[Hold]) -> Arranger:
        return Arranger(
            self._stage,
            self._written,
            platform=self.platform,
            facts=self.facts,
            holds=holds,
            python=python,
            measure=self._measure,
            conditions=self._conditions,
            files=self._files,
            ask=self._ask,
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
        self._written.clear()

    def _ask(self, argv: Sequence[str]) -> Completed:
        return self._transport.run(list(argv), deadline=Deadline.after(_COMMAND_S))

    def use_runner(self, name: str, files: Mapping[str, Path], facts: Mapping[str, Any] | None = None) -> None:
        """The host files of a runner, by role, for all cells that name it; `facts` where its check was made before."""
        self._arranger.runner_files[name] = files
        self._arranger.runner_facts[name] = facts or {}

    def runner_facts(self, name: str) -> tuple[Mapping[str, Any], RunnerError | None]:
        """What the runner says of its runtime on this device, or why it cannot run here."""
        runner = registry.runner(name)
        command = runner.check_command(self._arranger.python, self._arranger.runner_places(name))
        completed = self._stage.check(command, Deadline.after(_COMMAND_S))
        facts, error = runner.read_check(completed.stdout.splitlines())
        if completed.exit != 0 and error is None:
            words = completed.stderr.decode("utf-8", "replace").strip().splitlines()
            message = words[-1] if words else f"status {completed.exit}"
            error = RunnerError("internal", message, f"run it by hand: {' '.join(command.argv)}", permanent=True)
        self._arranger.runner_facts[name] = facts
        return facts, error

    def delegate_trouble(self, label: str) -> str | None:
        """Why the libraries of a cell's delegate cannot be loaded here; None when they can, as far as files tell."""
        return self._arranger.delegate_trouble(label)

    def look(self) -> tuple[Sequence[Mapping[str, Any]], Mapping[str, Any], str | None]:
        """Telemetry of half a second, how the device is now, and which limit it breaks."""
        samples = self._stage.sample(_LOOK_S, Deadline.after(_COMMAND_S)).samples
        state = self.platform.state(samples, self._ask, self.facts)
        return samples, state, self.platform.breach(self._limits, state)

    def conduct(
        self,
        slot: Slot,
        *,
        run: str,
        session: str,
        stopped: Callable[[], bool],
        waiting: Callable[[str], None] | None = lambda _: None,
    ) -> tuple[Trial, Kept]:
        """The slot's trial, and what is kept beside it; `waiting` is told what the device is waited for. Without it the
        trial follows the one before as it is."""
        done = self._execute(slot.cell, registry.runner(slot.cell.runner).command, self._measure, stopped, waiting)
        trial = Trial(
            run=run,
            slot=slot,
            session=session,
            outcome=done.outcome,
            reason=done.reason,
            started_at=done.started_at,
            duration_s=done.duration_s,
            samples_us=done.reading.samples_us,
            warmup_us=done.reading.warmup_us,
            summary=done.reading.summary,
            metrics=_child_metrics(done.report, done.reading)
            | dict(done.reading.metrics)
            | {"cool_down_s": done.cool_down_s},
            telemetry=telemetry.columns(done.report),
            evidence=done.evidence,
            findings=done.findings,
        )
        return trial, done.kept

    def execute(
        self,
        cell: Cell,
        make: MakeCommand,
        stopped: Callable[[], bool],
        *,
        runs_max: int | None = None,
        within: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> Execution:
        """A cell run once for a purpose of its own: never a trial. `within` is entered when all is in place."""
        measure = replace(self._measure, runs=min(self._measure.runs, runs_max or self._measure.runs))
        return self._execute(cell, make, measure, stopped, lambda _: None, within)

    def tracers(self) -> Sequence[Tracer]:
        """What can record what this device does."""
        return self.platform.tracers(self.device, self.facts, self._ask)

    def recorder(self, recording: Recording, folder: str) -> Recorder:
        return Recorder(self._transport, recording, folder)

    def new_folder(self) -> str:
        """A folder on the device that no trial has had; it is not there yet."""
        return self._written.name()

    def _execute(
        self,
        cell: Cell,
        make: MakeCommand,
        measure: Measure,
        stopped: Callable[[], bool],
        waiting: Callable[[str], None] | None,
        within: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> Execution:
        readiness = self._cool_down.wait(stopped, waiting) if waiting else Readiness(self._state())
        started_at, began_s = timestamp(self._clock.now()), self._clock.monotonic_s()
        folder = self._written.name()
        with during(f"running {cell}"):
            trialling, cache = self._arranger.trialling(cell, partial(make, measure=measure), folder, stopped)
            with within():
                report = self._stage.run(trialling, stopped)
            if stopped():
                raise Interrupted("stopped", remedy="`devbench run --resume` goes on where it was")
            outputs, lost = self._written.pull(trialling.command.outputs)
            entries = self._written.entries(cache) if cache else None
            if cache or trialling.command.outputs:
                self._written.remove(folder)
        states = (readiness.state, self._state(report.samples))
        reading = registry.runner(cell.runner).read(report.stdout, report.stderr, outputs)
        asked = Asked(
            cell,
            measure,
            self._conditions,
            self.device.limits,
            trialling.affinity,
            trialling.holds,
            states,
            tuple(broken for state in states if (broken := self.platform.breach(self._limits, state))),
            readiness,
            own_delegate=self._files.delegate(cell.delegate),
            lost_outputs=lost,
            cache_entries=entries,
        )
        outcome, reason, findings = judge(asked, report, reading)
        evidence = _evidence(trialling, report, reading) | {
            "states": [dict(state) for state in states],
            "cool_down": readiness.as_json(),
        }
        if entries is not None:
            evidence["cache"] = {"condition": asked.delegate.cache, "entries": entries}
        return Execution(
            started_at=started_at,
            duration_s=round(self._clock.monotonic_s() - began_s, 3),
            cool_down_s=readiness.waited_s,
            trialling=trialling,
            report=report,
            reading=reading,
            outcome=outcome,
            reason=reason,
            findings=findings,
            evidence=evidence,
            kept=Kept(bytes(report.transcript[:_TRANSCRIPT_MAX]), outputs),
        )

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
