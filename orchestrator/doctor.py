"""What each device is, and whether this host and each device are fit to measure."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from device_agents import agent_binary
from orchestrator import registry, telemetry
from orchestrator.clock import Deadline
from orchestrator.conductor import Conductor, Files, platform_of, runner_trouble
from orchestrator.device_lock import device_lock
from orchestrator.device_storage import Storage
from orchestrator.errors import DevbenchError, DeviceBusy
from orchestrator.fleet import Device
from orchestrator.plan import Conditions, Measure
from orchestrator.platforms.base import Facts
from orchestrator.trial import Finding, Severity

_FREE_MB_MIN = 500
_BUSY_PER_CORE = 0.5
_CONNECT_S = 60.0


@dataclass(frozen=True)
class Examined:
    """One device as found now; `facts` is None when it could not be reached."""

    device: Device
    facts: Facts | None
    runners: Mapping[str, Mapping[str, Any]]
    findings: tuple[Finding, ...]

    @property
    def is_fit(self) -> bool:
        return not any(finding.severity == Severity.FAIL for finding in self.findings)

    @property
    def is_host_to_blame(self) -> bool:
        """Whether all that is wrong is a runtime missing on this very machine."""
        wrong = [finding for finding in self.findings if finding.severity == Severity.FAIL]
        return self.device.transport == "local" and all(finding.rule.startswith("runner-") for finding in wrong)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.device.name,
            "transport": self.device.transport,
            "tags": list(self.device.tags),
            "fit": self.is_fit,
            "facts": self.facts.as_json() if self.facts else None,
            "runners": {name: dict(facts) for name, facts in self.runners.items()},
            "findings": [finding.as_json() for finding in self.findings],
        }


def examine(devices: Sequence[Device]) -> list[Examined]:
    """Connect to every device at once and look."""
    with ThreadPoolExecutor(max_workers=min(32, max(1, len(devices)))) as pool:
        return list(pool.map(_examine_one, devices))


def clean(devices: Sequence[Device]) -> list[tuple[str, DevbenchError | None]]:
    """Remove devbench's files from every device; gives each name with the error where it could not be done."""
    with ThreadPoolExecutor(max_workers=min(32, max(1, len(devices)))) as pool:
        return list(pool.map(_clean_one, devices))


def _clean_one(device: Device) -> tuple[str, DevbenchError | None]:
    kind = registry.transport(device.transport)
    try:
        with device_lock(kind.identity(device), device=device.name, run="clean"):
            transport = kind.open(device, deadline=Deadline.after(_CONNECT_S))
            try:
                workdir = device.workdir or kind.default_workdir(device)
                stage = platform_of(device).stage(transport, device, workdir)
                (stage or Storage(transport, workdir)).clean()
            finally:
                transport.close()
    except DevbenchError as error:
        return device.name, error
    return device.name, None


def _examine_one(device: Device) -> Examined:
    """Looking disturbs a measurement, so a device that is being measured is left alone."""
    lock = partial(device_lock, device=device.name, run="doctor")
    try:
        with lock(registry.transport(device.transport).identity(device)):
            return _examine_free(device, lock)
    except DeviceBusy as error:
        return Examined(device, None, {}, (Finding("busy", Severity.WARN, error.fact, error.remedy),))
    except DevbenchError as error:
        return Examined(device, None, {}, (Finding("unreachable", Severity.FAIL, error.fact, error.remedy),))


def _examine_free(device: Device, lock: Callable[[str], AbstractContextManager[None]]) -> Examined:
    files = Files(models={}, load_models={})
    conductor = Conductor(device, measure=Measure(), conditions=Conditions(), files=files, lock=lock)
    try:
        return _examine_open(device, conductor)
    finally:
        conductor.close()


def _examine_open(device: Device, conductor: Conductor) -> Examined:
    findings = list(conductor.findings)
    runners: dict[str, Mapping[str, Any]] = {}
    main = device.runner or conductor.platform.default_runner
    for name in dict.fromkeys([main, *registry.runner_names()]):
        if conductor.platform.name not in registry.runner(name).platforms:
            continue
        try:
            runners[name] = _runner_facts(conductor, name)
        except DevbenchError as error:
            severity = Severity.FAIL if name == main else Severity.NOTE
            findings.append(Finding(f"runner-{name}", severity, f"{name}: {error.fact}", error.remedy))
    findings += _health(device, conductor)
    return Examined(device, conductor.facts, runners, tuple(findings))


def _runner_facts(conductor: Conductor, name: str) -> Mapping[str, Any]:
    """What the runner says of itself on this device; DevbenchError when it cannot run there."""
    files = registry.runner(name).files(name.partition(":")[2], conductor.facts.machine)
    conductor.use_runner(name, files)
    facts, error = conductor.runner_facts(name)
    if error:
        raise runner_trouble(conductor.device, error)
    return facts


def _health(device: Device, conductor: Conductor) -> list[Finding]:
    """How the device is at this moment: heat, battery, other programs."""
    findings = []
    samples, _, broken = conductor.look()
    if broken:
        findings.append(Finding("limit", Severity.WARN, broken, "let the device cool down, or charge it"))
    busy = telemetry.busy_cpus(samples)
    if busy is not None and busy > _BUSY_PER_CORE * conductor.facts.cores:
        reason = f"{busy:.1f} of {conductor.facts.cores} CPUs are busy with other programs"
        findings.append(Finding("busy", Severity.WARN, reason, "stop them before measuring"))
    return findings


def host_findings(store_folder: Path) -> list[Finding]:
    """What this host lacks."""
    findings = []
    missing = [machine for machine in ("x86_64", "aarch64", "armv7l") if agent_binary(machine) is None]
    if missing:
        reason = f"no device agent for {', '.join(missing)} in this installation"
        findings.append(Finding("agents", Severity.WARN, reason, "build them with `make agents`"))
    place = store_folder.resolve()
    while not place.exists():
        place = place.parent
    free_mb = shutil.disk_usage(place).free // 1_000_000
    if free_mb < _FREE_MB_MIN:
        reason = f"only {free_mb} MB free where the store {store_folder} is"
        findings.append(Finding("disk", Severity.WARN, reason, "free space, or point --store elsewhere"))
    return findings
