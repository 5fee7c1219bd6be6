"""iOS: what iPhones let us read, and what they do not let us do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ios_harness.app_protocol import THERMAL_STATES, whole_number
from ios_harness.gateway import GatewayStage
from ios_harness.jailbroken import JailbrokenStage
from ios_harness.tracing import KINDS, mac_tracers
from orchestrator.errors import SettingsError
from orchestrator.fleet import Device, Limits
from orchestrator.plan import Conditions
from orchestrator.platforms.base import Ask, Facts, Hold, Platform
from orchestrator.platforms.tracing import Tracer
from orchestrator.stage import Stage
from orchestrator.transports.base import Transport
from orchestrator.trial import Cell, Finding, Severity

MACHINE = "ios-arm64"
"""The machine's name for builds: a program for iOS runs on no other arm64 system, and none of theirs here."""

_CANNOT = {
    "governor": "iOS lets nobody choose the CPU's clock",
    "airplane": "iOS lets no program switch airplane mode",
    "fixed_performance": "iOS has no fixed performance mode",
    "doze": "iOS has no doze",
    "stop_background_apps": "iOS lets no program end others",
}
_SHAPES = {
    "udid": re.compile(r"[0-9A-Fa-f][0-9A-Fa-f-]{7,63}"),
    "app": re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,254}"),
}
_GOOD = {"udid": "00008130-000A11112222333A", "app": "com.example.devbench"}
_ABSENT = {
    "frequency": "iOS shows no CPU frequency",
    "temperature": "iOS shows a thermal state, no temperature",
    "processes": "iOS shows no other programs",
}


class _Ios:
    """What all iPhones have in common: no agent, no load, no affinity, nothing that can be held."""

    machine_command = ("uname", "-p")
    has_loads = False
    trace_kinds: Sequence[str] = ()
    no_traces = "Instruments records only phones behind a Mac; add gateway and udid"

    def tracers(self, device: Device, facts: Facts, ask: Ask) -> Sequence[Tracer]:
        return ()

    def affinity_mask(self, affinity: str, facts: Facts) -> str | None:
        if affinity != "any":
            raise ValueError("iOS lets no program choose its CPUs")
        return None

    def unsupported(self, cell: Cell, conditions: Conditions) -> str | None:
        if cell.load != "idle":
            return f"no load {cell.load} on iOS: no agent runs there, and iOS suspends apps in the background"
        if cell.affinity != "any":
            return f"no affinity {cell.affinity} on iOS: it lets no program choose its CPUs"
        default = Conditions()
        wrong = [key for key in _CANNOT if getattr(conditions, key) != getattr(default, key)]
        if wrong:
            return f"{wrong[0]} = {_toml(getattr(conditions, wrong[0]))} cannot be had: {_CANNOT[wrong[0]]}"
        if conditions.screen == "off":
            return 'screen = "off" cannot be had: iOS runs the app only in front, with the screen on'
        return None

    def holds(self, conditions: Conditions, facts: Facts) -> tuple[tuple[Hold, ...], tuple[Finding, ...]]:
        return (), ()

    def session(self, conditions: Conditions, facts: Facts, ask: Ask) -> AbstractContextManager[tuple[Finding, ...]]:
        return nullcontext(())

    def is_slowed_by_heat(self, facts: Facts) -> bool:
        """It is, but there is no canary to tell; the thermal state must do."""
        return False

    def breach(self, limits: Limits, state: Mapping[str, Any]) -> str | None:
        status, charge = state.get("thermal_status"), state.get("battery_percent")
        if limits.thermal_status_max is not None and status is not None and status > limits.thermal_status_max:
            return f"thermal state {_thermal(status)}, and the limit is {_thermal(limits.thermal_status_max)}"
        if limits.battery_percent_min is not None and charge is not None and charge < limits.battery_percent_min:
            return f"battery at {charge:g} %, and the limit is {limits.battery_percent_min:g} %"
        for key, words in (("charging", "charging"), ("low_power_mode", "in low-power mode")):
            wanted, found = getattr(limits, key), state.get(key)
            if wanted is not None and found is not None and found != wanted:
                return f"the phone is {'' if found else 'not '}{words}, and limits.{key} says {str(wanted).lower()}"
        return None


