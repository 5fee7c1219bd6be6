"""The stage of a jailbroken iPhone reached directly: plain commands over ssh, with no agent to watch them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ios_harness.failures import no_libraries
from ios_harness.shell_files import ShellFiles
from orchestrator.clock import Deadline
from orchestrator.errors import DeviceUnfit
from orchestrator.fleet import Device
from orchestrator.runners.base import Command
from orchestrator.stage import Report, Trialling
from orchestrator.transports.base import Completed, Process, Transport

UNWATCHED = "no agent runs on iOS"
_GRACE_S = 5.0
_TICK_S = 0.25
_MAX_AGE_DAYS = 30
_OUTPUT_MAX = 16 * 1024 * 1024
_MERGED = 'exec "$@" 2>&1'

# One question a line, because a jailbreak may lack any of these programs; what is missing stays empty.
_QUESTIONS: Mapping[str, str] = {
    "system": "uname -s",
    "kernel": "uname -r",
    "product": "sysctl -n hw.machine || uname -m",
    "cores": "sysctl -n hw.ncpu",
    "memory_bytes": "sysctl -n hw.memsize",
    "cpu": "uname -p",
    "os_version": "sw_vers -productVersion",
    "os_build": "sw_vers -buildVersion",
}
_PROBE = "; ".join(f'echo "{name}=$({question})"' for name, question in _QUESTIONS.items())


class JailbrokenStage:
    """One iPhone that lets us run programs of our own."""

    def __init__(self, transport: Transport, device: Device, workdir: str) -> None:
        self._transport = transport
        self._name = device.name
        self._files = ShellFiles(transport, workdir, device.name)

    def probe(self, deadline: Deadline) -> Mapping[str, Any]:
        done = self._transport.run(["sh", "-c", f"{{ {_PROBE}; }} 2>/dev/null"], deadline=deadline)
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        found = {key: value.strip() for line in lines for key, _, value in [line.partition("=")] if value.strip()}
        if found.get("system") != "Darwin":
            raise DeviceUnfit(
                f"{self._name}: {found.get('system', 'no system that tells its name')} runs there, not iOS",
                remedy='set platform = "linux" for a board; for an iPhone behind a Mac add gateway and udid',
            )
        return found

    def sample(self, seconds: float, deadline: Deadline) -> Report:
        """Nothing: no tool on such a phone tells heat or battery."""
        return Report(unwatched=UNWATCHED)

    def canary(self, affinity: str | None, deadline: Deadline) -> int:
        raise DeviceUnfit(UNWATCHED, remedy="leave canary out of [conditions] for iPhones")

    def check(self, command: Command, deadline: Deadline) -> Completed:
        return self._transport.run(_argv(command), deadline=deadline)

    def run(self, trialling: Trialling, stopped: Callable[[], bool]) -> Report:
        """One trial. If the connection breaks, the program ends by its own time limit: nobody there can end it."""
        process = self._transport.start(["sh", "-c", _MERGED, "sh", *_argv(trialling.command)])
        output = bytearray()
        try:
            reason = _follow(process, output, Deadline.after(trialling.deadline_s), stopped)
            status = process.wait(Deadline.after(_GRACE_S)) if reason == "exit" else 0
        finally:
            process.kill()
        closing: dict[str, Any] = {"reason": reason, "exit": status, "lines": 0}
        if status < 0:
            closing = {"reason": "signal", "signal": -status, "lines": 0}
        lines = bytes(output).splitlines()
        return Report(stdout=lines, closing=closing, transcript=output, unwatched=UNWATCHED)

    def ensure(self, source: Path, *, executable: bool = False) -> str:
        return self._files.ensure(source, executable=executable)

    def ensure_together(self, sources: Mapping[str, Path]) -> tuple[str, ...]:
        raise no_libraries(sources)

    def prune(self) -> int:
        return self._files.prune(_MAX_AGE_DAYS)

    def clean(self) -> None:
        self._files.remove(self._files.path("blobs"))


def _argv(command: Command) -> list[str]:
    return ["env", *(f"{key}={value}" for key, value in sorted(command.env.items())), *command.argv]


def _follow(process: Process, output: bytearray, deadline: Deadline, stopped: Callable[[], bool]) -> str:
    """Collect what the program says until it ends; gives why nothing more came."""
    while not process.at_end:
        if stopped():
            return "terminated"
        if deadline.passed:
            return "deadline"
        output += process.receive(deadline.sooner(_TICK_S))
        del output[_OUTPUT_MAX:]
    return "exit"
