"""The words of a comparison: what can become of a cell, and the row that says so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from orchestrator.analysis.estimate import Metric
from orchestrator.analysis.randomisation import walked_level
from orchestrator.analysis.sides import Matched
from orchestrator.analysis.trust import Trust
from orchestrator.trial import Cell

ALPHA = 0.05
THRESHOLD = 0.03


def interval_alpha(alpha: float) -> float:
    """How often an interval misses that goes with a verdict which errs this often."""
    return 1 - walked_level(1 - alpha)


class Change(StrEnum):
    """What became of a cell. `suspected`: the sides were not interleaved, so it may be the day and not the change."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    UNKNOWN = "unknown"
    SUSPECTED_SLOWER = "suspected_slower"
    SUSPECTED_FASTER = "suspected_faster"
    UNSTABLE_SLOWER = "unstable_slower"


FAILING = (Change.SLOWER, Change.UNSTABLE_SLOWER)
"""The verdicts that fail a comparison; a suspicion alone does not."""


@dataclass(frozen=True)
class Comparison:
    """One cell by one metric. Effects are logarithms of new over base; None where there is nothing to say."""

    cell: Cell
    metric: Metric
    verdict: Change
    effect: float | None
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    n_base: int
    n_new: int
    trust: Trust
    differs: tuple[str, ...]
    is_interleaved: bool
    slower_blocks: int = 0
    faster_blocks: int = 0
    blocks_needed: int | None = None
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            **self.cell.as_json(),
            "id": self.cell.id,
            "metric": self.metric,
            "verdict": str(self.verdict),
            "effect_percent": percent(self.effect),
            "ci_low_percent": percent(self.low),
            "ci_high_percent": percent(self.high),
            "p": self.p,
            "p_adjusted": self.p_adjusted,
            "n_base": self.n_base,
            "n_new": self.n_new,
            "trust": str(self.trust.verdict),
            "trust_reasons": [reason.as_json() for reason in self.trust.reasons],
            "interleaved": self.is_interleaved,
            "differs": list(self.differs),
            "slower_blocks": self.slower_blocks,
            "faster_blocks": self.faster_blocks,
            "blocks_needed": self.blocks_needed,
            "notes": list(self.notes),
        }


def percent(effect: float | None) -> float | None:
    """A logarithm as a change in percent."""
    return None if effect is None else 100 * math.expm1(min(effect, 50.0))


@dataclass(frozen=True)
class Draft:
    """A comparison before p is adjusted; the verdict needs all of them. `mean` is the plain mean of log-ratios,
    `hidden` the change of it that may hide in blocks off to one side, `is_within` a second opinion on `same`."""

    row: Comparison
    typical_p: float = 1.0
    slower_mean_p: float = 1.0
    mean: float = 0.0
    hidden: float = 0.0
    is_within: bool = False


def blank_row(
    found: Matched, metric: Metric, trust: Trust, sizes: tuple[int, int], *, is_interleaved: bool, notes: Sequence[str]
) -> Comparison:
    return Comparison(
        cell=found.cell,
        metric=metric,
        verdict=Change.UNKNOWN,
        effect=None,
        low=None,
        high=None,
        p=None,
        p_adjusted=None,
        n_base=sizes[0],
        n_new=sizes[1],
        trust=trust,
        differs=found.differs,
        is_interleaved=is_interleaved,
        notes=tuple(notes),
    )


def noted(row: Comparison, note: str) -> Comparison:
    return replace(row, notes=(*row.notes, note))
