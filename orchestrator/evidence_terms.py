"""The terms of evidence: what a trial was meant to be, and the findings that judge it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.delegates import Delegate, delegate_of
from orchestrator.fleet import Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.platforms.base import Hold
from orchestrator.runners.base import Reading
from orchestrator.stage import Report
from orchestrator.trial import Cell, Finding, Severity


@dataclass(frozen=True)
class Readiness:
    """How a device was when a trial began, and how long it was waited for."""

    state: Mapping[str, Any]
    waited_s: float = 0.0
    waited_for: str | None = None
    canary_ns: int | None = None
    canary_best_ns: int | None = None
    """The shortest of this session."""
    canary_slack: float = 0.0

    @property
    def slower_than_best(self) -> float | None:
        """How much longer the canary took than at its best; None where there is no canary."""
        if not self.canary_ns or not self.canary_best_ns:
            return None
        return self.canary_ns / self.canary_best_ns - 1.0

    def as_json(self) -> dict[str, Any]:
        return {
            "waited_s": self.waited_s,
            "waited_for": self.waited_for,
            "canary_ns": self.canary_ns,
            "canary_best_ns": self.canary_best_ns,
        }


NOT_LOOKED = Readiness({})


@dataclass(frozen=True)
class Asked:
    """Everything a trial was meant to be."""

    cell: Cell
    measure: Measure
    conditions: Conditions
    limits: Limits
    affinity_mask: str | None
    holds: Sequence[Hold]
    states: tuple[Mapping[str, Any], ...] = ()
    """How the device was before and during the trial, as far as its limits are about it."""
    breaches: tuple[str, ...] = ()
    """The limits it broke then, in words."""
    readiness: Readiness = NOT_LOOKED
    own_delegate: Delegate | None = None
    """What the cell's delegate stands for; None where its label says it."""
    lost_outputs: Mapping[str, str] = field(default_factory=dict)
    """Files that the runner was to write and that did not arrive, by role, and why."""
    cache_entries: int | None = None
    """How many files the delegate's cache held after the trial; None where the cell states no cache."""

    @property
    def delegate(self) -> Delegate:
        return self.own_delegate or delegate_of(self.cell.delegate)


def fail(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.FAIL, reason, remedy)


def reject(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.REJECT, reason, remedy)


def note(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.NOTE, reason, remedy)


def warn(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.WARN, reason, remedy)


def unverified(what: str, reason: str) -> Finding:
    return warn(f"{what}-unverified", reason, "use a runner that reports it, or trust the number less")


# What the kernel shows of the process that inferred: the agent's child, or another that the child only drives.


def process_elsewhere(reading: Reading) -> Mapping[str, Any] | None:
    """What the runner saw of the process that inferred; None where that is the agent's child itself."""
    process: Mapping[str, Any] | None = reading.observed.get("process")
    return process


def threads_seen(report: Report, reading: Reading) -> int | None:
    """The most threads it had at once."""
    process = process_elsewhere(reading)
    seen: int | None = (
        (report.closing.get("threads") or {}).get("max") if process is None else process.get("threads_max")
    )
    return seen


def mask_seen(report: Report, reading: Reading) -> str | None:
    """The CPUs it might run on."""
    process = process_elsewhere(reading)
    seen: str | None = (report.started if process is None else process).get("affinity")
    return seen
