"""How devices fare over nights: which one decays, told before its numbers poison the history. Pure.

Levels (the canary's pace, the latency of unchanged bytes, the temperature at the start) count when they rose beyond
the device's own noise (see `worsening`); what moved all devices of a run alike is no device's fault.
Counts (lost connections, failures, rejections) are those of the last nights, held against the rest of the fleet.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from orchestrator.analysis.worsening import worsening
from orchestrator.trial import Finding, Severity

RECENT = 7
"""Counts are about so many last nights."""
NIGHTS_MIN = 3
_FLEET_MIN = 4
"""So many devices in a run can outvote one."""
_WATCHED_NIGHTS = 3
_BATTERY_LOW = 30.0
_BATTERY_BAD = {"dead", "overheat", "over voltage", "failure"}
_FAILED_WATCH, _FAILED_DECAY, _REJECTED_WATCH = 0.10, 0.30, 0.25


class Verdict(StrEnum):
    """What to make of a device."""

    HEALTHY = "healthy"
    WATCH = "watch"
    DECAYING = "decaying"
    NEW = "new"
    """Seen on too few nights to say."""


@dataclass(frozen=True)
class Night:
    """One session of a device, as its record keeps it; None is not known."""

    device: str
    run: str
    started_s: float
    ending: str | None = None
    drops: int = 0
    """How often it had to be reached anew."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    temperature_c: float | None = None
    battery_percent: float | None = None
    battery_health: str | None = None
    canary_ns: float | None = None
    pace: float | None = None
    """The log of how long unchanged bytes took, against all nights of the same cells."""
    build: str | None = None

    @property
    def is_lost(self) -> bool:
        return (self.ending or "").startswith("lost")

    def share(self, outcome: str) -> tuple[int, int]:
        """How many trials ended so, and how many ran."""
        ran = sum(self.outcomes.get(name, 0) for name in ("measured", "rejected", "failed"))
        return self.outcomes.get(outcome, 0), ran


@dataclass(frozen=True)
class Moved:
    """A level that changed for good: by so much, since that run, and whether the build changed then."""

    by: float
    run: str
    build: tuple[str | None, str | None] | None


@dataclass(frozen=True)
class DeviceHealth:
    """What the nights say of one device."""

    device: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    nights: tuple[Night, ...]
    moved: Mapping[str, Moved]

    def as_json(self) -> dict[str, Any]:
        last = self.nights[-1]
        failed, rejected = recent_share(self.nights, "failed"), recent_share(self.nights, "rejected")
        return {
            "device": self.device,
            "verdict": str(self.verdict),
            "nights": len(self.nights),
            "last_run": last.run,
            "drops": sum(night.drops for night in self.nights),
            "lost": sum(night.is_lost for night in self.nights),
            "failed_share": failed,
            "rejected_share": rejected,
            "temperature_c": last.temperature_c,
            "battery_percent": last.battery_percent,
            "battery_health": last.battery_health,
            "moved": {name: {"by": found.by, "run": found.run} for name, found in self.moved.items()},
            "findings": [finding.as_json() for finding in self.findings],
            "record": [_point(night) for night in self.nights],
        }


def _point(night: Night) -> dict[str, Any]:
    return {key: value for key, value in vars(night).items() if key != "device"} | {"lost": night.is_lost}


@dataclass(frozen=True)
class _Level:
    """A figure whose level over nights matters: how it is read, and from which step on it is told and is decay."""

    name: str
    read: Callable[[Night], float | None]
    watch: float
    decay: float
    text: Callable[[float], str]
    remedy: str


def _percent(by: float) -> str:
    return f"{100 * math.expm1(by):.1f} %"


LEVELS = (
    _Level(
        "canary",
        lambda night: math.log(night.canary_ns) if night.canary_ns else None,
        math.log1p(0.02),
        math.log1p(0.05),
        lambda by: f"its canary's best pace is {_percent(by)} slower",
        "look at its battery, its storage and what was installed since; leave it out until it is as before",
    ),
    _Level(
        "pace",
        lambda night: night.pace,
        math.log1p(0.03),
        math.log1p(0.05),
        lambda by: f"the very same models and runners take {_percent(by)} longer",
        "the device changed, not the builds: reset it, or leave it out and calibrate it anew",
    ),
    _Level(
        "temperature",
        lambda night: None if night.temperature_c is None else night.temperature_c / 100,
        0.05,
        math.inf,
        lambda by: f"it starts {100 * by:.0f} °C warmer",
        "see that its place is aired, its charger is off, and its battery is not swollen",
    ),
)


def healths(nights: Iterable[Night]) -> list[DeviceHealth]:
    """Every device by name, from its nights in any order."""
    of_device: dict[str, list[Night]] = {}
    for night in sorted(nights, key=lambda night: (night.started_s, night.run)):
        of_device.setdefault(night.device, []).append(night)
    names = sorted(of_device)
    moved = {level.name: _moved(level, of_device) for level in LEVELS}
    usual = {
        outcome: statistics.median([recent_share(of_device[name], outcome) or 0.0 for name in names] or [0.0])
        for outcome in ("failed", "rejected")
    }
    own = {name: {key: found[name] for key, found in moved.items() if name in found} for name in names}
    return [_judged(name, of_device[name], own[name], usual) for name in names]


def recent_share(nights: Sequence[Night], outcome: str) -> float | None:
    """The share of the last nights' trials that ended so; None where none ran."""
    counts = [night.share(outcome) for night in nights[-RECENT:]]
    ran = sum(total for _, total in counts)
    return sum(count for count, _ in counts) / ran if ran else None


