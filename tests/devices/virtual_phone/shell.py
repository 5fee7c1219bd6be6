"""The services `shell:`, `shell,v2:` and `exec:`: a command's streams, carried by one adb stream."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .faults import Faults
from .link import Stream
from .sandbox import Command, Sandbox

_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = range(5)
_PACKET = struct.Struct("<BI")
_CANARY = re.compile(r"devbench-agent\S* canary\b")
_CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True)
class ShellRequest:
    """What the host asked for in the name of the service."""

    command: str
    v2: bool
    pty: bool
    term: str

    @classmethod
    def parse(cls, service: str) -> ShellRequest:
        head, _, command = service.partition(":")
        kind, *options = head.split(",")
        term = next((word.removeprefix("TERM=") for word in options if word.startswith("TERM=")), "dumb")
        # Only an interactive shell, or who asks for it, gets a terminal.
        pty = kind == "shell" and ("pty" in options or (not command and "raw" not in options))
        return cls(command=command, v2="v2" in options, pty=pty, term=term)


class ShellService:
    """Runs one command and carries its streams."""

    def __init__(
        self, stream: Stream, sandbox: Sandbox, faults: Faults, *, request: ShellRequest, env: Mapping[str, str]
    ) -> None:
        self._stream = stream
        self._sandbox = sandbox
        self._faults = faults
        self._request = request
        self._env = {**env, "TERM": request.term}
        self._sending = asyncio.Lock()
        self._close_later: list[Callable[[], None]] = []

    async def run(self, *, crlf: bool = False) -> None:
        """Returns when the command has ended and its output is sent. A host that goes away takes the command along."""
        self._crlf = crlf
        child_fds, outputs, stdin_fd = self._open_streams()
        argv = ["/system/bin/sh", "-c", _at_phone_clock(self._request.command)]
        if not self._request.command:
            argv = ["/system/bin/sh", "-"]
        command = self._sandbox.start_command(argv, self._env, child_fds, tty=self._request.pty)
        for fd in set(child_fds):
            os.close(fd)
        feeder = asyncio.create_task(self._feed(command, stdin_fd))
        try:
            await asyncio.gather(*(self._carry(fd, kind) for fd, kind in outputs))
            status = await command.status
            if self._request.v2:
                code = os.waitstatus_to_exitcode(status)
                await self._packet(_EXIT, bytes([code if code >= 0 else 128 - code]))
        finally:
            feeder.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await feeder
            for close in self._close_later:
                close()
            if not command.status.done():
                self._sandbox.hang_up(command)

    def _open_streams(self) -> tuple[tuple[int, int, int], list[tuple[int, int]], int]:
        """The command's three descriptors, ours to read with their kinds, and ours to write."""
        if self._request.pty:
            ours, theirs = os.openpty()
            return (theirs, theirs, theirs), [(ours, _STDOUT)], os.dup(ours)
        stdin_read, stdin_write = os.pipe()
        out_read, out_write = os.pipe()
        if not self._request.v2:
            return (stdin_read, out_write, out_write), [(out_read, _STDOUT)], stdin_write
        err_read, err_write = os.pipe()
        return (stdin_read, out_write, err_write), [(out_read, _STDOUT), (err_read, _STDERR)], stdin_write

    async def _carry(self, fd: int, kind: int) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_CHUNK_BYTES)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb", buffering=0)
        )
        self._close_later.append(transport.close)
        while True:
            try:
                chunk = await reader.read(_CHUNK_BYTES)
            except OSError:  # a terminal whose last user is gone
                return
            if not chunk:
                return
            await self._say(kind, chunk)

    async def _say(self, kind: int, chunk: bytes) -> None:
        allowed = self._faults.passes("drop_run_after", len(chunk))
        cut = allowed < len(chunk)
        chunk = chunk[:allowed]
        if self._crlf:
            chunk = chunk.replace(b"\n", b"\r\n")
        if self._request.v2:
            await self._packet(kind, chunk)
        else:
            async with self._sending:
                await self._stream.send(chunk)
        if cut:
            await self._stream.link.strike("drop_run_after")

    async def _packet(self, kind: int, payload: bytes) -> None:
        async with self._sending:
            await self._stream.send(_PACKET.pack(kind, len(payload)) + payload)

    async def _feed(self, command: Command, fd: int) -> None:
        """Carries the host's bytes to the command; when the host goes away, so does the command."""
        transport, protocol = await _write_pipe(fd)
        self._close_later.append(transport.close)
        buffer = b""
        while payload := await self._stream.receive():
            if not self._request.v2:
                transport.write(payload)
            else:
                buffer = self._unpack(buffer + payload, transport)
            await protocol.drained()
        if not command.status.done():
            self._sandbox.hang_up(command)
        transport.close()

    def _unpack(self, buffer: bytes, stdin: asyncio.WriteTransport) -> bytes:
        """Obeys all whole packets and returns what is left."""
        start = 0
        while len(buffer) - start >= _PACKET.size:
            kind, length = _PACKET.unpack_from(buffer, start)
            end = start + _PACKET.size + length
            if len(buffer) < end:
                break
            if kind == _STDIN and not stdin.is_closing():
                stdin.write(buffer[start + _PACKET.size : end])
            elif kind == _CLOSE_STDIN:
                stdin.close()
            start = end
        return buffer[start:]


def _at_phone_clock(command: str) -> str:
    """The agent's canary measures the host's CPU; the phone's model of heat and clocks puts its own pace in."""
    return f"set -o pipefail; {command} | held-clock" if _CANARY.search(command) else command


class _PipeFlow(asyncio.BaseProtocol):
    """Flow control of a pipe that we write."""

    def __init__(self) -> None:
        self._writable = asyncio.Event()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, _error: Exception | None) -> None:
        self._writable.set()

    async def drained(self) -> None:
        await self._writable.wait()


async def _write_pipe(fd: int) -> tuple[asyncio.WriteTransport, _PipeFlow]:
    loop = asyncio.get_running_loop()
    return await loop.connect_write_pipe(_PipeFlow, os.fdopen(fd, "wb", buffering=0))
