"""The evidence of single trials for the page: log, flags, hashes, device state, telemetry and samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.reports.page.payload import Data, figure
from orchestrator.trial import Outcome, Trial

_TEXT_MAX = 4000
_OBSERVED_LEFT_OUT = ("thread_cpu_ns", "flags")


@dataclass(frozen=True)
class Detail:
    """How much of each trial the page carries; the more trials there are, the less of each."""

    samples: int
    points: int
    log_bytes: int
    log_bytes_measured: int

    @classmethod
    def of(cls, trials: int) -> Detail:
        if trials <= 200:
            return cls(samples=400, points=200, log_bytes=12_000, log_bytes_measured=12_000)
        if trials <= 2000:
            return cls(samples=120, points=60, log_bytes=4000, log_bytes_measured=2000)
        return cls(samples=24, points=16, log_bytes=2000, log_bytes_measured=0)


def trial_evidence(trial: Trial, detail: Detail, folder: Path) -> Data:
    """One trial as plain data; texts that are cut say so, and files are named by their path in the store."""
    evidence = trial.evidence
    measured = trial.outcome is Outcome.MEASURED
    return {
        "block": trial.slot.block,
        "position": trial.slot.position,
        "session": trial.session,
        "outcome": str(trial.outcome),
        "reason": trial.reason,
        "started_at": trial.started_at,
        "duration_s": figure(trial.duration_s),
        "waited_s": figure(trial.waited_s),
        "summary": _summary(trial),
        "metrics": {key: _short(value) for key, value in trial.metrics.items() if not key.endswith("_from_ns")},
        "argv": _short(evidence.get("argv") or []),
        "env": _short(evidence.get("env") or {}),
        "observed": {
            key: _short(value)
            for key, value in _mapping(evidence.get("observed")).items()
            if key not in _OBSERVED_LEFT_OUT
        },
        "load": _short({"placement": evidence.get("load_placement"), "threads": evidence.get("loads") or []}),
        "states": _short(evidence.get("states") or []),
        "started": _short(evidence.get("started") or {}),
        "closing": _short(evidence.get("closing") or {}),
        "findings": [finding.as_json() for finding in trial.findings],
        "artifacts": _short(evidence.get("artifacts") or {}),
        "log": _log(trial.log, folder, detail.log_bytes_measured if measured else detail.log_bytes),
        "samples": _samples(trial, detail.samples),
        "telemetry": telemetry_curves(trial.telemetry, detail.points),
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _short(value: Any) -> Any:
    """The same with long texts cut; imported trials may carry anything."""
    if isinstance(value, str):
        return value if len(value) <= _TEXT_MAX else f"{value[:_TEXT_MAX]}… ({len(value)} characters)"
    if isinstance(value, Mapping):
        return {str(key): _short(item) for key, item in list(value.items())[:200]}
    if isinstance(value, list | tuple):
        return [_short(item) for item in value[:200]]
    return figure(value) if isinstance(value, float) else value


def _summary(trial: Trial) -> Data | None:
    if trial.summary is None:
        return None
    return {key: figure(value) for key, value in trial.summary.as_json().items() if value is not None}


def _log(place: str | None, folder: Path, bytes_max: int) -> Data | None:
    """The beginning and the end of a log: what was asked stands first, what went wrong last."""
    if place is None:
        return None
    found: Data = {"path": place}
    path = folder / place
    if not bytes_max:
        return found
    if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
        return found | {"text": None}
    content = path.read_bytes()
    if len(content) <= bytes_max:
        return found | {"text": content.decode("utf-8", "replace"), "bytes": len(content)}
    head, tail = content[: bytes_max // 3], content[-2 * bytes_max // 3 :]
    cut = f"\n… {len(content) - len(head) - len(tail)} bytes left out …\n"
    text = head.decode("utf-8", "replace") + cut + tail.decode("utf-8", "replace")
    return found | {"text": text, "bytes": len(content)}


# Samples in time


def _samples(trial: Trial, most: int) -> Data | None:
    """Latencies by the time at which each inference began, as far as that is known; of many, each stretch's median
    and slowest."""
    values = trial.samples_us
    if not values:
        return None
    offset_ms, moment_ms, times_ms = _steady_ms(trial), 0.0, list[float]()
    stretch = _stretch(trial)
    for value in values:
        times_ms.append(moment_ms + (offset_ms or 0.0))
        moment_ms += stretch * value / 1000.0
    chosen = _chosen(values, most)
    return {
        "count": len(values),
        "t_ms": [round(times_ms[index], 1) for index in chosen],
        "us": [_drawn(values[index]) for index in chosen],
        "is_placed": offset_ms is not None,
    }


def _stretch(trial: Trial) -> float:
    """How much longer the steady state took than its inferences: what lies between them is spread over them evenly."""
    wall_ns, inside_us = trial.metrics.get("steady_wall_ns"), sum(trial.samples_us)
    is_known = isinstance(wall_ns, int | float) and math.isfinite(inside_us) and 0 < 1000 * inside_us <= wall_ns
    return wall_ns / 1000 / inside_us if isinstance(wall_ns, int | float) and is_known else 1.0


def _drawn(value: float | None) -> float | None:
    """Four digits, more than a drawing shows."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")


