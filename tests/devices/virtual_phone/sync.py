"""The service `sync:`: files and directories to and from the phone, in both versions of the protocol."""

from __future__ import annotations

import contextlib
import os
import stat
import struct

from .faults import Faults
from .link import LinkCut, Stream
from .sandbox import SHELL_UID
from .storage import PhoneFiles

_REQUEST = struct.Struct("<4sI")
_STAT_V1 = struct.Struct("<4sIII")
_DENT_V1 = struct.Struct("<4sIIII")
_STAT_V2 = struct.Struct("<4sIQQIIIIQqqq")
_DENT_V2 = struct.Struct("<4sIQQIIIIQqqqI")
_DATA_BYTES_MAX = 64 * 1024
_PATH_BYTES_MAX = 1024


class _Feed:
    """Reads exact counts of bytes from a stream's messages."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._chunk = memoryview(b"")

    async def exactly(self, count: int) -> bytes:
        parts = []
        while count:
            if not self._chunk:
                self._chunk = memoryview(await self._stream.receive())
                if not self._chunk:
                    raise LinkCut("the host went away in the middle of a request")
            part, self._chunk = self._chunk[:count], self._chunk[count:]
            parts.append(part)
            count -= len(part)
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


class SyncService:
    """Answers requests until the host quits."""

    def __init__(self, stream: Stream, files: PhoneFiles, faults: Faults) -> None:
        self._stream = stream
        self._files = files
        self._faults = faults
        self._feed = _Feed(stream)

    async def run(self) -> None:
        """Returns when the host has said QUIT or gone away, or said something that is no request."""
        while True:
            try:
                request, length = _REQUEST.unpack(await self._feed.exactly(_REQUEST.size))
            except LinkCut:
                return
            if request == b"QUIT" or length > _PATH_BYTES_MAX:
                return
            path = (await self._feed.exactly(length)).decode("utf-8", "surrogateescape")
            if not await self._answer(request, path):
                await self._fail(f"unknown command {request!r}")
                return

    async def _answer(self, request: bytes, path: str) -> bool:
        if request in (b"STAT", b"STA2", b"LST2"):
            await self._stream.send(self._stat(request, path))
        elif request in (b"LIST", b"LIS2"):
            await self._stream.send(self._list(path, v2=request == b"LIS2"))
        elif request == b"SEND":
            path, _, mode = path.rpartition(",")
            await self._receive_file(path, int(mode or "0o644", 0))
        elif request == b"SND2":
            _id, mode, flags = struct.unpack("<4sII", await self._feed.exactly(12))
            await self._receive_file(path, mode, flags=flags)
        elif request == b"RECV":
            await self._send_file(path)
        elif request == b"RCV2":
            _id, flags = struct.unpack("<4sI", await self._feed.exactly(8))
            await self._send_file(path, flags=flags)
        else:
            return False
        return True

    async def _fail(self, reason: str) -> None:
        text = reason.encode("utf-8", "surrogateescape")
        await self._stream.send(_REQUEST.pack(b"FAIL", len(text)) + text)

    def _stat(self, request: bytes, path: str) -> bytes:
        try:
            found = self._files.stat(path, follow=request == b"STA2")
        except OSError as error:
            if request == b"STAT":
                return _STAT_V1.pack(request, 0, 0, 0)
            return _STAT_V2.pack(request, error.errno or 0, *[0] * 10)
        if request == b"STAT":
            return _STAT_V1.pack(request, found.st_mode, found.st_size & 0xFFFFFFFF, int(found.st_mtime))
        return _STAT_V2.pack(request, *_v2_fields(found))

    def _list(self, path: str, *, v2: bool) -> bytes:
        parts = []
        # A directory that cannot be read looks empty: this is all that the protocol can say.
        with contextlib.suppress(OSError):
            for name, found in self._files.list(path):
                raw = os.fsencode(name)
                if v2:
                    parts.append(_DENT_V2.pack(b"DNT2", *_v2_fields(found), len(raw)) + raw)
                else:
                    size, mtime = found.st_size & 0xFFFFFFFF, int(found.st_mtime)
                    parts.append(_DENT_V1.pack(b"DENT", found.st_mode, size, mtime, len(raw)) + raw)
        end = _DENT_V2.pack(b"DONE", *[0] * 12) if v2 else _DENT_V1.pack(b"DONE", 0, 0, 0, 0)
        return b"".join([*parts, end])

    async def _send_file(self, path: str, *, flags: int = 0) -> None:
        if flags:
            await self._fail("compression is not supported")
            return
        try:
            fd = self._files.open_to_read(path)
        except OSError as error:
            await self._fail(f"open failed: {error.strerror}")
            return
        with os.fdopen(fd, "rb", buffering=0) as file:
            while chunk := file.read(_DATA_BYTES_MAX):
                allowed = self._faults.passes("drop_pull_after", len(chunk))
                await self._stream.send(_REQUEST.pack(b"DATA", len(chunk)) + chunk[:allowed])
                if allowed < len(chunk):
                    await self._stream.link.strike("drop_pull_after")
        await self._stream.send(_REQUEST.pack(b"DONE", 0))

    async def _receive_file(self, path: str, mode: int, *, flags: int = 0) -> None:
        problem = "compression is not supported" if flags else None
        fd = -1
        if problem is None and not stat.S_ISLNK(mode):
            try:
                fd = self._files.create(path, mode)
            except OSError as error:
                problem = f"couldn't create file: {error.strerror}"
        try:
            # After an error the rest is still read, or the host would never see the answer.
            mtime, problem, link_target = await self._take_data(path, fd, problem)
        finally:
            if fd >= 0:
                os.close(fd)
        if problem is None and stat.S_ISLNK(mode):
            try:
                self._files.link(path, link_target.rstrip(b"\0").decode("utf-8", "surrogateescape"))
            except OSError as error:
                problem = f"symlink failed: {error.strerror}"
        if problem is not None:
            if fd >= 0:
                self._files.remove(path)
            await self._fail(problem)
            return
        if fd >= 0:
            os.utime(self._files.place(path), (mtime, mtime))
        await self._stream.send(_REQUEST.pack(b"OKAY", 0))

    async def _take_data(self, path: str, fd: int, problem: str | None) -> tuple[int, str | None, bytes]:
        """The time that came with DONE, what went wrong, and the first bytes (the target of a link)."""
        written = 0
        first = b""
        while True:
            request, length = _REQUEST.unpack(await self._feed.exactly(_REQUEST.size))
            if request == b"DONE":
                return length, problem, first
            if request != b"DATA" or length > _DATA_BYTES_MAX:
                return 0, "invalid data message", first
            chunk = await self._feed.exactly(length)
            first = first or chunk
            allowed = self._faults.passes("drop_push_after", length)
            if fd >= 0 and problem is None:
                try:
                    written += self._write(fd, chunk[:allowed], written)
                except OSError as error:
                    problem = f"write failed: {error.strerror}"
            if allowed < length:
                if not self._faults.partial_files_stay:
                    self._files.remove(path)
                await self._stream.link.strike("drop_push_after")

    def _write(self, fd: int, chunk: bytes, written: int) -> int:
        """Writes what a torn push leaves, says that it wrote all."""
        keep = chunk
        if self._faults.torn_push_bytes is not None:
            keep = chunk[: max(0, self._faults.torn_push_bytes - written)]
            if len(keep) < len(chunk):
                self._faults.strike("torn_push_bytes")
        rest = memoryview(keep)
        while rest:
            rest = rest[os.write(fd, rest) :]
        return len(chunk)


def _v2_fields(found: os.stat_result) -> tuple[int, ...]:
    times = (int(found.st_atime), int(found.st_mtime), int(found.st_ctime))
    owner = (SHELL_UID, SHELL_UID)
    return (0, found.st_dev, found.st_ino, found.st_mode, found.st_nlink, *owner, found.st_size, *times)
