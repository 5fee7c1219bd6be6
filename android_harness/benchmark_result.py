"""The app's own result file (proto `tflite.tools.benchmark.BenchmarkResult`), as far as a summary needs it. Pure."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

from orchestrator.trial import Summary

_LATENCY, _MISC = 2, 4
_LATENCIES = {1: "avg", 2: "min", 3: "max", 4: "std", 5: "median", 6: "p5", 7: "p95"}
_NUM_RUNS = 2
_VARINT, _LONG, _BYTES, _FLOAT = 0, 1, 2, 5
_SIZE_MAX = 1 << 20


def read_result(hexadecimal: str) -> Summary | None:
    """The summary in the file, in microseconds; None where it is empty, torn, or lacks a part."""
    try:
        parts = dict(_fields(bytes.fromhex(hexadecimal[: 2 * _SIZE_MAX])))
        latency, misc = (dict(_fields(_as_bytes(parts[number]))) for number in (_LATENCY, _MISC))
        count = misc[_NUM_RUNS]
        values = {name: _as_float(latency[number]) * 1000.0 for number, name in _LATENCIES.items()}
    except (ValueError, KeyError, TypeError, IndexError, struct.error):
        return None
    is_sound = isinstance(count, int) and count > 0 and all(math.isfinite(value) for value in values.values())
    return Summary(int(count), **{name: round(value, 3) for name, value in values.items()}) if is_sound else None


def _fields(content: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """(number, value) of each field of a message."""
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        kind = key & 7
        value: int | float | bytes | None = None
        if kind == _VARINT:
            value, place = _varint(content, place)
        elif kind == _FLOAT:
            value, place = struct.unpack_from("<f", content, place)[0], place + 4
        elif kind == _LONG:
            value, place = content[place : place + 8], place + 8
        elif kind == _BYTES:
            length, place = _varint(content, place)
            value, place = content[place : place + length], place + length
        if value is None or place > len(content):
            raise ValueError("torn")
        yield key >> 3, value


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        byte = content[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("no number")


def _as_bytes(value: int | float | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError
    return value


def _as_float(value: int | float | bytes) -> float:
    if not isinstance(value, float):
        raise TypeError
    return value
