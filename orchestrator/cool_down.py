"""Waiting until a device is fit: within its limits, and a canary back at its pace; says how long, and for what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.clock import Clock, Deadline
from orchestrator.evidence_terms import Readiness
from orchestrator.fleet import Limits

_FIRST_POLL_S = 1.0
_LONGEST_POLL_S = 8.0
_MARGIN_C = 2.0


@dataclass(frozen=True)
class Look:
    """How a device is at one moment: what its limits are about, and how long its canary's unit of work took."""

    state: Mapping[str, Any]
    canary_ns: int | None = None


@dataclass
class Pace:
    """What is remembered of a device's canary over a session, broken connections included."""

    best_ns: int | None = None
    level_ns: int | None = None
    """The pace it is held to: its best, or what it settled at when waiting did not help."""

    def note(self, canary_ns: int) -> None:
        self.best_ns = min(self.best_ns or canary_ns, canary_ns)
        self.level_ns = min(self.level_ns or canary_ns, canary_ns)


class CoolDown:
    """The waiting before the trials of one session.

    A wait ends when the device is fit, or at its cap. After a wait in vain a limit that stays broken costs no second
    wait, and the canary's pace counts as the new level: a phone that has settled at a lower clock is measured there,
    with a warning on every trial, instead of being waited for all night.
    """

    def __init__(
        self,
        look: Callable[[], Look],
        breach: Callable[[Limits, Mapping[str, Any]], str | None],
        *,
        limits: Limits,
        slack: float,
        cap_s: float,
        pace: Pace,
        clock: Clock,
    ) -> None:
        """`slack` is how much longer than at its level the canary may take; half of it ends a wait."""
        self._look = look
        self._breach = breach
        self._limits = limits
        self._slack = slack
        self._cap_s = cap_s
        self._clock = clock
        self._pace = pace
        self._waited_in_vain = False

    def wait(self, stopped: Callable[[], bool], waiting: Callable[[str], None]) -> Readiness:
        """Returns when the device is fit, the cap is reached or the run is being stopped; `waiting` is told why."""
        began_s = self._clock.monotonic_s()
        deadline = Deadline.after(0.0 if self._waited_in_vain else self._cap_s, self._clock)
        look = self._observe()
        first = obstacle = self._obstacle(look, self._limits, self._slack)
        poll_s, slept = _FIRST_POLL_S, False
        while obstacle and not deadline.passed and not stopped():
            waiting(obstacle)
            self._clock.sleep(min(poll_s, deadline.left_s))
            slept = True
            poll_s = min(2 * poll_s, _LONGEST_POLL_S)
            look = self._observe()
            obstacle = self._obstacle(look, _with_margin(self._limits), self._slack / 2)
        self._waited_in_vain = obstacle is not None
        if obstacle and look.canary_ns:
            self._pace.level_ns = look.canary_ns
        return Readiness(
            state=look.state,
            waited_s=round(self._clock.monotonic_s() - began_s, 1) if slept else 0.0,
            waited_for=first if slept else None,
            canary_ns=look.canary_ns,
            canary_best_ns=self._pace.best_ns,
            canary_slack=self._slack,
        )

    def _observe(self) -> Look:
        look = self._look()
        if look.canary_ns:
            self._pace.note(look.canary_ns)
        return look

    def _obstacle(self, look: Look, limits: Limits, slack: float) -> str | None:
        broken = self._breach(limits, look.state)
        if broken or not look.canary_ns or not self._pace.level_ns:
            return broken
        slower = look.canary_ns / self._pace.level_ns - 1.0
        return f"a canary probe takes {100 * slower:.0f} % longer than before" if slower > slack else None


def _with_margin(limits: Limits) -> Limits:
    """Once too hot, a device cools a little further than the limit, so as not to hover around it."""
    if limits.temperature_c_max is None:
        return limits
    return replace(limits, temperature_c_max=limits.temperature_c_max - _MARGIN_C)
