"""Reads a Perfetto trace, as far as it takes to say that it is whole and what is in it."""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from orchestrator.trace import TraceSummary
from orchestrator.trace_files import TFLITE_SLICE, Broken, checked

Content = mmap.mmap | bytes

# The numbers are those of Perfetto's trace.proto, which never change their meaning.
_PACKET = 1
_PACKET_PARTS = {1: "ftrace bundles", 2: "process trees", 7: "system statistics", 9: "process statistics"}
_FTRACE_EVENTS, _COMPRESSED = 1, 50
_EVENT, _LOST, _COMPACT_SCHED = 2, 3, 4
_EVENT_TIME, _PRINT = 1, 3
_EVENT_NAMES = {
    0: "empty",
    3: "print",
    4: "sched_switch",
    11: "cpu_frequency",
    12: "cpu_frequency_limits",
    13: "cpu_idle",
    17: "sched_wakeup",
    20: "sched_waking",
    332: "gpu_frequency",
    340: "gpu_mem_total",
    341: "thermal_temperature",
    342: "cdev_update",
}
_SWITCH_TIMES, _WAKING_TIMES = 1, 7
_NO_EVENT_TAGS = (1 << 3, 2 << 3, 5 << 3)
"""Fields of an event that are no event: when, who, and flags."""
_EMPTY = 0
"""An event that says nothing."""


def read_perfetto(path: Path) -> TraceSummary:
    """Every packet by its length, and every event of the kernel by its kind."""
    return checked(path, _read)


def _read(path: Path, size_bytes: int) -> TraceSummary:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[0] != _PACKET << 3 | 2:
            raise Broken("it does not begin as Perfetto's traces do")
        seen = _Seen()
        try:
            for number, _, start, end in _fields(content, 0, size_bytes):
                if number != _PACKET:
                    raise Broken(f"something other than a packet is at byte {start}")
                seen.packets += 1
                _packet(content, start, end, seen)
        except Broken as error:
            seen.problem = f"{error}, after {seen.packets} packets"
        return seen.summary(size_bytes)


class _Seen:
    """What was met so far."""

    def __init__(self) -> None:
        self.packets, self.slices, self.bundles_with_loss = 0, 0, 0
        self.parts: Counter[str] = Counter()
        self.events: Counter[int] = Counter()
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.problem: str | None = None
        self.is_packed = False

    def at(self, time_ns: int) -> None:
        self.first_ns = time_ns if self.first_ns is None else min(self.first_ns, time_ns)
        self.last_ns = time_ns if self.last_ns is None else max(self.last_ns, time_ns)

    def summary(self, size_bytes: int) -> TraceSummary:
        named = {_EVENT_NAMES.get(number, f"event {number}"): count for number, count in self.events.most_common(20)}
        total, problem = self.events.total(), self.problem
        if not total and not self.is_packed:
            problem = problem or "no event of the kernel is in it"
        duration_s = None
        if self.first_ns is not None and self.last_ns is not None:
            duration_s = round((self.last_ns - self.first_ns) / 1e9, 6)
        notes = []
        if self.bundles_with_loss:
            notes.append(f"events were lost in {self.bundles_with_loss} places: the buffer was too small")
        if self.is_packed:
            notes.append("its packets are compressed, and were not looked into")
        return TraceSummary(
            size_bytes,
            total,
            duration_s,
            {"packets": self.packets, **self.parts, **named},
            None if self.is_packed else self.slices,
            problem,
            tuple(notes),
        )


def _packet(content: mmap.mmap, start: int, end: int, seen: _Seen) -> None:
    for number, _, inner, inner_end in _fields(content, start, end):
        if part := _PACKET_PARTS.get(number):
            seen.parts[part] += 1
        if number == _FTRACE_EVENTS:
            _bundle(content[inner:inner_end], inner, seen)
        seen.is_packed = seen.is_packed or number == _COMPRESSED


def _bundle(content: bytes, offset: int, seen: _Seen) -> None:
    """Events of one CPU, which come in the order of time. Almost all bytes of a trace are here, so that this is quick
    before it is short."""
    at, end, first, last = 0, len(content), None, None
    kinds: list[int] = []
    while at < end:
        tag, size_at = content[at], at + 1
        if tag != _EVENT << 3 | 2 or size_at >= end or content[size_at] > 0x7F:
            at = _other_part(content, at, end, seen, kinds)
            continue
        start, at = size_at + 1, size_at + 1 + content[size_at]
        if at > end:
            raise Broken(f"it is cut off at byte {offset + start}")
        kinds.append(_kind(content, start, at, seen))
        first, last = start if first is None else first, start
    seen.events.update(kinds)
    for event in (first, last):
        if event is not None and content[event] == _EVENT_TIME << 3:
            seen.at(_varint(content, event + 1, end)[0])


def _other_part(content: bytes, at: int, end: int, seen: _Seen, kinds: list[int]) -> int:
    """A part of a bundle that is no event, or a long one; gives where the next begins."""
    number, value, inner, inner_end = next(_fields(content, at, end))
    if number == _EVENT:
        kinds.append(_kind(content, inner, inner_end, seen))
    elif number == _LOST:
        seen.bundles_with_loss += bool(value)
    elif number == _COMPACT_SCHED:
        for part, _, first, last in _fields(content, inner, inner_end):
            if part in (_SWITCH_TIMES, _WAKING_TIMES):
                _compact_times(content, first, last, seen, 4 if part == _SWITCH_TIMES else 20)
    return inner_end


def _kind(content: bytes, at: int, end: int, seen: _Seen) -> int:
    """Which event it is: the number of the one field that is neither its time, nor its thread, nor flags."""
    while at < end:
        tag = content[at]
        if tag in _NO_EVENT_TAGS:
            at += 1
            while at < end and content[at] > 0x7F:
                at += 1
            at += 1
            continue
        wide, inner = _varint(content, at, end)
        if wide >> 3 == _PRINT and TFLITE_SLICE.search(content, inner, end):
            seen.slices += 1
        return wide >> 3
    return _EMPTY


def _compact_times(content: Content, start: int, end: int, seen: _Seen, kind: int) -> None:
    """Each but the first is the time since the one before."""
    at, now_ns = start, 0
    while at < end:
        delta_ns, at = _varint(content, at, end)
        now_ns += delta_ns
        seen.at(now_ns)
        seen.events[kind] += 1


def _fields(content: Content, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The number of each field, its value where it is a number, and from where to where its bytes go."""
    while at < end:
        tag, at = _varint(content, at, end)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(content, at, end)
            yield tag >> 3, value, at, at
            continue
        if wire == 2:
            size, at = _varint(content, at, end)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise Broken(f"it is no Perfetto trace, or torn, at byte {at}")
        if at + size > end:
            raise Broken(f"it is cut off at byte {at}")
        yield tag >> 3, 0, at, at + size
        at += size


def _varint(content: Content, at: int, end: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < end:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise Broken(f"it is no Perfetto trace, or torn, at byte {at}")
    raise Broken(f"it is cut off at byte {at}")
