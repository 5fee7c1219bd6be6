"""Files to and from a phone, by the service `sync:` of its daemon."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import struct
import tempfile
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from android_harness.adb_link import AdbLink
from android_harness.adb_wire import READABLE, WRITABLE, Connection, LinkEnded, WireError
from orchestrator.clock import Deadline
from orchestrator.errors import DeviceError, DeviceUnfit, HostError
from orchestrator.transports.posix_shell import quoted
from orchestrator.transports.remote_commands import file_error

_HEAD = struct.Struct("<4sI")
_STAT = struct.Struct("<4sIII")
_DATA_BYTES_MAX = 64 * 1024
_SLOTS = 16
_CLEAN_S = 5.0
TEMPORARY = ".devbench-push-"


class TransferRefused(Exception):
    """The phone said why it does not take or give the file."""


class AdbFiles:
    """Pushes and pulls for one phone."""

    def __init__(self, link: AdbLink) -> None:
        self._link = link
        self._leftovers: set[str] = set()
        """Torn files that the phone could not be told to remove."""

    def push(self, source: Path, target: str, deadline: Deadline, *, executable: bool) -> None:
        temporary = str(PurePosixPath(target).parent / f"{TEMPORARY}{secrets.token_hex(8)}")
        mode = stat.S_IFREG | (0o755 if executable else 0o644)
        try:
            with source.open("rb", buffering=0) as content, self._link.translated():
                self._leftovers.add(temporary)
                sent, kept = self._send(content, temporary, mode, deadline)
                if sent & 0xFFFFFFFF != kept:
                    raise DeviceError(
                        f"{self._link.name} kept {kept} of {sent} bytes of {source.name}",
                        remedy="check the phone's storage; then run again",
                    )
                self._rename(temporary, target, deadline)
        except TransferRefused as error:
            raise file_error(self._link.name, f"write {target}", str(error)) from error
        except OSError as error:
            raise DeviceUnfit(f"cannot read {source}: {error.strerror}", remedy="check path and permissions") from error
        finally:
            self._remove_leftovers()

    def _send(self, content: FileIO, path: str, mode: int, deadline: Deadline) -> tuple[int, int]:
        """How many bytes went out, and how large the phone says the file is (32 bits of it)."""
        # Now, not the source's: by this the age of what a cut link leaves behind is told.
        modified = int(deadline.clock.now().timestamp()) & 0xFFFFFFFF
        with self._link.open(b"sync:", deadline) as connection:
            request = f"{path},{mode}".encode("utf-8", "surrogateescape")
            connection.send(_HEAD.pack(b"SEND", len(request)) + request, deadline)
            sent = _send_content(connection, content, deadline)
            connection.send(_HEAD.pack(b"DONE", modified), deadline)
            _expect_okay(connection, deadline)
            # Not in the same breath: two answers in a row meet Nagle in the server and cost 40 ms.
            name = path.encode("utf-8", "surrogateescape")
            connection.send(_HEAD.pack(b"STAT", len(name)) + name, deadline)
            _, _, kept, _ = _STAT.unpack(connection.exactly(_STAT.size, deadline))
            return sent, kept

    def _rename(self, temporary: str, target: str, deadline: Deadline) -> None:
        """Give it its name. Into a folder of that name it would vanish, so that is refused."""
        old, new = quoted([temporary]), quoted([target])
        script = f"if [ -d {new} ]; then echo 'mv: Is a directory'; exit 1; fi; mv -f {old} {new}"
        answer = self._link.ask(script, deadline)
        if answer.status:
            raise TransferRefused(answer.text)
        self._leftovers.discard(temporary)

    def _remove_leftovers(self) -> None:
        if not self._leftovers:
            return
        with contextlib.suppress(WireError):
            self._link.ask(f"rm -f {quoted(sorted(self._leftovers))}", Deadline.after(_CLEAN_S))
            self._leftovers.clear()

    def pull(self, source: str, target: Path, deadline: Deadline) -> None:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".pull-")
            try:
                with os.fdopen(descriptor, "wb") as out, self._link.translated():
                    self._receive(source, out, deadline)
                Path(temporary).chmod(0o644)
                Path(temporary).replace(target)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except TransferRefused as error:
            raise file_error(self._link.name, f"read {source}", str(error)) from error
        except OSError as error:
            raise HostError(
                f"cannot write {target}: {error.strerror}", remedy="check path, permissions and free space"
            ) from error

    def _receive(self, path: str, out: BinaryIO, deadline: Deadline) -> None:
        with self._link.open(b"sync:", deadline) as connection:
            name = path.encode("utf-8", "surrogateescape")
            connection.send(_HEAD.pack(b"RECV", len(name)) + name, deadline)
            content = _Content(out)
            while not content.is_whole:
                chunk = connection.receive(1 << 20, deadline)
                if not chunk:
                    raise LinkEnded("the file was cut off")
                content.feed(chunk)


def _send_content(connection: Connection, content: FileIO, deadline: Deadline) -> int:
    """Send a file as messages of 64 KiB, many in one call; how many bytes it had."""
    slot = _HEAD.size + _DATA_BYTES_MAX
    frame = bytearray(slot * _SLOTS)
    view = memoryview(frame)
    total = 0
    while True:
        end = 0
        for number in range(_SLOTS):
            start = number * slot
            count = content.readinto(view[start + _HEAD.size : start + slot])
            if not count:
                break
            _HEAD.pack_into(frame, start, b"DATA", count)
            end = start + _HEAD.size + count
            total += count
            if count < _DATA_BYTES_MAX:
                break
        if not end:
            return total
        rest = view[:end]
        while rest:
            ready = connection.wait(READABLE | WRITABLE, deadline)
            if ready & ~WRITABLE:
                _expect_okay(connection, deadline)  # before we are done, the daemon speaks only to say why it failed
            rest = rest[connection.send_some(rest) :]


def _expect_okay(connection: Connection, deadline: Deadline) -> None:
    answer, length = _HEAD.unpack(connection.exactly(_HEAD.size, deadline))
    if answer == b"OKAY":
        return
    if answer == b"FAIL":
        raise TransferRefused(connection.exactly(length, deadline).decode("utf-8", "replace"))
    raise LinkEnded(f"unexpected answer {answer!r}")


class _Content:
    """A file that comes as messages, cut anywhere; what is the file's is written as it comes."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._head = bytearray()
        self._kind = b""
        self._left = 0
        self._reason = b""
        self.is_whole = False

    def feed(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view and not self.is_whole:
            if self._left:
                part, view = view[: self._left], view[self._left :]
                self._left -= len(part)
                self._take(part)
            else:
                missing = _HEAD.size - len(self._head)
                self._head += view[:missing]
                view = view[missing:]
                self._begin()

    def _begin(self) -> None:
        """Read the head of a message when all of it has come."""
        if len(self._head) < _HEAD.size:
            return
        self._kind, self._left = _HEAD.unpack(self._head)
        self._head.clear()
        if self._kind == b"DONE":
            self.is_whole = True
        elif self._kind not in (b"DATA", b"FAIL"):
            raise LinkEnded(f"unexpected answer {self._kind!r}")

    def _take(self, part: memoryview) -> None:
        if self._kind == b"DATA":
            self._out.write(part)
            return
        self._reason += part
        if not self._left:
            raise TransferRefused(self._reason.decode("utf-8", "replace"))
