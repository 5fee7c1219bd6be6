"""Time: the only module that reads or spends it."""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass, field
from typing import Protocol


class Clock(Protocol):
    def monotonic_s(self) -> float: ...

    def now(self) -> datetime.datetime: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """This host's clocks."""

    def monotonic_s(self) -> float:
        return time.monotonic()

    def now(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))


SYSTEM = SystemClock()


@dataclass(frozen=True)
class Deadline:
    """A moment after which waiting is over; made by the caller and handed down."""

    at_s: float
    clock: Clock = field(default=SYSTEM, repr=False)

    @classmethod
    def after(cls, seconds: float, clock: Clock = SYSTEM) -> Deadline:
        return cls(clock.monotonic_s() + seconds, clock)

    @property
    def left_s(self) -> float:
        return max(0.0, self.at_s - self.clock.monotonic_s())

    @property
    def passed(self) -> bool:
        return self.clock.monotonic_s() >= self.at_s

    def sooner(self, seconds: float) -> Deadline:
        """This deadline, or one `seconds` from now, whichever comes first."""
        return Deadline(min(self.at_s, self.clock.monotonic_s() + seconds), self.clock)


def timestamp(moment: datetime.datetime) -> str:
    """UTC in ISO 8601 with milliseconds, as stored and exported."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def ago(clock: Clock, seconds: float) -> str:
    """The time so many seconds before now, as stored."""
    return timestamp(clock.now() - datetime.timedelta(seconds=seconds))


def seconds_of(text: str) -> float | None:
    """Seconds since 1970 of a time in ISO 8601; None for anything else. Without an offset it is taken as UTC."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()


def duration_text(seconds: float) -> str:
    """`95 s`, `3 min 20 s`, `2 h 5 min`: for people."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
