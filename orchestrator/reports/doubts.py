"""What a reader must not believe, and what was not measured, each reason once with the cells it is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.analysis.summary import CellSummary, RunSummary
from orchestrator.trial import Outcome, Trial


@dataclass(frozen=True)
class Doubt:
    """One reason not to trust some cells; `text` is that of the first."""

    verdict: str
    cause: str
    text: str
    remedy: str
    cells: tuple[CellSummary, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "cause": self.cause,
            "text": self.text,
            "remedy": self.remedy,
            "cells": [cell_key(found) for found in self.cells],
        }


@dataclass(frozen=True)
class Missing:
    """One reason why trials do not count."""

    outcome: Outcome
    reason: str
    trials: int
    cells: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "outcome": str(self.outcome),
            "reason": self.reason,
            "trials": self.trials,
            "cells": list(self.cells),
        }


def cell_key(found: CellSummary) -> str:
    """What a cell is called inside a report: its id, and the arm where there are arms."""
    return key_of(found.cell.id, found.estimate.arm)


def key_of(cell_id: str, arm: str | None) -> str:
    return f"{cell_id}~{arm}" if arm else cell_id


def doubts(summary: RunSummary) -> tuple[Doubt, ...]:
    """The reasons why cells are not trusted, those of the most cells first."""
    alike: dict[tuple[str, str, str], list[tuple[CellSummary, str]]] = {}
    for found in summary.untrusted:
        for reason in found.trust.reasons:
            alike.setdefault((str(reason.verdict), reason.cause, reason.remedy), []).append((found, reason.text))
    listed = [
        Doubt(verdict, cause, pairs[0][1], remedy, tuple(found for found, _ in pairs))
        for (verdict, cause, remedy), pairs in alike.items()
    ]
    return tuple(sorted(listed, key=lambda doubt: -len(doubt.cells)))


def missing(trials: Sequence[Trial]) -> tuple[Missing, ...]:
    """Why trials do not count, by outcome and reason, the most frequent first; figures in a reason do not part it."""
    alike: dict[tuple[Outcome, str], list[Trial]] = {}
    for trial in trials:
        if trial.outcome is not Outcome.MEASURED:
            alike.setdefault((trial.outcome, _kind(trial)), []).append(trial)
    listed = [
        Missing(
            outcome,
            found[0].reason or "no reason recorded",
            len(found),
            tuple(dict.fromkeys(key_of(trial.cell.id, trial.slot.arm) for trial in found)),
        )
        for (outcome, _), found in alike.items()
    ]
    return tuple(sorted(listed, key=lambda item: -item.trials))


def _kind(trial: Trial) -> str:
    """A reason without its figures."""
    return re.sub(r"\d+(\.\d+)?", "#", trial.reason or "")
