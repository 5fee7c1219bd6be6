"""The evidence of single trials for the page: log, flags, hashes, device state, telemetry and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.reports.page.payload import Data, figure
from orchestrator.timeline import Moments, timeline_of
from orchestrator.timeline.events import Counter, Slice
from orchestrator.timeline_files import moments_of
from orchestrator.trial import Outcome, Trial

_TEXT_MAX = 4000
_DRAWN_COLUMNS = ("t_ms", "freq_khz", "temp_mc", "busy", "child", "load_cpu_ns", "tick_hz")
_CPUS_USED = "CPUs used, "
_OBSERVED_LEFT_OUT = ("thread_cpu_ns", "flags")


@dataclass(frozen=True)
class Detail:
    """How much of each trial the page carries; the more trials there are, the less of each."""

    samples: int
    points: int
    log_bytes: int
    log_bytes_measured: int
    reads_moments: bool
    """Whether the times of inferences are read from logs, which takes a few milliseconds a trial."""

    @classmethod
    def of(cls, trials: int) -> Detail:
        if trials <= 200:
            return cls(samples=400, points=200, log_bytes=12_000, log_bytes_measured=12_000, reads_moments=True)
        if trials <= 2000:
            return cls(samples=120, points=60, log_bytes=4000, log_bytes_measured=2000, reads_moments=True)
        return cls(samples=16, points=10, log_bytes=2000, log_bytes_measured=0, reads_moments=False)


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
        "time": _in_time(trial, detail, folder),
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


# In time


def _in_time(trial: Trial, detail: Detail, folder: Path) -> Data:
    """When each inference ran and what the agent sampled, as `devbench timeline` has it; of many points, a part."""
    moments = moments_of(trial, folder) if detail.reads_moments else Moments()
    found = timeline_of(_thinned(trial, detail.points), moments=moments)
    inferences = [part for track in found.tracks if track.name == "inferences" for part in track.slices]
    measured = [part for part in inferences if part.name.startswith("inference")]
    warmup = [part for part in inferences if not part.name.startswith("inference")]
    return {
        "count": len(trial.samples_us),
        "is_recorded": any(part.name == "inference" for part in measured),
        "measured": [_point(part) for part in _chosen(measured, detail.samples)],
        "warmup": [_point(part) for part in _chosen(warmup, detail.samples // 4)],
        "counters": _curves(found.counters),
        "absent": _short(_mapping(trial.telemetry.get("absent"))),
    }


def _thinned(trial: Trial, most: int) -> Trial:
    """The same trial with the telemetry that is drawn, and no more samples of it than are."""
    times = trial.telemetry.get("t_ms")
    if not isinstance(times, list):
        return replace(trial, telemetry={})
    step = max(1, -(-len(times) // most))
    columns = {
        name: column[::step] if isinstance(column, list) and len(column) == len(times) else column
        for name, column in trial.telemetry.items()
        if name in _DRAWN_COLUMNS
    }
    return replace(trial, telemetry=columns)


def _point(part: Slice) -> list[float]:
    return [_ms(part.start_ns), _drawn(part.duration_ns / 1000)]


def _ms(time_ns: int) -> float:
    return round(time_ns / 1e6, 1)


def _drawn(value: float) -> float:
    """Four digits, more than a drawing shows."""
    return float(f"{value:.4g}")


def _chosen(parts: Sequence[Slice], most: int) -> list[Slice]:
    """Of each stretch the median and the slowest, in time."""
    if len(parts) <= most:
        return list(parts)
    stretch = -(-2 * len(parts) // most)
    found: list[Slice] = []
    for start in range(0, len(parts), stretch):
        ordered = sorted(range(start, min(start + stretch, len(parts))), key=lambda index: parts[index].duration_ns)
        found += [parts[index] for index in sorted({ordered[len(ordered) // 2], ordered[-1]})]
    return found


def _curves(counters: Sequence[Counter]) -> dict[str, list[list[float]]]:
    """Who used the CPUs, the fastest clock and the hottest sensor."""
    used = {counter.name: counter.points for counter in counters if counter.name.startswith(_CPUS_USED)}
    curves = {name.removeprefix(_CPUS_USED): points for name, points in used.items()}
    for name, ending in (("MHz", " frequency MHz"), ("°C", " °C")):
        curves[name] = _highest([counter.points for counter in counters if counter.name.endswith(ending)])
    return {name: [[_ms(at_ns), _drawn(value)] for at_ns, value in points] for name, points in curves.items() if points}


def _highest(rows: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[int, float]]:
    highest: dict[int, float] = {}
    for at_ns, value in (point for row in rows for point in row):
        highest[at_ns] = max(value, highest.get(at_ns, value))
    return sorted(highest.items())
