"""The world in which a phone's commands run: a client of phone_init, which confines them."""

from __future__ import annotations

import array
import asyncio
import contextlib
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..build import build

#: adb's shell user. The user who runs the tests is this one on the phone.
SHELL_UID = 2000
_TTY = 1
_HANG_UP_AFTER_S = (0.0, 0.02, 0.1, 0.3, 1.0)


class NoSandbox(Exception):
    """This machine does not let a user make namespaces; the message says what failed."""


@dataclass(frozen=True)
class Process:
    """One process on the phone."""

    pid: int
    argv: tuple[str, ...]
    cpu_s: float


@dataclass
class Command:
    """A command that was started; `status` is as `wait` gives it."""

    id: int
    status: asyncio.Future[int]


class Sandbox:
    """One phone's processes and file systems. Lives in the event loop that started it."""

    def __init__(self, init: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._init = init
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[int] = self._loop.create_future()
        self._answers: list[asyncio.Future[int]] = []
        self._commands: dict[int, Command] = {}
        self._next_id = 1
        self.root_fd = -1
        self._loop.add_reader(control, self._listen)

    @classmethod
    async def start(
        cls, phone_dir: Path, *, system_dir: Path, cpus: int, data_bytes: int, within: Sequence[str] = ()
    ) -> Sandbox:
        """A sandbox that is ready for commands; `within` are words before its own, such as `unshare --net`."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        words = [build("phone_init"), phone_dir, system_dir, SHELL_UID, cpus, data_bytes, theirs.fileno()]
        init = subprocess.Popen(
            [*within, *(str(word) for word in words)],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        theirs.close()
        sandbox = cls(init, ours)
        try:
            sandbox.root_fd = await asyncio.wait_for(sandbox._ready, 20)
        except (EOFError, TimeoutError) as error:
            sandbox.stop()
            assert init.stderr is not None
            raise NoSandbox(init.stderr.read().decode(errors="replace").strip() or repr(error)) from error
        assert init.stderr is not None
        init.stderr.close()  # what it says later nobody reads, and descriptors are scarce with many phones
        return sandbox

    @property
    def pid(self) -> int:
        """The process on the host that holds the phone's namespaces."""
        return self._init.pid

    def stop(self) -> None:
        """Ends everything on the phone."""
        self._loop.remove_reader(self._control)
        self._control.close()
        self._init.kill()  # process 1 dies with its parent, and everything with process 1
        self._init.wait()
        if self.root_fd >= 0:
            os.close(self.root_fd)
            self.root_fd = -1
        self._lost()

    def _lost(self) -> None:
        """Everything that waits for this phone's processes is told that they are dead."""
        if not self._ready.done():
            self._ready.set_exception(EOFError("phone_init ended"))
        for command in self._commands.values():
            if not command.status.done():
                command.status.set_result(signal.SIGKILL)
        self._commands.clear()

    def start_command(
        self, argv: Sequence[str], env: Mapping[str, str], streams: tuple[int, int, int], *, tty: bool = False
    ) -> Command:
        """Starts a command with these descriptors as its standard streams; they stay the caller's to close."""
        command = Command(self._next_id, self._loop.create_future())
        self._next_id += 1
        words = [*argv, *(f"{name}={value}" for name, value in env.items())]
        head = struct.pack("<cIII", b"S", command.id, _TTY if tty else 0, len(argv))
        body = b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
        self._commands[command.id] = command
        try:
            self._control.sendmsg([head + body], rights)
        except OSError:  # too long for one packet, as a command line can be too long for exec
            del self._commands[command.id]
            command.status.set_result(126 << 8)
        return command

    def hang_up(self, command: Command) -> None:
        """Signals SIGHUP to the command and what it started, but for what left its process group.

        More than once: a shell that is about to start a program can swallow the first one, and mksh then waits for
        a program that has never heard of it.
        """
        for after_s in _HANG_UP_AFTER_S:
            self._loop.call_later(after_s, self._signal_group, command, signal.SIGHUP)

    def _signal_group(self, command: Command, number: int) -> None:
        with contextlib.suppress(OSError):  # the whole phone may be gone by now
            self._control.send(struct.pack("<cIi", b"K", command.id, number))

    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        """Signals one process by its number on the phone; -1 is every process but the first."""
        self._control.send(struct.pack("<cIi", b"P", pid & 0xFFFFFFFF, number))

    async def set_data_bytes(self, size: int) -> None:
        """The size of /data; OSError when it holds more already."""
        await self._ask(struct.pack("<cIQ", b"Q", 0, size))

    async def set_noexec(self, noexec: bool) -> None:
        """Whether programs in /data can be executed."""
        await self._ask(struct.pack("<cIi", b"N", 0, int(noexec)))

    async def _ask(self, packet: bytes) -> None:
        answer: asyncio.Future[int] = self._loop.create_future()
        self._answers.append(answer)
        self._control.send(packet)
        error = await answer
        if error:
            raise OSError(error, os.strerror(error))

    def _listen(self) -> None:
        try:
            packet, fds, _flags, _address = socket.recv_fds(self._control, 64, 1)
        except BlockingIOError:
            return
        except OSError:
            packet, fds = b"", []
        if not packet:
            self._loop.remove_reader(self._control)
            self._lost()
        elif packet[:1] == b"H":
            self._ready.set_result(fds[0])
        else:
            kind, number, value = struct.unpack("<cIi", packet)
            if kind == b"A":
                self._answers.pop(0).set_result(value)
            elif (command := self._commands.pop(number, None)) is not None and not command.status.done():
                command.status.set_result(value)

    def processes(self) -> list[Process]:
        """What runs on the phone, but for its process 1."""
        found = []
        proc = Path(f"/proc/self/fd/{self.root_fd}/proc")
        for name in (entry.name for entry in proc.iterdir()):
            if not name.isdigit() or name == "1":
                continue
            try:
                argv = (proc / name / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                fields = (proc / name / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue  # ended meanwhile
            if fields[0] not in "ZX":
                ticks = int(fields[11]) + int(fields[12])
                words = tuple(word.decode(errors="replace") for word in argv)
                found.append(Process(int(name), words, ticks / os.sysconf("SC_CLK_TCK")))
        return found
