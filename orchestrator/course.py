"""The course of the work on one device: block after block until all is known well enough, or each cell at a stretch."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from orchestrator.clock import Deadline
from orchestrator.plan import Measure
from orchestrator.schedule import Ration, Schedule, Stop
from orchestrator.tally import ATTEMPT, Tally
from orchestrator.trial import Cell, Pass, Slot, Trial

DONE = "done"
BUDGET_SPENT = "budget spent"

_SLICES = 20
_SLICE_S_MIN, _SLICE_S_MAX = 1.0, 10.0
_TIMEOUT_SPARE_S = 60.0


class Worker(Protocol):
    """Makes trials, and a device ready anew."""

    def do(self, slot: Slot, *, waits: bool) -> Trial: ...

    def renew_session(self) -> None: ...


def conducted(measure: Measure) -> Measure:
    """How single trials are made: those of a sustained run are long, follow each other, and warm nothing up."""
    if measure.sustain_s is None:
        return measure
    slice_s = min(max(measure.sustain_s / _SLICES, _SLICE_S_MIN), _SLICE_S_MAX)
    slices = max(1, round(measure.sustain_s / slice_s))
    return replace(
        measure,
        blocks_min=slices,
        blocks_max=slices,
        runs=1,
        warmup_min_ms=0,
        min_ms=round(1000 * slice_s),
        max_ms=round(2000 * slice_s),
        trial_timeout_s=max(measure.trial_timeout_s, 3 * slice_s + _TIMEOUT_SPARE_S),
    )


class Course:
    """All that is to be done with some cells; `tally` knows what was done before."""

    def __init__(
        self,
        cells: Sequence[Cell],
        measure: Measure,
        seed: int,
        tally: Tally,
        worker: Worker,
        pinned: Sequence[Cell] = (),
    ) -> None:
        """`pinned` are those that every block has; see `Schedule`."""
        self._cells = cells
        self._measure = measure
        self._seed = seed
        self._tally = tally
        self._worker = worker
        budget_s = measure.budget_s or math.inf
        self._budget = Deadline.after(budget_s - tally.used_s)
        ration = Ration(lambda block: budget_s - tally.used_before_s(block), tally.half_width_before, tally.block_s)
        self._schedule = Schedule(cells, measure, seed, ration if measure.budget_s else None, pinned)
        self._is_cut = False

    def run(self) -> str:
        """Do it; gives the reason for ending."""
        ending = self._sustain() if self._measure.sustain_s else self._blocks()
        self._is_cut = ending == BUDGET_SPENT
        return ending

    def stops(self) -> dict[str, str]:
        """Why each cell got no further block, by its id, once the course has been run."""
        if self._measure.sustain_s:
            return {}
        found = {cell.id: self._schedule.stop_of(cell) for cell in self._cells}
        return {key: str(stop or Stop.BUDGET) for key, stop in found.items() if stop or self._is_cut}

    def _affords(self, cell: Cell) -> bool:
        return self._budget.left_s >= self._tally.expected_s(cell)

    def _blocks(self) -> str:
        tally, block, sitting = self._tally, 0, None
        while slots := self._schedule.next_block(
            block, tally.measured_before, tally.is_tight, tally.is_given_up_before
        ):
            for slot in slots:
                if tally.given_up(slot.cell) or tally.has(slot):
                    continue
                if not self._affords(slot.cell):
                    return BUDGET_SPENT
                if sitting not in (None, self._sitting(block)):
                    self._worker.renew_session()
                sitting = self._sitting(block)
                self._worker.do(slot, waits=True)
            block += 1
        return DONE

    def _sitting(self, block: int) -> int:
        """The session that a block belongs to; blocks that make up for lost ones belong to the last."""
        blocks_each = -(-self._measure.blocks_min // self._measure.sessions)
        return min(block // blocks_each, self._measure.sessions - 1)

    def _sustain(self) -> str:
        """Each cell for its time without a rest, after one wait for the device to be fit; in random order."""
        assert self._measure.sustain_s
        ordered = sorted(self._cells, key=lambda cell: cell.id)
        random.Random(f"{self._seed}/sustain").shuffle(ordered)
        for cell in ordered:
            if self._tally.given_up(cell) or self._tally.is_complete(cell):
                continue
            first = self._tally.next_attempt(cell)
            for block in range(first, first + ATTEMPT):
                if self._tally.given_up(cell) or (block > first and self._tally.is_complete(cell)):
                    break
                if not self._affords(cell):
                    return BUDGET_SPENT
                self._worker.do(Slot(cell, block, 0, purpose=Pass.SUSTAIN), waits=block == first)
        return DONE
