"""Whether more threads pay: a verdict at each load, and the answer over all loads of a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from orchestrator.analysis.contrast import IDLE, MARGIN, Contrast, Sweep, place_as_json
from orchestrator.analysis.estimate import METRICS, Metric, quantile
from orchestrator.analysis.randomisation import BLOCKS_MIN, MAD_TO_SD
from orchestrator.trial import Cell

BLOCKS_WORTH_PLANNING = 1000
"""Nobody measures more blocks than this: a verdict that needs more is too close to the margin to be had."""
BLOCKS_ADVISED = 8
_POWER_FACTOR = 12.5
"""(2.05 + 1.28)², and an eighth more for a score that is no mean: the blocks, in units of (sd / distance)², that
decide nine times in ten."""


class Verdict(StrEnum):
    """How N threads do against the base at one load."""

    WINS = "wins"
    LOSES = "loses"
    SAME = "same"
    UNDECIDED = "undecided"


class Answer(StrEnum):
    """Whether N threads beat the base when idle and lose to it under some load."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Crossover:
    """The verdict on N threads at one load, for one metric.

    `blocks_needed` is about how many more blocks decide it: 0 when decided, None when no plan would reach it.
    """

    contrast: Contrast
    verdict: Verdict
    blocks_needed: int | None

    @property
    def speedup(self) -> float | None:
        return self.contrast.ratio.inverse.value

    def as_json(self) -> dict[str, Any]:
        return self.contrast.as_json(self.contrast.ratio) | {
            "base_threads": self.contrast.base.threads,
            "verdict": str(self.verdict),
            "blocks_needed": self.blocks_needed,
        }


@dataclass(frozen=True)
class MetricAnswer:
    """The answer by one metric, as a sentence too."""

    answer: Answer
    text: str
    loads_lost: tuple[str, ...] = ()
    loads_undecided: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "answer": str(self.answer),
            "text": self.text,
            "loads_lost": list(self.loads_lost),
            "loads_undecided": list(self.loads_undecided),
        }


@dataclass(frozen=True)
class CrossoverAnswer:
    """Do N threads beat the base when idle, and lose to it under some load? p50 answers, the others comment.

    `threads` is None where only one thread count was swept.
    """

    cell: Cell
    arm: str | None
    base_threads: int
    threads: int | None
    by_metric: Mapping[Metric, MetricAnswer]

    @property
    def answer(self) -> Answer:
        return self.by_metric["p50"].answer

    @property
    def loads_lost(self) -> tuple[str, ...]:
        return self.by_metric["p50"].loads_lost

    @property
    def text(self) -> str:
        """The sentence by p50, and where the other metrics see a loss that p50 does not: under load they do."""
        others = []
        for metric, found in self.by_metric.items():
            more = [load for load in found.loads_lost if load not in self.loads_lost]
            if more:
                others.append(f"by {metric} they lose under {', '.join(more)}")
            elif found.answer not in {self.answer, Answer.UNKNOWN}:
                others.append(f"by {metric} the answer is {found.answer}")
        return "; ".join([self.by_metric["p50"].text, *others])

    def as_json(self) -> dict[str, Any]:
        return place_as_json(self.cell, self.arm) | {
            "threads": self.threads,
            "base_threads": self.base_threads,
            "answer": str(self.answer),
            "text": self.text,
            "loads_lost": list(self.loads_lost),
            "by_metric": {metric: found.as_json() for metric, found in self.by_metric.items()},
        }


def crossover(contrast: Contrast) -> Crossover:
    """The verdict on one contrast of thread counts: never definite without an interval, so below 6 blocks."""
    low, high = contrast.ratio.low, contrast.ratio.high
    if low is None or high is None:
        return Crossover(contrast, Verdict.UNDECIDED, max(BLOCKS_ADVISED - contrast.ratio.n, 1))
    if low > 1 + MARGIN:
        return Crossover(contrast, Verdict.LOSES, 0)
    if high < 1 - MARGIN:
        return Crossover(contrast, Verdict.WINS, 0)
    if low > 1 - MARGIN and high < 1 + MARGIN:
        return Crossover(contrast, Verdict.SAME, 0)
    return Crossover(contrast, Verdict.UNDECIDED, _blocks_needed(contrast))


def _blocks_needed(contrast: Contrast) -> int | None:
    """About how many more blocks bring the interval to one side of the margins, if the estimate stays."""
    ratio = contrast.ratio
    assert ratio.value and ratio.low and ratio.high, "an undecided contrast with an interval"
    value, low, high = math.log(ratio.value), math.log(ratio.low), math.log(ratio.high)
    lower, upper = math.log1p(-MARGIN), math.log1p(MARGIN)
    if value > upper:
        gaps = [(value - low, value - upper)]
    elif value < lower:
        gaps = [(high - value, lower - value)]
    else:
        gaps = [(value - low, value - lower), (high - value, upper - value)]
    nearest = min(gap for _, gap in gaps)
    if nearest <= 0:
        return None
    deviations = np.sort(np.abs(np.log(contrast.by_block) - value))
    spread = MAD_TO_SD * quantile(deviations, 0.5)
    needed = max(
        BLOCKS_ADVISED,
        2 + _POWER_FACTOR * (spread / nearest) ** 2,
        *(ratio.n * (width / gap) ** 2 for width, gap in gaps),
    )
    return None if needed > BLOCKS_WORTH_PLANNING else max(math.ceil(needed) - ratio.n, 1)


