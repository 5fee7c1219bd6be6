"""What about a phone makes its numbers harder to trust. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.platforms import clusters
from orchestrator.platforms.base import Facts
from orchestrator.trial import Finding, Severity


def fitness_of(facts: Facts) -> tuple[Finding, ...]:
    """The findings, the worst first."""
    found = facts.raw.get("android")
    if not isinstance(found, Mapping):
        return ()
    findings = [*_build(found), *_power(found), *_heat(found, facts), *_clocks(found, facts)]
    return tuple(sorted(findings, key=lambda finding: finding.severity is Severity.NOTE))


def _warn(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.WARN, reason, remedy)


def _note(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.NOTE, reason, remedy)


def _build(android: Mapping[str, Any]) -> Iterator[Finding]:
    if android["emulator"]:
        yield _warn(
            "emulator", f"{android['emulator']}: its speed is this host's, not a phone's", "measure a real phone"
        )
    if android["boot_completed"] is False:
        yield _warn("booting", "Android has not finished starting", "wait a minute, then run again")
    if android["build_type"] in ("userdebug", "eng"):
        yield _note(
            "debug-build",
            f"a {android['build_type']} build: parts of Android are slower than what users have",
            "compare only with phones of the same build type",
        )


def _power(android: Mapping[str, Any]) -> Iterator[Finding]:
    battery = android["battery"]
    if android["low_power_mode"]:
        yield _warn("low-power-mode", "battery saver is on: the clocks are held down", "switch battery saver off")
    if battery["updates_stopped"]:
        yield _warn(
            "battery-overridden",
            "somebody stopped the battery's updates: Android shows what it was told, not what is",
            "run `adb shell dumpsys battery reset`",
        )
    elif battery["charging"]:
        yield _note("charging", "the battery is charging, which warms the phone", "charge it fully before a long run")
    elif battery["plugged"] is False:
        yield _note("on-battery", "the phone runs on its battery, which empties", "plug it in for a long run")


def _heat(android: Mapping[str, Any], facts: Facts) -> Iterator[Finding]:
    thermal = android["thermal"]
    if thermal["overridden"]:
        yield _warn(
            "thermal-overridden",
            f"somebody set the thermal status to {thermal['status']}: it does not follow the heat",
            "run `adb shell cmd thermalservice reset`",
        )
    elif thermal["status"]:
        yield _warn(
            "throttled", f"thermal status {thermal['status']} now: Android is slowing the phone down", "let it cool"
        )
    if thermal["status"] is None:
        why = facts.absent.get("android.thermalservice", "not readable")
        yield _note(
            "no-thermal-status",
            f"the thermal status cannot be read ({why}): thermal_status_max is not checked",
            "limit temperature_c_max instead",
        )
    if not facts.sensors:
        yield _note(
            "no-thermal", "no temperature can be read, so throttling cannot be seen", "watch for drifting latencies"
        )


def _clocks(android: Mapping[str, Any], facts: Facts) -> Iterator[Finding]:
    if android["root"] is None:
        yield _note(
            "not-rooted",
            "not rooted: the clocks cannot be held, and follow load and heat",
            "set fixed_performance = true under [conditions] where the phone supports it",
        )
    elif facts.governor is not None and facts.governor != "performance":
        yield _note(
            "governor",
            f"governor {facts.governor}: the clock follows the load",
            'set governor = "performance" under [conditions] in the plan',
        )
    if facts.governor is None:
        yield _note(
            "no-cpufreq",
            f"CPU frequency is neither readable nor controllable ({clusters.why_no_governor(facts)})",
            "measure more blocks",
        )
