"""The schedule: which slot runs when, in seeded random blocks, and when a cell has been measured enough. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from orchestrator.plan import Measure
from orchestrator.trial import Cell, Slot

T = TypeVar("T")

LOOKS = (8, 12, 18, 27, 40, 60, 90)
"""The block counts at which cells may stop. Stopping after any block would spoil the intervals."""

_MAKE_UP_SHARE = 0.5


def block_limit(measure: Measure) -> int:
    """The most blocks there can be: `blocks_max`, and as many again by half to make up for rejected trials."""
    return measure.blocks_max + math.ceil(measure.blocks_max * _MAKE_UP_SHARE)


def is_look(block_count: int, measure: Measure) -> bool:
    """Whether cells may stop, for being precise enough, after this many blocks."""
    return block_count == measure.blocks_min or (block_count > measure.blocks_min and block_count in LOOKS)


class Schedule:
    """Decides block by block which cells still run. A contrast lives or stops as a whole, so that its arms stay paired.

    What it decides depends only on trials of earlier blocks, so that asking again from block 0 gives the same answers:
    that is how a run is resumed.
    """

    def __init__(self, cells: Sequence[Cell], measure: Measure, seed: int) -> None:
        self._measure = measure
        self._seed = seed
        self._cells = list(cells)
        self._stopped: set[tuple[str, ...]] = set()

    def next_block(
        self,
        block: int,
        measured: Callable[[Cell, int], int],
        is_tight: Callable[[Cell, int], bool],
        is_given_up: Callable[[Cell, int], bool],
    ) -> list[Slot]:
        """The slots of this block; empty when everything has been measured enough.

        `measured` counts a cell's measured trials before a block, `is_tight` says whether those give a narrow
        enough interval, `is_given_up` whether it was clear before the block that a cell is not tried again.
        """
        groups: dict[tuple[str, ...], list[Cell]] = {}
        for cell in self._cells:
            if not is_given_up(cell, block):
                groups.setdefault(cell.contrast, []).append(cell)
        live: list[Cell] = []
        for contrast, arms in groups.items():
            if contrast in self._stopped:
                continue
            if self._goes_on(block, arms, measured, is_tight):
                live += arms
            else:
                self._stopped.add(contrast)
        return block_slots(live, block=block, seed=self._seed)

    def _goes_on(
        self,
        block: int,
        arms: Sequence[Cell],
        measured: Callable[[Cell, int], int],
        is_tight: Callable[[Cell, int], bool],
    ) -> bool:
        if any(measured(cell, block) < self._measure.blocks_min for cell in arms):
            return block < block_limit(self._measure)
        if block >= self._measure.blocks_max:
            return False
        return not (is_look(block, self._measure) and all(is_tight(cell, block) for cell in arms))


def block_slots(cells: Sequence[Cell], *, block: int, seed: int) -> list[Slot]:
    """One block: every cell once.

    Loads are shuffled, then the contrasts of each load, then the arms of each contrast, which stay neighbours.
    """
    slots: list[Slot] = []
    for load in _shuffled(sorted({cell.load for cell in cells}), seed, block, "loads"):
        of_load = [cell for cell in cells if cell.load == load]
        for contrast in _shuffled(sorted({cell.contrast for cell in of_load}), seed, block, load):
            arms = sorted((cell for cell in of_load if cell.contrast == contrast), key=lambda cell: cell.threads)
            ordered = _arm_order(arms, seed, block)
            slots += [Slot(cell, block, len(slots) + index) for index, cell in enumerate(ordered)]
    return slots


def _arm_order(arms: Sequence[Cell], seed: int, block: int) -> list[Cell]:
    """A random order in every even block and its mirror image in the next: each pair of arms runs equally
    often in either order, so that coming first is no advantage."""
    ordered = _shuffled(arms, seed, block // 2, "|".join(arms[0].contrast))
    return ordered if block % 2 == 0 else ordered[::-1]


def _shuffled(items: Sequence[T], seed: int, block: int, what: str) -> list[T]:
    shuffled = list(items)
    random.Random(f"{seed}/{block}/{what}").shuffle(shuffled)
    return shuffled
