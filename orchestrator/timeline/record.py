"""What a record says, taken with care: an imported one may hold anything under any key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

TIME_NS_MAX = 30 * 86_400 * 10**9
"""No trial is a month long: a time beyond that is of another clock, or damage."""


def number(value: Any) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e18 and math.isfinite(value) else None


def whole(value: Any) -> int | None:
    """A whole number, as clocks count; None for anything else."""
    return None if number(value) is None else int(value)


def keyed(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def place(values: Any, index: int) -> Any:
    """One entry of a list; None where the list, or the entry, is not there."""
    found = listed(values)
    return found[index] if index < len(found) else None


def since_ns(value: Any, origin_ns: int | None) -> int | None:
    """How long after the origin a time of the same clock is; None where it cannot be one."""
    moment_ns = whole(value)
    if origin_ns is None or moment_ns is None:
        return None
    offset_ns = moment_ns - origin_ns
    return offset_ns if abs(offset_ns) <= TIME_NS_MAX else None


def length_ns(value: Any, unit_ns: float) -> int | None:
    """A length of time in nanoseconds; None where it cannot be one."""
    found = number(value)
    if found is None or not 0 <= found * unit_ns <= TIME_NS_MAX:
        return None
    return round(found * unit_ns)
