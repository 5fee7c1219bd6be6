"""The words of a timeline, and their form as Chrome trace events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

Args = Mapping[str, Any]


@dataclass(frozen=True)
class Slice:
    """Something that took its time."""

    name: str
    start_ns: int
    duration_ns: int
    args: Args = field(default_factory=dict)

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.duration_ns


@dataclass(frozen=True)
class Instant:
    """Something that was so at a moment."""

    name: str
    at_ns: int
    args: Args = field(default_factory=dict)


@dataclass(frozen=True)
class Track:
    """A row of slices and instants."""

    name: str
    slices: Sequence[Slice] = ()
    instants: Sequence[Instant] = ()


@dataclass(frozen=True)
class Counter:
    """A number over time, each value holding until the next."""

    name: str
    points: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Timeline:
    """A trial in time. Zero is when the measured process started; what came before is below zero."""

    name: str
    label: str
    tracks: Sequence[Track]
    counters: Sequence[Counter]
    started_s: float | None
    """When the trial began on the host's clock, in seconds since 1970; None where nobody said."""
    began_ns: int
    """The earliest moment of the trial itself, the wait before it left out."""

    @property
    def first_ns(self) -> int:
        return min(self._times(), default=0)

    @property
    def last_ns(self) -> int:
        return max(self._times(), default=0)

    def _times(self) -> Iterator[int]:
        for track in self.tracks:
            yield from (moment for part in track.slices for moment in (part.start_ns, part.end_ns))
            yield from (instant.at_ns for instant in track.instants)
        yield from (at_ns for counter in self.counters for at_ns, _ in counter.points)


def lanes(slices: Iterable[Slice]) -> list[list[Slice]]:
    """The slices in as few rows as it takes for any two of a row to be nested or apart, which viewers rely on."""
    rows: list[tuple[list[Slice], list[int]]] = []
    for part in sorted(slices, key=lambda part: (part.start_ns, -part.end_ns)):
        for row, open_ends in rows:
            while open_ends and open_ends[-1] <= part.start_ns:
                open_ends.pop()
            if not open_ends or part.end_ns <= open_ends[-1]:
                row.append(part)
                open_ends.append(part.end_ns)
                break
        else:
            rows.append(([part], [part.end_ns]))
    return [row for row, _ in rows]


def trace_events(timelines: Sequence[Timeline]) -> Iterator[dict[str, Any]]:
    """Each timeline as a process of its own, placed by the host's clock; one without a time follows the one before."""
    stated = [found.started_s for found in timelines if found.started_s is not None]
    base_s, next_ns = min(stated, default=0.0), 0
    offsets = []
    for found in timelines:
        begin_ns = next_ns if found.started_s is None else round((found.started_s - base_s) * 1e9)
        offsets.append(begin_ns - found.began_ns)
        next_ns = offsets[-1] + found.last_ns
    earliest_ns = min((offset + found.first_ns for offset, found in zip(offsets, timelines, strict=True)), default=0)
    numbers = count(1)  # of processes and threads alike: to some viewers a thread's number is unique in the file
    for offset, found in zip(offsets, timelines, strict=True):
        yield from _events(found, numbers, offset - earliest_ns)


def _events(found: Timeline, numbers: Iterator[int], offset_ns: int) -> Iterator[dict[str, Any]]:
    pid = next(numbers)
    yield _named("process_name", pid, pid, {"name": found.name})
    yield _named("process_labels", pid, pid, {"labels": found.label})
    yield _named("process_sort_index", pid, pid, {"sort_index": pid})
    for track in found.tracks:
        rows = lanes(track.slices) or [[]]
        for index, row in enumerate(rows):
            tid = next(numbers)
            yield _named("thread_name", pid, tid, {"name": f"{track.name} ({index + 1})" if index else track.name})
            yield _named("thread_sort_index", pid, tid, {"sort_index": tid})
            for part in row:
                start_us, end_us = _us(part.start_ns + offset_ns), _us(part.end_ns + offset_ns)
                yield _drawn(part.name, pid, tid, start_us, end_us - start_us, part.args)
            for instant in track.instants if index == 0 else ():
                yield _drawn(instant.name, pid, tid, _us(instant.at_ns + offset_ns), 0.0, instant.args)
    for counter in found.counters:
        for at_ns, value in counter.points:
            ts = _us(at_ns + offset_ns)
            yield {"name": counter.name, "ph": "C", "pid": pid, "ts": ts, "args": {"value": value}}


def _named(kind: str, pid: int, tid: int, args: Args) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": args}


def _drawn(name: str, pid: int, tid: int, ts: float, dur: float, args: Args) -> dict[str, Any]:
    """A slice; an instant where it has no length that can be drawn, because viewers mistake the end of such a slice."""
    shape = {"ph": "X", "ts": ts, "dur": dur} if dur else {"ph": "i", "s": "t", "ts": ts}
    return {"name": name, "pid": pid, "tid": tid, **shape, "args": dict(args)}


def _us(time_ns: int) -> float:
    """Microseconds, which is what the format counts in, to an eighth: those are exact both as binary fractions and in
    nanoseconds, so that in every viewer a slice ends exactly where the next begins. Exact lengths are in `args`."""
    return round(time_ns / _GRID_NS) / 8


_GRID_NS = 125
