"""What can be changed on a phone, each as two shell functions: one reads the value, one writes it.

The values are the phone's own words, so that writing back what was read is the undo. Scripts hold double quotes only
and stay short: old daemons take a command line of 4 KiB.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.plan import AS_FOUND, Conditions

_NEVER_MS = str(2**31 - 1)
_ON_ANY_CHARGER = "7"
_SETTING = (
    "settings get {place} {key}",
    'if [ "$1" = null ]; then settings delete {place} {key}; else settings put {place} {key} "$1"; fi',
)


@dataclass(frozen=True)
class Change:
    """One thing on the phone that has a value."""

    name: str
    """Its name in the journal, and of its two shell functions."""
    condition: str
    """The key of [conditions] that asks for it."""
    read: str
    write: str
    values: str
    """A pattern of the values it can have; nothing else is ever written, or believed."""
    api_min: int = 0
    unread: str | None = None
    """The value to go back to where the phone does not tell the present one."""

    def accepts(self, value: str) -> bool:
        return re.fullmatch(self.values, value, re.ASCII) is not None

    @property
    def functions(self) -> str:
        return f"read_{self.name}() {{ {self.read}\n}}\nwrite_{self.name}() {{ {self.write}\n}}"


def _setting(place: str, key: str) -> tuple[str, str]:
    read, write = (part.format(place=place, key=key) for part in _SETTING)
    return read, write


TRACE = Change(
    "tflite_trace",
    "tflite_trace",
    "getprop debug.tflite.trace",
    'setprop debug.tflite.trace "$1"',
    r"[\w.-]{0,64}",
)
PERF_HARDEN = Change(
    "perf_harden",
    "perf_harden",
    "getprop security.perf_harden",
    'setprop security.perf_harden "$1"',
    r"[01]?",
)
AIRPLANE = Change(
    "airplane",
    "airplane",
    "settings get global airplane_mode_on",
    'case "$1" in 1) m=enable;; *) m=disable;; esac; cmd connectivity airplane-mode $m',
    r"[01]",
    api_min=30,
)
FIXED_PERFORMANCE = Change(
    # No command tells whether the mode is on. The power service answers whether the hardware took it, which is what is
    # believed here; and off is the only state to go back to, since the mode does not outlive a reboot.
    "fixed_performance",
    "fixed_performance",
    'echo "$fixed"',
    'if cmd power set-fixed-performance-mode-enabled "$1"; then fixed=$1; elif [ "$1" = true ]; then fixed=false; fi',
    r"true|false",
    api_min=30,
    unread="false",
)
DOZE = Change(
    "doze",
    "doze",
    'echo "$(dumpsys deviceidle enabled deep) $(dumpsys deviceidle enabled light)"',
    'set -- $1; for k in deep light; do if [ "$1" = 1 ]; then dumpsys deviceidle enable $k;'
    " else dumpsys deviceidle disable $k; fi; shift; done",
    r"[01] [01]",
    api_min=24,
)
GOVERNOR = Change(
    "governor",
    "governor",
    'r=; for p in "$cpufreq"/policy*; do r="$r ${p##*/}=$(cat "$p/scaling_governor")"; done; echo "${r# }"',
    'for x in $1; do root "echo ${x#*=} >$cpufreq/${x%%=*}/scaling_governor"; done',
    r"policy\d{1,3}=\w{1,32}( policy\d{1,3}=\w{1,32})*",
)
STAY_AWAKE = Change("stay_awake", "screen", *_setting("global", "stay_on_while_plugged_in"), r"\d{1,3}|null")
SCREEN_TIMEOUT = Change("screen_timeout", "screen", *_setting("system", "screen_off_timeout"), r"-?\d{1,10}|null")
SCREEN = Change(
    "screen",
    "screen",
    'case "$(dumpsys power | grep -m 1 mWakefulness=)" in *=Awake*|*=Dreaming*) echo on;;'
    " *=Asleep*|*=Dozing*) echo off;; *) echo unknown;; esac",
    'case "$1" in on) input keyevent 224;; *) input keyevent 223;; esac',
    r"on|off",
    api_min=20,
)

IN_ORDER = (TRACE, PERF_HARDEN, AIRPLANE, FIXED_PERFORMANCE, DOZE, GOVERNOR, STAY_AWAKE, SCREEN_TIMEOUT, SCREEN)
"""As they are applied; undone in reverse. The screen last: the other commands may wake it."""


@dataclass(frozen=True)
class Wish:
    """A change that is wanted, and the value it should have, given the one it has."""

    change: Change
    aim: Callable[[str], str]


def wishes(conditions: Conditions, *, governor: bool) -> tuple[Wish, ...]:
    """What these conditions want changed, in order; `governor` says whether a session holds it here."""
    wanted: dict[Change, Callable[[str], str]] = {TRACE: lambda old: "0" if old == "1" else old}
    if conditions.airplane:
        wanted[AIRPLANE] = lambda old: "1"
    if conditions.fixed_performance:
        wanted[FIXED_PERFORMANCE] = lambda old: "true"
    if conditions.doze == "off":
        wanted[DOZE] = lambda old: "0 0"
    if governor and conditions.governor != AS_FOUND:
        wanted[GOVERNOR] = lambda old: re.sub(r"=\w+", lambda _: f"={conditions.governor}", old)
    if conditions.screen == "on":
        wanted[STAY_AWAKE] = lambda old: _ON_ANY_CHARGER
        wanted[SCREEN_TIMEOUT] = lambda old: _NEVER_MS
    if conditions.screen != AS_FOUND:
        wanted[SCREEN] = lambda old: conditions.screen
    return tuple(Wish(change, wanted[change]) for change in IN_ORDER if change in wanted)
