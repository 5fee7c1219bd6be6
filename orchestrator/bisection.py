"""The search for what brought a regression: from one decision to the next, until one item is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from orchestrator.analysis.bisection import Standing, bounds, next_index
from orchestrator.errors import UsageError

ENDS, STEP, CONFIRM = "ends", "step", "confirm"
ATTEMPTS = 2
"""An unclear step is done once more, with twice as many blocks."""


class BudgetSpent(Exception):
    """No device time is left for another decision."""


class Result(StrEnum):
    """How a search ended."""

    FOUND = "found"
    SEVERAL = "several"
    """It is one of those between the last good and the first bad, which could not be judged."""
    NO_DIFFERENCE = "no_difference"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Step:
    """One decision and what it rests on. Effects are in percent, over `against`."""

    purpose: str
    index: int
    attempt: int
    standing: Standing
    against: int
    run: str | None = None
    blocks: int = 0
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    looks: int = 1
    is_faster: bool = False
    is_beyond: bool = False
    """It lies so far outside both ends that they are not its measure."""
    note: str | None = None
    used_s: float = 0.0

    @property
    def doubt(self) -> float:
        """How often, at the most, chance alone would have decided so; none where nothing was left to chance."""
        return 0.0 if self.p is None else min(1.0, self.p * self.looks)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"standing": str(self.standing)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Step:
        known = {key: content[key] for key in cls.__dataclass_fields__}
        return cls(**known | {"standing": Standing(content["standing"])})


class Referee(Protocol):
    """Judges items; what it once judged it remembers."""

    def digest(self, index: int) -> str | None:
        """What the item's content is known by; None where the item cannot be had."""

    def trouble(self, index: int) -> str:
        """Why it cannot be had."""

    def pair(self, purpose: str, good: int, bad: int, attempt: int) -> Step:
        """Is one slower than the other? BudgetSpent where that can no longer be found out."""

    def between(self, index: int, attempt: int) -> Step:
        """Is one like the first, or like the last?"""


@dataclass(frozen=True)
class Ended:
    """What came of a search: `suspects` holds the first bad one, or all that may be it."""

    result: Result
    reason: str = ""
    suspects: tuple[int, ...] = ()
    last_good: int | None = None
    change: Step | None = None
    """The first bad one against the last good one."""
    steps: tuple[Step, ...] = ()
    skipped: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    is_spent: bool = False
    """More device time would get it further."""

    @property
    def sure(self) -> float:
        """How sure it is at the least, all decisions together, if the change came in one place."""
        return max(0.0, 1.0 - sum(step.doubt for step in self.steps if step.standing is not Standing.UNCLEAR))


