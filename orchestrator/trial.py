"""The words for what is measured: cell, slot, trial, finding. Everything else speaks in these."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """What became of a slot. These are never mixed: only `measured` counts in an estimate."""

    MEASURED = "measured"
    REJECTED = "rejected"
    FAILED = "failed"
    SKIPPED = "skipped"
    NOT_RUN = "not-run"


class Pass(StrEnum):
    """Why a trial is made. Passes are never mixed: only trials of the latency pass are estimated and compared."""

    LATENCY = "latency"
    SUSTAIN = "sustain"


class Severity(StrEnum):
    """What a finding does to its trial."""

    NOTE = "note"
    WARN = "warn"
    REJECT = "reject"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """A judgement about a trial or a device: what is the case, how bad, and what to do."""

    rule: str
    severity: Severity
    reason: str
    remedy: str

    def as_json(self) -> dict[str, str]:
        return {
            "rule": self.rule,
            "severity": str(self.severity),
            "reason": self.reason,
            "remedy": self.remedy,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, str]) -> Finding:
        severity = Severity(content["severity"])
        return cls(content["rule"], severity, content["reason"], content["remedy"])


@dataclass(frozen=True)
class Cell:
    """One point of the grid on one device. Its id is a hash of its content."""

    device: str
    model: str
    model_sha256: str
    runner: str
    runner_sha256: str | None
    delegate: str
    """Its label: a user's own delegate carries a hash of its definition, and a cache its condition (`gpu+warm`)."""
    threads: int
    affinity: str
    load: str

    @property
    def id(self) -> str:
        content = json.dumps(self.as_json(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    @property
    def contrast(self) -> tuple[str, ...]:
        """Cells that share this are contrasted by thread count, so they run back to back."""
        return (
            self.device,
            self.model,
            self.model_sha256,
            self.runner,
            self.delegate,
            self.affinity,
            self.load,
        )

    @property
    def setting(self) -> str:
        """The cell in words, without device and model: `xnnpack, 2 threads, load cpu:1@100`."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        affinity = "" if self.affinity == "any" else f", affinity {self.affinity}"
        runner = "" if self.runner == "litert_runner" else f"{self.runner}, "
        return f"{runner}{self.delegate}, {threads}{affinity}, load {self.load}"

    def __str__(self) -> str:
        return f"{self.model} ({self.setting}) on {self.device}"

    def as_json(self) -> dict[str, Any]:
        return {
            "device": self.device,
            "model": self.model,
            "model_sha256": self.model_sha256,
            "runner": self.runner,
            "runner_sha256": self.runner_sha256,
            "delegate": self.delegate,
            "threads": self.threads,
            "affinity": self.affinity,
            "load": self.load,
        }


@dataclass(frozen=True)
class Slot:
    """A cell's turn in a block of the schedule: what we intend."""

    cell: Cell
    block: int
    position: int
    arm: str | None = None
    purpose: Pass = Pass.LATENCY


@dataclass(frozen=True)
class Summary:
    """What a tool says about its own samples, or what is computed from them, in microseconds."""

    count: int
    median: float | None = None
    p5: float | None = None
    p95: float | None = None
    avg: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None

    def as_json(self) -> dict[str, float | int | None]:
        return {
            "count": self.count,
            "median": self.median,
            "p5": self.p5,
            "p95": self.p95,
            "avg": self.avg,
            "std": self.std,
            "min": self.min,
            "max": self.max,
        }


@dataclass(frozen=True)
class Trial:
    """One execution: what happened to a slot, with every sample and all evidence."""

    run: str
    slot: Slot
    session: str
    outcome: Outcome
    reason: str | None
    started_at: str
    duration_s: float = 0.0
    samples_us: tuple[float, ...] = ()
    warmup_us: tuple[float, ...] = ()
    summary: Summary | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    telemetry: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    log: str | None = None

    @property
    def cell(self) -> Cell:
        return self.slot.cell

    @property
    def waited_s(self) -> float:
        """How long the device was waited for before it."""
        waited = self.metrics.get("cool_down_s")
        return float(waited) if isinstance(waited, int | float) else 0.0
