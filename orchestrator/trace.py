"""The words for system traces: what was recorded, what it says at a glance, and the pass that brought it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from orchestrator.cell_pass import CellPass

EVERY, ANOMALY = "every", "anomaly"
"""Which cells are traced: all, or those that are odd."""
BYTES_DEFAULT, BYTES_MIN, BYTES_MAX = 64_000_000, 1_000_000, 4_000_000_000


@dataclass(frozen=True)
class TraceSummary:
    """What a file that a tracer wrote turned out to be."""

    size_bytes: int
    events: int = 0
    duration_s: float | None = None
    """From the first event to the last."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many there are of what, in the words of its format."""
    tflite_slices: int | None = None
    """How many slices of TFLite's own are in it; None where the format is not searched for them."""
    problem: str | None = None
    """Why it is not whole; what could be read is here all the same."""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> TraceSummary:
        return cls(**{**content, "notes": tuple(content["notes"])})


@dataclass(frozen=True)
class TracePass(CellPass):
    """One execution of a cell while a tracer recorded what the system did."""

    kind: str | None = None
    """The tracer; None where there was none to be had."""
    trace: TraceSummary | None = None
    why: str | None = None
    """What is odd about the cell, where only odd ones are traced."""
