"""What nights differ by over the pinned reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.calibration import SessionNoise, SessionNoises
from orchestrator.analysis.noise import noises
from orchestrator.analysis.relative_noise import relative_noises
from orchestrator.trial import Cell, Trial
from tests.unit.gate_nights import REFERENCE, fleet_cells
from tests.unit.trial_factory import make_trial

CELLS = [*fleet_cells(6), REFERENCE]


def calibration(rng: np.random.Generator, sessions: int, cells: list[Cell]) -> list[Trial]:
    """Sessions that differ by 6 % for the device and by 1 % for each cell; trials by 1 %."""
    trials = []
    for session in range(sessions):
        device = rng.normal(0, 0.06)
        for cell in cells:
            level = device + rng.normal(0, 0.01)
            for block in range(8):
                for arm in ("a", "b"):
                    median_us = float(800 * np.exp(level + rng.normal(0, 0.01)))
                    made = make_trial(cell=cell, block=8 * session + block, arm=arm, median_us=median_us, samples=5)
                    trials.append(replace(made, session=f"session-{session}"))
    return trials


def is_pinned(cell: Cell) -> bool:
    return cell == REFERENCE


def test_the_reference_takes_away_what_all_cells_share() -> None:
    """6 % between sessions, of which 1.4 % remain: the cell's own, and the reference's."""
    trials = calibration(np.random.default_rng(3), 12, CELLS)
    known = [*noises(trials), *relative_noises(trials, is_pinned)]
    found = SessionNoises([noise for one in known if one.metric == "p50" and (noise := one.of_sessions)])
    assert found.sd_log(CELLS[0])[0] == pytest.approx(0.06, rel=0.4)
    assert found.left_log(CELLS[0]) == (pytest.approx(0.014, rel=0.5), "calibrated")
    assert found.left_log(replace(CELLS[0], load="app"))[1] == "calibrated for the device"


def test_without_a_reference_or_from_one_session_nothing_is_known() -> None:
    """Then half of the noise is taken to remain, and that is said."""
    rng = np.random.default_rng(3)
    assert relative_noises(calibration(rng, 4, CELLS[:-1]), is_pinned) == []
    assert relative_noises(calibration(rng, 1, CELLS), is_pinned) == []
    known = SessionNoises([SessionNoise("pixel8", "any", 0.02, 4)])
    expected = "half of what is calibrated for the device without a reference"
    assert known.left_log(CELLS[0]) == (pytest.approx(0.01), expected)
