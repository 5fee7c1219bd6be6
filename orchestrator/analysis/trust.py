"""How far to trust a cell: trusted, noisy, contaminated or insufficient, with reasons and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.analysis.reduction import Reduced, reduced
from orchestrator.analysis.trust_causes import CONTAMINATING, INSUFFICIENT, SPREADING, Cause, CellTrials
from orchestrator.trial import Trial


class TrustVerdict(StrEnum):
    """From best to worst; a cell has the worst that any of its reasons calls for.

    Contaminated: something besides the model made the numbers. Noisy: they are the model's, but say little.
    """

    TRUSTED = "trusted"
    NOISY = "noisy"
    CONTAMINATED = "contaminated"
    INSUFFICIENT = "insufficient"


_SEVERITY = list(TrustVerdict)
_CHECKS = (
    (TrustVerdict.INSUFFICIENT, INSUFFICIENT),
    (TrustVerdict.CONTAMINATED, CONTAMINATING),
    (TrustVerdict.NOISY, SPREADING),
)


@dataclass(frozen=True)
class Reason:
    """Why a cell is not trusted, and what to do."""

    verdict: TrustVerdict
    cause: str
    text: str
    remedy: str

    def as_json(self) -> dict[str, str]:
        return {"verdict": str(self.verdict), "cause": self.cause, "text": self.text, "remedy": self.remedy}


@dataclass(frozen=True)
class Trust:
    """The verdict on a cell with all its reasons, the worst first."""

    verdict: TrustVerdict
    reasons: tuple[Reason, ...] = ()

    @property
    def is_trusted(self) -> bool:
        return self.verdict is TrustVerdict.TRUSTED

    def as_json(self) -> dict[str, Any]:
        return {"verdict": str(self.verdict), "reasons": [reason.as_json() for reason in self.reasons]}


def verdict_of(trials: Sequence[Trial]) -> Trust:
    """The verdict on all trials of one cell and arm, in time order, whatever became of them."""
    return trust_of(list(reduced(trials)))


def trust_of(trials: Sequence[Reduced]) -> Trust:
    """The same for trials already reduced."""
    cell = CellTrials.of(trials)
    reasons = tuple(
        _reason(verdict, cause) for verdict, checks in _CHECKS for check in checks if (cause := check(cell)) is not None
    )
    return Trust(reasons[0].verdict if reasons else TrustVerdict.TRUSTED, reasons)


def _reason(verdict: TrustVerdict, cause: Cause) -> Reason:
    return Reason(verdict, cause.name, cause.text, cause.remedy)


def worse(one: Trust, other: Trust) -> Trust:
    """Both together: the worse verdict, and the reasons of either."""
    reasons = sorted({*one.reasons, *other.reasons}, key=lambda reason: (-_SEVERITY.index(reason.verdict), reason.text))
    return Trust(max(one.verdict, other.verdict, key=_SEVERITY.index), tuple(reasons))