class Bisection:
    """One search over an ordered list whose first is good and whose last is bad."""

    def __init__(self, names: Sequence[str], referee: Referee) -> None:
        self._names = names
        self._referee = referee
        self._steps: list[Step] = []
        self._notes: list[str] = []
        self._known: dict[int, Standing] = {}
        self._skipped: dict[int, str] = {}

    def run(self) -> Ended:
        """Search until one is left, or nothing more can be said."""
        last = len(self._names) - 1
        try:
            ended = self._compare_ends(last)
            if ended is None:
                self._known = {0: Standing.GOOD, last: Standing.BAD}
                while (index := next_index(self._known)) is not None:
                    self._known[index] = self._standing(index)
                ended = self._concluded()
        except BudgetSpent:
            ended = replace(self._left_over(), is_spent=True)
        return ended

    def _ended(
        self,
        result: Result,
        reason: str = "",
        *,
        suspects: tuple[int, ...] = (),
        last_good: int | None = None,
        change: Step | None = None,
    ) -> Ended:
        return Ended(
            result, reason, suspects, last_good, change, tuple(self._steps), dict(self._skipped), tuple(self._notes)
        )

    def _left_over(self) -> Ended:
        """What is known when the budget is spent."""
        if not self._known:
            return self._ended(Result.UNKNOWN, "the budget was spent before both ends were told apart")
        good, bad = bounds(self._known)
        suspects = tuple(range(good + 1, bad + 1))
        return self._ended(Result.UNKNOWN, "the budget is spent", suspects=suspects, last_good=good)

    def _compare_ends(self, last: int) -> Ended | None:
        """None when the last is slower than the first, as it must be."""
        for index in (0, last):
            if self._referee.digest(index) is None:
                raise UsageError(
                    f"{self._names[index]} is an end, and cannot be had: {self._referee.trouble(index)}",
                    remedy="begin and end with one that can be had",
                )
        if self._referee.digest(0) == self._referee.digest(last):
            return self._ended(Result.NO_DIFFERENCE, "the first and the last are the very same bytes")
        found = self._pair(ENDS, 0, last)
        if found.standing is Standing.BAD:
            return None
        if found.standing is Standing.GOOD:
            reason = "the last is not slower than the first"
            if found.is_faster:
                reason = "the last is faster than the first: list them the other way round to find what made it so"
            return self._ended(Result.NO_DIFFERENCE, reason)
        return self._ended(Result.UNKNOWN, "whether the last is slower than the first could not be decided")

    def _pair(self, purpose: str, good: int, bad: int) -> Step:
        for attempt in range(ATTEMPTS):
            self._steps.append(found := self._referee.pair(purpose, good, bad, attempt))
            if found.standing is not Standing.UNCLEAR:
                break
        return found

    def _standing(self, index: int) -> Standing:
        digest = self._referee.digest(index)
        if digest is None:
            self._skipped[index] = self._referee.trouble(index)
            return Standing.SKIPPED
        for other, standing in self._known.items():
            if standing in (Standing.GOOD, Standing.BAD) and self._referee.digest(other) == digest:
                note = f"the same bytes as {self._names[other]}"
                self._steps.append(Step(STEP, index, 0, standing, other, note=note))
                return standing
        for attempt in range(ATTEMPTS):
            self._steps.append(found := self._referee.between(index, attempt))
            if found.standing is not Standing.UNCLEAR:
                break
        if found.standing is Standing.SKIPPED:
            self._skipped[index] = found.note or "it could not be measured"
        if found.is_beyond:
            self._notes.append(
                f"{self._names[index]} lies far outside both ends ({found.effect:+.1f} % against the first): the list "
                "has more than one change in it"
            )
        return found.standing

    def _concluded(self) -> Ended:
        """Nothing is left to try between the bounds: those two are held against each other, unless they are the ends
        and were."""
        good, bad = bounds(self._known)
        ends = next(step for step in self._steps if step.purpose == ENDS and step.standing is Standing.BAD)
        change = ends if (good, bad) == (0, len(self._names) - 1) else self._pair(CONFIRM, good, bad)
        suspects = tuple(range(good + 1, bad + 1))
        self._note_unclear(suspects)
        if change.standing is not Standing.BAD:
            reason = "held against each other, the last good and the first bad do not differ for certain"
            return self._ended(Result.UNKNOWN, reason, suspects=suspects, last_good=good, change=change)
        if change.high is not None and ends.low is not None and change.high < ends.low:
            self._notes.append(
                f"the ends differ by {ends.effect:+.1f} % and these two by {change.effect:+.1f} %: there is another "
                "change in the list"
            )
        result = Result.FOUND if len(suspects) == 1 else Result.SEVERAL
        reason = "" if len(suspects) == 1 else "those before the first bad could not be judged"
        return self._ended(result, reason, suspects=suspects, last_good=good, change=change)

    def _note_unclear(self, suspects: Sequence[int]) -> None:
        for index in suspects:
            if self._known.get(index) is Standing.UNCLEAR:
                step = next(step for step in reversed(self._steps) if step.index == index)
                place = "" if step.effect is None else f" ({step.effect:+.1f} % against the first)"
                self._notes.append(
                    f"{self._names[index]} is like neither end{place}: the change may have come in parts"
                )
