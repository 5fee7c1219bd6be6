"""What an agent's samples mean: columns for the store, and the shares of CPU time while the child ran. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.stage import Report


@dataclass(frozen=True)
class Usage:
    """CPU use while the child ran, in CPUs (1.0 is one CPU kept busy). None is not known."""

    wall_s: float
    busy: float | None = None
    child: float | None = None
    load: float | None = None
    steal: float | None = None

    @property
    def other(self) -> float | None:
        """What neither the child nor our load used: other programs."""
        if self.busy is None or self.child is None:
            return None
        return max(0.0, self.busy - self.child - (self.load or 0.0))


def columns(report: Report) -> dict[str, Any]:
    """The samples as columns, times in milliseconds from the child's start."""
    samples = report.samples
    if not samples or report.unwatched:
        return {}
    start_ns = int(report.started.get("t_ns") or samples[0]["t_ns"])
    kept: dict[str, Any] = {"t_ms": [round((int(sample["t_ns"]) - start_ns) / 1e6, 1) for sample in samples]}
    for name in (
        "freq_khz",
        "temp_mc",
        "busy",
        "idle",
        "steal",
        "mem_available_kb",
        "psi_cpu_us",
        "load_cpu_ns",
    ):
        column = [sample.get(name) for sample in samples]
        if any(value is not None for value in column):
            kept[name] = column
    for name in ("child", "battery"):
        column = [sample.get(name) for sample in samples]
        if any(column):
            kept[name] = column
    for name in ("cpus", "zones", "batteries", "tick_hz", "absent"):
        if report.header.get(name):
            kept[name] = report.header[name]
    return kept


def usage(report: Report) -> Usage | None:
    """CPU shares between the first and the last sample taken while the child ran."""
    first_ns, last_ns = report.started.get("t_ns"), report.closing.get("t_ns")
    if first_ns is None or last_ns is None:
        return None
    within = [sample for sample in report.samples if first_ns <= sample["t_ns"] <= last_ns]
    # The agent takes one more sample after the child's end, which can no longer say what the child used.
    within = [sample for sample in within if sample.get("child")] or within
    if len(within) < 2:
        return None
    first, last = within[0], within[-1]
    wall_s = (last["t_ns"] - first["t_ns"]) / 1e9
    tick_hz = float(report.header.get("tick_hz") or 100)
    if wall_s <= 0:
        return None
    return Usage(
        wall_s=wall_s,
        busy=_scaled(_growth(first.get("busy"), last.get("busy")), tick_hz * wall_s),
        child=_scaled(_growth_of_child(first, last), 1e9 * wall_s),
        load=_scaled(_growth(first.get("load_cpu_ns"), last.get("load_cpu_ns")), 1e9 * wall_s),
        steal=_scaled(_growth(first.get("steal"), last.get("steal")), tick_hz * wall_s),
    )


def _scaled(growth: float | None, by: float) -> float | None:
    return None if growth is None else growth / by


def _growth(first: Sequence[float | None] | None, last: Sequence[float | None] | None) -> float | None:
    if not first or not last or len(first) != len(last):
        return None
    pairs = [
        (before, after) for before, after in zip(first, last, strict=True) if before is not None and after is not None
    ]
    return float(sum(after - before for before, after in pairs)) if pairs else None


def _growth_of_child(first: Mapping[str, Any], last: Mapping[str, Any]) -> float | None:
    before, after = first.get("child") or {}, last.get("child") or {}
    if "cpu_ns" not in before or "cpu_ns" not in after:
        return None
    return float(after["cpu_ns"] - before["cpu_ns"])


def temperature_c(samples: Sequence[Mapping[str, Any]]) -> float | None:
    """The hottest reading of any sensor; readings no sensor of a working device gives are left out."""
    readings = [value / 1000.0 for sample in samples for value in sample.get("temp_mc") or [] if value is not None]
    plausible = [value for value in readings if -40.0 < value < 150.0]
    return max(plausible, default=None)


def battery_percent(samples: Sequence[Mapping[str, Any]]) -> float | None:
    """The lowest battery level seen; None without a battery."""
    levels = [
        float(battery["percent"])
        for sample in samples
        for battery in sample.get("battery") or []
        if battery and battery.get("percent") is not None
    ]
    return min(levels, default=None)


def frequency_drop(samples: Sequence[Mapping[str, Any]]) -> float | None:
    """How far the fastest CPU's clock fell below its highest reading; 0.1 is ten percent. None without readings."""
    clocks = [[float(value) for value in sample.get("freq_khz") or [] if value] for sample in samples]
    fastest = [max(readings) for readings in clocks if readings]
    return 1.0 - min(fastest) / max(fastest) if len(fastest) > 1 else None


def busy_cpus(samples: Sequence[Mapping[str, Any]]) -> float | None:
    """How many CPUs were kept busy between the first and the last sample, as a share of all that were counted."""
    if len(samples) < 2:
        return None
    busy = _growth(samples[0].get("busy"), samples[-1].get("busy"))
    idle = _growth(samples[0].get("idle"), samples[-1].get("idle"))
    cpus = len(samples[0].get("busy") or [])
    if busy is None or idle is None or busy + idle <= 0:
        return None
    return cpus * busy / (busy + idle)
