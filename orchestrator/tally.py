"""What has been measured so far on one device: counts, latencies and durations by cell. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.analysis.estimate import estimate, trial_latency_us, widened
from orchestrator.grid import trial_estimate_s
from orchestrator.plan import Measure
from orchestrator.schedule import look_level
from orchestrator.trial import Cell, Outcome, Pass, Slot, Trial

ATTEMPT = 100_000
"""The blocks of one attempt at a sustained cell are numbered from a multiple of this."""
_FAILURES_IN_A_ROW_MAX = 2


class Tally:
    """Counts trials as they come in, those of earlier sessions of the run included."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._arms: tuple[str | None, ...] = measure.arms or (None,)
        self._latencies: dict[tuple[str, str | None], list[tuple[int, float]]] = {}
        self._slots: set[tuple[str, int, str | None]] = set()
        self._failures: dict[str, int] = {}
        self._durations_s: dict[str, list[tuple[int, float]]] = {}
        self._given_up: dict[str, tuple[int, str]] = {}
        self._waits_s: list[tuple[int, float]] = []
        self.measured = 0

    def add(self, trial: Trial) -> None:
        cell_id, block = trial.cell.id, trial.slot.block
        self._slots.add((cell_id, block, trial.slot.arm))
        if trial.duration_s:
            self._durations_s.setdefault(cell_id, []).append((block, trial.duration_s))
        self._waits_s.append((block, trial.waited_s))
        if trial.outcome != Outcome.FAILED:
            self._failures[cell_id] = 0
        if trial.outcome == Outcome.MEASURED:
            self.measured += 1
            latency_us = trial_latency_us(trial, "p50")
            if latency_us is not None:
                self._latencies.setdefault((cell_id, trial.slot.arm), []).append((block, latency_us))
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

    # How well it is known

    def measured_before(self, cell: Cell, block: int) -> int:
        """How many trials of the cell count, in the arm that has the fewest."""
        return min(sum(1 for at, _ in self._latencies.get((cell.id, arm), ()) if at < block) for arm in self._arms)

    def half_width_before(self, cell: Cell, block: int) -> float | None:
        """How precisely the trials before `block` give the latency, with room for looking several times."""
        level, widths = look_level(self._measure), []
        for arm in self._arms:
            found = self._latencies.get((cell.id, arm), ())
            by_block = {("", "", at): latency_us for at, latency_us in found if at < block}
            widths.append(widened(estimate(list(by_block.values()), level=level), by_block).half_width)
        known = [width for width in widths if width is not None]
        return max(known) if len(known) == len(widths) else None

    def is_tight(self, cell: Cell, block: int) -> bool:
        """Whether the trials before `block` give an interval as narrow as the plan wants."""
        half_width = self.half_width_before(cell, block)
        return half_width is not None and half_width <= self._measure.precision

    def is_complete(self, cell: Cell) -> bool:
        if self._measure.sustain_s:
            return self.sustained_s(cell) >= self._measure.sustain_s
        return self._least(cell) >= self._measure.blocks_min

    def _least(self, cell: Cell) -> int:
        return min(len(self._latencies.get((cell.id, arm), ())) for arm in self._arms)

    def missing(self, cell: Cell) -> Iterator[Slot]:
        """The slots that a cell still lacks of its least number."""
        if self._measure.sustain_s:
            yield Slot(cell, self.next_attempt(cell), 0, purpose=Pass.SUSTAIN)
            return
        for block in range(self._measure.blocks_min):
            for arm in self._arms:
                if not self.has(slot := Slot(cell, block, 0, arm)):
                    yield slot

    # Sustained runs: a cell that was interrupted begins anew, with blocks of the next attempt

    def next_attempt(self, cell: Cell) -> int:
        """The first block of the cell's next attempt."""
        last = max((block for cell_id, block, _ in self._slots if cell_id == cell.id), default=-1)
        return (last // ATTEMPT + 1) * ATTEMPT

    def sustained_s(self, cell: Cell) -> float:
        """How long the cell ran back to back in its last attempt."""
        start = self.next_attempt(cell) - ATTEMPT
        return sum(seconds for block, seconds in self._durations_s.get(cell.id, ()) if block >= start)

    # Time

    @property
    def used_s(self) -> float:
        """Device time spent on trials, and on waiting for them."""
        return self.used_before_s(None)

    def used_before_s(self, block: int | None) -> float:
        """The same for the trials of earlier blocks."""
        spent = [*self._waits_s, *(pair for pairs in self._durations_s.values() for pair in pairs)]
        return sum(seconds for at, seconds in spent if block is None or at < block)

    def expected_s(self, cell: Cell) -> float:
        """How long the cell's next trial will take: as long as its trials took so far."""
        return self._expected_s(cell, None)

    def block_s(self, cell: Cell, block: int) -> float:
        """How long a block takes the cell, going by the trials of earlier ones."""
        return len(self._arms) * self._expected_s(cell, block)

    def _expected_s(self, cell: Cell, block: int | None) -> float:
        seconds = [s for at, s in self._durations_s.get(cell.id, ()) if block is None or at < block]
        return sum(seconds) / len(seconds) if seconds else trial_estimate_s(cell, self._measure)

    def slots_left(self, cells: Sequence[Cell]) -> tuple[int, float]:
        """How many trials, and how many seconds, until every cell has its least number of trials."""
        count, seconds = 0, 0.0
        for cell in cells:
            if self.given_up(cell):
                continue
            missing = self._missing_count(cell)
            count += missing
            seconds += missing * self.expected_s(cell)
        return count, seconds

    def _missing_count(self, cell: Cell) -> int:
        if self._measure.sustain_s:
            return round(max(0.0, self._measure.sustain_s - self.sustained_s(cell)) / self.expected_s(cell))
        return len(self._arms) * max(0, self._measure.blocks_min - self._least(cell))

    @property
    def trials(self) -> int:
        return len(self._slots)
