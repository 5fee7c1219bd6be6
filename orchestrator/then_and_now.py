"""What differs about a device now against when a run measured it. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator import telemetry
from orchestrator.trial import Outcome, Trial

_WORDS = ("hardware", "system", "kernel", "machine", "cores", "governor", "runtime")
_SWITCHES = {"charging": ("not charging", "charging"), "screen_on": ("screen off", "screen on")}
_SWITCHES |= {"low_power_mode": ("battery saver off", "battery saver on")}
_TEMPERATURE_NOTABLE_C = 3.0
_BATTERY_NOTABLE_POINTS = 10.0
_CPUS_NOTABLE = 0.25
_MEMORY_NOTABLE = 0.2


@dataclass(frozen=True)
class Moment:
    """How a device was. None is not known, and what is not known is no difference."""

    hardware: str | None = None
    system: str | None = None
    kernel: str | None = None
    machine: str | None = None
    cores: int | None = None
    governor: str | None = None
    runtime: str | None = None
    """What the runner found on the device itself, and no store keeps."""
    temperature_c: float | None = None
    thermal_status: int | None = None
    battery_percent: float | None = None
    charging: bool | None = None
    low_power_mode: bool | None = None
    screen_on: bool | None = None
    other_cpus: float | None = None
    """How many CPUs other programs kept busy."""
    free_memory_kb: float | None = None


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it was."""

    what: str
    then: Any
    now: Any
    text: str

    def as_json(self) -> dict[str, Any]:
        return {"what": self.what, "then": self.then, "now": self.now, "text": self.text}


def moment_of(
    facts: Mapping[str, Any],
    state: Mapping[str, Any],
    *,
    runner: Mapping[str, Any] | None = None,
    other_cpus: float | None = None,
    free_memory_kb: float | None = None,
) -> Moment:
    """From a device's facts, its state in the platform's words, and what its runner said of its runtime."""
    version = (runner or {}).get("runtime_version")
    return Moment(
        hardware=facts.get("cpu_model"),
        system=facts.get("os"),
        kernel=facts.get("kernel"),
        machine=facts.get("machine"),
        cores=facts.get("cores"),
        governor=facts.get("governor"),
        runtime=f"{(runner or {}).get('runtime') or 'runtime'} {version}" if version else None,
        temperature_c=state.get("temperature_c"),
        thermal_status=state.get("thermal_status"),
        battery_percent=state.get("battery_percent"),
        charging=state.get("charging"),
        low_power_mode=state.get("low_power_mode"),
        screen_on=state.get("screen_on"),
        other_cpus=other_cpus,
        free_memory_kb=free_memory_kb,
    )


def moment_of_trials(facts: Mapping[str, Any], trials: Sequence[Trial], runner: Mapping[str, Any] | None) -> Moment:
    """How the device typically was while these trials were measured."""
    measured = [trial for trial in trials if trial.outcome is Outcome.MEASURED]
    states = [state for trial in measured for state in (trial.evidence.get("states") or ())[:1] if state]
    keys = dict.fromkeys(key for state in states for key in state)
    typical = {key: _typical([state.get(key) for state in states]) for key in keys}
    if typical.get("temperature_c") is None:
        readings = [_first(trial.telemetry.get("temp_mc")) for trial in measured]
        typical["temperature_c"] = _typical([telemetry.temperature_c([{"temp_mc": row}]) for row in readings if row])
    return moment_of(
        facts,
        typical,
        runner=runner,
        other_cpus=_typical([_other_cpus(trial.telemetry) for trial in measured]),
        free_memory_kb=_typical([_first(trial.telemetry.get("mem_available_kb")) for trial in measured]),
    )


def differences(then: Moment, now: Moment) -> list[Difference]:
    """What is not as it was, and matters or may."""
    found = [_word(name, then, now) for name in _WORDS]
    found += [_switch(name, words, then, now) for name, words in _SWITCHES.items()]
    found += [
        _number("temperature_c", then, now, _TEMPERATURE_NOTABLE_C, "{:.1f} °C".format),
        _number("thermal_status", then, now, 1, "thermal status {:.0f}".format),
        _number("battery_percent", then, now, _BATTERY_NOTABLE_POINTS, "battery {:.0f} %".format),
        _number("other_cpus", then, now, _CPUS_NOTABLE, "other programs keep {:.1f} CPUs busy".format),
    ]
    if then.free_memory_kb:
        notable = _MEMORY_NOTABLE * then.free_memory_kb
        found.append(_number("free_memory_kb", then, now, notable, lambda kb: f"{kb / 1024:.0f} MB of memory free"))
    return [difference for difference in found if difference]


def _word(name: str, then: Moment, now: Moment) -> Difference | None:
    before, after = getattr(then, name), getattr(now, name)
    if before is None or after is None or before == after:
        return None
    return Difference(name, before, after, f"{name}: {before} then, {after} now")


def _switch(name: str, words: tuple[str, str], then: Moment, now: Moment) -> Difference | None:
    before, after = getattr(then, name), getattr(now, name)
    if before is None or after is None or bool(before) == bool(after):
        return None
    return Difference(name, before, after, f"{words[bool(before)]} then, {words[bool(after)]} now")


def _number(name: str, then: Moment, now: Moment, notable: float, text: Callable[[float], str]) -> Difference | None:
    before, after = getattr(then, name), getattr(now, name)
    if before is None or after is None or abs(after - before) < notable:
        return None
    return Difference(name, before, after, f"{text(before)} then, {text(after)} now")


def _typical(values: Sequence[Any]) -> Any:
    """The median of numbers, the commonest of anything else; None where nothing is known."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return statistics.median_low(known)
    plain = [value for value in known if isinstance(value, str | bool)]
    return statistics.mode(plain) if plain else None


def _first(column: Any) -> Any:
    return column[0] if isinstance(column, list) and column else None


def _other_cpus(columns: Mapping[str, Any]) -> float | None:
    """CPUs that neither the model nor our load kept busy, from first to last sample."""
    times: list[float] = columns.get("t_ms") or []
    busy: list[list[int | None]] = columns.get("busy") or []
    children = [child["cpu_ns"] for child in columns.get("child") or () if child and "cpu_ns" in child]
    wall_s = (times[-1] - times[0]) / 1000 if len(times) > 1 else 0.0
    if wall_s <= 0 or not busy or not busy[0] or not busy[-1]:
        return None
    pairs = list(zip(busy[0], busy[-1], strict=False))
    ticks = sum(after - before for before, after in pairs if before is not None and after is not None)
    loads = [sum(row) for row in columns.get("load_cpu_ns") or () if row and None not in row]
    own_ns = float((max(children) if children else 0) + (loads[-1] - loads[0] if loads else 0))
    return max(0.0, ticks / float(columns.get("tick_hz") or 100) / wall_s - own_ns / 1e9 / wall_s)
