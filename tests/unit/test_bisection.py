"""The search for the first bad one, with a referee whose blocks are simulated."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.bisection import Standing, next_index, steps_left
from orchestrator.analysis.comparison import percent
from orchestrator.analysis.ends import Like, likeness
from orchestrator.analysis.randomisation import centre
from orchestrator.bisection import CONFIRM, ENDS, STEP, Bisection, BudgetSpent, Ended, Result, Step
from orchestrator.errors import UsageError

LOOKS = (8, 12, 18, 27, 40)
ALPHA = 0.0158


class SimulatedReferee:
    """Items of known speed on a noisy device: looks at 8, 12, 18, 27 and 40 blocks, as on a real one."""

    def __init__(self, speeds: list[float], seed: int, *, sd: float = 0.015, missing: tuple[int, ...] = ()) -> None:
        self.logs = [math.log(speed) for speed in speeds]
        self.rng = np.random.default_rng(seed)
        self.sd = sd
        self.missing = missing
        self.asked: list[tuple[str, int]] = []
        self.decisions_left = 1000

    def digest(self, index: int) -> str | None:
        return None if index in self.missing else f"bytes {index}"

    def trouble(self, index: int) -> str:
        return "make ended with 2"

    def _blocks(self, count: int, *indices: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        shape = count, len(indices)
        wild = (self.rng.random(shape) < 0.08) * self.rng.normal(0, 0.2, shape)
        noise: np.ndarray[tuple[int, int], np.dtype[np.float64]] = self.rng.normal(0, self.sd, shape) + wild
        return noise + np.array([self.logs[index] for index in indices])

    def _spend(self, purpose: str, index: int) -> None:
        self.asked.append((purpose, index))
        self.decisions_left -= 1
        if self.decisions_left < 0:
            raise BudgetSpent

    def pair(self, purpose: str, good: int, bad: int, attempt: int) -> Step:
        self._spend(purpose, bad)
        logs, edge = self._blocks(40, good, bad), math.log1p(0.03)
        found = Step(purpose, bad, attempt, Standing.UNCLEAR, good)
        for count in LOOKS:
            seen = centre((logs[:, 1] - logs[:, 0])[:count], level=1 - ALPHA, probes=(-edge, 0.0, edge))
            assert seen.low is not None and seen.high is not None
            found = replace(
                found, effect=percent(seen.location), low=percent(seen.low), high=percent(seen.high), p=0.001
            )
            if seen.low > 0 and seen.location >= edge:
                return replace(found, standing=Standing.BAD)
            if seen.high < 0 and seen.location <= -edge:
                return replace(found, standing=Standing.GOOD, is_faster=True)
            if -edge < seen.low <= seen.high < edge:
                return replace(found, standing=Standing.GOOD)
        return found

    def between(self, index: int, attempt: int) -> Step:
        self._spend(STEP, index)
        logs = self._blocks(40, 0, len(self.logs) - 1, index)
        for count in LOOKS:
            found = likeness(logs[:count], alpha=ALPHA)
            if found.like is not Like.UNCLEAR:
                break
        standing = Standing.UNCLEAR if found.like is Like.UNCLEAR else Standing(str(found.like))
        return Step(
            STEP, index, attempt, standing, 0, effect=percent(found.effect), p=found.p, is_beyond=found.is_beyond
        )


def search(referee: SimulatedReferee) -> Ended:
    return Bisection([f"v{index:02d}" for index in range(len(referee.logs))], referee).run()


def one_change(at: int, slowdown: float = 1.05, count: int = 16) -> list[float]:
    return [slowdown if index >= at else 1.0 for index in range(count)]


def test_the_first_bad_of_sixteen_is_found_under_noise() -> None:
    """40 searches for +5 % at 1.5 % noise and wild blocks: the right one, or an honest `unknown`."""
    rng = np.random.default_rng(1)
    wrong = right = 0
    for seed in range(40):
        at = int(rng.integers(1, 16))
        ended = search(SimulatedReferee(one_change(at), seed))
        right += ended.result is Result.FOUND and ended.suspects == (at,)
        wrong += ended.result is Result.FOUND and ended.suspects != (at,)
    assert right >= 37
    assert wrong <= 1


def test_ends_that_do_not_differ_end_the_search() -> None:
    """Nothing between them is tried."""
    referee = SimulatedReferee([1.0] * 16, 2)
    ended = search(referee)
    assert (ended.result, ended.reason) == (Result.NO_DIFFERENCE, "the last is not slower than the first")
    assert referee.asked == [(ENDS, 15)]


def test_a_list_the_wrong_way_round_is_said_to_be() -> None:
    """The last is faster."""
    ended = search(SimulatedReferee(one_change(5)[::-1], 3))
    assert ended.result is Result.NO_DIFFERENCE and "faster" in ended.reason


def test_ends_of_the_same_bytes_are_not_measured() -> None:
    """There is nothing to find between them."""
    referee = SimulatedReferee(one_change(5), 3)
    referee.digest = lambda index: "same"  # type: ignore[method-assign]  # as if all were one file
    assert "very same bytes" in search(referee).reason
    assert referee.asked == []


def test_the_same_bytes_need_no_second_decision() -> None:
    """A revision that changes nothing in the build is like the one before."""
    referee = SimulatedReferee(one_change(8, 1.2), 4, sd=0.005)
    referee.digest = lambda index: "old" if index < 8 else "new" if index < 15 else "last"  # type: ignore[method-assign]  # three builds in all
    ended = search(referee)
    assert ended.suspects == (8,)
    assert [step.note for step in ended.steps if step.note] == [
        f"the same bytes as v{old}" for old in ("00", "11", "11")
    ]
    assert referee.asked == [(ENDS, 15), (STEP, 11), (CONFIRM, 8)]


def test_what_cannot_be_built_is_passed_over() -> None:
    """Its neighbours are tried; where it is in the way, the answer names all that may be it."""
    ended = search(SimulatedReferee(one_change(12, 1.2), 5, missing=(7,)))
    assert (ended.result, ended.suspects) == (Result.FOUND, (12,))
    assert ended.skipped == {7: "make ended with 2"}
    ended = search(SimulatedReferee(one_change(8, 1.2), 5, missing=(7, 8)))
    assert (ended.result, ended.suspects) == (Result.SEVERAL, (7, 8, 9))


@pytest.mark.parametrize("end", [0, 15])
def test_an_end_that_cannot_be_built_is_refused(end: int) -> None:
    """The search needs both."""
    with pytest.raises(UsageError, match="is an end, and cannot be had: make ended with 2"):
        search(SimulatedReferee(one_change(8), 6, missing=(end,)))


def test_a_change_in_parts_is_noticed() -> None:
    """Half of it came at 4 and half at 12: nobody calls one of them the only cause."""
    speeds = [1.0] * 4 + [1.05] * 8 + [1.1025] * 4
    for seed in range(3):
        ended = search(SimulatedReferee(speeds, seed, sd=0.005))
        assert ended.notes, ended
        assert ended.result is not Result.NO_DIFFERENCE


def test_one_that_lies_far_outside_both_ends_is_named() -> None:
    """A list that is not of one piece."""
    speeds = one_change(12)
    speeds[7] = 1.5
    assert any("v07 lies far outside both ends" in note for note in search(SimulatedReferee(speeds, 7, sd=0.005)).notes)


def test_a_spent_budget_leaves_what_is_known() -> None:
    """The suspects are narrowed as far as it went."""
    referee = SimulatedReferee(one_change(12, 1.2), 8, sd=0.005)
    referee.decisions_left = 3
    ended = search(referee)
    assert (ended.result, ended.last_good, ended.suspects) == (Result.UNKNOWN, 11, (12, 13, 14, 15))
    referee = SimulatedReferee(one_change(12, 1.2), 8)
    referee.decisions_left = 0
    nothing = search(referee)
    assert nothing.is_spent and nothing.suspects == ()


def test_how_sure_it_is_comes_from_every_decision() -> None:
    """Doubts add up; a decision without a test has none, and looking often counts."""
    steps = (
        Step(ENDS, 1, 0, Standing.BAD, 0, p=0.001, looks=3),
        Step(STEP, 1, 0, Standing.GOOD, 0, p=0.01),
        Step(STEP, 1, 0, Standing.UNCLEAR, 0, p=0.4),
        Step(STEP, 1, 0, Standing.GOOD, 0),
    )
    assert Ended(Result.FOUND, steps=steps).sure == pytest.approx(0.987)
    assert Step.from_json(steps[0].as_json()) == steps[0]


def test_the_untried_one_nearest_to_the_middle_comes_next() -> None:
    """Skipped and unclear ones are stepped over, to either side."""
    known = {0: Standing.GOOD, 15: Standing.BAD}
    assert next_index(known) == 7
    assert next_index(known | {7: Standing.SKIPPED}) == 8
    assert next_index(known | {7: Standing.SKIPPED, 8: Standing.UNCLEAR}) == 6
    assert next_index({0: Standing.GOOD, 1: Standing.BAD, 15: Standing.BAD}) is None
    assert steps_left(known) == 4
