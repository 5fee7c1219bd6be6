"""False discoveries over many comparisons."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.analysis.discovery import adjusted_p


def test_equal_weights_are_benjamini_and_hochberg() -> None:
    """As scipy has it."""
    from scipy.stats import false_discovery_control

    p = np.random.default_rng(1).random(50).tolist()
    assert adjusted_p(p, [1.0] * 50) == pytest.approx(false_discovery_control(p))
    assert adjusted_p(p, [0.3] * 50) == pytest.approx(false_discovery_control(p))


def test_weights_shift_the_burden() -> None:
    """The heavier comparison keeps more of its p; together the family rate stays."""
    light, heavy = adjusted_p([0.02, 0.02], [1.0, 3.0])
    assert heavy < light
    rng = np.random.default_rng(2)
    families = [adjusted_p(rng.random(30).tolist(), [0.5, 0.25, 0.25] * 10).min() <= 0.05 for _ in range(2000)]
    assert np.mean(families) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


def test_nothing_to_adjust() -> None:
    """No comparisons, no p."""
    assert len(adjusted_p([], [])) == 0