def _steady_ms(trial: Trial) -> float | None:
    """When the first sample began, after the start of the process; None where the clocks were not kept."""
    start, steady = _mapping(trial.evidence.get("started")).get("t_ns"), trial.metrics.get("steady_from_ns")
    if not isinstance(start, int | float) or not isinstance(steady, int | float):
        return None
    return (steady - start) / 1e6


def _chosen(values: Sequence[float], most: int) -> list[int]:
    if len(values) <= most:
        return list(range(len(values)))
    stretch = -(-2 * len(values) // most)
    found: list[int] = []
    for start in range(0, len(values), stretch):
        ordered = sorted(range(start, min(start + stretch, len(values))), key=values.__getitem__)
        found += sorted({ordered[len(ordered) // 2], ordered[-1]})
    return found


# Telemetry as curves


def telemetry_curves(telemetry: Mapping[str, Any], most: int) -> Data | None:
    """Clock of the fastest CPU, hottest sensor, and CPUs kept busy by the model, the load and all together."""
    times = telemetry.get("t_ms")
    if not isinstance(times, list) or len(times) < 2:
        return None
    hz = telemetry.get("tick_hz") or 100
    curves = {
        "mhz": [_top(row, 1e-3) for row in telemetry.get("freq_khz") or []],
        "celsius": [_top(row, 1e-3) for row in telemetry.get("temp_mc") or []],
        "busy": _rates(times, [_sum(row) for row in telemetry.get("busy") or []], 1000.0 / hz),
        "model": _rates(times, [_mapping(row).get("cpu_ns") for row in telemetry.get("child") or []], 1e-6),
        "load": _rates(times, [_sum(row) for row in telemetry.get("load_cpu_ns") or []], 1e-6),
    }
    known = {
        name: curve
        for name, curve in curves.items()
        if len(curve) == len(times) and any(value is not None for value in curve)
    }
    step = -(-len(times) // most)
    return {
        "t_ms": [_drawn(value) for value in times[::step]],
        **{name: [_drawn(value) for value in curve[::step]] for name, curve in known.items()},
        "absent": _short(telemetry.get("absent") or {}),
    }


def _top(row: Any, scale: float) -> float | None:
    values = [value for value in row or [] if isinstance(value, int | float)] if isinstance(row, list) else []
    return max(values) * scale if values else None


def _sum(row: Any) -> float | None:
    if isinstance(row, int | float):
        return float(row)
    values = [value for value in row if isinstance(value, int | float)] if isinstance(row, list) else []
    return float(sum(values)) if values else None


def _rates(times: Sequence[float], counts: Sequence[float | None], scale: float) -> list[float | None]:
    """How fast a count grew up to each sample; `scale` makes it milliseconds of CPU time."""
    if not counts:
        return []
    rates: list[float | None] = [None]
    for index in range(1, min(len(times), len(counts))):
        before, after, span_ms = counts[index - 1], counts[index], times[index] - times[index - 1]
        if before is None or after is None or span_ms <= 0:
            rates.append(None)
        else:
            rates.append(max(0.0, (after - before) * scale / span_ms))
    return rates
