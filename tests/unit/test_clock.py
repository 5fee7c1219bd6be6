"""Deadlines and how time reads, by a clock that a test turns by hand."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import pytest

from orchestrator.clock import SYSTEM, Deadline, duration_text, timestamp


@dataclass
class HandTurned:
    """A clock that stands still until it is turned."""

    at_s: float = 100.0

    def monotonic_s(self) -> float:
        return self.at_s

    def now(self) -> datetime.datetime:
        return datetime.datetime(2026, 11, 18, 2, 0, tzinfo=datetime.UTC)

    def sleep(self, seconds: float) -> None:
        self.at_s += seconds


class TestDeadline:
    def test_what_is_left_shrinks_and_never_goes_below_zero(self) -> None:
        """Five seconds, then two, then none."""
        clock = HandTurned()
        deadline = Deadline.after(5.0, clock)
        seen = [(deadline.left_s, deadline.passed)]
        for seconds in (3.0, 2.0, 9.0):
            clock.sleep(seconds)
            seen.append((deadline.left_s, deadline.passed))
        assert seen == [(5.0, False), (2.0, False), (0.0, True), (0.0, True)]

    def test_sooner_is_whichever_comes_first(self) -> None:
        """A part of the work may never outlast the whole."""
        clock = HandTurned()
        deadline = Deadline.after(5.0, clock)
        assert deadline.sooner(2.0).left_s == 2.0
        assert deadline.sooner(60.0).left_s == 5.0
        clock.sleep(4.0)
        assert deadline.sooner(2.0).left_s == 1.0

    def test_sooner_keeps_the_clock(self) -> None:
        """It is measured by the same hand."""
        clock = HandTurned()
        part = Deadline.after(5.0, clock).sooner(1.0)
        clock.sleep(1.0)
        assert part.passed


class TestSystemClock:
    def test_now_is_in_utc(self) -> None:
        """Stored times never depend on where the lab is."""
        assert SYSTEM.now().utcoffset() == datetime.timedelta(0)

    def test_it_does_not_go_back_and_sleeps_no_negative_time(self) -> None:
        """A deadline that has passed gives a negative rest; that is no error."""
        before = SYSTEM.monotonic_s()
        SYSTEM.sleep(-1.0)
        assert SYSTEM.monotonic_s() >= before


def test_a_timestamp_is_utc_with_milliseconds() -> None:
    """Whatever zone the moment is told in."""
    zone = datetime.timezone(datetime.timedelta(hours=2))
    moment = datetime.datetime(2026, 11, 18, 4, 0, 5, 67_890, tzinfo=zone)
    assert timestamp(moment) == "2026-11-18T02:00:05.067Z"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 s"),
        (95, "95 s"),
        (99.4, "99 s"),
        (99.6, "1 min 40 s"),
        (200, "3 min 20 s"),
        (240, "4 min"),
        (3599.9, "1 h"),
        (7500, "2 h 5 min"),
        (90_000, "25 h"),
    ],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    """Never `60 min` or `60 s` by rounding."""
    assert duration_text(seconds) == text
