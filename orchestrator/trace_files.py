"""Reads what tracers write, as far as it takes to say that a trace is whole and what is in it. Never raises."""

from __future__ import annotations

import mmap
import re
import struct
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from orchestrator.trace import TraceSummary

_CHUNK = 1 << 20
_UNPACKED_MAX = 4 << 30
_COUNTS_KEPT = 20

_ATRACE_HEAD, _ZLIB_FIRST = b"TRACE:\n", b"\x78"
_EVENT = re.compile(rb"\s(\d+\.\d+): ([\w:]+): ")
_LOST = re.compile(rb"LOST (\d+) EVENTS")
TFLITE_SLICE = re.compile(rb"B\|\d+\|\w+@-?\d+/-?\d+")

_PERF_MAGIC = b"PERFILE2"
_PERF_HEAD = struct.Struct("<8sQQQQQQ")
_RECORD = struct.Struct("<IHH")
_SAMPLE, _LOST_RECORD = 9, 2
_LOST_AT = 16
_IDENTIFIER, _IP, _TID, _TIME = 1 << 16, 1 << 0, 1 << 1, 1 << 2
_SAMPLE_TYPE_AT = 24
_FINISHED_ROUND_TYPES = 64


class Broken(Exception):
    """The file is not what it should be; the message says how."""


def checked(path: Path, read: Callable[[Path, int], TraceSummary]) -> TraceSummary:
    """What `read` says of a file that has content; what it raises is the file's problem."""
    size_bytes = 0
    try:
        size_bytes = path.stat().st_size
        if size_bytes == 0:
            raise Broken("it is empty")
        return read(path, size_bytes)
    except Broken as error:
        return TraceSummary(size_bytes, problem=str(error))
    except OSError as error:
        return TraceSummary(size_bytes, problem=f"it cannot be read ({error.strerror})")


# Text of the kernel's tracer: ftrace itself, and atrace


def read_ftrace(path: Path) -> TraceSummary:
    """The kernel's text, plain or as `atrace -z` packs it."""
    return checked(path, _read_ftrace)


