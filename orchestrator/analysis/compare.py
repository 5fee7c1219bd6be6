"""Is the new side slower? One verdict for each cell and metric, with effect, interval and adjusted p."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from orchestrator.analysis.calibration import SessionNoises
from orchestrator.analysis.comparison import (
    ALPHA,
    THRESHOLD,
    Change,
    Comparison,
    Draft,
    blank_row,
    interval_alpha,
    noted,
)
from orchestrator.analysis.crossover import BLOCKS_ADVISED, BLOCKS_WORTH_PLANNING
from orchestrator.analysis.design import Design, design_of, slots
from orchestrator.analysis.discovery import adjusted_p
from orchestrator.analysis.estimate import METRICS, Metric
from orchestrator.analysis.interleaved import Series, paired_drafts, series_of
from orchestrator.analysis.randomisation import BLOCKS_MIN
from orchestrator.analysis.reduction import Reduced
from orchestrator.analysis.sequential import Side, shift
from orchestrator.analysis.sides import Matched, Matching
from orchestrator.analysis.summary import cell_order
from orchestrator.analysis.trust import Trust, trust_of, worse
from orchestrator.trial import Outcome

METRIC_WEIGHTS: dict[Metric, float] = {"p50": 0.5, "mean": 0.25, "p95": 0.25}
"""How the chance of a false alarm is shared out: half of it to the median, which is by far the quietest."""
_SLOW_BLOCKS_MIN = 3


def compare(
    matching: Matching,
    *,
    is_one_run: bool,
    noises: SessionNoises,
    threshold: float = THRESHOLD,
    alpha: float = ALPHA,
) -> list[Comparison]:
    """Every cell by p50, mean and p95, false discoveries controlled over all of them together. `alpha` is smaller where
    the same trials are looked at several times."""
    drafts: list[Draft] = []
    series: list[Series] = []
    for found in matching.cells:
        base, new = (_measured(side) for side in (found.base, found.new))
        design = design_of(base, new, is_one_run=is_one_run)
        trust = worse(trust_of(found.base), trust_of(found.new))
        is_paired = design.is_interleaved and (
            len(design.pairs) >= BLOCKS_MIN or min(len(slots(base)), len(slots(new))) < BLOCKS_MIN
        )
        for metric in METRICS:
            if is_paired:
                series.append(series_of(found, design, trust, metric))
            else:
                drafts.append(_sequential(found, base, new, design, trust, metric, noises))
    drafts += paired_drafts(series, threshold, alpha)
    return _judged(drafts, threshold, alpha)


def _measured(trials: Iterable[Reduced]) -> list[Reduced]:
    return [trial for trial in trials if trial.outcome is Outcome.MEASURED and trial.latencies_us["p50"] is not None]


def _sequential(
    found: Matched,
    base: Sequence[Reduced],
    new: Sequence[Reduced],
    design: Design,
    trust: Trust,
    metric: Metric,
    noises: SessionNoises,
) -> Draft:
    sides = [_side(trials, metric) for trials in (base, new)]
    sizes = len(sides[0].logs), len(sides[1].logs)
    why = design.sequential or f"only {len(design.pairs)} blocks hold both sides"
    blank = blank_row(found, metric, trust, sizes, is_interleaved=False, notes=[f"not interleaved: {why}"])
    if min(sizes) < BLOCKS_MIN:
        return Draft(noted(blank, f"each side needs {BLOCKS_MIN} blocks, there are {sizes[0]} and {sizes[1]}"))
    sd_log, source = noises.sd_log(found.cell)
    moved = shift(sides[0], sides[1], session_sd=sd_log)
    noise = f"noise between sessions {100 * math.expm1(sd_log):.1f} % ({source})"
    row = replace(noted(blank, noise), effect=moved.location, low=moved.low, high=moved.high, p=moved.p)
    return Draft(row, typical_p=moved.p)


def _side(trials: Sequence[Reduced], metric: Metric) -> Side:
    counted = sorted(slots(trials).items())
    logs = [math.log(value) for _, trial in counted if (value := trial.latencies_us[metric]) is not None]
    return Side(logs, max(1, len({key[:2] for key, _ in counted})))


def _judged(drafts: Sequence[Draft], threshold: float, alpha: float) -> list[Comparison]:
    tested = [draft for draft in drafts if draft.row.p is not None]
    p = [draft.row.p for draft in tested if draft.row.p is not None]
    adjusted = adjusted_p(p, [METRIC_WEIGHTS[draft.row.metric] for draft in tested])
    at = {id(draft): float(value) for draft, value in zip(tested, adjusted, strict=True)}
    rows = []
    for draft in drafts:
        row = replace(draft.row, p_adjusted=at.get(id(draft)))
        verdict = _verdict(replace(draft, row=row), math.log1p(threshold), alpha)
        if verdict is Change.UNKNOWN and draft.hidden >= math.log1p(threshold):
            off = f"of {row.n_new} blocks {row.slower_blocks} lie far above the rest and {row.faster_blocks} far below"
            row = noted(row, f"{off}: a part of the processes may have changed")
        needed = _blocks_needed(row, math.log1p(threshold)) if verdict is Change.UNKNOWN else 0
        rows.append(replace(row, verdict=verdict, blocks_needed=needed))
    order = {metric: index for index, metric in enumerate(METRICS)}
    return sorted(rows, key=lambda row: (cell_order(row.cell, None), order[row.metric]))


def _verdict(draft: Draft, edge: float, alpha: float) -> Change:
    row = draft.row
    if row.effect is None or row.p_adjusted is None:
        return Change.UNKNOWN
    is_found = row.p_adjusted <= alpha
    if is_found and draft.typical_p <= interval_alpha(alpha) and abs(row.effect) >= edge:
        if row.is_interleaved:
            return Change.SLOWER if row.effect > 0 else Change.FASTER
        return Change.SUSPECTED_SLOWER if row.effect > 0 else Change.SUSPECTED_FASTER
    if not row.is_interleaved:
        return Change.UNKNOWN
    has_slow_part = row.slower_blocks >= _SLOW_BLOCKS_MIN and row.slower_blocks >= 2 * row.faster_blocks
    if is_found and draft.slower_mean_p <= alpha and draft.mean >= edge and has_slow_part:
        return Change.UNSTABLE_SLOWER
    is_proven = row.low is not None and row.high is not None and -edge < row.low <= row.high < edge
    # Blocks off to one side may be a part of the processes that changed: nobody can call that the same.
    return Change.SAME if is_proven and draft.is_within and draft.hidden < edge else Change.UNKNOWN


def _blocks_needed(row: Comparison, edge: float) -> int | None:
    """About how many more blocks decide it, if the estimate stays; None where nobody can say or would wait for it."""
    if not row.is_interleaved:
        return None
    if row.effect is None or row.low is None or row.high is None:
        return max(BLOCKS_ADVISED - row.n_new, 1)
    gap = edge - abs(row.effect) if abs(row.effect) < edge else abs(row.effect)
    reach = max(row.high - row.effect, row.effect - row.low)
    if gap <= 0 or reach > gap * math.sqrt(BLOCKS_WORTH_PLANNING / row.n_new):
        return None
    if reach <= gap:  # narrow enough, but for blocks off to one side: only as many again tell what they are
        return row.n_new
    return max(math.ceil(row.n_new * (reach / gap) ** 2) - row.n_new, 1)
