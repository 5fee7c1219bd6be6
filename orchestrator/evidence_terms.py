"""The terms of evidence: what a trial was meant to be, and the findings that judge it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.fleet import Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.platforms.base import Hold
from orchestrator.trial import Cell, Finding, Severity


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


def fail(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.FAIL, reason, remedy)


def reject(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.REJECT, reason, remedy)


def warn(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.WARN, reason, remedy)


def unverified(what: str, reason: str) -> Finding:
    return warn(f"{what}-unverified", reason, "use a runner that reports it, or trust the number less")
