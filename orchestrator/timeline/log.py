"""The moments that only a trial's log has: when each inference began, and when each line was printed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.agent_lines import LineReader
from orchestrator.runners.litert_lines import read_starts
from orchestrator.timeline.record import whole

_LINE = re.compile(rb"^([OE]) (\d{1,18}) ([^\n]*)", re.MULTILINE)
_LINES_MAX = 500
_TEXT_MAX = 300


@dataclass(frozen=True)
class Line:
    """A line that the measured process printed, and when the agent read it."""

    t_ns: int
    stream: str
    text: str


@dataclass(frozen=True)
class Moments:
    """Times on the device's clock, in nanoseconds."""

    first_sample_ns: int | None = None
    warmup_ns: tuple[int, ...] = ()
    steady_ns: tuple[int, ...] = ()
    """When each inference began."""
    lines: tuple[Line, ...] = ()


def read_moments(log: bytes) -> Moments:
    """What the transcript of an agent says; nothing where it is none, or damaged."""
    reader = LineReader()
    reader.feed(log)
    report = reader.finish()
    starts = read_starts(report.stdout)
    return Moments(
        first_sample_ns=whole(report.samples[0].get("t_ns")) if report.samples else None,
        warmup_ns=starts.get("warmup", ()),
        steady_ns=starts.get("steady", ()),
        lines=_lines(log),
    )


def _lines(log: bytes) -> tuple[Line, ...]:
    """What was printed for people; a runner's samples are on tracks of their own."""
    kept: list[Line] = []
    for found in _LINE.finditer(log) if log.startswith(b"H ") else ():
        if b'"event":"samples"' in found[3][:40]:
            continue
        text = found[3][:_TEXT_MAX].decode("utf-8", "replace").strip()
        if text:
            kept.append(Line(int(found[2]), "stdout" if found[1] == b"O" else "stderr", text))
        if len(kept) == _LINES_MAX:
            break
    return tuple(kept)
