"""Android: what phones let us read, hold steady and watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from android_harness import conditions as phone_conditions
from android_harness import dumpsys
from android_harness.facts import STATE_QUESTIONS, read_facts
from android_harness.fitness import fitness_of
from android_harness.tracing import KINDS, phone_tracers
from orchestrator.fleet import Device, Limits
from orchestrator.plan import AS_FOUND, Conditions
from orchestrator.platforms import clusters
from orchestrator.platforms.base import Ask, Facts, Hold, WithAgent
from orchestrator.platforms.questions import NOT_ASKED, answers, batch
from orchestrator.platforms.tracing import Tracer
from orchestrator.trial import Finding

STATUS_NAMES = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")


@dataclass(frozen=True)
class AndroidPlatform(WithAgent):
    """Phones, as the shell user or as root. The journal has one place, so that any session finds it."""

    folder: str = "/data/local/tmp/devbench"
    cpufreq: str = "/sys/devices/system/cpu/cpufreq"

    name: ClassVar[str] = "android"
    limits: ClassVar[tuple[str, ...]] = tuple(vars(Limits()))
    default_limits: ClassVar[Limits] = Limits(thermal_status_max=1, low_power_mode=False)
    default_runner: ClassVar[str] = "benchmark_model"
    machine_command: ClassVar[tuple[str, ...]] = ("uname", "-m")
    trace_kinds: ClassVar[Sequence[str]] = KINDS

    def facts(self, probed: Mapping[str, Any], ask: Ask) -> Facts:
        return read_facts(probed, ask, self.folder)

    def affinity_mask(self, affinity: str, facts: Facts) -> str | None:
        return clusters.affinity_mask(affinity, facts)

    def holds(self, conditions: Conditions, facts: Facts) -> tuple[tuple[Hold, ...], tuple[Finding, ...]]:
        """The governor, where the agent is root. Where only `su` is, the session holds it."""
        wanted = conditions.governor
        if wanted == AS_FOUND or self._session_governor(conditions, facts):
            return (), ()
        obstacle = clusters.governor_obstacle(wanted, facts)
        if obstacle is None and _android(facts).get("root") is None:
            return (), (clusters.governor_not_held(wanted, "this phone is not rooted"),)
        return clusters.governor_holds(wanted, facts)

    def session(self, conditions: Conditions, facts: Facts, ask: Ask) -> AbstractContextManager[tuple[Finding, ...]]:
        return phone_conditions.held(conditions, self._phone(conditions, facts), ask)

    def _phone(self, conditions: Conditions, facts: Facts) -> phone_conditions.Phone:
        root = _android(facts).get("root")
        return phone_conditions.Phone(
            journal=f"{self.folder}/journal",
            cpufreq=self.cpufreq,
            root_prefix="sh -c" if root == "adbd" else root,
            holds_governor=self._session_governor(conditions, facts),
            api=_android(facts).get("api"),
            over_network=bool(_android(facts).get("adb_over_network")),
        )

    def tracers(self, device: Device, facts: Facts, ask: Ask) -> Sequence[Tracer]:
        return phone_tracers(self._phone(Conditions(), facts), facts, ask)

    def _session_governor(self, conditions: Conditions, facts: Facts) -> bool:
        wanted = conditions.governor
        if wanted == AS_FOUND or _android(facts).get("root") in (None, "adbd"):
            return False
        return clusters.governor_obstacle(wanted, facts) is None

    def state(self, samples: Sequence[Mapping[str, Any]], ask: Ask, facts: Facts) -> Mapping[str, Any]:
        found = answers(ask(["sh", "-c", batch(STATE_QUESTIONS)]).stdout)
        texts = {name: found.get(name, NOT_ASKED).text for name in STATE_QUESTIONS}
        thermal, battery = dumpsys.thermal(texts["thermalservice"]), dumpsys.battery(texts["battery"])
        celsius, sensor = _temperature(thermal, battery, samples)
        unread = {name: found.get(name, NOT_ASKED).trouble for name in STATE_QUESTIONS}
        return {
            "thermal_status": thermal.status,
            "thermal_status_overridden": thermal.overridden,
            "temperature_c": celsius,
            "temperature_of": sensor,
            "battery_percent": _percent(battery, samples),
            "battery_temperature_c": None if battery.updates_stopped else battery.temperature_c,
            "battery_health": battery.health,
            "charging": battery.charging,
            "plugged": battery.plugged,
            "low_power_mode": dumpsys.setting_is_on(texts["low_power"]),
            "screen_on": dumpsys.awake(texts["power"]),
            "absent": {name: why for name, why in unread.items() if why},
        }

    def breach(self, limits: Limits, state: Mapping[str, Any]) -> str | None:
        status, hottest, charge = (state.get(key) for key in ("thermal_status", "temperature_c", "battery_percent"))
        if limits.thermal_status_max is not None and status is not None and status > limits.thermal_status_max:
            return f"thermal status {_status(status)}, and the limit is {_status(limits.thermal_status_max)}"
        if limits.temperature_c_max is not None and hottest is not None and hottest > limits.temperature_c_max:
            sensor = state.get("temperature_of") or "hottest sensor"
            return f"{sensor} at {hottest:.1f} degrees C, and the limit is {limits.temperature_c_max:g}"
        if limits.battery_percent_min is not None and charge is not None and charge < limits.battery_percent_min:
            return f"battery at {charge:g} %, and the limit is {limits.battery_percent_min:g} %"
        return _switches(limits, state)

    def is_slowed_by_heat(self, facts: Facts) -> bool:
        return True

    def fitness(self, facts: Facts) -> tuple[Finding, ...]:
        return fitness_of(facts)


ANDROID = AndroidPlatform()


def _switches(limits: Limits, state: Mapping[str, Any]) -> str | None:
    """Which of the conditions that are either so or not so is not as it must be."""
    for key, wanted, words in (
        ("charging", limits.charging, ("the battery is not charging", "the battery is charging")),
        ("low_power_mode", limits.low_power_mode, ("battery saver is off", "battery saver is on")),
    ):
        found = state.get(key)
        if wanted is not None and found is not None and found != wanted:
            return f"{words[found]}, and limits.{key} says {str(wanted).lower()}"
    return None


def _android(facts: Facts) -> Mapping[str, Any]:
    found = facts.raw.get("android")
    return found if isinstance(found, Mapping) else {}


def _status(number: int) -> str:
    return f"{number} ({STATUS_NAMES[number]})" if 0 <= number < len(STATUS_NAMES) else str(number)


def _temperature(
    thermal: dumpsys.Thermal, battery: dumpsys.Battery, samples: Sequence[Mapping[str, Any]]
) -> tuple[float | None, str | None]:
    """The skin's where the phone tells it: Android throttles by that one, and it does not jump with every burst. The
    samples are read only where Android says nothing, because reading them may be a round trip."""
    for celsius, sensor in ((thermal.hottest("skin"), "skin"), (thermal.hottest("cpu", "soc"), "CPU")):
        if celsius is not None:
            return celsius, sensor
    hottest = _hottest(samples)
    if hottest is not None:
        return hottest, "hottest sensor"
    celsius = None if battery.updates_stopped else battery.temperature_c
    return celsius, None if celsius is None else "battery"


def _hottest(samples: Sequence[Mapping[str, Any]]) -> float | None:
    readings = [value / 1000 for sample in samples for value in sample.get("temp_mc") or [] if value is not None]
    return max((value for value in readings if dumpsys.plausible_c(value) is not None), default=None)


def _percent(battery: dumpsys.Battery, samples: Sequence[Mapping[str, Any]]) -> float | None:
    """What Android says, unless somebody made it say so; then what the kernel says."""
    if battery.percent is not None and not battery.updates_stopped:
        return battery.percent
    parts = [part for sample in samples for part in sample.get("battery") or [] if part]
    return min((float(part["percent"]) for part in parts if part.get("percent") is not None), default=None)
