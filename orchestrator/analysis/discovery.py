"""Many comparisons at once: p adjusted so that among all changes announced few are none (Benjamini and Hochberg)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orchestrator.analysis.randomisation import Floats


def adjusted_p(p: Sequence[float], weights: Sequence[float]) -> Floats:
    """Adjusted p, in order. Weights say whose p count for more; only their proportions matter.

    A weight divides the p (Genovese, Roeder and Wasserman); with weights of mean 1 the rate of false discoveries stays.
    """
    assert len(p) == len(weights)
    if not len(p):
        return np.empty(0)
    shares = np.asarray(weights, dtype=np.float64)
    weighted = np.asarray(p, dtype=np.float64) / (shares / shares.mean())
    order = np.argsort(weighted)
    count = len(weighted)
    scaled = weighted[order] * count / np.arange(1, count + 1)
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return adjusted
