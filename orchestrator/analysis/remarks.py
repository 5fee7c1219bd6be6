"""What the measured trials of a run have in common that a reader of their numbers should know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.trial import Finding, Outcome, Severity, Trial

_ORDER = (Severity.WARN, Severity.NOTE)


@dataclass(frozen=True)
class Remark:
    """One kind of finding over all measured trials, with one of its reasons as an example."""

    rule: str
    severity: Severity
    trials: int
    of: int
    cells: tuple[str, ...]
    example: str
    remedy: str

    def as_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "severity": str(self.severity),
            "trials": self.trials,
            "of": self.of,
            "cells": list(self.cells),
            "example": self.example,
            "remedy": self.remedy,
        }


def remarks(trials: Sequence[Trial]) -> tuple[Remark, ...]:
    """Findings of measured trials by rule: warnings first, the most frequent first."""
    measured = [trial for trial in trials if trial.outcome == Outcome.MEASURED]
    by_rule: dict[tuple[Severity, str], list[tuple[Trial, Finding]]] = {}
    for trial in measured:
        for finding in trial.findings:
            by_rule.setdefault((finding.severity, finding.rule), []).append((trial, finding))
    found = [
        Remark(
            rule=rule,
            severity=severity,
            trials=len({id(trial) for trial, _ in pairs}),
            of=len(measured),
            cells=tuple(sorted({trial.cell.id for trial, _ in pairs})),
            example=pairs[-1][1].reason,
            remedy=pairs[-1][1].remedy,
        )
        for (severity, rule), pairs in by_rule.items()
        if severity in _ORDER
    ]
    return tuple(sorted(found, key=lambda remark: (_ORDER.index(remark.severity), -remark.trials, remark.rule)))
