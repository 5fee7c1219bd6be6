"""Comparisons and histories on a terminal: they fit, and say what matters."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from orchestrator.analysis.calibration import SessionNoises
from orchestrator.analysis.compare import compare
from orchestrator.analysis.history import histories
from orchestrator.reports.compare_table import show_comparison
from orchestrator.reports.history_table import show_histories
from tests.unit.comparison_models import Truth, calm, interleaved, matching
from tests.unit.test_analysis_history import runs
from tests.unit.trial_factory import make_cell


def comparison_text(width: int) -> str:
    rng = np.random.default_rng(1)
    cells = [
        interleaved(rng, calm, blocks=12, truth=Truth(0.1 * (threads - 1)), cell=make_cell(threads=threads, load=load))
        for threads in (1, 2)
        for load in ("idle", "cpu:2@50")
    ]
    found = matching(cells)
    rows = compare(found, is_one_run=True, noises=SessionNoises())
    out = io.StringIO()
    console = Console(file=out, width=width)
    show_comparison(console, rows, found, names=("old", "new"), ignored=("runner_sha256",), threshold=0.03)
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 110, 200])
def test_a_comparison_fits(width: int) -> None:
    """No line is longer than the terminal, and no verdict is cut off."""
    text = comparison_text(width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("slower") >= 6
    assert "compared although these may differ: runner_sha256" in text
    assert ("trust" in text) is (width >= 110)


@pytest.mark.parametrize("width", [80, 200])
def test_a_history_fits(width: int) -> None:
    """A curve, and the run at which the level changed with what changed there."""
    out = io.StringIO()
    trials = runs([800.0] * 10 + [900.0] * 60, changed_at=10)
    show_histories(Console(file=out, width=width), histories(trials, metric="p50", threshold=0.03))
    text = out.getvalue()
    assert "1 of 1 cells changed" in text
    assert "since run10: slower" in text
    assert "changed there: runner_sha256 old → new" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= width
