"""What a phone's tools print, read without a guess: a number that is not there is None. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise

from orchestrator.platforms.questions import whole_number


def properties(text: str) -> dict[str, str]:
    """`getprop`: `[name]: [value]`, where a value may go over several lines."""
    return {match[1]: match[2] for match in re.finditer(r"^\[([^\]\n]+)\]: \[(.*?)\]$", text, re.M | re.S) if match[2]}


# -- heat

_KINDS = {0: "cpu", 1: "gpu", 2: "battery", 3: "skin", 4: "usb", 5: "modem", 9: "npu", 10: "tpu", 13: "soc"}
_NO_TEMPERATURE = (6, 7, 8)
"""Battery current limits: volts, amperes and percent that the thermal service lists among the temperatures."""
_TEMPERATURE = re.compile(
    r"^\s*Temperature\{mValue=(?P<value>[^,}]*), mType=(?P<type>-?\d{1,9}), mName=(?P<name>[^,}]*), mStatus=-?\d+\}"
)
_HAL = "Current temperatures from HAL:"


@dataclass(frozen=True)
class Temperature:
    """One sensor of the thermal HAL, read now."""

    name: str
    kind: str
    celsius: float


@dataclass(frozen=True)
class Thermal:
    """`dumpsys thermalservice`. The status goes from 0 (none) to 6 (shutdown)."""

    status: int | None = None
    overridden: bool = False
    temperatures: tuple[Temperature, ...] = ()

    def hottest(self, *kinds: str) -> float | None:
        return max((sensor.celsius for sensor in self.temperatures if sensor.kind in kinds), default=None)


def plausible_c(value: float | None) -> float | None:
    """None for what broken or switched-off sensors say: -273, -99.9, -40, 0, not a number."""
    if value is None or not math.isfinite(value) or value == 0 or not -40 < value < 150:
        return None
    return value


def thermal(text: str) -> Thermal:
    """The status, and the temperatures the HAL gives now; the cached ones are of any age."""
    status = whole_number(_after(text, "Thermal Status:"))
    overridden = _after(text, "IsStatusOverride:") == "true"
    if status is not None and (not 0 <= status <= 6 or (_after(text, "HAL Ready:") == "false" and not overridden)):
        status = None
    sensors = []
    for line in text.partition(_HAL)[2].split("\n"):
        match = _TEMPERATURE.match(line)
        if match is None:
            if line.strip():
                break  # the next block
            continue
        celsius = plausible_c(_decimal(match["value"]))
        if celsius is not None and int(match["type"]) not in _NO_TEMPERATURE:
            sensors.append(Temperature(match["name"].strip(), _kind(match["name"], int(match["type"])), celsius))
    return Thermal(status, overridden, tuple(sensors))


def _kind(name: str, number: int) -> str:
    """What a sensor measures. Its name goes before its type, whose numbers some vendors choose themselves."""
    plain = name.strip().lower().removeprefix("type_")
    if "skin" in plain:
        return "skin"
    if re.match(r"(sub)?bat", plain):
        return "battery"
    return "soc" if plain == "ap" else _KINDS.get(number, "other")


def _decimal(text: str) -> float | None:
    return float(text) if re.fullmatch(r"-?\d{1,9}(\.\d{1,12})?", text.strip(), re.ASCII) else None


def _after(text: str, label: str) -> str | None:
    """The rest of the first line that starts with the label."""
    match = re.search(rf"^[ \t]*{re.escape(label)}[ \t]*(.*)$", text, re.M)
    return match[1].strip() if match else None


# -- power

_CHARGING = {2: True, 3: False, 4: False, 5: False}
_HEALTH = {2: "good", 3: "overheat", 4: "dead", 5: "over voltage", 6: "failure", 7: "cold"}
_MICROVOLTS_FROM = 100_000
"""No phone's battery has a hundred volts: what is above are microvolts."""


@dataclass(frozen=True)
class Battery:
    """`dumpsys battery`. `charging` is false for a full battery, however it is plugged in."""

    percent: float | None = None
    temperature_c: float | None = None
    voltage_mv: float | None = None
    charging: bool | None = None
    plugged: bool | None = None
    updates_stopped: bool = False
    health: str | None = None


def battery(text: str) -> Battery:
    """The first line of each name counts: vendors add lines of their own behind, some under the same names."""
    seen = _first_values(text)
    stopped = "UPDATES STOPPED" in text
    powered = [seen[name] for name in seen if name.endswith(" powered") and seen[name] in ("true", "false")]
    plugged = "true" in powered if powered else None
    if seen.get("present") == "false":
        return Battery(plugged=plugged, updates_stopped=stopped)
    level, scale = whole_number(seen.get("level")), whole_number(seen.get("scale", "100"))
    percent = 100.0 * level / scale if level is not None and scale and 0 <= level <= scale else None
    tenths, voltage = whole_number(seen.get("temperature")), whole_number(seen.get("voltage"))
    millivolts = None if not voltage or voltage < 0 else voltage / 1000 if voltage >= _MICROVOLTS_FROM else voltage
    return Battery(
        percent=percent,
        temperature_c=plausible_c(None if tenths is None else tenths / 10),
        voltage_mv=millivolts,
        charging=_CHARGING.get(whole_number(seen.get("status")) or 0),
        plugged=plugged,
        updates_stopped=stopped,
        health=_HEALTH.get(whole_number(seen.get("health")) or 0),
    )


def _first_values(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for line in text.split("\n"):
        name, colon, value = line.strip().partition(":")
        if colon:
            values.setdefault(name, value.strip())
    return values


def awake(text: str) -> bool | None:
    """`dumpsys power`: whether the screen is on; a screen saver is on, the always-on display is not."""
    match = re.search(r"\bmWakefulness=(\w+)", text)
    return {"Awake": True, "Dreaming": True, "Asleep": False, "Dozing": False}.get(match[1]) if match else None


def setting_is_on(text: str) -> bool | None:
    """`settings get`: `null` is a switch nobody ever touched."""
    return {"1": True, "0": False, "null": False}.get(text.strip())


# -- the rest


def gpu(text: str) -> str | None:
    """`GLES: vendor, renderer, version` of `dumpsys SurfaceFlinger`, without its label."""
    return _after(text, "GLES:") or None


def accelerators(text: str) -> tuple[str, ...]:
    """The NNAPI drivers in a list of services, by the names their makers gave them."""
    names = re.findall(r"android\.hardware\.neuralnetworks(?:@[\d.]+::|\.)IDevice/([\w.-]+)", text)
    return tuple(dict.fromkeys(names))


def free_kb(text: str) -> int | None:
    """`df` of one folder, as toybox (1K-blocks) or as old phones (sizes with a letter) print it."""
    lines = [line.split() for line in text.strip().split("\n")]
    for head, row in pairwise(lines):
        column = next((head.index(word) for word in ("Available", "Avail", "Free") if word in head), None)
        if column is None or len(row) <= column:
            continue
        if any(re.fullmatch(r"1K-blocks|1024-blocks", word, re.I) for word in head):
            kilobytes = whole_number(row[column])
            return kilobytes if kilobytes is not None and kilobytes >= 0 else None
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)([KMGT])", row[column], re.ASCII)
        return round(float(match[1]) * 1024 ** "KMGT".index(match[2])) if match else None
    return None
