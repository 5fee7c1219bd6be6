"""What happens when a cell runs without a rest: the latency curve, when it throttles, and whether the ranking turns."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from orchestrator.analysis.estimate import trial_latency_us
from orchestrator.analysis.randomisation import MAD_TO_SD, Floats
from orchestrator.analysis.witness import witness_of
from orchestrator.clock import seconds_of
from orchestrator.trial import Cell, Outcome, Pass, Trial

THROTTLED = 0.05
"""A latency that stays above what it was by this share is throttled."""
_BINS = 40
_ENDS = 0.1
"""The share of the time that counts as the start, and as the end."""
_SURE = 6.0
_NOISE_MIN = 0.002
_RANK_TIE = 0.02
_OTHERS = ("other-cpu", "steal")


@dataclass(frozen=True)
class Point:
    """The median latency of a stretch of the run, which began `t_s` seconds after the start."""

    t_s: float
    median_us: float
    samples: int
    temperature_c: float | None
    clock_khz: float | None


@dataclass(frozen=True)
class Sustained:
    """One cell run back to back. `throttled_after_s` is None where it kept its pace."""

    cell: Cell
    seconds: float
    curve: tuple[Point, ...]
    start_us: float
    end_us: float
    throttled_after_s: float | None
    notes: tuple[str, ...]

    @property
    def slowdown(self) -> float:
        """Its latency at the end over that at the start."""
        return self.end_us / self.start_us

    def as_json(self) -> dict[str, Any]:
        return self.cell.as_json() | {
            "id": self.cell.id,
            "seconds": self.seconds,
            "start_us": self.start_us,
            "end_us": self.end_us,
            "slowdown": self.slowdown,
            "throttled_after_s": self.throttled_after_s,
            "curve": [asdict(point) for point in self.curve],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Ranking:
    """The sustained cells of one device, the fastest first, at the start and at the end."""

    device: str
    start: tuple[Cell, ...]
    end: tuple[Cell, ...]
    overtaken: tuple[tuple[Cell, Cell], ...]
    """Pairs (loser, winner): the loser was clearly faster at the start and is clearly slower at the end."""

    def as_json(self) -> dict[str, Any]:
        return {
            "device": self.device,
            "start": [cell.id for cell in self.start],
            "end": [cell.id for cell in self.end],
            "overtaken": [{"by": winner.id, "cell": loser.id} for loser, winner in self.overtaken],
        }


def sustained(trials: Sequence[Trial]) -> tuple[Sustained, ...]:
    """Every cell that was run back to back, from the trials of its last attempt."""
    of_cell: dict[Cell, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.slot.purpose is Pass.SUSTAIN:
            of_cell[trial.cell].append(trial)
    return tuple(found for cell, mine in of_cell.items() if (found := _sustained(cell, mine)))


def last_attempt(trials: Sequence[Trial]) -> list[Trial]:
    """The trials of the last stretch without a break: block numbers and session go on in it."""
    ordered = sorted(trials, key=lambda trial: trial.slot.block)
    start = 0
    for index in range(1, len(ordered)):
        if ordered[index].slot.block != ordered[index - 1].slot.block + 1:
            start = index
    return ordered[start:]


def _sustained(cell: Cell, trials: Sequence[Trial]) -> Sustained | None:
    attempt = [trial for trial in last_attempt(trials) if trial.outcome is not Outcome.NOT_RUN]
    usable = [trial for trial in attempt if _counts(trial)]
    if not usable:
        return None
    starts = _starts_s(attempt)
    curve = _curve(usable, [starts[trial.slot.block] for trial in usable])
    seconds = starts[attempt[-1].slot.block] + attempt[-1].duration_s
    ends = max(1, math.ceil(_ENDS * len(curve)))
    start_us, end_us = (float(np.median([p.median_us for p in part])) for part in (curve[:ends], curve[-ends:]))
    notes = []
    if len(usable) < len(attempt):
        notes.append(f"{len(attempt) - len(usable)} of {len(attempt)} slices do not count; see their reasons")
    throttled = _throttled_after_s(curve)
    shared = sum(any(finding.rule in _OTHERS for finding in trial.findings) for trial in usable)
    if throttled is not None and shared:
        notes.append(f"other programs were busy during {shared} of {len(usable)} slices: the slow-down may be theirs")
    return Sustained(cell, seconds, tuple(curve), start_us, end_us, throttled, tuple(notes))


def _counts(trial: Trial) -> bool:
    """Measured, or rejected for nothing but a limit that heat broke: heat is what is being looked at."""
    if trial_latency_us(trial, "p50") is None:
        return False
    rules = {finding.rule for finding in trial.findings if str(finding.severity) in ("reject", "fail")}
    return trial.outcome is Outcome.MEASURED or (trial.outcome is Outcome.REJECTED and rules == {"limit"})


def _starts_s(attempt: Sequence[Trial]) -> dict[int, float]:
    """When each slice began, from the clock where it is told, else from how long those before it took."""
    first, elapsed, starts = seconds_of(attempt[0].started_at), 0.0, {}
    for trial in attempt:
        now = seconds_of(trial.started_at)
        if now is not None and first is not None and now - first >= elapsed:
            elapsed = now - first
        starts[trial.slot.block] = elapsed
        elapsed += trial.duration_s
    return starts


def _curve(trials: Sequence[Trial], starts_s: Sequence[float]) -> list[Point]:
    """Medians of stretches of equal length; a trial without samples counts as one."""
    times: list[Floats] = []
    values: list[Floats] = []
    circumstances = [witness_of(trial) for trial in trials]
    owners: list[Floats] = []
    for index, (trial, start_s) in enumerate(zip(trials, starts_s, strict=True)):
        latencies = np.array(trial.samples_us or (trial_latency_us(trial, "p50"),), dtype=np.float64)
        before_s = sum(trial.warmup_us) / 1e6
        times.append(start_s + before_s + (np.cumsum(latencies) - latencies) / 1e6)
        values.append(latencies)
        owners.append(np.full(len(latencies), index, dtype=np.float64))
    at, latency, owner = np.concatenate(times), np.concatenate(values), np.concatenate(owners)
    width = max(float(at.max()) * (1 + 1e-9) / _BINS, 1e-6)
    bins = np.minimum((at / width).astype(int), _BINS - 1)
    points = []
    for number in range(_BINS):
        inside = bins == number
        if inside.any():
            witness = circumstances[int(np.median(owner[inside]))]
            median_us = float(np.median(latency[inside]))
            count = int(inside.sum())
            points.append(Point(number * width, median_us, count, witness.temperature_c, witness.clock_khz))
    return points


def _throttled_after_s(curve: Sequence[Point]) -> float | None:
    """The moment at which the curve is best cut in two levels, if the second is clearly higher.

    The cut that leaves the least absolute deviation is where a sudden throttling began, and the middle of a slow one.
    """
    if len(curve) < 6:
        return None
    logs = np.log(np.array([point.median_us for point in curve]))
    cuts = range(2, len(logs) - 1)
    best = min(cuts, key=lambda cut: _deviation(logs[:cut]) + _deviation(logs[cut:]))
    before, after = logs[:best], logs[best:]
    step = float(np.median(after) - np.median(before))
    noise = max(MAD_TO_SD * float(np.median(np.abs(np.diff(logs)))) / math.sqrt(2), _NOISE_MIN)
    is_sure = step / (noise * math.sqrt(1 / len(before) + 1 / len(after))) > _SURE
    return curve[best].t_s if is_sure and step > math.log1p(THROTTLED) else None


def _deviation(logs: Floats) -> float:
    return float(np.abs(logs - np.median(logs)).sum())


def rankings(cells: Sequence[Sustained]) -> tuple[Ranking, ...]:
    """One ranking for each device with more than one sustained cell."""
    of_device: dict[str, list[Sustained]] = defaultdict(list)
    for found in cells:
        of_device[found.cell.device].append(found)
    return tuple(_ranking(device, found) for device, found in of_device.items() if len(found) > 1)


def _ranking(device: str, found: Sequence[Sustained]) -> Ranking:
    start, end = sorted(found, key=lambda one: one.start_us), sorted(found, key=lambda one: one.end_us)
    overtaken = tuple(
        (loser.cell, winner.cell)
        for loser in start
        for winner in start
        if winner.start_us > (1 + _RANK_TIE) * loser.start_us and loser.end_us > (1 + _RANK_TIE) * winner.end_us
    )
    return Ranking(device, tuple(one.cell for one in start), tuple(one.cell for one in end), overtaken)
