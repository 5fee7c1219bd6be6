"""A command line for a phone's shell, and how its output is read: pure.

Two ways. Phones since Android 7 offer `shell_v2`: packets for each stream and the exit status. Older ones (5 and 6)
have `exec:`, one stream both ways and nothing else, so a script around the command does the rest: it says the status
after a nonce, keeps standard error in a file until the end, and decodes input that comes in lines, since such a
stream cannot be closed in one direction only.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Sequence
from typing import Protocol

from android_harness.adb_wire import Refused
from orchestrator.transports.posix_shell import CANNOT_START, becoming

_PACKET = struct.Struct("<BI")
_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = range(5)
_PACKET_BYTES_MAX = 32 * 1024
_LINE_BYTES_MAX = 512


class Dialect(Protocol):
    """One command in one of the two ways. Bytes go in as they come; what they mean is in the attributes."""

    pid: int | None
    stdout: bytearray
    stderr: bytearray
    status: int | None
    """What the shell says of the command's end; all output has come by then."""
    has_started: bool
    """False when the status is the shell's own, because it could not start the program."""

    @property
    def service(self) -> bytes:
        """What to ask of the phone's daemon."""

    def feed(self, chunk: bytes) -> None: ...

    def input(self, content: bytes) -> bytes: ...

    def end_of_input(self) -> bytes: ...

    @property
    def traces(self) -> str:
        """A file that is left on the phone when the command is killed; empty for none."""


class _Common:
    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv
        self._nonce = secrets.token_hex(16)
        self.pid: int | None = None
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.status: int | None = None
        self.has_started = True

    def _take_pid(self, output: bytearray) -> None:
        """The first line of output is the number of the process group."""
        line, newline, _ = output.partition(b"\n")
        if newline and not line.isdigit():  # a daemon that cannot start a shell says so in its place
            raise Refused(line.decode("utf-8", "replace").strip())
        if newline:
            self.pid = int(line)
            del output[: len(line) + 1]

    def _ended(self, status: int) -> None:
        self.status = status
        mark = self._nonce.encode() + b"\n"
        if self.stderr.endswith(mark):
            del self.stderr[-len(mark) :]
            # Some shells also come back from exec of a command that is built in, with that command's status.
            self.has_started = status not in CANNOT_START


class ShellV2(_Common):
    """The way of phones since Android 7."""

    traces = ""

    def __init__(self, argv: Sequence[str]) -> None:
        super().__init__(argv)
        self._buffer = bytearray()

    @property
    def service(self) -> bytes:
        return f"shell,v2,raw:echo $$; {becoming(self._argv, self._nonce)}".encode("utf-8", "surrogateescape")

    def feed(self, chunk: bytes) -> None:
        buffer = self._buffer
        buffer += chunk
        start = 0
        while len(buffer) - start >= _PACKET.size:
            kind, length = _PACKET.unpack_from(buffer, start)
            end = start + _PACKET.size + length
            if len(buffer) < end:
                break
            self._obey(kind, memoryview(buffer)[start + _PACKET.size : end].tobytes())
            start = end
        del buffer[:start]

    def _obey(self, kind: int, payload: bytes) -> None:
        if kind == _STDOUT:
            self.stdout += payload
            if self.pid is None:
                self._take_pid(self.stdout)
        elif kind == _STDERR:
            self.stderr += payload
        elif kind == _EXIT:
            self._ended(payload[0])

    def input(self, content: bytes) -> bytes:
        parts = [content[at : at + _PACKET_BYTES_MAX] for at in range(0, len(content), _PACKET_BYTES_MAX)]
        return b"".join(_PACKET.pack(_STDIN, len(part)) + part for part in parts)

    def end_of_input(self) -> bytes:
        return _PACKET.pack(_CLOSE_STDIN, 0)


_ESCAPED = [b"\\0%03o" % byte for byte in range(256)]
"""Android's `echo` turns these back into the bytes, NUL included, and needs no other program for it."""


class ExecV1(_Common):
    """The way of phones before Android 7."""

    def __init__(self, argv: Sequence[str]) -> None:
        super().__init__(argv)
        self._buffer = bytearray()
        self._shell_status: int | None = None
        self.traces = f"/data/local/tmp/.devbench-{self._nonce}"

    @property
    def service(self) -> bytes:
        nonce, kept = self._nonce, self.traces
        reader = 'while IFS= read -r l && [ "$l" != . ]; do echo "$l"; done'
        # In parentheses: a shell ends when it cannot redirect for a built-in, and then stderr goes with stdout.
        keep = f"if ( : >{kept} ) 2>/dev/null; then exec 4>{kept}; else exec 4>&1; fi"
        run = f"( {becoming(self._argv, nonce)} ) 2>&4 4>&-"
        tell = f'echo "{nonce} $?"; cat {kept} 2>/dev/null; rm -f {kept}; echo {nonce}.'
        return f"exec:echo $$; {keep}; {reader} | {{ {run}; {tell}; }}".encode("utf-8", "surrogateescape")

    def feed(self, chunk: bytes) -> None:
        self._buffer += chunk
        if self.pid is None:
            self._take_pid(self._buffer)
        if self.pid is not None and self._shell_status is None:
            self._read_output()
        if self._shell_status is not None:
            self._read_errors(self._shell_status)

    def _read_output(self) -> None:
        """Output up to the nonce; what may be the beginning of it waits for the rest."""
        mark = self._nonce.encode() + b" "
        at = self._buffer.find(mark)
        if at < 0:
            lengths = range(len(mark) - 1, 0, -1)
            held = next((length for length in lengths if self._buffer.endswith(mark[:length])), 0)
            safe = len(self._buffer) - held
            self.stdout += self._buffer[:safe]
            del self._buffer[:safe]
            return
        end = self._buffer.find(b"\n", at)
        if end >= 0:
            self._shell_status = int(self._buffer[at + len(mark) : end])
            self.stdout += self._buffer[:at]
            del self._buffer[: end + 1]

    def _read_errors(self, status: int) -> None:
        mark = f"{self._nonce}.\n".encode()
        if self._buffer.endswith(mark):
            self.stderr += self._buffer[: -len(mark)]
            self._buffer.clear()
            self._ended(status)

    def input(self, content: bytes) -> bytes:
        lines = [content[at : at + _LINE_BYTES_MAX] for at in range(0, len(content), _LINE_BYTES_MAX)]
        return b"".join(b"".join(_ESCAPED[byte] for byte in line) + b"\\c\n" for line in lines)

    def end_of_input(self) -> bytes:
        return b".\n"
