"""Is the new side slower? One verdict for each cell and metric, with effect, interval and adjusted p."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from orchestrator.analysis.calibration import SessionNoises
from orchestrator.analysis.design import Design, design_of, slots
from orchestrator.analysis.discovery import adjusted_p
from orchestrator.analysis.estimate import METRICS, P95_SAMPLES_MIN, Metric
from orchestrator.analysis.paired import paired_p
from orchestrator.analysis.randomisation import BLOCKS_MIN, MAD_TO_SD, SCORE_CUT, Floats, centres
from orchestrator.analysis.reduction import Reduced
from orchestrator.analysis.sequential import Side, shift
from orchestrator.analysis.sides import Matched, Matching
from orchestrator.analysis.summary import cell_order
from orchestrator.analysis.trend import has_drift, trends
from orchestrator.analysis.trust import Trust, trust_of, worse
from orchestrator.trial import Cell, Outcome

ALPHA = 0.05
THRESHOLD = 0.03
METRIC_WEIGHTS: dict[Metric, float] = {"p50": 0.8, "mean": 0.1, "p95": 0.1}
"""How the chance of a false alarm is shared out: most of it to the median, which is by far the quietest."""
_SLOW_BLOCKS_MIN = 2


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
            "notes": list(self.notes),
        }


def percent(effect: float | None) -> float | None:
    """A logarithm as a change in percent."""
    return None if effect is None else 100 * math.expm1(min(effect, 50.0))


@dataclass(frozen=True)
class _Draft:
    """A comparison before p is adjusted; the verdict needs all of them. `mean` is the plain mean of log-ratios."""

    row: Comparison
    typical_p: float = 1.0
    slower_mean_p: float = 1.0
    mean: float = 0.0
    low90: float | None = None
    high90: float | None = None


@dataclass(frozen=True)
class _Series:
    """The paired log-ratios of one cell by one metric."""

    blank: Comparison
    ratios: tuple[float, ...]
    is_order_mixed: bool


def compare(
    matching: Matching, *, is_one_run: bool, noises: SessionNoises, threshold: float = THRESHOLD
) -> list[Comparison]:
    """Every cell by p50, mean and p95, false discoveries controlled over all of them together."""
    drafts: list[_Draft] = []
    series: list[_Series] = []
    for found in matching.cells:
        base, new = (_measured(side) for side in (found.base, found.new))
        design = design_of(base, new, is_one_run=is_one_run)
        trust = worse(trust_of(found.base), trust_of(found.new))
        is_paired = design.is_interleaved and (
            len(design.pairs) >= BLOCKS_MIN or min(len(slots(base)), len(slots(new))) < BLOCKS_MIN
        )
        for metric in METRICS:
            if is_paired:
                series.append(_paired_series(found, design, trust, metric))
            else:
                drafts.append(_sequential(found, base, new, design, trust, metric, noises))
    drafts += _paired_drafts(series, threshold)
    return _judged(drafts, threshold)


def _measured(trials: Iterable[Reduced]) -> list[Reduced]:
    return [trial for trial in trials if trial.outcome is Outcome.MEASURED and trial.latencies_us["p50"] is not None]


def _blank(
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


# Interleaved


def _paired_series(found: Matched, design: Design, trust: Trust, metric: Metric) -> _Series:
    usable = [
        (base_us, new_us)
        for base, new in design.pairs
        if (base_us := base.latencies_us[metric]) is not None and (new_us := new.latencies_us[metric]) is not None
    ]
    notes = [] if design.left_out == 0 else [f"{design.left_out} trials have no partner in their block"]
    if len(usable) < len(design.pairs):
        why = f": a p95 needs {P95_SAMPLES_MIN} samples" if metric == "p95" else ""
        notes.append(f"{len(design.pairs) - len(usable)} of {len(design.pairs)} blocks give no {metric}{why}")
    logs = np.log(np.array(usable, dtype=np.float64)).reshape(-1, 2)
    ratios = logs[:, 1] - logs[:, 0]
    if design.first is not None and (bias := _order_bias(logs, design.first)):
        ratios = ratios - bias
        notes.append(f"latency drifted and {design.first} always ran first: {100 * bias:+.1f} % of drift was taken off")
    size = len(usable)
    blank = _blank(found, metric, trust, (size, size), is_interleaved=True, notes=notes)
    return _Series(blank, tuple(ratios.tolist()), design.is_order_mixed)


def _order_bias(logs: Floats, first: str) -> float:
    """What a steady drift adds to every ratio when one side always runs half a block after the other."""
    if len(logs) < BLOCKS_MIN:
        return 0.0
    found = trends(logs.T)
    if not has_drift(found).all() or np.sign(found.change).sum() == 0:
        return 0.0
    half_block = float(found.change.mean()) / len(logs) / 2
    return half_block if first == "base" else -half_block


def _paired_drafts(series: Sequence[_Series], threshold: float) -> list[_Draft]:
    """Drafts of all series; those of one length are worked on together."""
    of_length: dict[int, list[_Series]] = defaultdict(list)
    for item in series:
        of_length[len(item.ratios)].append(item)
    drafts: list[_Draft] = []
    for length, group in of_length.items():
        if length == 0:
            drafts += [_Draft(_noted(item.blank, "nothing was measured on both sides")) for item in group]
        else:
            drafts += _drafts_of_length(group, threshold)
    return drafts


def _drafts_of_length(group: Sequence[_Series], threshold: float) -> list[_Draft]:
    rows = np.array([item.ratios for item in group])
    edge = math.log1p(threshold)
    probes = (-edge, 0.0, edge)
    found = centres(rows, level=1 - ALPHA, probes=probes)
    if rows.shape[1] < BLOCKS_MIN:
        few = f"a verdict needs {BLOCKS_MIN} blocks with both sides, there {_are(rows.shape[1])}"
        return [
            _Draft(_noted(replace(item.blank, effect=centre.location), few))
            for item, centre in zip(group, found, strict=True)
        ]
    inner = centres(rows, level=1 - 2 * ALPHA, probes=probes)
    p = paired_p(rows, is_order_mixed=np.array([item.is_order_mixed for item in group]))
    slower, faster = _outlying(rows, np.array([centre.location for centre in found]), edge)
    return [
        _Draft(
            replace(
                item.blank,
                effect=found[index].location,
                low=found[index].low,
                high=found[index].high,
                p=float(p.joint[index]),
                slower_blocks=int(slower[index]),
                faster_blocks=int(faster[index]),
            ),
            typical_p=float(p.typical[index]),
            slower_mean_p=float(p.slower_mean[index]),
            mean=float(rows[index].mean()),
            low90=inner[index].low,
            high90=inner[index].high,
        )
        for index, item in enumerate(group)
    ]


def _outlying(rows: Floats, locations: Floats, edge: float) -> tuple[Floats, Floats]:
    """How many blocks of each row lie off the typical one, slower and faster: further than its noise and the
    threshold explain."""
    off = rows - locations[:, None]
    reach = np.maximum(SCORE_CUT * MAD_TO_SD * np.median(np.abs(off), axis=1), edge)[:, None]
    return np.count_nonzero(off > reach, axis=1), np.count_nonzero(off < -reach, axis=1)


# Not interleaved


def _sequential(
    found: Matched,
    base: Sequence[Reduced],
    new: Sequence[Reduced],
    design: Design,
    trust: Trust,
    metric: Metric,
    noises: SessionNoises,
) -> _Draft:
    sides = [_side(trials, metric) for trials in (base, new)]
    sizes = len(sides[0].logs), len(sides[1].logs)
    why = design.sequential or f"only {len(design.pairs)} blocks hold both sides"
    blank = _blank(found, metric, trust, sizes, is_interleaved=False, notes=[f"not interleaved: {why}"])
    if min(sizes) < BLOCKS_MIN:
        return _Draft(_noted(blank, f"each side needs {BLOCKS_MIN} blocks, there are {sizes[0]} and {sizes[1]}"))
    sd_log, source = noises.sd_log(found.cell)
    moved = shift(sides[0], sides[1], session_sd=sd_log)
    noise = f"noise between sessions {100 * math.expm1(sd_log):.1f} % ({source})"
    row = replace(_noted(blank, noise), effect=moved.location, low=moved.low, high=moved.high, p=moved.p)
    return _Draft(row, typical_p=moved.p)


def _side(trials: Sequence[Reduced], metric: Metric) -> Side:
    counted = sorted(slots(trials).items())
    logs = [math.log(value) for _, trial in counted if (value := trial.latencies_us[metric]) is not None]
    return Side(logs, max(1, len({key[:2] for key, _ in counted})))


# Verdicts


def _judged(drafts: Sequence[_Draft], threshold: float) -> list[Comparison]:
    tested = [draft for draft in drafts if draft.row.p is not None]
    p = [draft.row.p for draft in tested if draft.row.p is not None]
    adjusted = adjusted_p(p, [METRIC_WEIGHTS[draft.row.metric] for draft in tested])
    at = {id(draft): float(value) for draft, value in zip(tested, adjusted, strict=True)}
    rows = []
    for draft in drafts:
        row = replace(draft.row, p_adjusted=at.get(id(draft)))
        rows.append(replace(row, verdict=_verdict(replace(draft, row=row), math.log1p(threshold))))
    order = {metric: index for index, metric in enumerate(METRICS)}
    return sorted(rows, key=lambda row: (cell_order(row.cell, None), order[row.metric]))


def _verdict(draft: _Draft, edge: float) -> Change:
    row = draft.row
    if row.effect is None or row.p_adjusted is None:
        return Change.UNKNOWN
    is_found = row.p_adjusted <= ALPHA
    if is_found and draft.typical_p <= ALPHA and abs(row.effect) >= edge:
        if row.is_interleaved:
            return Change.SLOWER if row.effect > 0 else Change.FASTER
        return Change.SUSPECTED_SLOWER if row.effect > 0 else Change.SUSPECTED_FASTER
    if not row.is_interleaved:
        return Change.UNKNOWN
    has_slow_part = row.slower_blocks >= _SLOW_BLOCKS_MIN and row.slower_blocks > row.faster_blocks
    if is_found and draft.slower_mean_p <= ALPHA and draft.mean >= edge and has_slow_part:
        return Change.UNSTABLE_SLOWER
    is_within = draft.low90 is not None and draft.high90 is not None and -edge < draft.low90 <= draft.high90 < edge
    # Blocks off to one side may be a part of the processes that changed: nobody can call that the same.
    return Change.SAME if is_within and row.slower_blocks == row.faster_blocks else Change.UNKNOWN


def _noted(row: Comparison, note: str) -> Comparison:
    return replace(row, notes=(*row.notes, note))


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"
