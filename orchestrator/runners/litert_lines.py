"""What the two LiteRT runners share: their flags, and the reading of the JSON lines they print. Pure."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from orchestrator.delegates import Delegate
from orchestrator.plan import Measure
from orchestrator.runners.base import Places, Reading, RunnerError
from orchestrator.trial import Cell

_TRANSIENT = ("internal", "out-of-memory")


def measured_flags(cell: Cell, places: Places, measure: Measure) -> list[str]:
    """The flags that measure a cell."""
    counted = ["--runs", str(measure.runs), "--min-ms", str(measure.min_ms)]
    return [*_flags(cell, places, measure), *counted, "--expect-sha256", cell.model_sha256]


def beside_flags(cell: Cell, places: Places, measure: Measure) -> list[str]:
    """The flags that run a model endlessly, on one thread whatever the cell has."""
    return [*_flags(replace(cell, threads=1), places, measure), "--beside"]


def _flags(cell: Cell, places: Places, measure: Measure) -> list[str]:
    """What measuring and loading share; every flag is given, because the runners have no defaults."""
    copy = "zero-copy" if cell.runner.endswith(":zero-copy") else "copy"
    flags = [f"--model={places.model}", "--threads", str(cell.threads)]
    delegate = places.delegate.base if places.delegate else cell.delegate
    flags += ["--delegate", delegate, "--copy", copy, "--seed", str(measure.input_seed)]
    flags += ["--warmup-runs", str(measure.warmup_runs), "--warmup-min-ms", str(measure.warmup_min_ms)]
    flags += ["--max-ms", str(measure.max_ms)]
    return [*flags, f"--inputs={places.inputs}"] if places.inputs else flags


def settings_refused(cell: Cell, delegate: Delegate) -> str | None:
    """Why the runners cannot have the cell's delegate as it is defined; None when they can."""
    if delegate.cache or delegate.settings or delegate.flags:
        return f"{cell.runner} takes no settings for delegate {delegate.name}, and keeps no cache"
    return None


def read_check(stdout: Sequence[bytes]) -> tuple[Mapping[str, Any], RunnerError | None]:
    """The facts of the runtime, or why it cannot run."""
    events = _events(stdout)
    return _first(events, "start"), _error(events)


def read_lines(stdout: Sequence[bytes]) -> Reading:
    """What a measurement's output says."""
    events = _events(stdout)
    steady = [event for event in events if event["event"] == "samples" and event.get("phase") == "steady"]
    warmup = [event for event in events if event["event"] == "samples" and event.get("phase") == "warmup"]
    return Reading(
        samples_us=_joined_us(steady, "invoke_ns"),
        warmup_us=_joined_us(warmup, "invoke_ns"),
        metrics=_metrics(events, steady),
        observed=_observed(events),
        error=_error(events),
    )


def read_starts(stdout: Sequence[bytes]) -> dict[str, tuple[int, ...]]:
    """When each inference began on the device's clock, in nanoseconds, by phase: after its inputs were copied in."""
    events = _events(stdout)
    found = {}
    for phase in ("warmup", "steady"):
        chunks = [event for event in events if event["event"] == "samples" and event.get("phase") == phase]
        starts, copies = _numbers(chunks, "start_ns"), _numbers(chunks, "copy_in_ns")
        if len(copies) not in (0, len(starts)):
            continue
        found[phase] = tuple(int(start + copy) for start, copy in zip(starts, copies or [0] * len(starts), strict=True))
    return found


def _events(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    """The runner's own lines; anything else on its output is noise of the libraries below it."""
    events = []
    for line in lines:
        if not line.startswith(b'{"event"'):
            continue
        try:
            event = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError):
            continue
        events.append(event)
    return events


def _refuse(word: str) -> NoReturn:
    """NaN and its like are no JSON, and no number that a runner of ours gives."""
    raise ValueError(word)


