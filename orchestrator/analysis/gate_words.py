"""The words of the gate: what becomes of a cell from one night to another, and what that makes of the night."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from orchestrator.analysis.comparison import percent
from orchestrator.analysis.sequential import Shift
from orchestrator.trial import Cell


class Verdict(StrEnum):
    """What became of a cell. What was not measured is neither fast nor slow, and has words of its own."""

    CONFIRMED = "confirmed"
    """Slower when both builds ran interleaved, the same night."""
    SUSPECTED = "suspected"
    """Slower than in another night, beyond what nights differ by."""
    REFUTED = "refuted"
    """Suspected, but not slower when both builds ran interleaved."""
    DEVICE_MOVED = "device-moved"
    """Slower or faster, but so is the pinned reference, or nothing that was measured has changed."""
    FASTER = "faster"
    STEADY = "steady"
    UNDECIDED = "undecided"
    """Measured in too few blocks to say anything."""
    INCOMPARABLE = "incomparable"
    REFERENCE = "reference"
    NEW = "new"
    VANISHED = "vanished"
    DEVICE_VANISHED = "device-vanished"
    FAILED = "failed"
    REJECTED = "rejected"
    NOT_RUN = "not-run"
    SKIPPED = "skipped"


JUDGED = (
    Verdict.CONFIRMED,
    Verdict.SUSPECTED,
    Verdict.REFUTED,
    Verdict.DEVICE_MOVED,
    Verdict.FASTER,
    Verdict.STEADY,
)
"""The verdicts that rest on measurements of both nights."""


@dataclass(frozen=True)
class Confirmation:
    """What stage two found of a suspect: both builds interleaved in the blocks of one run."""

    run: str | None
    verdict: str
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    blocks: int = 0
    metric: str = "p50"

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "verdict": self.verdict,
            "metric": self.metric,
            "effect_percent": percent(self.effect),
            "ci_low_percent": percent(self.low),
            "ci_high_percent": percent(self.high),
            "blocks": self.blocks,
        }


@dataclass(frozen=True)
class Row:
    """One cell tonight. `judged` is its shift against the baseline night, relative to the reference where there is
    one, `raw` the plain one and `reference` that of the reference; all logarithms. `lost` says that it was asked for,
    or measured before, and is missing."""

    cell: Cell
    verdict: Verdict
    reason: str
    baseline: str | None = None
    base_cell: Cell | None = None
    judged: Shift | None = None
    raw: Shift | None = None
    reference: Shift | None = None
    blocks: tuple[int, int] = (0, 0)
    latencies_us: tuple[float | None, float | None] = (None, None)
    changed: tuple[str, ...] = ()
    lost: bool = False
    confirmation: Confirmation | None = None

    @property
    def effect(self) -> float | None:
        """The best that is known of the change: from stage two, or from stage one."""
        if self.confirmation and self.confirmation.effect is not None:
            return self.confirmation.effect
        return self.judged.location if self.judged else None

    @property
    def interval(self) -> tuple[float, float] | None:
        found = self.confirmation
        if found and found.low is not None and found.high is not None:
            return found.low, found.high
        return (self.judged.low, self.judged.high) if self.judged else None

    def as_json(self) -> dict[str, Any]:
        return {
            **self.cell.as_json(),
            "id": self.cell.id,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "baseline": self.baseline,
            "baseline_id": self.base_cell.id if self.base_cell else None,
            "judged": _shift_json(self.judged),
            "raw": _shift_json(self.raw),
            "reference": _shift_json(self.reference),
            "blocks": {"baseline": self.blocks[0], "run": self.blocks[1]},
            "p50_us": {"baseline": self.latencies_us[0], "run": self.latencies_us[1]},
            "changed": list(self.changed),
            "lost": self.lost,
            "confirmation": self.confirmation.as_json() if self.confirmation else None,
        }


def _shift_json(found: Shift | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    low, high = percent(found.low), percent(found.high)
    return {"effect_percent": percent(found.location), "ci_low_percent": low, "ci_high_percent": high, "p": found.p}


@dataclass(frozen=True)
class DeviceNight:
    """One device tonight. `lost` says why nothing was measured on it, `unpinned` why its reference is of no use, and
    `has_moved` that the reference is not where it was, whatever nights differ by."""

    name: str
    lost: str | None = None
    system_before: str | None = None
    system: str | None = None
    reference: Shift | None = None
    has_moved: bool = False
    unpinned: str | None = None

    @property
    def has_new_system(self) -> bool:
        return None not in (self.system, self.system_before) and self.system != self.system_before

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "lost": self.lost,
            "system": self.system,
            "system_before": self.system_before,
            "system_changed": self.has_new_system,
            "reference": _shift_json(self.reference),
            "moved": self.has_moved,
            "reference_unused": self.unpinned,
        }


class Ending(StrEnum):
    """What the gate says of a night as a whole."""

    REGRESSION = "regression"
    SUSPICION = "suspicion"
    PARTIAL = "partial"
    PASSED = "passed"
    FIRST = "first"
    """There is nothing to compare with yet."""


@dataclass(frozen=True)
class GateResult:
    """Everything the gate found out about a night."""

    run: str
    baseline: str | None
    threshold: float
    fail_on: str
    rows: tuple[Row, ...]
    devices: tuple[DeviceNight, ...]
    notes: tuple[str, ...] = ()
    duel: str | None = None
    """The run of stage two, if there was one."""
    unconfirmed: Mapping[str, str] = field(default_factory=dict)
    """Why suspects, by their cell's id, could not be run again."""

    def of(self, *verdicts: Verdict) -> list[Row]:
        return [row for row in self.rows if row.verdict in verdicts]

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(row.verdict for row in self.rows)
        return {str(verdict): found[verdict] for verdict in Verdict if found[verdict]}

    @property
    def failing(self) -> list[Row]:
        """The cells that fail the night."""
        wanted = (Verdict.CONFIRMED, Verdict.SUSPECTED) if self.fail_on == "suspected" else (Verdict.CONFIRMED,)
        return self.of(*wanted)

    @property
    def lost_devices(self) -> list[DeviceNight]:
        return [device for device in self.devices if device.lost]

    @property
    def is_partial(self) -> bool:
        return bool(self.lost_devices) or any(row.lost for row in self.rows)

    @property
    def ending(self) -> Ending:
        if self.failing:
            return Ending.REGRESSION
        if self.is_partial:
            return Ending.PARTIAL
        if self.of(Verdict.SUSPECTED):
            return Ending.SUSPICION
        return Ending.FIRST if self.baseline is None else Ending.PASSED

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "baseline": self.baseline,
            "ending": str(self.ending),
            "threshold_percent": 100 * self.threshold,
            "fail_on": self.fail_on,
            "verdicts": self.counts,
            "cells": [row.as_json() for row in self.rows],
            "devices": [device.as_json() for device in self.devices],
            "duel": self.duel,
            "unconfirmed": dict(self.unconfirmed),
            "notes": list(self.notes),
        }


def worst_first(rows: Sequence[Row]) -> list[Row]:
    """The order in which rows matter: by verdict, then by how much slower."""
    order = list(Verdict)
    return sorted(rows, key=lambda row: (order.index(row.verdict), -(row.effect or 0.0)))
