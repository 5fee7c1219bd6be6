"""What commands on a device at the other end of a link have in common: run to the end, and what their failures mean."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Protocol

from orchestrator.clock import Deadline
from orchestrator.errors import CommandTimeout, DeviceError, DeviceFull, DeviceLost, DeviceUnfit
from orchestrator.transports.base import Completed, Process


class RemoteProcess(Process, Protocol):
    """A command under way that can say more than its contract asks for."""

    @property
    def has_ended(self) -> bool:
        """Nothing of it is left to wait for."""

    @property
    def exit(self) -> int:
        """How it ended. DeviceUnfit when it could not be started, DeviceLost when nobody knows."""

    def overdue(self) -> DeviceError:
        """Kill it because its time is over; the error says whether the device still heard us."""


def run_to_end(process: RemoteProcess, content: bytes, deadline: Deadline) -> Completed:
    """Give it its input, and take all that it says. When the deadline passes it is killed."""
    try:
        process.send(content)
        process.close_input()
        output = []
        while not process.at_end:
            output.append(process.receive(deadline))
            if deadline.passed and not process.has_ended:
                raise process.overdue()
        status = process.exit
        return Completed(status, b"".join(output), process.stderr_tail)
    finally:
        process.kill()


def cannot_start(program: str, device: str, status: int, stderr: bytes) -> DeviceError:
    """What the shell's status for a program that it could not start means."""
    if status == 127:
        return DeviceUnfit(
            f"no program {program} on {device}",
            remedy="check the path; one that is there but needs another libc or CPU cannot start either",
        )
    said = stderr.decode("utf-8", "replace").strip()
    return DeviceUnfit(
        f"cannot start {program} on {device}: {said.rpartition(': ')[2]}",
        remedy="its folder may be mounted noexec, or it is built for another CPU: see workdir in devices.toml",
    )


def too_late(program: str, device: str, *, was_killed: bool) -> DeviceError:
    """A command whose deadline passed, on a device that could be told to end it, or not."""
    name = PurePosixPath(program).name
    if was_killed:
        return CommandTimeout(
            f"{name} did not end in time and was killed", remedy=f"see whether {device} is overloaded"
        )
    return DeviceLost(
        f"{device} no longer answers; {name} may still run there",
        remedy="check its power and its cable or network, or restart it; then `devbench run --resume`",
    )


def left_early(program: str, device: str) -> DeviceError:
    """A command that nobody waited for."""
    return DeviceLost(
        f"{device} was left before {PurePosixPath(program).name} ended",
        remedy="reconnect it, then `devbench run --resume`",
    )


def file_error(device: str, action: str, reason: str) -> DeviceError:
    """What a device's reason for not storing or giving a file means."""
    text = reason.strip().splitlines()[-1].rpartition(": ")[2] if reason.strip() else "no reason given"
    if "No space left" in reason or "quota" in reason.lower():
        return DeviceFull(f"{device} has no space left: cannot {action}", remedy="free space on it, then run again")
    return DeviceUnfit(f"{device}: cannot {action}: {text}", remedy="check the path; set workdir in devices.toml")
