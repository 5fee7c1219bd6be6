"""What has been measured of a duel so far on one device, and which of its questions are answered. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.analysis.comparison import Change, Comparison
from orchestrator.analysis.duels import pair_rows
from orchestrator.analysis.estimate import Metric
from orchestrator.analysis.reduction import Reduced, reduced
from orchestrator.plan import Measure
from orchestrator.schedule import look_level
from orchestrator.tally import Tally
from orchestrator.trial import Cell, Trial


class DuelTally(Tally):
    """A contest is known well enough when its question is answered at a look, however wide its latencies are."""

    def __init__(self, measure: Measure, threshold: float, metrics: Mapping[str, Metric]) -> None:
        """`metrics` says by which one each contest is decided, by the id of its cell."""
        super().__init__(measure)
        self._threshold = threshold
        self._metrics = metrics
        self._alpha = 1 - look_level(measure)
        self._seen: list[Reduced] = []
        self._rows: dict[tuple[int, int], list[Comparison]] = {}

    def add(self, trial: Trial) -> None:
        super().add(trial)
        self._seen += reduced([trial])

    def is_tight(self, cell: Cell, block: int) -> bool:
        """Whether the trials before `block` answer the question."""
        row = self._row(cell, block)
        return row is not None and row.verdict is not Change.UNKNOWN

    def half_width_before(self, cell: Cell, block: int) -> float | None:
        """How precisely the trials before `block` give the change."""
        row = self._row(cell, block)
        return None if row is None or row.low is None or row.high is None else (row.high - row.low) / 2

    def _row(self, cell: Cell, block: int) -> Comparison | None:
        before = [trial for trial in self._seen if trial.block < block]
        key = block, len(before)
        if key not in self._rows:
            self._rows[key] = pair_rows(before, threshold=self._threshold, alpha=self._alpha)
        metric = self._metrics[cell.id]
        return next((row for row in self._rows[key] if row.cell.id == cell.id and row.metric == metric), None)
