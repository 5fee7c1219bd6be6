"""Sides that ran side by side: block log-ratios, what they say of each cell, and what may hide in them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.comparison import Comparison, Draft, blank_row, interval_alpha, noted
from orchestrator.analysis.dependence import neighbour_correlations
from orchestrator.analysis.design import Design
from orchestrator.analysis.estimate import P95_SAMPLES_MIN, Metric
from orchestrator.analysis.paired import paired_p
from orchestrator.analysis.randomisation import (
    BLOCKS_MIN,
    EFFICIENT_CUT,
    MAD_TO_SD,
    SCORE_CUT,
    Floats,
    biweight_locations,
    blocks_for_interval,
    centres,
    student_quantile,
    student_tail,
)
from orchestrator.analysis.sides import Matched
from orchestrator.analysis.trend import has_drift, trends
from orchestrator.analysis.trust import Trust

_CORRELATION_SEEN = 0.35
"""Below this, neighbours of ten blocks may well resemble each other by chance."""
_CORRELATION_BY_CHANCE = 0.2
"""What is taken off above it: allowing for all of it would cost quiet cells a thirtieth of what they find."""


@dataclass(frozen=True)
class Series:
    """The paired log-ratios of one cell by one metric."""

    blank: Comparison
    ratios: tuple[float, ...]
    is_order_mixed: bool


def series_of(found: Matched, design: Design, trust: Trust, metric: Metric) -> Series:
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
    blank = blank_row(found, metric, trust, (size, size), is_interleaved=True, notes=notes)
    return Series(blank, tuple(ratios.tolist()), design.is_order_mixed)


def _order_bias(logs: Floats, first: str) -> float:
    """What a steady drift adds to every ratio when one side always runs half a block after the other."""
    if len(logs) < BLOCKS_MIN:
        return 0.0
    found = trends(logs.T)
    if not has_drift(found).all() or np.sign(found.change).sum() == 0:
        return 0.0
    half_block = float(found.change.mean()) / len(logs) / 2
    return half_block if first == "base" else -half_block


def paired_drafts(series: Sequence[Series], threshold: float, alpha: float) -> list[Draft]:
    """Drafts of all series, whose verdicts err this often; those of one length are worked on together."""
    of_length: dict[int, list[Series]] = defaultdict(list)
    for item in series:
        of_length[len(item.ratios)].append(item)
    drafts: list[Draft] = []
    for length, group in of_length.items():
        if length == 0:
            drafts += [Draft(noted(item.blank, "nothing was measured on both sides")) for item in group]
        else:
            drafts += _drafts_of_length(group, threshold, interval_alpha(alpha))
    return drafts


def _drafts_of_length(group: Sequence[Series], threshold: float, alpha: float) -> list[Draft]:
    rows = np.array([item.ratios for item in group])
    edge = math.log1p(threshold)
    probes = (-edge, 0.0, edge)
    found = centres(rows, level=1 - alpha, probes=probes)
    needed = blocks_for_interval(1 - alpha)
    if rows.shape[1] < needed:
        few = f"a verdict needs {needed} blocks with both sides, there {_are(rows.shape[1])}"
        return [
            Draft(noted(replace(item.blank, effect=centre.location), few))
            for item, centre in zip(group, found, strict=True)
        ]
    p = paired_p(rows, is_order_mixed=np.array([item.is_order_mixed for item in group]))
    locations = np.array([centre.location for centre in found])
    lows, highs = np.array([(centre.low, centre.high) for centre in found], dtype=np.float64).T
    effects = np.clip(biweight_locations(rows, cut=EFFICIENT_CUT), lows, highs)
    outlying, second = _outlying(rows, locations, edge), _Second.of(rows, locations)
    is_within = second.lies_within(edge, alpha)
    drafts = [
        Draft(
            replace(
                item.blank,
                effect=float(effects[index]),
                low=found[index].low,
                high=found[index].high,
                p=float(p.joint[index]),
                slower_blocks=int(outlying.slower[index]),
                faster_blocks=int(outlying.faster[index]),
            ),
            typical_p=float(p.typical[index]),
            slower_mean_p=float(p.slower_mean[index]),
            mean=float(rows[index].mean()),
            hidden=float(outlying.hidden[index]),
            is_within=bool(is_within[index]),
        )
        for index, item in enumerate(group)
    ]
    at_least = second.p()
    return [
        _loosened(draft, float(factor), float(least)) if factor > 1 else draft
        for draft, factor, least in zip(drafts, second.factor, at_least, strict=True)
    ]


def _loosened(draft: Draft, factor: float, p: float) -> Draft:
    """The draft with a wider interval and a larger p, because neighbouring blocks resemble each other."""
    row = draft.row
    assert row.effect is not None and row.low is not None and row.high is not None and row.p is not None
    wider = replace(
        noted(row, "ratios of neighbouring blocks resemble each other: the interval is widened"),
        low=row.effect - factor * (row.effect - row.low),
        high=row.effect + factor * (row.high - row.effect),
        p=max(row.p, p),
    )
    return replace(draft, row=wider, typical_p=max(draft.typical_p, p), slower_mean_p=max(draft.slower_mean_p, p / 2))


@dataclass(frozen=True)
class _Second:
    """A second opinion on each row: Student's mean, wild blocks pulled in. `factor` is how much wider its interval must
    be because neighbours resemble each other; 1 where they do not, or chance may have made it so."""

    middle: Floats
    error: Floats
    factor: Floats
    freedom: int

    @classmethod
    def of(cls, rows: Floats, locations: Floats) -> _Second:
        off = rows - locations[:, None]
        reach = SCORE_CUT * MAD_TO_SD * np.median(np.abs(off), axis=1)[:, None]
        pulled = np.clip(off, -reach, reach)
        error = pulled.std(axis=1, ddof=1) / math.sqrt(rows.shape[1])
        seen = neighbour_correlations(rows)
        correlation = np.where(seen > _CORRELATION_SEEN, np.clip(seen - _CORRELATION_BY_CHANCE, 0, 0.9), 0.0)
        factor = np.sqrt((1 + correlation) / (1 - correlation))
        return cls(locations + pulled.mean(axis=1), error, factor, rows.shape[1] - 1)

    def lies_within(self, edge: float, alpha: float) -> NDArray[np.bool_]:
        """An interval that is narrow by luck is seldom narrow by both accounts, and `same` must not be said by luck."""
        half = student_quantile(1 - alpha / 2, self.freedom) * self.error * self.factor
        is_within: NDArray[np.bool_] = (self.middle - half > -edge) & (self.middle + half < edge)
        return is_within

    def p(self) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.nan_to_num(np.abs(self.middle) / (self.error * self.factor), nan=0.0, posinf=1e9)
        return np.minimum(2 * student_tail(t, self.freedom), 1.0)


@dataclass(frozen=True)
class _Outlying:
    """How many blocks of each row lie off the typical one, slower and faster, further than its noise and the threshold
    explain; and what change of the mean may hide in them if they lie off to one side."""

    slower: Floats
    faster: Floats
    hidden: Floats


def _outlying(rows: Floats, locations: Floats, edge: float) -> _Outlying:
    off = rows - locations[:, None]
    reach = np.maximum(SCORE_CUT * MAD_TO_SD * np.median(np.abs(off), axis=1), edge)[:, None]
    slower, faster = np.count_nonzero(off > reach, axis=1), np.count_nonzero(off < -reach, axis=1)
    size = np.where(np.abs(off) > reach, np.abs(off), 0.0).sum(axis=1) / np.maximum(slower + faster, 1)
    excess = np.abs(slower - faster)
    hidden = np.where(excess > 0, (excess + 1) * size / rows.shape[1], 0.0)
    return _Outlying(slower, faster, hidden)


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"
