"""The local transport: this machine as a device."""

from __future__ import annotations

import contextlib
import os
import platform
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from orchestrator.clock import Deadline
from orchestrator.errors import CommandTimeout, DeviceError, DeviceFull, DeviceUnfit
from orchestrator.fleet import AddressKeys, Device
from orchestrator.transports.base import Completed, Process, Transport
from orchestrator.whole_files import copy_whole

_STDERR_KEPT = 16 * 1024
_CHUNK = 64 * 1024


class LocalKind:
    """Registers this machine; there is only one, so it takes no address."""

    address_keys: ClassVar[AddressKeys] = {}

    def identity(self, device: Device) -> str:
        return "local"

    def platform_name(self, device: Device) -> str | None:
        return "linux" if sys.platform == "linux" else None

    def default_workdir(self, device: Device) -> str:
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        return str(Path(cache) / "devbench" / "device")

    def cores(self, device: Device) -> int | None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()

    def machine(self, device: Device) -> str | None:
        return platform.machine()

    def python(self, device: Device) -> str:
        return sys.executable

    def attached(self, deadline: Deadline) -> Sequence[Mapping[str, str | int]]:
        return ({},)

    def open(self, device: Device, *, deadline: Deadline) -> Transport:
        return LocalTransport()


LOCAL = LocalKind()


class LocalProcess:
    """A child in a process group of its own, so that killing it takes its children along."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = list(argv)
        self._child = _spawn(self._argv)
        self._stderr = bytearray()
        self._drain = threading.Thread(target=self._keep_stderr, daemon=True)
        self._drain.start()
        self._selector = selectors.DefaultSelector()
        assert self._child.stdout
        self._selector.register(self._child.stdout, selectors.EVENT_READ)
        self.at_end = False

    def _keep_stderr(self) -> None:
        assert self._child.stderr
        while chunk := os.read(self._child.stderr.fileno(), _CHUNK):
            self._stderr += chunk
            del self._stderr[:-_STDERR_KEPT]

    @property
    def stderr_tail(self) -> bytes:
        return bytes(self._stderr)

    def receive(self, deadline: Deadline) -> bytes:
        if self.at_end or not self._selector.select(deadline.left_s):
            return b""
        assert self._child.stdout
        chunk = os.read(self._child.stdout.fileno(), _CHUNK)
        self.at_end = not chunk
        return chunk

    def send(self, content: bytes) -> None:
        assert self._child.stdin
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._child.stdin.write(content)
            self._child.stdin.flush()

    def close_input(self) -> None:
        assert self._child.stdin
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.close()

    def wait(self, deadline: Deadline) -> int:
        try:
            status = self._child.wait(deadline.left_s)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise _timeout(self._argv) from error
        self._let_go()
        return status

    def kill(self) -> None:
        """Only while the child has not been waited for: afterwards its number may belong to a stranger."""
        if self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        self._let_go()

    @property
    def has_ended(self) -> bool:
        return self._child.returncode is not None

    def _let_go(self) -> None:
        self._drain.join(timeout=1.0)
        self._selector.close()
        for stream in (self._child.stdin, self._child.stdout, self._child.stderr):
            with contextlib.suppress(OSError):
                if stream:
                    stream.close()


class LocalTransport:
    """Runs commands and copies files on this machine."""

    hardware_id: str | None = None

    def __init__(self) -> None:
        self._started: list[LocalProcess] = []

    def run(self, argv: Sequence[str], *, deadline: Deadline, content: bytes = b"") -> Completed:
        child = _spawn(list(argv))
        try:
            stdout, stderr = child.communicate(content, timeout=deadline.left_s)
        except subprocess.TimeoutExpired as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # not waited for yet, so the number is still the child's
            child.communicate()
            raise _timeout(argv) from error
        return Completed(child.returncode, stdout, stderr)

    def start(self, argv: Sequence[str]) -> Process:
        process = LocalProcess(argv)
        self._started = [other for other in self._started if not other.has_ended]
        self._started.append(process)
        return process

    def push(self, source: Path, target: str, *, deadline: Deadline, executable: bool = False) -> None:
        _copy(source, Path(target), mode=0o755 if executable else 0o644)

    def pull(self, source: str, target: Path, *, deadline: Deadline) -> None:
        _copy(Path(source), target, mode=0o644)

    def close(self) -> None:
        for process in self._started:
            process.kill()
        self._started.clear()


def _spawn(argv: list[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
    except FileNotFoundError as error:
        raise DeviceUnfit(f"no program {argv[0]} on this machine", remedy="check the path") from error
    except PermissionError as error:
        raise DeviceUnfit(
            f"cannot start {argv[0]}: {error.strerror}",
            remedy="its folder may be mounted noexec: set workdir in devices.toml to another one",
        ) from error
    except OSError as error:
        raise DeviceUnfit(
            f"cannot start {argv[0]}: {error.strerror}", remedy="check that it is built for this CPU"
        ) from error


def _timeout(argv: Sequence[str]) -> CommandTimeout:
    return CommandTimeout(
        f"{Path(argv[0]).name} did not end in time and was killed",
        remedy="see whether this machine is overloaded",
    )


def _copy(source: Path, target: Path, *, mode: int) -> None:
    """Copy so that whoever sees `target` sees all of it."""
    try:
        copy_whole(source, target, mode)
    except OSError as error:
        raise _copy_error(source, target, error) from error


def _copy_error(source: Path, target: Path, error: OSError) -> DeviceError:
    if error.errno in (28, 122):  # ENOSPC, EDQUOT
        return DeviceFull(f"no space left for {target}", remedy=f"free space in {target.parent}")
    return DeviceUnfit(
        f"cannot copy {source} to {target}: {error.strerror}",
        remedy="check path and permissions, or set workdir in devices.toml to another place",
    )
