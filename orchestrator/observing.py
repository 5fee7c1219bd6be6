"""What is told about a run while it goes on, and how the work on each device ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.errors import DevbenchError
from orchestrator.op_profile import ProfilePass
from orchestrator.platforms.base import Facts
from orchestrator.trace import TracePass
from orchestrator.trial import Cell, Finding, Slot, Trial


@dataclass(frozen=True)
class Progress:
    """How far one device is: trials made, and what is missing until every cell has its least number of trials."""

    block: int
    done: int
    missing: int
    left_s: float


class Observer(Protocol):
    """Is told what happens; called from the devices' threads, one call at a time."""

    def device_ready(
        self, device: str, facts: Facts, findings: Sequence[Finding], skipped: Sequence[Trial]
    ) -> None: ...

    def trial_started(self, slot: Slot, progress: Progress) -> None: ...

    def waiting(self, slot: Slot, reason: str) -> None: ...

    def trial_done(self, trial: Trial, progress: Progress) -> None: ...

    def profiled(self, passed: ProfilePass) -> None: ...

    def traced(self, passed: TracePass) -> None: ...

    def noted(self, device: str, text: str) -> None: ...

    def trouble(self, device: str, error: DevbenchError) -> None: ...

    def device_ended(self, device: str, ending: str) -> None: ...


@dataclass
class DeviceResult:
    """How the work on one device ended."""

    device: str
    ending: str = "not started"
    error: DevbenchError | None = None
    incomplete: list[Cell] = field(default_factory=list)
    measured: int = 0
    began: bool = False
    profiled: int = 0
    unprofiled: list[ProfilePass] = field(default_factory=list)
    traced: int = 0
    untraced: list[TracePass] = field(default_factory=list)
