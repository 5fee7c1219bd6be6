"""What every viewer relies on in a trace, checked on the parsed file."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import Any

Event = dict[str, Any]


def checked(content: bytes) -> list[Event]:
    """The events of a trace that is valid: plain JSON, whole times, nested slices, counters that go forward."""
    assert content.isascii()
    document = json.loads(content, parse_constant=lambda word: _refuse(word))
    events: list[Event] = document["traceEvents"]
    slices: dict[tuple[int, int], list[Event]] = defaultdict(list)
    counters: dict[tuple[int, str], list[Event]] = defaultdict(list)
    processes_of_threads: dict[int, set[int]] = defaultdict(set)
    for event in events:
        assert isinstance(event["name"], str) and isinstance(event["args"], dict)
        if event["ph"] == "M":
            continue
        assert math.isfinite(event["ts"]) and event["ts"] >= 0
        assert (event["ts"] * 1000).is_integer() and (event["ts"] * 8).is_integer()
        if event["ph"] == "C":
            assert list(event["args"]) == ["value"] and math.isfinite(event["args"]["value"])
            counters[event["pid"], event["name"]].append(event)
            continue
        processes_of_threads[event["tid"]].add(event["pid"])
        if event["ph"] == "X":
            assert event["dur"] > 0
            slices[event["pid"], event["tid"]].append(event)
        else:
            assert event["ph"] == "i" and event["s"] == "t"
    assert all(len(pids) == 1 for pids in processes_of_threads.values())
    for row in slices.values():
        _check_nesting(row)
    for points in counters.values():
        times = [point["ts"] for point in points]
        assert times == sorted(times) and len(set(times)) == len(times)
    return events


def _check_nesting(row: list[Event]) -> None:
    """In the order of the file: a slice begins after the one before began, and ends within every open one."""
    open_ends: list[float] = []
    last = 0.0
    for event in row:
        assert event["ts"] >= last
        last = event["ts"]
        while open_ends and open_ends[-1] <= event["ts"]:
            open_ends.pop()
        assert not open_ends or event["ts"] + event["dur"] <= open_ends[-1], event
        open_ends.append(event["ts"] + event["dur"])


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def tracks(events: list[Event]) -> dict[str, list[Event]]:
    """Slices and instants by the name of their track; of one process, or of several with the same tracks."""
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    found: dict[str, list[Event]] = {name: [] for name in names.values()}
    for event in events:
        if event["ph"] in ("X", "i"):
            found[names[event["tid"]]].append(event)
    return found


def counter(events: list[Event], name: str) -> list[tuple[float, float]]:
    """(milliseconds, value) of a counter."""
    return [
        (event["ts"] / 1000, event["args"]["value"]) for event in events if event["ph"] == "C" and event["name"] == name
    ]
