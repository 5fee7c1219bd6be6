"""The slow end of a cell: its p90 and p99, with intervals where the samples allow and a plain statement where not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from orchestrator.analysis.estimate import LEVEL, Block, Estimate, quantile, sorted_samples
from orchestrator.analysis.randomisation import BLOCKS_MIN, Floats, student_quantile
from orchestrator.trial import Trial

PERCENTILES = {"p90": 0.90, "p99": 0.99}
BEYOND_MIN = 5
"""A percentile is stated only if this many samples of the cell lie beyond it."""


def percentiles_us(counted: Mapping[Block, Trial]) -> dict[str, Estimate]:
    """p90 and p99 of all samples of a cell's measured trials."""
    trials = [ordered for trial in counted.values() if (ordered := sorted_samples(trial)).size]
    pooled = np.sort(np.concatenate(trials)) if trials else np.empty(0)
    return {name: _percentile(name, share, trials, pooled) for name, share in PERCENTILES.items()}


def _percentile(name: str, share: float, trials: Sequence[Floats], pooled: Floats) -> Estimate:
    """Woodruff's interval: how sure the share of samples below the estimate is, from trial to trial, and which samples
    have those shares below them. A trial is a cluster, so samples of one process do not count as independent."""
    needed = round(BEYOND_MIN / (1 - share))
    if pooled.size < needed:
        missing = f"a {name} needs {needed} samples, there are {pooled.size}"
        return Estimate(None, None, None, len(trials), LEVEL, missing)
    value = quantile(pooled, share)
    if len(trials) < BLOCKS_MIN:
        few = f"an interval needs {BLOCKS_MIN} blocks, there are {len(trials)}"
        return Estimate(value, None, None, len(trials), LEVEL, few)
    sizes = np.array([ordered.size for ordered in trials])
    below = np.array([np.searchsorted(ordered, value, "right") for ordered in trials])
    weights = sizes / sizes.mean()
    deviations = weights * (below / sizes - share)
    # From trial to trial at least what single samples would vary by: few trials may agree by chance.
    error = max(float(deviations.std(ddof=1)) / math.sqrt(len(trials)), math.sqrt(share * (1 - share) / pooled.size))
    reach = float(student_quantile((1 + LEVEL) / 2, len(trials) - 1)) * error
    low = quantile(pooled, max(share - reach, 0.0))
    if share + reach > 1 - 1 / pooled.size:
        note = f"the upper end of a {name} needs more than these {pooled.size} samples"
        return Estimate(value, low, None, len(trials), LEVEL, note)
    return Estimate(value, low, quantile(pooled, share + reach), len(trials), LEVEL)
