"""Timelines as files: what a trial's log adds to its record, and the trace that viewers open."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from orchestrator.errors import StoreError, UsageError
from orchestrator.timeline import Moments, Timeline, read_moments, trace_events
from orchestrator.trial import Trial
from orchestrator.whole_files import written_whole

_HEAD = b'{"displayTimeUnit":"ms","otherData":{"made_by":"devbench timeline"},"traceEvents":[\n'
_TAIL = b"\n]}\n"


def moments_of(trial: Trial, folder: Path) -> Moments:
    """The times in a trial's log; none for a trial whose log is not in this store."""
    place = folder / trial.log if trial.log else None
    if place is None or not place.is_file():
        return Moments()
    try:
        return read_moments(place.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {place}: {error.strerror}", remedy="see whose file it is") from error


def write_trace(path: Path, timelines: Sequence[Timeline]) -> int:
    """Write a trace, compressed where the name ends so; gives how many events it has."""
    try:
        with written_whole(path) as out:
            if path.suffix != ".gz":
                return _write(out, timelines)
            with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6, mtime=0, filename="") as packed:
                return _write(cast(BinaryIO, packed), timelines)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", remedy="choose another place with -o") from error


def _line(event: dict[str, Any]) -> bytes:
    """One event in plain ASCII, so that no name of a model or a sensor can break the file."""
    try:
        text = json.dumps(event, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a metric that is no number: JSON has no word for it
        text = json.dumps(_sayable(event), separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def _sayable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sayable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _write(out: BinaryIO, timelines: Sequence[Timeline]) -> int:
    out.write(_HEAD)
    count = 0
    for event in trace_events(timelines):
        out.write((",\n" if count else "").encode() + _line(event))
        count += 1
    out.write(_TAIL)
    return count
