"""What the trials of a duel say: is the candidate slower than the baseline that ran beside it?"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis.calibration import SessionNoises
from orchestrator.analysis.compare import compare
from orchestrator.analysis.comparison import Comparison
from orchestrator.analysis.reduction import Reduced
from orchestrator.analysis.sides import ARMS_MAY_DIFFER, matched

BASELINE, CANDIDATE = "baseline", "candidate"
PAIR_ARMS = (BASELINE, CANDIDATE)


def pair_rows(
    trials: Sequence[Reduced], *, threshold: float, alpha: float, arms: tuple[str, str] = PAIR_ARMS
) -> list[Comparison]:
    """Every cell that both arms measured, by every metric. `alpha` allows for all looks at these trials."""
    base, new = ([trial for trial in trials if trial.arm == arm] for arm in arms)
    if not base or not new:
        return []
    matching = matched(base, new, ignored=(), may_differ=ARMS_MAY_DIFFER)
    return compare(matching, is_one_run=True, noises=SessionNoises(), threshold=threshold, alpha=alpha)
