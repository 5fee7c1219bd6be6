"""The rules of evidence about load and conditions: was the device as it was asked to be? Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from orchestrator import telemetry
from orchestrator.evidence_terms import Asked, note, process_elsewhere, reject, unverified, warn
from orchestrator.runners.base import Reading
from orchestrator.stage import Report
from orchestrator.trial import Finding

_OTHER_CPUS_NOTABLE = 0.2
_USAGE_NEEDED_S = 0.2
"""The kernel counts CPU time in ticks: over less than this, shares mean little."""
_LOAD_PHASE_NEEDED_NS = 100_000_000
"""A load works in periods of ten milliseconds and more: beside a shorter trial its share means nothing."""
_LOAD_LEAST_SHARE = 0.2
"""Beside the model a load may be squeezed, but one that hardly ran is no load."""
_OTHER_PERCENT_OF_ONE = 50.0
_OTHER_PERCENT_OF_ALL = 25.0
"""Without a limit of the plan's, other programs may use half a CPU, or a quarter of all CPUs where that is more."""
_STEAL_NOTABLE = 0.05
_FREQUENCY_DROP_NOTABLE = 0.05


_READINGS = (
    ("temperature_c_max", "temperature_c", "no sensor"),
    ("battery_percent_min", "battery_percent", "no battery"),
    ("thermal_status_max", "thermal_status", "no thermal status"),
    ("charging", "charging", "no charger state"),
    ("low_power_mode", "low_power_mode", "no low-power mode"),
)


# Was the load what was asked?