class IosPlatform(_Ios):
    """iPhones behind a Mac, measured with our app."""

    name = "ios"
    limits = ("thermal_status_max", "battery_percent_min", "charging", "low_power_mode")
    default_limits = Limits(thermal_status_max=1, low_power_mode=False)
    default_runner = "ios_app"
    trace_kinds = KINDS

    def tracers(self, device: Device, facts: Facts, ask: Ask) -> Sequence[Tracer]:
        return mac_tracers(str(device.address["udid"]), ask)

    def for_device(self, device: Device) -> Platform:
        """A phone is behind a Mac or reached directly; one key of the two is a slip."""
        has_gateway, has_udid = "gateway" in device.address, "udid" in device.address
        if has_gateway and not has_udid:
            raise SettingsError(
                f'device "{device.name}": gateway is set, and udid is not',
                remedy="add the phone's udid: `xcrun devicectl list devices` on the Mac shows it",
            )
        if has_udid and not has_gateway:
            raise SettingsError(
                f'device "{device.name}": udid is set, and gateway is not',
                remedy="add gateway, the Mac's ssh host; a jailbroken phone has host and no udid",
            )
        if "app" in device.address and not has_udid:
            raise SettingsError(
                f'device "{device.name}": app is set, and gateway is not',
                remedy="remove app: a jailbroken phone runs a benchmark_model",
            )
        for key, shape in _SHAPES.items():
            if not shape.fullmatch(str(device.address.get(key, _GOOD[key]))):
                raise SettingsError(
                    f'device "{device.name}": {key} = "{device.address[key]}" is none',
                    remedy=f"it looks like {_GOOD[key]}",
                )
        return self if has_udid else JAILBROKEN

    def stage(self, transport: Transport, device: Device, workdir: str) -> Stage | None:
        return GatewayStage(transport, device, workdir)

    def facts(self, probed: Mapping[str, Any], ask: Ask) -> Facts:
        phone, device = probed["phone"], probed["device"]
        product, chip = phone["product"] or device.get("product"), probed["chip"]
        memory = whole_number(device, "memory_bytes")
        absent = dict(_ABSENT)
        if chip is None:
            absent["chip"] = f"no tool tells it, and {product} is not in our table"
        return Facts(
            machine=MACHINE,
            cpu_model=_joined(phone["marketing_name"], f"({product})" if product else None, chip),
            cores=whole_number(device, "cores") or 1,
            clusters=(),
            kernel="",
            os=_ios(phone["os_version"] or device.get("os_version"), phone["os_build"]),
            memory_kb=memory // 1024 if memory else None,
            governor=None,
            virtualisation=None,
            sensors=("thermal state",),
            absent=absent,
            raw={"ios": dict(probed)},
        )

    def state(self, samples: Sequence[Mapping[str, Any]], ask: Ask, facts: Facts) -> Mapping[str, Any]:
        """The worst of what the app saw: before and after the inferences."""
        states = [sample for sample in samples if sample]
        return {
            "thermal_status": _extreme(max, states, "thermal_status"),
            "battery_percent": _extreme(min, states, "battery_percent"),
            **{key: states[-1].get(key) if states else None for key in ("charging", "low_power_mode")},
        }

    def fitness(self, facts: Facts) -> tuple[Finding, ...]:
        phone = facts.raw["ios"]["phone"]
        if phone["wired"] is False:
            reason = "the phone is attached by Wi-Fi: copies are slow, and its radio works while it is measured"
            return (Finding("wireless", Severity.WARN, reason, "attach it by cable"),)
        return ()


class JailbrokenPlatform(_Ios):
    """iPhones that run programs of ours, reached directly."""

    name = "ios-jailbroken"
    limits: Sequence[str] = ()
    default_limits = Limits()
    default_runner = "benchmark_model"

    def for_device(self, device: Device) -> Platform:
        return self

    def stage(self, transport: Transport, device: Device, workdir: str) -> Stage | None:
        return JailbrokenStage(transport, device, workdir)

    def facts(self, probed: Mapping[str, Any], ask: Ask) -> Facts:
        memory, cores = str(probed.get("memory_bytes", "")), str(probed.get("cores", ""))
        return Facts(
            machine=MACHINE,
            cpu_model=probed.get("product"),
            cores=int(cores) if cores.isdigit() and int(cores) else 1,
            clusters=(),
            kernel=f"Darwin {probed.get('kernel', 'unknown')}",
            os=_ios(probed.get("os_version"), probed.get("os_build")),
            memory_kb=int(memory) // 1024 if memory.isdigit() else None,
            governor=None,
            virtualisation=None,
            sensors=(),
            absent={**_ABSENT, "thermal_state": "no tool on a jailbroken phone tells it", "battery": "nor this"},
            raw={"ios": dict(probed)},
        )

    def state(self, samples: Sequence[Mapping[str, Any]], ask: Ask, facts: Facts) -> Mapping[str, Any]:
        return {}

    def fitness(self, facts: Facts) -> tuple[Finding, ...]:
        reason = "a jailbroken phone: its heat and battery cannot be read, and programs there are scheduled unlike apps"
        return (Finding("jailbroken", Severity.WARN, reason, "compare with other numbers of this phone only"),)


JAILBROKEN = JailbrokenPlatform()
IOS = IosPlatform()


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'


def _thermal(status: int) -> str:
    return f"{status} ({THERMAL_STATES[status]})" if 0 <= status < len(THERMAL_STATES) else str(status)


def _ios(version: object, build: object) -> str:
    return _joined("iOS", version, f"({build})" if build else None)


def _joined(*parts: object) -> str:
    return " ".join(str(part) for part in parts if part)


def _extreme(choose: Any, states: Sequence[Mapping[str, Any]], key: str) -> Any:
    return choose((state[key] for state in states if state.get(key) is not None), default=None)