def _first(events: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((event for event in events if event["event"] == name), {})


def _error(events: Sequence[Mapping[str, Any]]) -> RunnerError | None:
    event = _first(events, "error")
    if not event:
        return None
    kind = str(event.get("kind", "internal"))
    return RunnerError(kind, str(event.get("message")), str(event.get("remedy")), permanent=kind not in _TRANSIENT)


def _numbers(events: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    """The numbers of one column over all chunks; a column that is absent or ill-typed gives none."""
    numbers: list[float] = []
    for event in events:
        column = event.get(key)
        if isinstance(column, list) and all(_is_time(value) for value in column):
            numbers += column
    return numbers


def _is_time(value: Any) -> bool:
    """A time or another amount: `0 <=` is false for NaN, and the bound keeps out what no float can hold."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 2**63


def _joined_us(events: Sequence[Mapping[str, Any]], key: str) -> tuple[float, ...]:
    return tuple(value / 1000.0 for value in _numbers(events, key))


def _metrics(events: Sequence[Mapping[str, Any]], steady: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    init, memory, end = (_first(events, name) for name in ("init", "memory", "end"))
    metrics: dict[str, Any] = {
        "init_us": init.get("init_us"),
        "create_us": init.get("create_us"),
        "allocate_us": init.get("allocate_us"),
        "first_us": init.get("first_us"),
        "memory_peak_kb": memory.get("peak_kb"),
        "memory_before_model_kb": memory.get("rss_before_model_kb"),
        "steady_cpu_ns": end.get("cpu_ns"),
        "steady_wall_ns": end.get("wall_ns"),
        "steady_involuntary_switches": end.get("involuntary_switches"),
    }
    for key in ("copy_in", "copy_out"):
        numbers = _numbers(steady, f"{key}_ns")
        metrics[f"{key}_us"] = statistics.median(numbers) / 1000.0 if numbers else None
    warmup = [event for event in events if event["event"] == "samples" and event.get("phase") == "warmup"]
    if warmup_ns := _numbers(warmup, "invoke_ns"):
        metrics["warmup_avg_us"] = statistics.fmean(warmup_ns) / 1000.0
    start_ns = _numbers(steady, "start_ns")
    if start_ns:
        metrics["steady_from_ns"] = start_ns[0]
    return {key: value for key, value in metrics.items() if _is_time(value)}


def _observed(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    start, model, init, end = (_first(events, name) for name in ("start", "model", "init", "end"))
    delegation = _first(events, "delegation") or init  # the native runner finds it out after the measurement
    observed: dict[str, Any] = {
        "model_sha256": model.get("sha256"),
        "runner_sha256": start.get("runner_sha256"),
        "runtime": start.get("runtime"),
        "runtime_version": start.get("runtime_version"),
        "library_sha256": start.get("library_sha256"),
        "flags": start.get("flags"),
        "nodes_total": delegation.get("nodes_total"),
        "nodes_delegated": delegation.get("nodes_delegated"),
        "partitions": delegation.get("partitions"),
        "threads_before": init.get("threads_before"),
        "threads_allocated": init.get("threads_allocated"),
        "threads_after": init.get("threads_after"),
        "count": end.get("count"),
        "stopped_by": end.get("stopped_by"),
        "inputs_intact": end.get("inputs_intact"),
        "output_sha256": end.get("output_sha256"),
        "thread_cpu_ns": end.get("thread_cpu_ns"),
    }
    return {key: value for key, value in observed.items() if _is_of_its_kind(key, value)}


_WORDS = (
    "model_sha256",
    "runner_sha256",
    "runtime",
    "runtime_version",
    "library_sha256",
    "stopped_by",
    "output_sha256",
)
_KINDS: Mapping[str, type] = {"flags": dict, "inputs_intact": bool, "thread_cpu_ns": list, **dict.fromkeys(_WORDS, str)}
"""What is no count."""


def _is_of_its_kind(key: str, value: Any) -> bool:
    """Whether it can be what the rules of evidence take it for: a damaged line may say anything."""
    kind = _KINDS.get(key)
    return type(value) is kind if kind else type(value) is int and 0 <= value < 2**63