def _load(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    if asked.cell.load == "idle":
        return
    if not report.loads:
        yield reject("load", f"the agent says nothing of the load {asked.cell.load}", "see the trial's log")
        return
    tolerance = asked.conditions.load_tolerance_points
    for phase in report.loads:
        if phase.get("alive") is False:
            yield reject("load", f"the load {asked.cell.load} was not running in phase {phase['phase']}", "see the log")
    settle = _last_phase(report, "settle")
    if settle is None:
        yield reject("load", f"the load {asked.cell.load} was not measured before the model started", "see the log")
        return
    offered, achieved = max(_shares(settle), key=lambda share: abs(share[0] - share[1]), default=(0.0, 0.0))
    if abs(offered - achieved) > tolerance:
        yield reject(
            "load-not-achieved",
            f"the load {asked.cell.load} held {achieved:.0f} % of a CPU where {offered:.0f} % was asked, "
            "before the model started",
            "other programs keep the CPUs busy: stop them, or ask for less load",
        )
        return
    yield from _squeezed(asked, report)


def _squeezed(asked: Asked, report: Report) -> Iterator[Finding]:
    """Beside a running model a load may get less than it offers: that is the competition being measured."""
    phase = _last_phase(report, "run") or {}
    shares = list(_shares(phase))
    if not shares or phase.get("to_ns", 0) - phase.get("from_ns", 0) < _LOAD_PHASE_NEEDED_NS:
        return
    offered, achieved = (sum(column) / len(shares) for column in zip(*shares, strict=True))
    if achieved < _LOAD_LEAST_SHARE * offered:
        yield reject(
            "load-starved",
            f"beside the model the load {asked.cell.load} got {achieved:.0f} % of a CPU a thread, of {offered:.0f} %",
            "ask for a load that this device can carry beside the model",
        )
    elif offered - achieved > asked.conditions.load_tolerance_points:
        yield note(
            "load-squeezed",
            f"beside the model the load {asked.cell.load} got {achieved:.0f} % of a CPU a thread, of {offered:.0f} %",
            "nothing to do: model and load competed for the CPUs",
        )


def _last_phase(report: Report, name: str) -> Mapping[str, Any] | None:
    return next((phase for phase in reversed(report.loads) if phase.get("phase") == name), None)


def _shares(phase: Mapping[str, Any] | None) -> Iterator[tuple[float, float]]:
    """(offered, achieved) in percent of a CPU for each load thread that offers a share."""
    for thread in (phase or {}).get("threads") or []:
        if thread.get("offered") is not None and thread.get("achieved") is not None:
            yield 100.0 * thread["offered"], 100.0 * thread["achieved"]


# Were the conditions steady?


def _holds(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    seen = {hold.get("path"): hold for hold in report.started.get("holds") or []}
    for hold in asked.holds:
        found = seen.get(hold.path, {})
        if found.get("seen") != hold.value:
            why = found.get("error") or f"it reads {found.get('seen')}"
            yield reject("hold", f"{hold.path} could not be held at {hold.value}: {why}", "run as root on the device")
            return
    if asked.holds and report.closing.get("holds_restored") is False:
        yield warn("hold-not-restored", "a held setting could not be put back", "see the trial's log")


def _limits(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """What the platform found broken; and limits that nobody could check."""
    for reason in dict.fromkeys(asked.breaches):
        yield reject("limit", reason, "let the device rest, or change its limits in devices.toml")
    for limit, reading_name, sensor in _READINGS:
        unread = all(state.get(reading_name) is None for state in asked.states)
        if getattr(asked.limits, limit) is not None and unread:
            yield warn(f"{limit}-unread", f"{limit} is set, and {sensor} can be read", "remove the limit")


def _usage(report: Report, reading: Reading) -> telemetry.Usage | None:
    """CPU use while the child ran; a process that infers elsewhere is none of the other programs."""
    used, process = telemetry.usage(report), process_elsewhere(reading)
    if used is None or process is None:
        return used
    ticks = process.get("cpu_ticks")
    own = ticks / float(report.header.get("tick_hz") or 100) / used.wall_s if ticks is not None else None
    return replace(used, child=None if own is None or used.child is None else used.child + own)


def _neighbours(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    used = _usage(report, reading)
    if used is None or used.wall_s < _USAGE_NEEDED_S:
        return
    limit = asked.conditions.other_cpu_percent_max
    is_elsewhere = process_elsewhere(reading) is not None
    if limit is None:
        # To start an app, Android works itself, and no one can tell how much: only a limit of the plan's rejects.
        by_default = max(_OTHER_PERCENT_OF_ONE, _OTHER_PERCENT_OF_ALL * len(report.header.get("cpus") or []))
        limit = float("inf") if is_elsewhere else by_default
    if used.other is None and is_elsewhere:
        yield unverified("other-cpu", "the app's own CPU time could not be read, so that of others is not known")
    if used.other is not None and 100.0 * used.other > limit:
        yield reject(
            "other-cpu",
            f"other programs used {100 * used.other:.0f} % of a CPU, and the limit is {limit:g} %",
            "stop them, or raise other_cpu_percent_max under [conditions]",
        )
    elif used.other is not None and used.other > _OTHER_CPUS_NOTABLE and asked.cell.load.partition(":")[0] != "model":
        yield warn("other-cpu", f"other programs used {100 * used.other:.0f} % of a CPU", "stop them while measuring")
    if used.steal is not None and used.steal > _STEAL_NOTABLE:
        yield warn(
            "steal",
            f"the hypervisor took {100 * used.steal:.0f} % of a CPU away",
            "measure on a quieter host",
        )


def _unwatched(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """Where no agent runs, nobody but the runner itself says what happened."""
    if report.unwatched:
        yield warn(
            "unwatched",
            f"{report.unwatched}: the kernel's count of threads, other programs and the CPU's clock are unverified",
            "nothing to do; trust the number less than one from a device that runs our agent",
        )


def _frequency(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    drop = telemetry.frequency_drop([sample for sample in report.samples if sample.get("child")])
    if drop is not None and drop > _FREQUENCY_DROP_NOTABLE:
        yield warn(
            "frequency",
            f"the fastest CPU's clock moved by {100 * drop:.0f} %",
            "hold the governor if permitted",
        )


def _cool_down(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    readiness = asked.readiness
    slower = readiness.slower_than_best
    if readiness.waited_s:
        yield note(
            "cool-down",
            f"waited {readiness.waited_s:.0f} s before the trial: {readiness.waited_for}",
            "nothing to do; a cooler place or a lighter load makes a run shorter",
        )
    if slower is not None and slower > readiness.canary_slack:
        yield warn(
            "not-cool",
            f"a canary probe took {100 * slower:.0f} % longer than at its best in this session",
            "let the device rest, or compare only within blocks: it is slower than it can be",
        )


def _throttling(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """What the device says of itself before and after, and what its firmware noted in between."""
    seen = [reason for state in asked.states for reason in state.get("throttled") or ()]
    noted = [state.get("throttled_since_boot") or () for state in asked.states]
    seen += [reason for reason in noted[-1] if reason not in noted[0]] if noted else []
    if seen:
        yield warn(
            "throttled",
            f"the device held itself back: {', '.join(dict.fromkeys(seen))}",
            "use a better cooler or a stronger power supply, or let it rest",
        )


CONDITION_RULES = (_load, _holds, _limits, _neighbours, _unwatched, _frequency, _throttling, _cool_down)
