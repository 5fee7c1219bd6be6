"""Stopping at looks keeps the coverage of the interval: simulated from models with drift and resembling neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.plan import Measure
from orchestrator.schedule import look_level
from orchestrator.tally import Tally
from tests.unit.sequential_models import MODELS, block_values, intervals, stopped
from tests.unit.trial_factory import make_cell, make_trial

ADAPTIVE = Measure(blocks_min=8, blocks_max=40, precision=0.02)
RUNS = 250
SLACK = 0.03
"""Two standard errors of a coverage of 0.95 from so many runs; the bench has more."""


@pytest.mark.parametrize("sd", [0.005, 0.02, 0.04])
@pytest.mark.parametrize("model", [model for model in MODELS if model != "alike 0.6"])
def test_the_reported_interval_holds_the_truth(model: str, sd: float) -> None:
    """At least 93 of 100, whether a cell stops at once, half-way, or at the most blocks."""
    found = stopped(np.random.default_rng(8), model, ADAPTIVE, runs=RUNS, sd=sd)
    assert found.coverage >= 0.96 - SLACK


def test_blocks_that_strongly_resemble_each_other_cost_a_little_coverage() -> None:
    """A correlation of 0.6 cannot be told from 8 blocks: about 91 of 100, and no fewer than 87."""
    found = stopped(np.random.default_rng(8), "alike 0.6", ADAPTIVE, runs=RUNS, sd=0.02)
    assert found.coverage >= 0.90 - SLACK


def test_quiet_cells_stop_early_and_noisy_ones_go_on() -> None:
    """Blocks go where they are needed."""
    rng = np.random.default_rng(1)
    blocks = [stopped(rng, "normal", ADAPTIVE, runs=60, sd=sd).blocks for sd in (0.005, 0.02, 0.08)]
    assert blocks[0] < 9
    assert blocks[0] < blocks[1] < blocks[2]
    assert blocks[2] > 35


def test_the_simulation_asks_what_the_tally_asks() -> None:
    """The half-width of the simulated cells is the one by which a run is stopped."""
    rows = block_values(np.random.default_rng(5), "normal", runs=3, blocks=12, sd=0.03)
    cell = make_cell()
    for row, half_width in zip(rows, intervals(rows, look_level(ADAPTIVE))[2], strict=True):
        tally = Tally(ADAPTIVE)
        for block, log in enumerate(row):
            tally.add(make_trial(cell=cell, block=block, median_us=1000 * float(np.exp(log)), spread=0.0))
        assert tally.half_width_before(cell, 12) == pytest.approx(half_width, rel=1e-6)


@pytest.mark.parametrize(
    ("blocks_min", "blocks_max", "alpha"),
    [(10, 10, 0.05), (8, 18, 0.0221), (8, 40, 0.0158), (12, 40, 0.0182), (10, 14, 0.0221), (1, 10_000, 0.0112)],
)
def test_the_more_looks_the_higher_the_level(blocks_min: int, blocks_max: int, alpha: float) -> None:
    """One look needs no correction; the last block counts as a look."""
    assert look_level(Measure(blocks_min=blocks_min, blocks_max=blocks_max)) == pytest.approx(1 - alpha)
