"""Waiting until a device is fit: by its limits and by its canary, with a cap, and never twice in vain."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import Any

import pytest

from orchestrator.analysis.waiting import waits
from orchestrator.clock import SystemClock
from orchestrator.cool_down import CoolDown, Look, Pace
from orchestrator.evidence_terms import Readiness
from orchestrator.fleet import Limits

from .trial_factory import make_cell, make_trial

NO_LIMITS = Limits()


class ScriptedClock(SystemClock):
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def monotonic_s(self) -> float:
        return sum(self.slept)

    def now(self) -> datetime.datetime:
        return super().now()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def breach(limits: Limits, state: Mapping[str, Any]) -> str | None:
    hottest = state.get("temperature_c", 0.0)
    return "too hot" if limits.temperature_c_max is not None and hottest > limits.temperature_c_max else None


class Waiter:
    """A cool-down over scripted looks; the last one repeats for ever."""

    def __init__(self, looks: Sequence[Look], *, limits: Limits = NO_LIMITS, cap_s: float = 60.0) -> None:
        self.clock = ScriptedClock()
        self.told: list[str] = []
        self._looks: Iterator[Look] = chain(looks, repeat(looks[-1]))
        self.pace = Pace()
        self._cool_down = CoolDown(
            lambda: next(self._looks), breach, limits=limits, slack=0.1, cap_s=cap_s, pace=self.pace, clock=self.clock
        )

    def wait(self, *, stopped_after: int = 1000) -> Readiness:
        left = iter(range(stopped_after))
        return self._cool_down.wait(lambda: next(left, None) is None, self.told.append)


def canaries(*paces: int) -> list[Look]:
    return [Look({}, pace) for pace in paces]


def degrees(*values: float) -> list[Look]:
    return [Look({"temperature_c": value}) for value in values]


def test_a_device_that_is_fit_is_not_waited_for() -> None:
    """One look, no sleep, nothing told."""
    waiter = Waiter(canaries(1000))
    found = waiter.wait()
    assert (found.waited_s, found.waited_for, waiter.clock.slept, waiter.told) == (0.0, None, [], [])
    assert found.slower_than_best == 0.0


def test_a_slow_canary_is_waited_for_until_it_is_back() -> None:
    """Beyond the slack it waits, and only half the slack ends the wait: 8 % longer is not back yet."""
    waiter = Waiter(canaries(1000, 1150, 1120, 1080, 1040))
    waiter.wait()
    found = waiter.wait()
    assert waiter.clock.slept == [1.0, 2.0, 4.0]
    assert (found.waited_s, found.canary_ns, found.canary_best_ns) == (7.0, 1040, 1000)
    assert found.waited_for == "a canary probe takes 15 % longer than before"
    assert waiter.told[-1] == "a canary probe takes 8 % longer than before"


def test_within_the_slack_nothing_is_waited_for() -> None:
    """A canary that wanders by a few percent is a canary."""
    waiter = Waiter(canaries(1000, 1090))
    waiter.wait()
    assert waiter.wait().waited_s == 0.0


def test_a_device_that_settles_at_a_lower_clock_is_waited_for_once() -> None:
    """At the cap its pace is the new level; that it is slower than at its best is still said, every time."""
    waiter = Waiter(canaries(1000, 1300), cap_s=20.0)
    waiter.wait()
    first, second = waiter.wait(), waiter.wait()
    assert (first.waited_s, second.waited_s) == (20.0, 0.0)
    assert second.slower_than_best == pytest.approx(0.3)


def test_a_device_that_recovers_after_a_wait_in_vain_has_its_old_level_again() -> None:
    """The level follows the best that was seen since."""
    waiter = Waiter([*canaries(1000), *[Look({}, 1300)] * 8, *canaries(1000, 1150, 1000)], cap_s=20.0)
    waiter.wait()
    while waiter.wait().canary_ns != 1000:
        pass
    assert waiter.wait().waited_for == "a canary probe takes 15 % longer than before"


def test_a_limit_is_waited_for_with_a_margin() -> None:
    """80 is the limit and 78 ends the wait, so that the device does not hover around it."""
    waiter = Waiter(degrees(82, 79, 78), limits=Limits(temperature_c_max=80))
    found = waiter.wait()
    assert (found.waited_s, found.waited_for, found.state) == (3.0, "too hot", {"temperature_c": 78})


def test_a_limit_that_stays_broken_costs_one_wait() -> None:
    """The trials after it are rejected without the cap being waited for each time; once fit, it waits again."""
    waiter = Waiter(degrees(*[90] * 6, 90, 70, 90, 70), limits=Limits(temperature_c_max=80), cap_s=20.0)
    assert [waiter.wait().waited_s for _ in range(4)] == [20.0, 0.0, 0.0, 1.0]


def test_a_stopped_run_does_not_wait() -> None:
    """Ctrl-C during a cool-down is heard at the next look."""
    waiter = Waiter(degrees(90), limits=Limits(temperature_c_max=80))
    assert waiter.wait(stopped_after=2).waited_s == 3.0


def test_waits_are_summed_by_device() -> None:
    """What a run spent on waiting, for its header."""
    waited = {"a": [0.0, 4.5, 2.0], "b": [None, "long"]}
    trials = [
        replace(make_trial(cell=make_cell(device=device), metrics={"cool_down_s": seconds}), duration_s=1.0)
        for device, all_seconds in waited.items()
        for seconds in all_seconds
    ]
    (found,) = waits(trials)
    assert found.as_json() == {"device": "a", "trials": 2, "of": 3, "seconds": 6.5, "longest_s": 4.5}
