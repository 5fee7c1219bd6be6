"""What has been measured of a duel so far on one device, and which of its questions are answered. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from orchestrator.analysis.comparison import Change, Comparison
from orchestrator.analysis.duels import pair_rows
from orchestrator.analysis.ends import Like, Likeness, end_logs, likeness
from orchestrator.analysis.estimate import Metric
from orchestrator.analysis.reduction import Reduced, reduced
from orchestrator.plan import Measure
from orchestrator.schedule import look_level
from orchestrator.tally import Tally
from orchestrator.trial import Cell, Outcome, Trial


class _ContestTally(Tally):
    """A contest is known well enough when its question is answered at a look, however wide its latencies are."""

    def __init__(self, measure: Measure, metrics: Mapping[str, Metric]) -> None:
        """`metrics` says by which one each contest is decided, by the id of its cell."""
        super().__init__(measure)
        self._metrics = metrics
        self._alpha = 1 - look_level(measure)
        self._seen: list[Reduced] = []

    def add(self, trial: Trial) -> None:
        super().add(trial)
        self._seen += reduced([trial])

    def measured_before(self, cell: Cell, block: int) -> int:
        """How many blocks hold every arm, in one session; one that a crash tore apart is made up for."""
        held: dict[tuple[str, int], set[str | None]] = {}
        for trial in self._before(block):
            if trial.cell.id == cell.id and trial.outcome is Outcome.MEASURED and trial.latencies_us["p50"] is not None:
                held.setdefault((trial.session, trial.block), set()).add(trial.arm)
        return sum(arms >= set(self._arms) for arms in held.values())

    def _least(self, cell: Cell) -> int:
        return self.measured_before(cell, sys.maxsize)

    def _before(self, block: int) -> list[Reduced]:
        return [trial for trial in self._seen if trial.block < block]


class DuelTally(_ContestTally):
    """Is the candidate slower than the baseline?"""

    def __init__(self, measure: Measure, metrics: Mapping[str, Metric], threshold: float) -> None:
        super().__init__(measure, metrics)
        self._threshold = threshold
        self._rows: dict[tuple[int, int], list[Comparison]] = {}

    def is_tight(self, cell: Cell, block: int) -> bool:
        """Whether the trials before `block` answer the question."""
        row = self.row(cell, block)
        return row is not None and row.verdict is not Change.UNKNOWN

    def half_width_before(self, cell: Cell, block: int) -> float | None:
        """How precisely the trials before `block` give the change."""
        row = self.row(cell, block)
        return None if row is None or row.low is None or row.high is None else (row.high - row.low) / 2

    def row(self, cell: Cell, block: int) -> Comparison | None:
        """What the trials before `block` say of the contest."""
        before = self._before(block)
        key = block, len(before)
        if key not in self._rows:
            self._rows[key] = pair_rows(before, threshold=self._threshold, alpha=self._alpha)
        metric = self._metrics[cell.id]
        return next((row for row in self._rows[key] if row.cell.id == cell.id and row.metric == metric), None)


class EndsTally(_ContestTally):
    """Which end is the candidate like?"""

    def is_tight(self, cell: Cell, block: int) -> bool:
        """Whether the trials before `block` answer the question."""
        return self._likeness(cell, block).like is not Like.UNCLEAR

    def half_width_before(self, cell: Cell, block: int) -> float | None:
        """How precisely the trials before `block` give the candidate's place."""
        found = self._likeness(cell, block)
        return None if found.low is None or found.high is None else (found.high - found.low) / 2

    def _likeness(self, cell: Cell, block: int) -> Likeness:
        own = [trial for trial in self._before(block) if trial.cell.id == cell.id]
        return likeness(end_logs(own, self._metrics[cell.id]), alpha=self._alpha)