def answers(sweeps: Sequence[Sweep], crossovers: Sequence[Crossover]) -> list[CrossoverAnswer]:
    """One answer for each sweep and each thread count above its base."""
    found = {
        (crossover.contrast.cell, crossover.contrast.arm, crossover.contrast.metric): crossover
        for crossover in crossovers
    }
    return [answer for sweep in sweeps for answer in _answers_of(sweep, found)]


def _answers_of(sweep: Sweep, found: Mapping[tuple[Cell, str | None, Metric], Crossover]) -> Iterator[CrossoverAnswer]:
    if not sweep.more_threads:
        text = f"unknown whether more threads pay: only one thread count ({sweep.base_threads}) was swept"
        unknown = dict.fromkeys(METRICS, MetricAnswer(Answer.UNKNOWN, text))
        yield CrossoverAnswer(sweep.any_cell, sweep.arm, sweep.base_threads, None, unknown)
    for threads in sweep.more_threads:
        by_metric: dict[Metric, MetricAnswer] = {}
        for metric in METRICS:
            at_load = {
                load: found[estimate.cell, sweep.arm, metric]
                for load in sweep.loads
                if (estimate := sweep.cells.get((threads, load))) and (estimate.cell, sweep.arm, metric) in found
            }
            question = _Question(threads, sweep.base_threads, metric, tuple(sweep.loads), at_load)
            by_metric[metric] = question.answered()
        yield CrossoverAnswer(sweep.any_cell, sweep.arm, sweep.base_threads, threads, by_metric)


@dataclass(frozen=True)
class _Question:
    """What is known of one thread count and one metric; `at_load` lacks the loads without a base."""

    threads: int
    base_threads: int
    metric: Metric
    loads: tuple[str, ...]
    at_load: Mapping[str, Crossover]

    def answered(self) -> MetricAnswer:
        busy = [load for load in self.loads if load != IDLE]
        lost = tuple(load for load in busy if self._verdict(load) is Verdict.LOSES)
        undecided = tuple(load for load in self.loads if self._verdict(load) is Verdict.UNDECIDED)
        if IDLE not in self.loads:
            return self._unknown("idle was not swept", lost, undecided)
        if not busy:
            return self._unknown("no load besides idle was swept", lost, undecided)
        idle = self._verdict(IDLE)
        if idle in {Verdict.LOSES, Verdict.SAME}:
            text = f"{self._subject} not faster than {self._base} when idle: {self._speed(IDLE)}"
            return self._answer(Answer.NO, text, lost, undecided)
        if idle is Verdict.WINS and lost:
            under = ", ".join(f"{self._speed(load)} under {load}" for load in lost)
            text = f"{self._subject} {self._speed(IDLE)} as fast as {self._base} when idle and {under}"
            return self._answer(Answer.YES, text, lost, undecided)
        if not lost and not set(undecided) - {IDLE}:
            return self._answer(Answer.NO, self._never_lost(busy), lost, undecided)
        reason = ", ".join(self._doubt(load) for load in undecided if lost == () or load == IDLE)
        return self._unknown(reason, lost, undecided)

    def _never_lost(self, busy: Sequence[str]) -> str:
        worst = min(busy, key=lambda load: self.at_load[load].speedup or math.inf)
        under = f"lose under no load swept: at worst {self._speed(worst)} under {worst}"
        if self._verdict(IDLE) is Verdict.WINS:
            return f"{self._subject} {self._speed(IDLE)} as fast as {self._base} when idle and {under}"
        return f"against {self._base}, {self.threads} threads {under}; {self._doubt(IDLE)}"

    @property
    def _subject(self) -> str:
        return f"{self.threads} threads are"

    @property
    def _base(self) -> str:
        return _threads(self.base_threads)

    def _verdict(self, load: str) -> Verdict:
        return self.at_load[load].verdict if load in self.at_load else Verdict.UNDECIDED

    def _speed(self, load: str) -> str:
        speedup = self.at_load[load].speedup
        return "unmeasured" if speedup is None else f"{speedup:.2f}x"

    def _doubt(self, load: str) -> str:
        where = "when idle" if load == IDLE else f"under {load}"
        if load not in self.at_load:
            return f"undecided {where} (not swept for both thread counts)"
        crossover = self.at_load[load]
        n = crossover.contrast.ratio.n
        if n < BLOCKS_MIN:
            return f"undecided {where} ({n} paired blocks, at least {BLOCKS_MIN} are needed)"
        if crossover.blocks_needed is None:
            return f"undecided {where} ({self._speed(load)}, too close to the margin to be settled)"
        return f"undecided {where} ({self._speed(load)}, about {crossover.blocks_needed} more blocks)"

    def _unknown(self, reason: str, lost: tuple[str, ...], undecided: tuple[str, ...]) -> MetricAnswer:
        question = f"{self.threads} threads beat {self._base} when idle and lose under load"
        text = f"unknown whether {question}: {reason}"
        return self._answer(Answer.UNKNOWN, text, lost, undecided)

    def _answer(self, answer: Answer, text: str, lost: tuple[str, ...], undecided: tuple[str, ...]) -> MetricAnswer:
        return MetricAnswer(answer, f"{text} ({self.metric})", lost, undecided)


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"
