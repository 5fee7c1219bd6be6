"""How far to trust a cell: trusted, noisy, contaminated or insufficient, with reasons and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from orchestrator.analysis.dependence import neighbour_correlations
from orchestrator.analysis.randomisation import BLOCKS_MIN, MAD_TO_SD, SCORE_CUT, Floats
from orchestrator.analysis.reduction import Reduced, reduced
from orchestrator.analysis.trend import trends
from orchestrator.trial import Outcome, Trial

SPREAD_MAX = 0.10
"""Trials of one cell that spread by more than this share (robustly) are noisy."""
LOST_SHARE_MAX = 0.2
OUTLYING_SHARE_MAX = 0.2
DRIFT_MAX = 0.05
DRIFTING_TRIALS_MAX = 0.25
CORRELATION_MAX = 0.6
_BLOCKS_FOR_SHAPE = 10
_OUTLYING_MIN = 0.10
_MODE_GAP = 6.0
_MODE_APART = 0.03
_MODE_SHARE_MIN = 0.15
_Z_SURE = 2.576


class TrustVerdict(StrEnum):
    """From best to worst; a cell has the worst that any of its reasons calls for."""

    TRUSTED = "trusted"
    NOISY = "noisy"
    CONTAMINATED = "contaminated"
    INSUFFICIENT = "insufficient"


_SEVERITY = list(TrustVerdict)


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

    def as_json(self) -> dict[str, Any]:
        return {"verdict": str(self.verdict), "reasons": [reason.as_json() for reason in self.reasons]}


def verdict_of(trials: Sequence[Trial]) -> Trust:
    """The verdict on all trials of one cell and arm, in time order, whatever became of them."""
    return trust_of(list(reduced(trials)))


def trust_of(trials: Sequence[Reduced]) -> Trust:
    """The same for trials already reduced."""
    measured = [trial for trial in trials if trial.outcome is Outcome.MEASURED and trial.latencies_us["p50"]]
    reasons = [*_insufficient(measured), *_contaminated(trials, measured), *_noisy(measured)]
    reasons.sort(key=lambda reason: -_SEVERITY.index(reason.verdict))
    return Trust(reasons[0].verdict if reasons else TrustVerdict.TRUSTED, tuple(reasons))


def worse(one: Trust, other: Trust) -> Trust:
    """Both together: the worse verdict, and the reasons of either."""
    reasons = sorted({*one.reasons, *other.reasons}, key=lambda reason: (-_SEVERITY.index(reason.verdict), reason.text))
    return Trust(max(one.verdict, other.verdict, key=_SEVERITY.index), tuple(reasons))


def _insufficient(measured: Sequence[Reduced]) -> list[Reason]:
    blocks = len({(trial.run, trial.session, trial.block) for trial in measured})
    if blocks >= BLOCKS_MIN:
        return []
    text = f"{blocks} measured {'block' if blocks == 1 else 'blocks'}, at least {BLOCKS_MIN} are needed"
    return [Reason(TrustVerdict.INSUFFICIENT, "too-few-blocks", text, "measure more blocks")]


def _contaminated(trials: Sequence[Reduced], measured: Sequence[Reduced]) -> list[Reason]:
    reasons = []
    lost = [trial for trial in trials if trial.outcome in (Outcome.REJECTED, Outcome.FAILED)]
    if lost and len(lost) > LOST_SHARE_MAX * (len(lost) + len(measured)):
        why = Counter(trial.reason or str(trial.outcome) for trial in lost).most_common(1)[0][0]
        text = f"{len(lost)} of {len(lost) + len(measured)} trials were rejected or failed: {why}"
        reasons.append(Reason(TrustVerdict.CONTAMINATED, "rejected", text, "mend that, then measure again"))
    warned = [trial for trial in measured if trial.warned]
    if measured and len(warned) > LOST_SHARE_MAX * len(measured):
        rule = Counter(rule for trial in warned for rule in trial.warned).most_common(1)[0][0]
        text = f"{len(warned)} of {len(measured)} trials carry a warning: {rule}"
        reasons.append(Reason(TrustVerdict.CONTAMINATED, "warned", text, "see the findings of the trials"))
    logs = _logs(measured)
    if len(logs) >= BLOCKS_MIN:
        middle = np.median(logs)
        reach = max(SCORE_CUT * MAD_TO_SD * float(np.median(np.abs(logs - middle))), _OUTLYING_MIN)
        slow = int(np.count_nonzero(logs > middle + reach))
        if slow > OUTLYING_SHARE_MAX * len(logs):
            text = f"{slow} of {len(logs)} trials were far slower than the rest"
            remedy = "look for other programs or heat on the device, and measure more blocks"
            reasons.append(Reason(TrustVerdict.CONTAMINATED, "bursts", text, remedy))
    return reasons


def _noisy(measured: Sequence[Reduced]) -> list[Reason]:
    logs = _logs(measured)
    if len(logs) < BLOCKS_MIN:
        return []
    reasons = []

    def add(cause: str, text: str, remedy: str) -> None:
        reasons.append(Reason(TrustVerdict.NOISY, cause, text, remedy))

    spread = MAD_TO_SD * float(np.median(np.abs(logs - np.median(logs))))
    if spread > SPREAD_MAX:
        add("spread", f"trials spread by {100 * spread:.0f} %", "hold the device steadier, or measure more blocks")
    drifting = sum(trial.drift is not None for trial in measured)
    if drifting > DRIFTING_TRIALS_MAX * len(measured):
        text = f"latency drifts within {drifting} of {len(measured)} trials"
        add("drift-within", text, "warm up longer, or let the device cool between trials")
    if len(logs) < _BLOCKS_FOR_SHAPE:
        return reasons
    if (gap := bimodal_gap(logs)) is not None:
        text = f"trials fall into two groups {100 * np.expm1(gap):.0f} % apart"
        add("bimodal", text, "pin the CPUs (--affinity), and look at what differs between the groups")
    trend = trends(logs[None, :])
    if abs(trend.z[0]) > _Z_SURE and abs(trend.change[0]) > DRIFT_MAX:
        text = f"latency drifts by {100 * np.expm1(trend.change[0]):+.0f} % over the run"
        add("drift", text, "let the device reach a steady temperature first")
    elif float(neighbour_correlations(logs[None, :])[0]) > CORRELATION_MAX:
        add(
            "autocorrelation",
            "neighbouring blocks resemble each other: the device changes slowly",
            "measure for longer",
        )
    return reasons


def _logs(measured: Sequence[Reduced]) -> Floats:
    ordered = sorted(measured, key=lambda trial: (trial.run, trial.session, trial.block))
    return np.log(np.array([trial.latencies_us["p50"] for trial in ordered], dtype=np.float64))


def bimodal_gap(logs: Floats) -> float | None:
    """How far apart two groups of values lie, if each is tight against the gap between them and neither is tiny."""
    ordered = np.sort(logs)
    count = len(ordered)
    least = max(2, int(np.ceil(_MODE_SHARE_MIN * count)))
    if count < 2 * least:
        return None
    splits = np.arange(least, count - least + 1)
    widest = int(splits[np.argmax(ordered[splits] - ordered[splits - 1])])
    low, high = ordered[:widest], ordered[widest:]
    within = float(np.sqrt((np.square(low - low.mean()).sum() + np.square(high - high.mean()).sum()) / (count - 2)))
    gap = float(high.mean() - low.mean())
    return gap if gap > _MODE_APART and gap > _MODE_GAP * within else None
