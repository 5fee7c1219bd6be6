"""The schedule: which slot runs when, in seeded random blocks, and when a cell has been measured enough. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from orchestrator.plan import Measure
from orchestrator.trial import Cell, Slot

T = TypeVar("T")

LOOKS = (8, 12, 18, 27, 40, 60, 90)
"""The block counts at which cells may stop. Stopping after any block would spoil the intervals."""

_LOOK_ALPHA = (0.05, 0.0294, 0.0221, 0.0182, 0.0158, 0.0142, 0.0130, 0.0120, 0.0112)
"""Pocock's level at each of 1, 2, 3… looks, so that all of them together err in one case of twenty."""
_MAKE_UP_SHARE = 0.5


class Stop(StrEnum):
    """Why a cell got no further block."""

    TIGHT = "tight"
    MAX_BLOCKS = "max blocks"
    BUDGET = "budget"


def block_limit(measure: Measure) -> int:
    """The most blocks there can be: `blocks_max`, and as many again by half to make up for rejected trials."""
    return measure.blocks_max + math.ceil(measure.blocks_max * _MAKE_UP_SHARE)


def is_look(block_count: int, measure: Measure) -> bool:
    """Whether cells may stop, for being precise enough, after this many blocks."""
    return block_count == measure.blocks_min or (block_count > measure.blocks_min and block_count in LOOKS)


def look_level(measure: Measure) -> float:
    """The level of the interval that must be narrow enough at a look: the more looks, the higher."""
    between = [look for look in LOOKS if measure.blocks_min < look < measure.blocks_max]
    looks = len(between) + (1 if measure.blocks_min == measure.blocks_max else 2)
    return 1 - _LOOK_ALPHA[looks - 1]


def _next_look(block: int, measure: Measure) -> int:
    return min([look for look in LOOKS if look > block] + [measure.blocks_max])


@dataclass(frozen=True)
class Ration:
    """What is left of a budget before a block, and what cells would do with it: all from trials of earlier blocks."""

    left_s: Callable[[int], float]
    half_width: Callable[[Cell, int], float | None]
    block_s: Callable[[Cell, int], float]
    """How long one block takes a cell."""


class Schedule:
    """Decides block by block which cells still run. A contrast lives or stops as a whole, so that its arms stay paired.

    What it decides depends only on trials of earlier blocks, so that asking again from block 0 gives the same answers:
    that is how a run is resumed.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        measure: Measure,
        seed: int,
        ration: Ration | None = None,
        pinned: Sequence[Cell] = (),
    ) -> None:
        """`pinned` cells stop for no reason of their own: they accompany the others to the last block."""
        self._measure = measure
        self._seed = seed
        others = [cell for cell in cells if cell not in pinned]
        self._cells = others or list(cells)
        self._pinned = [cell for cell in cells if cell in pinned] if others else []
        self._ration = ration
        self._stopped: dict[tuple[str, ...], Stop] = {}

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
            if not is_given_up(cell, block) and cell.contrast not in self._stopped:
                groups.setdefault(cell.contrast, []).append(cell)
        incomplete = {
            contrast
            for contrast, arms in groups.items()
            if any(measured(cell, block) < self._measure.blocks_min for cell in arms)
        }
        for contrast, arms in groups.items():
            stop = self._stop(block, arms, is_tight, is_complete=contrast not in incomplete)
            if stop:
                self._stopped[contrast] = stop
        refined = {key: arms for key, arms in groups.items() if key not in self._stopped and key not in incomplete}
        for contrast in self._unaffordable(block, refined):
            self._stopped[contrast] = Stop.BUDGET
        live = [cell for contrast, arms in groups.items() if contrast not in self._stopped for cell in arms]
        for cell in self._pinned:
            is_short = measured(cell, block) < self._measure.blocks_min and block < block_limit(self._measure)
            if (live or is_short) and not is_given_up(cell, block):
                live.append(cell)
        return block_slots(live, block=block, seed=self._seed, arms=self._measure.arms)

    def stop_of(self, cell: Cell) -> Stop | None:
        """Why the cell got no further block; None as long as it would get one."""
        return self._stopped.get(cell.contrast)

    def _stop(
        self, block: int, arms: Sequence[Cell], is_tight: Callable[[Cell, int], bool], *, is_complete: bool
    ) -> Stop | None:
        if not is_complete:
            return Stop.MAX_BLOCKS if block >= block_limit(self._measure) else None
        if is_look(block, self._measure) and all(is_tight(cell, block) for cell in arms):
            return Stop.TIGHT
        return Stop.MAX_BLOCKS if block >= self._measure.blocks_max else None

    def _unaffordable(self, block: int, groups: Mapping[tuple[str, ...], Sequence[Cell]]) -> list[tuple[str, ...]]:
        """The contrasts that a budget leaves out at a look, because it does not reach to the next one for all.

        The widest intervals, relative to their value, come first; the widest of all goes on even if the budget ends it
        before the next look.
        """
        if self._ration is None or not groups or not is_look(block, self._measure):
            return []
        ration, blocks = self._ration, _next_look(block, self._measure) - block
        left_s = ration.left_s(block)

        def width(contrast: tuple[str, ...]) -> float:
            widths = [ration.half_width(cell, block) for cell in groups[contrast]]
            return max(math.inf if found is None else found for found in widths)

        out = []
        for number, contrast in enumerate(sorted(groups, key=lambda key: (-width(key), key))):
            cost_s = blocks * sum(ration.block_s(cell, block) for cell in groups[contrast])
            if number and cost_s > left_s:
                out.append(contrast)
            else:
                left_s -= cost_s
        return out


def block_slots(cells: Sequence[Cell], *, block: int, seed: int, arms: Sequence[str] = ()) -> list[Slot]:
    """One block: every cell once, or once for each arm.

    Loads are shuffled, then the contrasts of each load, then the cells of each contrast, which stay neighbours, as do
    the arms of each cell.
    """
    slots: list[Slot] = []
    for load in _shuffled(sorted({cell.load for cell in cells}), seed, block, "loads"):
        of_load = [cell for cell in cells if cell.load == load]
        for contrast in _shuffled(sorted({cell.contrast for cell in of_load}), seed, block, load):
            members = sorted((cell for cell in of_load if cell.contrast == contrast), key=lambda cell: cell.threads)
            for cell in _mirrored(members, seed, block, "|".join(contrast)):
                for arm in _mirrored(sorted(arms), seed, block, cell.id) if arms else (None,):
                    slots.append(Slot(cell, block, len(slots), arm))
    return slots


def _mirrored(items: Sequence[T], seed: int, block: int, what: str) -> list[T]:
    """A random order in every even block and its mirror image in the next: each pair runs equally often in either
    order, so that coming first is no advantage."""
    ordered = _shuffled(items, seed, block // 2, what)
    return ordered if block % 2 == 0 else ordered[::-1]


def _shuffled(items: Sequence[T], seed: int, block: int, what: str) -> list[T]:
    shuffled = list(items)
    random.Random(f"{seed}/{block}/{what}").shuffle(shuffled)
    return shuffled
