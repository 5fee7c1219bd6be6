"""The counters of a timeline: what the agent sampled, as levels and as rates between samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from orchestrator.timeline.events import Counter
from orchestrator.timeline.record import TIME_NS_MAX, keyed, listed, number, place

Read = Callable[[int], float | None]
"""What a column says at the sample of this index."""


@dataclass(frozen=True)
class Players:
    """What the agent's child and the rest are called in a trial."""

    child: str = "measured process"
    others: str = "other programs"


def counters(telemetry: Mapping[str, Any], players: Players) -> list[Counter]:
    """A counter for everything that was sampled; what a device does not show has none."""
    times = _times(telemetry)
    found = [*_levels(telemetry, times, players), *_rates(telemetry, times, players)]
    return [counter for counter in found if counter.points]


def _times(telemetry: Mapping[str, Any]) -> list[tuple[int, int]]:
    """(index, time) of the samples, each later than the one before."""
    kept: list[tuple[int, int]] = []
    for index, value in enumerate(listed(telemetry.get("t_ms"))):
        at_ms = number(value)
        if at_ms is None or abs(at_ms) * 1e6 > TIME_NS_MAX:
            continue
        at_ns = round(at_ms * 1e6)
        if not kept or at_ns > kept[-1][1]:
            kept.append((index, at_ns))
    return kept


def _levels(telemetry: Mapping[str, Any], times: Sequence[tuple[int, int]], players: Players) -> Iterator[Counter]:
    def level(name: str, read: Read) -> Counter:
        return Counter(name, [(at_ns, value) for index, at_ns in times if (value := read(index)) is not None])

    for at, cpu in enumerate(_names(telemetry, "cpus", "freq_khz")):
        yield level(f"cpu{cpu} frequency MHz", _reader(telemetry, "freq_khz", at, factor=1e-3))
    for at, zone in enumerate(_names(telemetry, "zones", "temp_mc")):
        yield level(f"{zone} (zone {at}) °C", _reader(telemetry, "temp_mc", at, factor=1e-3))
    for at, battery in enumerate(_names(telemetry, "batteries", "battery")):
        for key, unit, factor in _BATTERY:
            yield level(f"{battery} {unit}", _battery_reader(telemetry, at, key, factor))
    yield level("memory available MB", _reader(telemetry, "mem_available_kb", None, factor=1e-3))
    yield level(f"memory of the {players.child} MB", _child_reader(telemetry, "rss_kb", 1e-3))
    yield level(f"threads of the {players.child}", _child_reader(telemetry, "threads", 1.0))


_BATTERY = (
    ("percent", "%", 1.0),
    ("current_ua", "mA", 1e-3),
    ("voltage_uv", "mV", 1e-3),
    ("temp_dc", "°C", 0.1),
)


def _rates(telemetry: Mapping[str, Any], times: Sequence[tuple[int, int]], players: Players) -> Iterator[Counter]:
    pairs = list(pairwise(times))

    def between(name: str, read: Callable[[int, int, float], float | None]) -> Counter:
        """A value for the time from each sample to the next."""
        values = ((from_ns, read(first, last, (to_ns - from_ns) / 1e9)) for (first, from_ns), (last, to_ns) in pairs)
        return Counter(name, [(from_ns, round(value, 3)) for from_ns, value in values if value is not None])

    for at, cpu in enumerate(_names(telemetry, "cpus", "busy")):
        yield between(f"cpu{cpu} busy %", _busy_percent(telemetry, at))
    users = _Users(telemetry)
    yield between("CPUs used, all", users.everyone)
    yield between(f"CPUs used, {players.child}", users.child)
    yield between("CPUs used, load", users.load)
    yield between(f"CPUs used, {players.others}", users.others)
    yield between("CPUs stolen by the hypervisor", users.stolen)
    for at in range(_width(telemetry, "load_cpu_ns")):
        read = _reader(telemetry, "load_cpu_ns", at, factor=1e-7)
        yield between(f"load thread {at} achieved %", _per_second(read))
    yield between("waiting for a CPU % (PSI)", _per_second(_reader(telemetry, "psi_cpu_us", None, factor=1e-4)))


