"""The word for a cell run once more for another purpose than its latency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.trial import Cell, Finding, Outcome


@dataclass(frozen=True)
class CellPass:
    """One execution of a cell that is watched in a way that distorts it. It is no trial: no estimate ever sees it."""

    run: str
    cell: Cell
    session: str
    outcome: Outcome
    reason: str | None
    started_at: str
    duration_s: float = 0.0
    latency_us: float | None = None
    """The median inference meanwhile, which shows what the watching costs."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    log: str | None = None
    artifacts: Mapping[str, str] = field(default_factory=dict)
    """The files behind it, by role, as paths inside the store."""
