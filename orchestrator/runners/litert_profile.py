"""The operator profile in the lines of a runner that asks LiteRT's own profiler (device_agents/PROTOCOL.md). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.op_profile import OpCost, OpProfile

_TIME_US_MAX = 2**53


def read_op_lines(stdout: Sequence[bytes]) -> OpProfile | None:
    """What each operator cost; None where no line speaks of operators. Nothing is raised."""
    events = [event for line in stdout if (event := _event(line)) is not None]
    rows = [event for event in events if event.get("event") == "op"]
    closing = next((event for event in events if event.get("event") == "profile"), None)
    if not rows and closing is None:
        return None
    runs = _whole(closing or {}, "count") or 0
    ops = [op for row in rows if (op := _op(row, runs)) is not None]
    return OpProfile(
        "lines",
        ops=tuple(ops),
        runs=runs or None,
        total_us=sum(op.time_us for op in ops) if ops else None,
        problem=_problem(rows, ops, closing, runs),
    )


def _event(line: bytes) -> Mapping[str, Any] | None:
    if not line.startswith(b'{"event":"op"') and not line.startswith(b'{"event":"profile"'):
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _op(row: Mapping[str, Any], runs: int) -> OpCost | None:
    name, count, total_us = row.get("name"), _whole(row, "count"), _whole(row, "total_us")
    if not isinstance(name, str) or not count or total_us is None or not runs:
        return None
    is_delegated = row.get("kind") == "delegate"
    place = _whole(row, "index") if is_delegated else _whole(row, "node")
    partition = _whole(row, "partition") or 0
    start = f"Delegate/{name}" if is_delegated else name
    label = f"{start}:{place}" if not partition else f"{start} ({partition}):{place}"
    return OpCost(label, name, total_us / runs, count / runs, _whole(row, "subgraph") or 0, is_delegated)


def _whole(row: Mapping[str, Any], key: str) -> int | None:
    value = row.get(key)
    return value if type(value) is int and 0 <= value < _TIME_US_MAX else None


def _problem(
    rows: Sequence[Mapping[str, Any]], ops: Sequence[OpCost], closing: Mapping[str, Any] | None, runs: int
) -> str | None:
    if closing is None:
        return "it breaks off before its end"
    if closing.get("truncated"):
        return "the runtime's profiler held too few events: operators are missing"
    told = _whole(closing, "ops")
    if told is not None and told != len(ops):
        return f"{told - len(ops)} of {told} rows are missing"
    if len(ops) != len(rows) or not runs:
        return "some rows cannot be read"
    return None if ops else "the profile has no operators"
