"""The platform protocol: what an operating system lets us read and hold steady."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

from orchestrator.fleet import Device, Limits
from orchestrator.plan import Conditions
from orchestrator.platforms.tracing import Tracer
from orchestrator.stage import Stage
from orchestrator.transports.base import Completed, Transport
from orchestrator.trial import Cell, Finding


@dataclass(frozen=True)
class Cluster:
    """CPUs of one kind. Names go from the fastest: big, mid, little; a machine of one kind has only `big`."""

    name: str
    cpus: tuple[int, ...]
    max_khz: int | None
    capacity: int | None


@dataclass(frozen=True)
class Facts:
    """What a device is. None is unknown; `absent` says what could not be read and why."""

    machine: str
    cpu_model: str | None
    cores: int
    clusters: tuple[Cluster, ...]
    kernel: str
    os: str | None
    memory_kb: int | None
    governor: str | None
    virtualisation: str | None
    sensors: tuple[str, ...]
    absent: Mapping[str, str]
    raw: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        clusters = [
            {"name": part.name, "cpus": list(part.cpus), "max_khz": part.max_khz, "capacity": part.capacity}
            for part in self.clusters
        ]
        return {
            "machine": self.machine,
            "cpu_model": self.cpu_model,
            "cores": self.cores,
            "clusters": clusters,
            "kernel": self.kernel,
            "os": self.os,
            "memory_kb": self.memory_kb,
            "governor": self.governor,
            "virtualisation": self.virtualisation,
            "sensors": list(self.sensors),
            "absent": dict(self.absent),
            "raw": dict(self.raw),
        }


@dataclass(frozen=True)
class Hold:
    """A file on the device that is given a value for the length of a trial, by the agent."""

    path: str
    value: str


Ask = Callable[[Sequence[str]], Completed]
"""Runs a short command on the device, within a deadline of the conductor's."""


class WithAgent:
    """What platforms have in common on which our agent runs."""

    has_loads = True
    trace_kinds: ClassVar[Sequence[str]] = ()
    no_traces: ClassVar[str] = "this platform knows no tracer"

    def tracers(self, device: Device, facts: Facts, ask: Ask) -> Sequence[Tracer]:
        return ()

    def for_device(self, device: Device) -> Self:
        return self

    def stage(self, transport: Transport, device: Device, workdir: str) -> Stage | None:
        return None

    def unsupported(self, cell: Cell, conditions: Conditions) -> str | None:
        return None


class Platform(Protocol):
    """What a platform registers under `devbench.platforms`."""

    @property
    def name(self) -> str:
        """What devices.toml calls it."""

    @property
    def limits(self) -> Sequence[str]:
        """The keys of `limits` it can check."""

    @property
    def default_limits(self) -> Limits:
        """What must hold there unless devices.toml says otherwise."""

    @property
    def default_runner(self) -> str:
        """What runs there when nobody says otherwise."""

    @property
    def machine_command(self) -> Sequence[str]:
        """Prints the machine name, so that the agent of the right architecture is pushed."""

    @property
    def has_loads(self) -> bool:
        """Whether a background load can be run there."""

    @property
    def trace_kinds(self) -> Sequence[str]:
        """The tracers it knows, by name, the best first."""

    @property
    def no_traces(self) -> str:
        """Why it knows none, where it knows none."""

    def tracers(self, device: Device, facts: Facts, ask: Ask) -> Sequence[Tracer]:
        """Its tracers as this very device has them, those with an obstacle among them, the best first."""

    def for_device(self, device: Device) -> Platform:
        """The platform as this very device has it: an iPhone behind a Mac lets us do other things than a freed one."""

    def stage(self, transport: Transport, device: Device, workdir: str) -> Stage | None:
        """What runs trials where our agent cannot; None where it can."""

    def unsupported(self, cell: Cell, conditions: Conditions) -> str | None:
        """Which setting cannot be had on any such device, and why; None when all can."""

    def facts(self, probed: Mapping[str, Any], ask: Ask) -> Facts:
        """What the device is: the agent's probe, and what else can be asked."""

    def affinity_mask(self, affinity: str, facts: Facts) -> str | None:
        """The hexadecimal mask for `any` (none), `big`, `mid`, `little` or a mask; ValueError where there is none."""

    def holds(self, conditions: Conditions, facts: Facts) -> tuple[tuple[Hold, ...], tuple[Finding, ...]]:
        """What the agent holds during a trial, and what was asked but is not permitted here."""

    def session(self, conditions: Conditions, facts: Facts, ask: Ask) -> AbstractContextManager[tuple[Finding, ...]]:
        """Holds for a whole session what no file can: applied, read back, and undone in reverse whatever happens."""

    def state(self, samples: Sequence[Mapping[str, Any]], ask: Ask, facts: Facts) -> Mapping[str, Any]:
        """How the device is now, as far as limits are about it: temperature, battery, thermal status."""

    def breach(self, limits: Limits, state: Mapping[str, Any]) -> str | None:
        """Which limit the state breaks, in words; None when all hold."""

    def is_slowed_by_heat(self, facts: Facts) -> bool:
        """Whether a canary shall tell, before every trial, that the device is back at its pace."""

    def fitness(self, facts: Facts) -> tuple[Finding, ...]:
        """What about this device makes its numbers harder to trust."""