def _read_ftrace(path: Path, size_bytes: int) -> TraceSummary:
    names: Counter[str] = Counter()
    slices, lost, first, last = 0, 0, None, None
    has_header, problem = False, None
    lines = _lines(path)
    try:
        for line in lines:
            if line.startswith(b"#"):
                has_header = has_header or b"tracer:" in line
            elif event := _EVENT.search(line):
                last = float(event[1])
                first = last if first is None else first
                names[event[2].decode("ascii", "replace")] += 1
                slices += TFLITE_SLICE.search(line) is not None
            elif gone := _LOST.search(line):
                lost += int(gone[1])
    except Broken as error:
        problem = str(error)
    if not has_header:
        problem = problem or "it does not begin as the kernel's traces do"
    events = names.total()
    return TraceSummary(
        size_bytes,
        events,
        None if first is None or last is None else round(last - first, 6),
        _most(names),
        slices,
        problem or (None if events else "no event is in it"),
        (f"{lost} events were lost: the buffer was too small",) if lost else (),
    )


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file; of one that atrace packed, those that can be unpacked."""
    rest = b""
    for chunk in _text_chunks(path):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _text_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        head = file.read(1024)
        begins = head.find(_ATRACE_HEAD) + len(_ATRACE_HEAD) if _ATRACE_HEAD in head else 0
        file.seek(begins)
        if not begins or head[begins : begins + 1] != _ZLIB_FIRST:
            yield from iter(lambda: file.read(_CHUNK), b"")
            return
        unpacking, unpacked = zlib.decompressobj(), 0
        try:
            while not unpacking.eof and (chunk := unpacking.unconsumed_tail or file.read(_CHUNK)):
                text = unpacking.decompress(chunk, 8 * _CHUNK)
                unpacked += len(text)
                if unpacked > _UNPACKED_MAX:
                    raise Broken(f"it unpacks to more than {_UNPACKED_MAX >> 30} GiB")
                yield text
        except zlib.error as error:
            raise Broken(f"it cannot be unpacked ({error})") from error
        if not unpacking.eof:
            raise Broken("it is cut off: the packed text has no end")


# perf.data, of perf and of simpleperf


def read_perf(path: Path) -> TraceSummary:
    """The header, and every record by its length."""
    return checked(path, _read_perf)


def _read_perf(path: Path, size_bytes: int) -> TraceSummary:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if size_bytes < _PERF_HEAD.size or content[:8] != _PERF_MAGIC:
            raise Broken("it does not begin as perf.data does (PERFILE2)")
        _, _, attr_size, attrs_at, attrs_size, data_at, data_size = _PERF_HEAD.unpack_from(content)
        if attr_size < 16 or attrs_at + _SAMPLE_TYPE_AT + 8 > size_bytes or not attrs_size:
            raise Broken("its header names no event")
        if data_size == 0:
            raise Broken("its header says that nothing was recorded: the tracer did not end in order")
        (sample_type,) = struct.unpack_from("<Q", content, attrs_at + _SAMPLE_TYPE_AT)
        return _perf_records(content, data_at, data_at + data_size, size_bytes, int(sample_type))


def _perf_records(content: mmap.mmap, at: int, end: int, size_bytes: int, sample_type: int) -> TraceSummary:
    counts: Counter[str] = Counter()
    time_at = _RECORD.size + 8 * sum(bool(sample_type & bit) for bit in (_IDENTIFIER, _IP, _TID))
    first, last, problem = None, None, None
    unpack, limit = _RECORD.unpack_from, min(end, size_bytes)
    while at + _RECORD.size <= limit:
        kind, _, size = unpack(content, at)
        if size < _RECORD.size or at + size > limit:
            problem = f"it is cut off, or torn, at byte {at}"
            break
        if kind == _SAMPLE:
            counts["samples"] += 1
            if sample_type & _TIME and size >= time_at + 8:
                (now,) = struct.unpack_from("<Q", content, at + time_at)
                first = now if first is None else min(first, now)
                last = now if last is None else max(last, now)
        elif kind == _LOST_RECORD and size >= _LOST_AT + 8:
            counts["lost"] += struct.unpack_from("<Q", content, at + _LOST_AT)[0]
        elif kind < _FINISHED_ROUND_TYPES:
            counts["other records"] += 1
        at += size
    if end > size_bytes:
        problem = f"it has {size_bytes} bytes, and its header speaks of {end}"
    if not counts["samples"]:
        problem = problem or "no sample is in it"
    lost = counts["lost"]
    return TraceSummary(
        size_bytes,
        counts["samples"],
        None if first is None or last is None else round((last - first) / 1e9, 6),
        dict(counts),
        None,
        problem,
        (f"{lost} events were lost: the buffer was too small",) if lost else (),
    )


# Bundles of Instruments


def read_bundle(path: Path) -> TraceSummary:
    """A `.trace` folder in a tar file."""
    return checked(path, _read_bundle)


def _read_bundle(path: Path, size_bytes: int) -> TraceSummary:
    files, inside, problem, bundles = 0, 0, None, set()
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                top = member.name.removeprefix("./").partition("/")[0]
                if top.endswith(".trace"):
                    bundles.add(top)
                if member.isfile():
                    files, inside = files + 1, inside + member.size
    except (tarfile.TarError, EOFError, zlib.error) as error:
        problem = f"it is no whole tar file ({str(error) or type(error).__name__})"
    if not bundles:
        problem = problem or "no .trace bundle is in it"
    elif not inside:
        problem = problem or "the bundle in it is empty"
    return TraceSummary(size_bytes, files, None, {"files": files, "bytes": inside}, None, problem)


def _most(names: Counter[str]) -> dict[str, int]:
    return dict(names.most_common(_COUNTS_KEPT))
