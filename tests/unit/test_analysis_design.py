"""Whether two sides were interleaved: sessions, times and positions are believed before block numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.design import Design, design_of
from orchestrator.analysis.reduction import Reduced
from tests.unit.comparison_models import reduced_trial
from tests.unit.trial_factory import make_cell

BLOCKS = 10


def side(arm: int, **changes: object) -> list[Reduced]:
    """One side of an interleaved run, ten seconds a trial, the base first in even blocks."""
    trials = []
    for block in range(BLOCKS):
        place = 2 * block + (arm if block % 2 == 0 else 1 - arm)
        trial = reduced_trial(make_cell(), arm=str(arm), block=block, log_us=6.0, at_s=10.0 * place, position=place % 2)
        trials.append(replace(trial, **changes))  # type: ignore[arg-type]  # any field
    return trials


def design(base: list[Reduced], new: list[Reduced], *, is_one_run: bool = True) -> Design:
    return design_of(base, new, is_one_run=is_one_run)


def test_neighbours_in_time_are_pairs() -> None:
    """Every block a pair, either side first in several blocks."""
    found = design(side(0), side(1))
    assert found.is_interleaved
    assert (len(found.pairs), found.left_out, found.is_order_mixed, found.first) == (BLOCKS, 0, True, None)


def test_without_times_block_numbers_are_believed() -> None:
    """Within one file; nothing speaks against them."""
    assert len(design(side(0, started_s=None), side(1, started_s=None)).pairs) == BLOCKS


def test_equal_times_say_nothing() -> None:
    """A file whose trials all carry one time is as one without."""
    assert design(side(0, started_s=5.0), side(1, started_s=5.0)).is_interleaved


def test_one_side_after_the_other_in_time() -> None:
    """Equal block numbers, but all of the base came first."""
    later = [replace(trial, started_s=1e5 + 10.0 * trial.block) for trial in side(1)]
    found = design(side(0), later)
    assert found.sequential == "the trials of a block did not run one after the other"
    assert found.pairs == ()


def test_big_chunks_are_not_interleaved() -> None:
    """Five of the base, five of the new, and again: neighbours in block number, not in time."""
    chunked = [
        [replace(trial, started_s=1000.0 * (2 * (trial.block // 5) + arm) + trial.block) for trial in side(arm)]
        for arm in range(2)
    ]
    assert not design(*chunked).is_interleaved


def test_a_repeated_slot_far_away_is_left_out() -> None:
    """One block whose new side was repeated at the end does not spoil the others, nor enter."""
    new = side(1)
    new[3] = replace(new[3], started_s=9e9)
    found = design(side(0), new)
    assert found.is_interleaved
    assert (len(found.pairs), found.left_out) == (BLOCKS - 1, 2)


def test_sessions_apart() -> None:
    """The same run and blocks, but a session each."""
    found = design(side(0, session="monday"), side(1, session="tuesday"))
    assert found.sequential == "the two sides were measured in different sessions"


def test_runs_apart() -> None:
    """Block 3 of another run is another block."""
    assert design(side(0, run="a"), side(1, run="b")).sequential == "the two sides are different runs"


def test_blocks_apart() -> None:
    """Blocks 0 to 9 and 10 to 19 of one session."""
    new = [replace(trial, block=trial.block + BLOCKS) for trial in side(1)]
    assert design(side(0), new).sequential == "no block holds both sides"


def test_positions_that_count_through_the_run() -> None:
    """Without times, positions 0 to 9 and 10 to 19 give a sequential run away."""
    sides = [
        [replace(trial, started_s=None, position=trial.block + BLOCKS * arm) for trial in side(arm)] for arm in range(2)
    ]
    assert design(*sides).sequential == "all trials of one side came before all of the other"


def test_always_the_same_order_is_noticed() -> None:
    """The base first in every block: paired, but what coming first does is not told apart."""
    sides = [
        [replace(trial, started_s=20.0 * trial.block + 10 * arm, position=arm) for trial in side(arm)]
        for arm in range(2)
    ]
    found = design(*sides)
    assert found.is_interleaved
    assert (found.is_order_mixed, found.first) == (False, "base")


@pytest.mark.parametrize("is_proven", [True, False])
def test_two_files_need_proof(is_proven: bool) -> None:
    """Same run, session and blocks: pairs only if their times interleave; without times they are two runs."""
    changes = {} if is_proven else {"started_s": None}
    assert design(side(0, **changes), side(1, **changes), is_one_run=False).is_interleaved is is_proven


def test_a_file_against_itself_is_no_interleaved_run() -> None:
    """Each trial would be its own partner."""
    assert not design(side(0), side(0), is_one_run=False).is_interleaved


def test_unequal_sides_pair_what_they_can() -> None:
    """Seven blocks of one side and ten of the other."""
    found = design(side(0)[:7], side(1))
    assert (len(found.pairs), found.left_out) == (7, 3)
    assert np.all([base.block == new.block for base, new in found.pairs])
