"""What calibration found, looked up again: for comparisons, and for planning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.analysis.calibration import ANY_FAMILY, cell_family
from orchestrator.analysis.noise import ARMS, DEFAULT_IDLE_SD, DEFAULT_LOADED_SD
from orchestrator.noise_book import keep_noise, noise_for, session_noises
from orchestrator.store import RunRecord, Store, open_store
from tests.unit.test_analysis_noise import twice
from tests.unit.trial_factory import make_cell

RUN = RunRecord(
    *("run-1", "2026-11-18T02:00:00Z", "finished"),
    {"measure": {"arms": list(ARMS), "blocks_min": 60, "sessions": 6}},
    *({"devices": []}, {}, 7, "0.1.0"),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one calibration: 2 % between neighbours, 5 % between sessions."""
    opened = open_store(tmp_path)
    trials = [replace(trial, run=RUN.id) for trial in twice(np.random.default_rng(3))]
    opened.add_run(RUN, list(dict.fromkeys(trial.cell for trial in trials)))
    opened.add_trials(trials)
    return opened


def test_a_calibration_says_what_it_finds(store: Store) -> None:
    """Ten blocks of 2 % noise find 2.8 %; a change of 1 % takes many more."""
    content = keep_noise(store, RUN, "2026-11-18").as_json()
    family = next(found for found in content["families"] if found["metric"] == "p50")
    assert content["blocks"] == 10
    assert family["smallest_change"] == pytest.approx(0.028, abs=0.006)
    needed = [family["blocks_needed"][change] for change in ("1%", "2%", "5%", "10%")]
    assert needed == sorted(needed, reverse=True)
    assert content["false_alarms"][0]["alarms"] == 0


def test_comparisons_get_the_noise_between_sessions(store: Store) -> None:
    """Of the family, of the device for other cells, and assumed for other devices."""
    keep_noise(store, RUN, "2026-11-18")
    noises = session_noises(store)
    assert noises.sd_log(make_cell()) == (pytest.approx(0.05, rel=0.4), "calibrated")
    assert noises.sd_log(make_cell(threads=4))[1] == "calibrated for the device"
    assert noises.sd_log(make_cell(device="another"))[1] == "assumed"


def test_planning_gets_the_noise_between_neighbours(store: Store) -> None:
    """With its source, and a stated assumption where there is none."""
    keep_noise(store, RUN, "2026-11-18")
    known = store.noise()
    found, source = noise_for(make_cell(), known)
    assert (found.family, source) == (cell_family(make_cell()), "calibrated")
    found, source = noise_for(make_cell(load="app"), known)
    assert (found.family, source) == (ANY_FAMILY, "calibrated for the device")
    for load, sd in (("idle", DEFAULT_IDLE_SD), ("app", DEFAULT_LOADED_SD)):
        found, source = noise_for(make_cell(device="another", load=load), known)
        assert (found.block_sd, source) == (sd, "assumed")
