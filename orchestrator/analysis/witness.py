"""What a trial's telemetry and evidence say about its circumstances; files from elsewhere may have none of it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.trial import Trial

_CLOCK_SLACK = 1.02
_CLOCK_SLACK_S = 0.05
_TEMPERATURE_C = (-40.0, 150.0)


@dataclass(frozen=True, slots=True)
class Witness:
    """The circumstances of one trial; None is not known."""

    clock_khz: float | None = None
    """The fastest CPU's clock, on average."""
    temperature_c: float | None = None
    """The hottest sensor, at its hottest."""
    load_missing: float | None = None
    """By how much of a CPU a load thread missed what was asked, before the model ran."""
    clock_trouble: str | None = None
    """Why the clocks of the trial cannot be right."""


NOTHING_KNOWN = Witness()


def witness_of(trial: Trial) -> Witness:
    """The circumstances of a trial."""
    trouble = _clock_trouble(trial)
    if not trial.telemetry and not trial.evidence and trouble is None:
        return NOTHING_KNOWN
    return Witness(_clock_khz(trial.telemetry), _temperature_c(trial.telemetry), _load_missing(trial.evidence), trouble)


def _rows(column: Any) -> list[list[float]]:
    """A telemetry column as rows of numbers; what is no number is left out."""
    if not isinstance(column, Sequence) or isinstance(column, str):
        return []
    rows = (row if isinstance(row, Sequence) and not isinstance(row, str) else [row] for row in column)
    return [[float(value) for value in row if _is_number(value)] for row in rows]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _clock_khz(telemetry: Mapping[str, Any]) -> float | None:
    """While the child ran, where the samples tell that; a resting CPU's clock says nothing."""
    rows, children = _rows(telemetry.get("freq_khz")), telemetry.get("child")
    if isinstance(children, Sequence) and len(children) == len(rows) and any(children):
        rows = [row for row, child in zip(rows, children, strict=True) if child]
    fastest = [max(row) for row in rows if row and max(row) > 0]
    return sum(fastest) / len(fastest) if fastest else None


def _temperature_c(telemetry: Mapping[str, Any]) -> float | None:
    low, high = _TEMPERATURE_C
    readings = [value / 1000.0 for row in _rows(telemetry.get("temp_mc")) for value in row]
    return max((value for value in readings if low < value < high), default=None)


def _load_missing(evidence: Mapping[str, Any]) -> float | None:
    """The worst of the load's threads at the end of its settling, as a share of a CPU."""
    phases = evidence.get("loads")
    if not isinstance(phases, Sequence):
        return None
    settled = [phase for phase in phases if isinstance(phase, Mapping) and phase.get("phase") == "settle"]
    threads = settled[-1].get("threads") if settled else None
    if not isinstance(threads, Sequence):
        return None
    missing = [
        abs(thread["offered"] - thread["achieved"])
        for thread in threads
        if isinstance(thread, Mapping) and _is_number(thread.get("offered")) and _is_number(thread.get("achieved"))
    ]
    return max(missing, default=None)


def _clock_trouble(trial: Trial) -> str | None:
    """Inferences cannot take longer than the trial they are part of, and telemetry cannot go back in time."""
    inside_s = (sum(trial.samples_us) + sum(trial.warmup_us)) / 1e6
    if trial.duration_s > 0 and inside_s > _CLOCK_SLACK * trial.duration_s + _CLOCK_SLACK_S:
        return f"its inferences take {inside_s:.1f} s and the whole trial {trial.duration_s:.1f} s"
    times = [row[0] for row in _rows(trial.telemetry.get("t_ms")) if row]
    if any(later < earlier for earlier, later in itertools.pairwise(times)):
        return "its telemetry goes back in time"
    return None
