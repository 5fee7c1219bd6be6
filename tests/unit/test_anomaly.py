"""Which cells are odd: not to be trusted, or slower than in an earlier run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.anomaly import odd_cells
from orchestrator.errors import RunNotFound
from orchestrator.store import RunRecord, Store, open_store
from orchestrator.trial import Cell, Outcome, Trial
from tests.unit.trial_factory import make_cell, make_trial

ONE, TWO = make_cell(), make_cell(threads=2)
BLOCKS = 8


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store")
    yield opened
    opened.close()


def quiet(cell: Cell, median_us: float = 1000.0, *, seed: int = 1, trial_sd: float = 0.002) -> list[Trial]:
    """Trials that nothing disturbs."""
    rng = np.random.default_rng(seed)
    medians = median_us * np.exp(rng.normal(0, trial_sd, BLOCKS))
    return [
        make_trial(cell=cell, block=block, median_us=float(median), rng=rng) for block, median in enumerate(medians)
    ]


def keep(store: Store, run: str, day: int, trials: Sequence[Trial], *, arms: tuple[str, ...] = ()) -> None:
    cells = list(dict.fromkeys(trial.cell for trial in trials))
    record = RunRecord(
        run, f"2026-11-{day:02d}T00:00:00Z", "finished", {"measure": {"arms": list(arms)}}, {}, {}, 1, "1"
    )
    store.add_run(record, cells)
    store.add_trials([replace(trial, run=run) for trial in trials])


def test_nothing_is_odd(store: Store) -> None:
    """And that is said, also that there was nothing to hold it against."""
    keep(store, "now", 2, [*quiet(ONE), *quiet(TWO, seed=2)])
    odd = odd_cells(store, "now", [ONE, TWO], None)
    assert (odd.why, odd.text) == (
        {},
        "nothing is odd about 2 cells, and no earlier run has any of them: no trace is made",
    )


def test_a_cell_that_is_not_to_be_trusted_is_odd(store: Store) -> None:
    """Noisy or contaminated, with the first reason; too few trials alone are nothing odd."""
    noisy = quiet(ONE, trial_sd=0.2)
    keep(store, "now", 2, [*noisy, *quiet(TWO)[:2]])
    odd = odd_cells(store, "now", [ONE, TWO], None)
    assert list(odd.why) == [ONE.id]
    assert odd.why[ONE.id].startswith(("noisy: ", "contaminated: "))
    assert odd.text == "1 of 2 cells are odd and will be traced (and no earlier run has any of them)"


def test_a_cell_that_got_slower_is_odd(store: Store) -> None:
    """Held against the newest earlier run that measured it, whichever bytes it measured; not against later ones, nor
    against calibrations."""
    older = make_cell(model_sha256="ee" * 32)
    keep(store, "base", 1, [*quiet(older), *quiet(TWO)])
    keep(store, "calibration", 2, quiet(ONE, 1500.0), arms=("a", "b"))
    keep(store, "failed", 3, [replace(trial, outcome=Outcome.FAILED, samples_us=()) for trial in quiet(ONE)])
    keep(store, "now", 4, [*quiet(ONE, 1500.0, seed=3), *quiet(TWO, seed=4)])
    keep(store, "later", 5, quiet(ONE, 1500.0, seed=5))
    odd = odd_cells(store, "now", [ONE, TWO], None)
    assert list(odd.why) == [ONE.id]
    assert odd.why[ONE.id].startswith("slower than run base: p50 by 50.")
    assert "suspected_slower" in odd.why[ONE.id]
    assert odd.text == "1 of 2 cells are odd and will be traced (2 of them held against an earlier run)"


def test_the_baseline_may_be_named(store: Store) -> None:
    """Then no other run counts; one that is not there is refused by name."""
    keep(store, "slow", 1, quiet(ONE, 1500.0))
    keep(store, "fast", 2, quiet(ONE, 1000.0))
    keep(store, "now", 3, quiet(ONE, 1500.0, seed=3))
    assert list(odd_cells(store, "now", [ONE], None).why) == [ONE.id]
    assert odd_cells(store, "now", [ONE], "slow").why == {}
    with pytest.raises(RunNotFound):
        odd_cells(store, "now", [ONE], "none")


def test_cells_without_a_trial_are_nothing_odd(store: Store) -> None:
    """They are told elsewhere."""
    keep(store, "now", 1, quiet(ONE))
    assert odd_cells(store, "now", [ONE, TWO], None).why == {}
