"""The transport protocol: five verbs to one device, and what they promise.

Every transport passes `tests/contract/`. A transport knows nothing of benchmarks. Commands are argument lists;
output is bytes until somebody parses it; every wait has a deadline; a deadline that passes kills what runs on the
device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from orchestrator.clock import Deadline
from orchestrator.fleet import AddressKeys, Device


@dataclass(frozen=True)
class Completed:
    """A command that ended by itself; a negative exit is the signal that ended it."""

    exit: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True)
class Patience:
    """How long nothing may come before a device is asked for a sign of life, and how long it may take to answer."""

    silence_s: float = 10.0
    echo_s: float = 10.0


class Process(Protocol):
    """A command under way on the device."""

    @property
    def at_end(self) -> bool:
        """Standard output has ended and has been received whole."""

    def receive(self, deadline: Deadline) -> bytes:
        """The next bytes of standard output; empty when the deadline passed first, or at the end."""

    def send(self, content: bytes) -> None:
        """Write to standard input; what a dead process can no longer read is dropped."""

    def close_input(self) -> None:
        """Close standard input, which tells an agent that its host is done with it."""

    def wait(self, deadline: Deadline) -> int:
        """The exit status. CommandTimeout, with the process killed, when the deadline passes first."""

    def kill(self) -> None:
        """End it now, children included; no error when it has ended."""

    @property
    def stderr_tail(self) -> bytes:
        """The last bytes of standard error, for messages."""


class Transport(Protocol):
    """A connection to one device. Usable from one thread at a time."""

    def run(self, argv: Sequence[str], *, deadline: Deadline, content: bytes = b"") -> Completed:
        """Run to the end, with `content` as standard input. CommandTimeout kills it."""

    def start(self, argv: Sequence[str]) -> Process:
        """Start and return at once."""

    def push(self, source: Path, target: str, *, deadline: Deadline, executable: bool = False) -> None:
        """Copy a file to the device, making folders on the way. A torn copy never has the name `target`."""

    def pull(self, source: str, target: Path, *, deadline: Deadline) -> None:
        """Copy a file from the device. A torn copy never has the name `target`."""

    @property
    def hardware_id(self) -> str | None:
        """Names the hardware itself, where the device tells: one phone under two addresses has one."""

    def close(self) -> None:
        """Let go of the device and of everything started on it."""


class TransportKind(Protocol):
    """What a transport registers under `devbench.transports`."""

    @property
    def address_keys(self) -> AddressKeys:
        """The keys of `[[device]]` that say where the device is."""

    def identity(self, device: Device) -> str:
        """Names the physical device: two entries with one identity are one device, and so is its lock."""

    def platform_name(self, device: Device) -> str | None:
        """The platform where it can be told from the address alone."""

    def default_workdir(self, device: Device) -> str:
        """Where devbench keeps its files on the device, unless devices.toml says otherwise."""

    def cores(self, device: Device) -> int | None:
        """The number of cores where it is known without touching the device."""

    def machine(self, device: Device) -> str | None:
        """The machine name (`uname -m`) where it is known without touching the device."""

    def python(self, device: Device) -> str:
        """The Python that runs Python runners on the device."""

    def attached(self, deadline: Deadline) -> Sequence[Mapping[str, str | int]]:
        """The addresses of devices that can be seen now, for `devbench init`; nothing is started to find them."""

    def open(self, device: Device, *, deadline: Deadline) -> Transport:
        """Connect."""
