"""The stage protocol: where the trials of one device happen. Behind it is our agent, or what a platform has instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from orchestrator.clock import Deadline
from orchestrator.runners.base import Command
from orchestrator.transports.base import Completed

if TYPE_CHECKING:
    from orchestrator.platforms.base import Hold


@dataclass(frozen=True)
class Trialling:
    """One trial to be run: the measured command beside a load."""

    command: Command
    load: str
    beside: Command | None
    placement: str
    settle_ms: int
    sample_ms: int
    affinity: str | None
    holds: Sequence[Hold]
    deadline_s: float


@dataclass
class Report:
    """What was said about one trial. Without `closing` the stream broke off."""

    header: Mapping[str, Any] = field(default_factory=dict)
    started: Mapping[str, Any] = field(default_factory=dict)
    stdout: list[bytes] = field(default_factory=list)
    stderr: list[bytes] = field(default_factory=list)
    samples: list[Mapping[str, Any]] = field(default_factory=list)
    loads: list[Mapping[str, Any]] = field(default_factory=list)
    warnings: list[Mapping[str, Any]] = field(default_factory=list)
    closing: Mapping[str, Any] = field(default_factory=dict)
    lines: int = 0
    unreadable: int = 0
    transcript: bytearray = field(default_factory=bytearray)
    unwatched: str | None = None
    """Why no agent watched this trial; None where one did."""

    @property
    def is_whole(self) -> bool:
        """The closing record arrived, and as many lines as it says."""
        return bool(self.closing) and self.closing.get("lines") == self.lines and not self.unreadable


class Stage(Protocol):
    """The files of one device, and what can be run there."""

    def probe(self, deadline: Deadline) -> Mapping[str, Any]:
        """What the device is, in the words of its platform."""

    def sample(self, seconds: float, deadline: Deadline) -> Report:
        """Telemetry for so long, as far as there is any; 0 is one sample."""

    def canary(self, affinity: str | None, deadline: Deadline) -> int:
        """How long a fixed piece of work takes now, in nanoseconds; DeviceUnfit where none can be run."""

    def check(self, command: Command, deadline: Deadline) -> Completed:
        """A runner's own check, to its end."""

    def run(self, trialling: Trialling, stopped: Callable[[], bool]) -> Report:
        """One trial. When `stopped` turns true everything that was started ends."""

    def ensure(self, source: Path, *, executable: bool = False) -> str:
        """Where `source` is on the device, pushed if its content is not there yet, its hash read back."""

    def ensure_together(self, sources: Mapping[str, Path]) -> tuple[str, ...]:
        """Where the files are on the device under these names, all in one folder; DeviceUnfit where that cannot be."""

    def prune(self) -> int:
        """Remove what earlier runs left on the device and nobody used for long; gives how many files went."""

    def clean(self) -> None:
        """Remove every file of devbench from the device."""