def _moved(level: _Level, of_device: Mapping[str, Sequence[Night]]) -> dict[str, Moved]:
    """The devices whose level rose."""
    shared = _shared(level, of_device)
    series: dict[str, list[tuple[Night, float]]] = {}
    for name, nights in of_device.items():
        read = [(night, value) for night in nights if (value := level.read(night)) is not None]
        series[name] = [(night, value - shared.get(night.run, 0.0)) for night, value in read]
    found: dict[str, Moved] = {}
    for name, row in series.items():
        rise = worsening([value for _, value in row], level.watch)
        if rise:
            before, after = row[rise.index - 1][0], row[rise.index][0]
            build = (before.build, after.build) if before.build != after.build else None
            found[name] = Moved(rise.by, after.run, build)
    return found


def _shared(level: _Level, of_device: Mapping[str, Sequence[Night]]) -> dict[str, float]:
    """How far each run lies off for the fleet as a whole, against each device's own middle: a warm room, an update."""
    offs: dict[str, list[float]] = {}
    for nights in of_device.values():
        values = [(night.run, value) for night in nights if (value := level.read(night)) is not None]
        middle = statistics.median([value for _, value in values]) if values else 0.0
        for run, value in values:
            offs.setdefault(run, []).append(value - middle)
    return {run: statistics.median(found) for run, found in offs.items() if len(found) >= _FLEET_MIN}


def _judged(name: str, nights: Sequence[Night], moved: Mapping[str, Moved], usual: Mapping[str, float]) -> DeviceHealth:
    findings = [*_level_findings(moved), *_link_findings(nights), *_battery_findings(nights)]
    findings += _trial_findings(nights, usual)
    worst = {finding.severity for finding in findings}
    if Severity.FAIL in worst:
        verdict = Verdict.DECAYING
    elif findings:
        verdict = Verdict.WATCH
    else:
        verdict = Verdict.HEALTHY if len(nights) >= NIGHTS_MIN else Verdict.NEW
    return DeviceHealth(name, verdict, tuple(findings), tuple(nights), moved)


def _level_findings(moved: Mapping[str, Moved]) -> Iterable[Finding]:
    for level in LEVELS:
        found = moved.get(level.name)
        if found is None:
            continue
        since = f"{level.text(found.by)} since {found.run}"
        if found.build:
            old, new = found.build
            reason = f"{since}, when its build changed from {old} to {new}"
            yield Finding(f"{level.name}-moved", Severity.WARN, reason, "the update did it: calibrate it anew")
        else:
            severity = Severity.FAIL if found.by >= level.decay else Severity.WARN
            yield Finding(f"{level.name}-moved", severity, since, level.remedy)


def _link_findings(nights: Sequence[Night]) -> Iterable[Finding]:
    recent = nights[-RECENT:]
    lost, dropped = sum(night.is_lost for night in recent), sum(night.drops > 0 for night in recent)
    remedy = "try another cable, port or hub, and see whether it restarts by itself"
    if lost >= 2:
        severity = Severity.FAIL if lost >= _WATCHED_NIGHTS else Severity.WARN
        yield Finding("lost", severity, f"it was lost on {lost} of the last {len(recent)} nights", remedy)
    if dropped >= _WATCHED_NIGHTS:
        drops = sum(night.drops for night in recent)
        reason = f"its connection broke {drops} times on {dropped} of the last {len(recent)} nights"
        yield Finding("drops", Severity.WARN, reason, remedy)


def _battery_findings(nights: Sequence[Night]) -> Iterable[Finding]:
    recent = nights[-RECENT:]
    health = next((night.battery_health for night in reversed(recent) if night.battery_health), None)
    if health in _BATTERY_BAD:
        yield Finding("battery", Severity.FAIL, f"its battery says: {health}", "take it out of the lab; it may swell")
    low = sum(night.battery_percent is not None and night.battery_percent < _BATTERY_LOW for night in recent)
    if low >= _WATCHED_NIGHTS:
        reason = f"it began with less than {_BATTERY_LOW:.0f} % battery on {low} of the last {len(recent)} nights"
        yield Finding("battery-low", Severity.WARN, reason, "see whether it is charged by day, and holds it")


def _trial_findings(nights: Sequence[Night], usual: Mapping[str, float]) -> Iterable[Finding]:
    """Failures and rejections beyond what the fleet has: a build that crashes everywhere is no device's fault."""
    if len(nights) < NIGHTS_MIN:
        return
    failed, rejected = recent_share(nights, "failed") or 0.0, recent_share(nights, "rejected") or 0.0
    if failed - usual["failed"] > _FAILED_WATCH:
        severity = Severity.FAIL if failed - usual["failed"] > _FAILED_DECAY else Severity.WARN
        reason = (
            f"{100 * failed:.0f} % of its trials failed in the last nights, {100 * usual['failed']:.0f} % elsewhere"
        )
        yield Finding(
            "failures", severity, reason, "see the reasons with `devbench show`; restart it, free its storage"
        )
    if rejected - usual["rejected"] > _REJECTED_WATCH:
        reason = f"{100 * rejected:.0f} % of its trials were rejected, {100 * usual['rejected']:.0f} % elsewhere"
        yield Finding(
            "rejections", Severity.WARN, reason, "see the reasons with `devbench show`: heat, battery, other apps"
        )
