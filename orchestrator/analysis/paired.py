"""The test of block log-ratios: did the typical process change, or did a part of the processes get slower?

Two statistics are flipped by the same signs. The biweight score sees the majority of blocks and shrugs off the rest;
the plain mean, looked at on the slow side only, sees a part of the processes that the other shrugs off. The joint p
says how often chance makes the better of the two this good (Westfall and Young), so that having two costs nothing
in false alarms, and by closed testing each may then be judged at its own level. The mean counts for less of the
two, or it would cost the common case too much.

A sign-flip p cannot fall below 2 / 2^blocks, which is too coarse for a hundred cells. Where all blocks that count
agree, the p is refined by Student's t of the blocks themselves: exact for normal noise, on the safe side for heavier
tails (simulated: normal, t3, Laplace, contaminated). Where every block ran its arms in one order, what looks like a
change may be the order, and the p stays where the signs leave it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.randomisation import (
    MAD_TO_SD,
    PATTERNS_MAX,
    SCORE_CUT,
    Floats,
    scores_of,
    sign_flip_ps,
    sign_patterns,
    student_tail,
    studentised,
)

P_MIN = 1e-6
"""No p is stated below this: the tails of real noise are not known that far out."""
_MEAN_HANDICAP = 3.0
_BOUND = 1 + 1 / _MEAN_HANDICAP
"""Bonferroni's bound on the joint p, where it is not counted out."""
_TIE = 1e-9
_PRODUCT_MAX = 2**18


@dataclass(frozen=True)
class PairedP:
    """For each row: p of a change of the typical block (two-sided), of a slower mean (one-sided), and of either."""

    typical: Floats
    slower_mean: Floats
    joint: Floats


def paired_p(rows: Floats, *, is_order_mixed: NDArray[np.bool_]) -> PairedP:
    """The three p of each row of log-ratios; `is_order_mixed` says of which rows both orders of the arms occurred."""
    typical, mean = sign_flip_ps(rows), _slower_mean_p(rows)
    at_floor, refined = _refined(rows, is_order_mixed)
    joint = np.minimum(_BOUND * np.minimum(typical, _MEAN_HANDICAP * mean), 1.0)
    if rows.shape[1] <= PATTERNS_MAX:
        for index in np.flatnonzero((typical <= 0.2) | (mean <= 0.1)):
            joint[index] = _joint(rows[index])
    typical = np.where(at_floor, np.minimum(typical, refined), typical)
    joint = np.where(at_floor, np.minimum(joint, _BOUND * refined), joint)
    return PairedP(np.maximum(typical, P_MIN), np.maximum(mean, P_MIN), np.clip(joint, P_MIN, 1.0))


def _slower_mean_p(rows: Floats) -> Floats:
    """How often flipped signs give a mean as slow as the one seen."""
    count = rows.shape[1]
    if count > PATTERNS_MAX:
        return student_tail(np.nan_to_num(studentised(rows), posinf=1e9, neginf=-1e9), count - 1)
    patterns = sign_patterns(count)
    scale = np.abs(rows).sum(axis=1, keepdims=True)
    scaled = rows / np.where(scale > 0, scale, 1.0)
    seen = scaled.sum(axis=1, keepdims=True)
    p: Floats = np.empty(len(rows))
    chunk = max(1, _PRODUCT_MAX // patterns.size)
    for part in (slice(start, start + chunk) for start in range(0, len(rows), chunk)):
        flipped = scaled[part] @ patterns
        above = np.count_nonzero(flipped >= seen[part] - _TIE, axis=1)
        p[part] = above + np.count_nonzero(-flipped >= seen[part] - _TIE, axis=1)
    p /= 2 * patterns.shape[1]
    return p


def _refined(rows: Floats, is_order_mixed: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Floats]:
    """Which rows have all counting blocks on one side, and what p Student's t gives them."""
    count = rows.shape[1]
    absolute = np.abs(rows)
    kept = absolute < SCORE_CUT * MAD_TO_SD * np.median(absolute, axis=1, keepdims=True)
    number = kept.sum(axis=1)
    sign = np.sign(np.where(kept, rows, 0.0).sum(axis=1, keepdims=True))
    agrees = (np.sign(rows) == sign) | ~kept
    at_floor = agrees.all(axis=1) & (number >= max(count - count // 4, 5)) & (sign[:, 0] != 0)
    safe = np.where(at_floor, number, 2)
    mean = np.where(kept, rows, 0.0).sum(axis=1) / safe
    variance = np.where(kept, np.square(rows - mean[:, None]), 0.0).sum(axis=1) / (safe - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.nan_to_num(np.abs(mean) / np.sqrt(variance / safe), nan=0.0, posinf=1e9)
    p = 2 * student_tail(t, safe - 1) * 2.0 ** (count - safe)
    floor = 2.0 ** (1 - safe)
    return at_floor, np.where(is_order_mixed, p, np.maximum(p, floor))


def _joint(row: Floats) -> float:
    """How often flipped signs make the smaller of the two p as small as it was."""
    patterns = sign_patterns(len(row))
    scores = scores_of(row[None, :])[0]
    spread = np.abs(row).sum()
    typical = np.abs(scores @ patterns)
    half = (row / (spread if spread > 0 else 1.0)) @ patterns
    mean = np.concatenate([half, -half])
    typical_p = _exceedance(typical)
    least = np.minimum(np.concatenate([typical_p, typical_p]), _MEAN_HANDICAP * _exceedance(mean))
    return float(np.mean(least <= least[0] + 1e-12))


def _exceedance(values: Floats) -> Floats:
    """For each value, the share of all that are at least as large."""
    ordered = np.sort(values)
    shares: Floats = 1.0 - np.searchsorted(ordered, values - _TIE, side="left") / len(values)
    return shares