def _per_second(read: Read) -> Callable[[int, int, float], float | None]:
    def rate(first: int, last: int, seconds: float) -> float | None:
        grown = _growth(read, first, last)
        return None if grown is None else grown / seconds

    return rate


def _busy_percent(telemetry: Mapping[str, Any], at: int) -> Callable[[int, int, float], float | None]:
    busy, idle = (_reader(telemetry, name, at) for name in ("busy", "idle"))

    def percent(first: int, last: int, _seconds: float) -> float | None:
        used, unused = _growth(busy, first, last), _growth(idle, first, last)
        if used is None or unused is None or used + unused <= 0:
            return None
        return 100.0 * used / (used + unused)

    return percent


class _Users:
    """Who used the CPUs between two samples, in CPUs: 1.0 is one CPU kept busy."""

    def __init__(self, telemetry: Mapping[str, Any]) -> None:
        self._telemetry = telemetry
        tick_hz = number(telemetry.get("tick_hz"))
        self._tick_s = 1.0 / tick_hz if tick_hz and tick_hz > 0 else 0.01
        self._child = _per_second(_child_reader(telemetry, "cpu_ns", 1e-9))

    def everyone(self, first: int, last: int, seconds: float) -> float | None:
        return self._sum("busy", self._tick_s, first, last, seconds)

    def stolen(self, first: int, last: int, seconds: float) -> float | None:
        return self._sum("steal", self._tick_s, first, last, seconds)

    def load(self, first: int, last: int, seconds: float) -> float | None:
        return self._sum("load_cpu_ns", 1e-9, first, last, seconds)

    def child(self, first: int, last: int, seconds: float) -> float | None:
        return self._child(first, last, seconds)

    def others(self, first: int, last: int, seconds: float) -> float | None:
        """What neither the process nor the load used, known only where the process was seen at both ends."""
        everyone, child = self.everyone(first, last, seconds), self.child(first, last, seconds)
        if everyone is None or child is None:
            return None
        return max(0.0, everyone - child - (self.load(first, last, seconds) or 0.0))

    def _sum(self, name: str, factor: float, first: int, last: int, seconds: float) -> float | None:
        width = _width(self._telemetry, name)
        grown = [_growth(_reader(self._telemetry, name, at, factor=factor), first, last) for at in range(width)]
        known = [value for value in grown if value is not None]
        return sum(known) / seconds if known else None


def _growth(read: Read, first: int, last: int) -> float | None:
    """How far a running total grew; None where it is not known, or fell."""
    before, after = read(first), read(last)
    return after - before if before is not None and after is not None and after >= before else None


def _reader(telemetry: Mapping[str, Any], name: str, at: int | None, *, factor: float = 1.0) -> Read:
    """The numbers of a column, or of one place in its lists."""
    column = listed(telemetry.get(name))

    def read(index: int) -> float | None:
        entry = place(column, index)
        value = number(entry if at is None else place(entry, at))
        return None if value is None else value * factor

    return read


def _child_reader(telemetry: Mapping[str, Any], key: str, factor: float) -> Read:
    column = listed(telemetry.get("child"))

    def read(index: int) -> float | None:
        value = number(keyed(place(column, index)).get(key))
        return None if value is None else value * factor

    return read


def _battery_reader(telemetry: Mapping[str, Any], at: int, key: str, factor: float) -> Read:
    column = listed(telemetry.get("battery"))

    def read(index: int) -> float | None:
        value = number(keyed(place(place(column, index), at)).get(key))
        return None if value is None else value * factor

    return read


def _width(telemetry: Mapping[str, Any], name: str) -> int:
    return max((len(listed(entry)) for entry in listed(telemetry.get(name))), default=0)


def _names(telemetry: Mapping[str, Any], names: str, column: str) -> list[str]:
    """What the places in a column's lists are called; a place without a name goes by its number."""
    known = listed(telemetry.get(names))
    return [str(known[at]) if at < len(known) else str(at) for at in range(_width(telemetry, column))]
