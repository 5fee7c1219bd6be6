"""What has been measured so far on one device: counts, latencies and durations by cell. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis.estimate import estimate, trial_latency_us, widened
from orchestrator.grid import trial_estimate_s
from orchestrator.plan import Measure
from orchestrator.trial import Cell, Outcome, Slot, Trial

_FAILURES_IN_A_ROW_MAX = 2


class Tally:
    """Counts trials as they come in, those of earlier sessions of the run included."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._latencies: dict[str, list[tuple[int, float]]] = {}
        self._slots: set[tuple[str, int, str | None]] = set()
        self._failures: dict[str, int] = {}
        self._durations_s: dict[str, list[float]] = {}
        self._given_up: dict[str, tuple[int, str]] = {}
        self._waited_s = 0.0
        self.measured = 0

    def add(self, trial: Trial) -> None:
        cell_id = trial.cell.id
        self._slots.add((cell_id, trial.slot.block, trial.slot.arm))
        if trial.duration_s:
            self._durations_s.setdefault(cell_id, []).append(trial.duration_s)
        self._waited_s += trial.waited_s
        if trial.outcome != Outcome.FAILED:
            self._failures[cell_id] = 0
        if trial.outcome == Outcome.MEASURED:
            self.measured += 1
            latency_us = trial_latency_us(trial, "p50")
            if latency_us is not None:
                self._latencies.setdefault(cell_id, []).append((trial.slot.block, latency_us))
        if trial.outcome == Outcome.FAILED:
            self._failures[cell_id] = self._failures.get(cell_id, 0) + 1
            self._judge_hope(trial)

    def _judge_hope(self, trial: Trial) -> None:
        if trial.evidence.get("permanent"):
            why = f"given up, another try cannot help: {trial.reason}"
        elif self._failures[trial.cell.id] >= _FAILURES_IN_A_ROW_MAX:
            why = f"given up after {_FAILURES_IN_A_ROW_MAX} failures in a row: {trial.reason}"
        else:
            return
        self._given_up.setdefault(trial.cell.id, (trial.slot.block, why))

    def given_up(self, cell: Cell) -> str | None:
        """Why the cell will not be tried again; None as long as it will."""
        return self._given_up[cell.id][1] if cell.id in self._given_up else None

    def is_given_up_before(self, cell: Cell, block: int) -> bool:
        """Whether that was known when the block began."""
        return cell.id in self._given_up and self._given_up[cell.id][0] < block

    def has(self, slot: Slot) -> bool:
        return (slot.cell.id, slot.block, slot.arm) in self._slots

    def measured_before(self, cell: Cell, block: int) -> int:
        return sum(1 for at, _ in self._latencies.get(cell.id, ()) if at < block)

    def is_tight(self, cell: Cell, block: int) -> bool:
        """Whether the trials before `block` give an interval as narrow as the plan wants."""
        by_block = {("", "", at): latency_us for at, latency_us in self._latencies.get(cell.id, ()) if at < block}
        half_width = widened(estimate(list(by_block.values())), by_block).half_width
        return half_width is not None and half_width <= self._measure.precision

    def is_complete(self, cell: Cell) -> bool:
        return len(self._latencies.get(cell.id, ())) >= self._measure.blocks_min

    @property
    def used_s(self) -> float:
        """Device time spent on trials, and on waiting for them."""
        return self._waited_s + sum(sum(durations) for durations in self._durations_s.values())

    def expected_s(self, cell: Cell) -> float:
        """How long the cell's next trial will take: as long as its trials took so far."""
        durations = self._durations_s.get(cell.id)
        return sum(durations) / len(durations) if durations else trial_estimate_s(cell, self._measure)

    def slots_left(self, cells: Sequence[Cell]) -> tuple[int, float]:
        """How many trials, and how many seconds, until every cell has its least number of trials."""
        count, seconds = 0, 0.0
        for cell in cells:
            if self.given_up(cell):
                continue
            missing = max(0, self._measure.blocks_min - len(self._latencies.get(cell.id, ())))
            count += missing
            seconds += missing * self.expected_s(cell)
        return count, seconds

    @property
    def trials(self) -> int:
        return len(self._slots)
