"""What ran against what was asked: each rule compares one setting with its evidence and may reject the trial. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator import telemetry
from orchestrator.agent_lines import Report
from orchestrator.fleet import Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.platforms.base import Hold
from orchestrator.runners.base import Reading
from orchestrator.trial import Cell, Finding, Outcome, Severity

_LOOKS_NEEDED = 3
"""The agent looks at the threads once a sample: a shorter trial proves nothing."""
_OTHER_CPUS_NOTABLE = 0.25
_STEAL_NOTABLE = 0.05
_FREQUENCY_DROP_NOTABLE = 0.05


@dataclass(frozen=True)
class Asked:
    """Everything a trial was meant to be."""

    cell: Cell
    measure: Measure
    conditions: Conditions
    limits: Limits
    affinity_mask: str | None
    holds: Sequence[Hold]
    breaches: tuple[str, ...] = ()
    """Limits that the device broke right before or right after the trial, in words."""


def judge(asked: Asked, report: Report, reading: Reading) -> tuple[Outcome, str | None, tuple[Finding, ...]]:
    """The outcome of a trial, its reason when it does not count, and all findings."""
    findings = list(_failures(asked, report, reading))
    if not findings:
        findings = [finding for rule in _RULES for finding in rule(asked, report, reading)]
    for severity, outcome in ((Severity.FAIL, Outcome.FAILED), (Severity.REJECT, Outcome.REJECTED)):
        worst = next((finding for finding in findings if finding.severity == severity), None)
        if worst:
            return outcome, worst.reason, tuple(findings)
    return Outcome.MEASURED, None, tuple(findings)


def _fail(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.FAIL, reason, remedy)


def _reject(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.REJECT, reason, remedy)


def _warn(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.WARN, reason, remedy)


# Did it run at all?


def _failures(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """Why there is nothing to judge. The first that applies tells the story; the rest would follow from it."""
    closing = report.closing
    if reading.error:
        yield _fail(f"runner-{reading.error.kind}", reading.error.message, reading.error.remedy)
    elif closing.get("reason") == "spawn":
        yield _fail(
            "spawn",
            f"the runner could not be started ({closing.get('errno')})",
            "check that the runner's program exists on the device and suits its CPU",
        )
    elif closing.get("reason") == "deadline":
        yield _fail(
            "timeout",
            f"no end after {asked.measure.trial_timeout_s:g} s: killed",
            "raise trial_timeout under [measure], or lower runs",
        )
    elif closing.get("reason") == "signal":
        yield _crash(report)
    elif closing.get("reason") == "exit" and closing.get("exit") != 0:
        yield _fail(
            "exit",
            f"the runner ended with status {closing.get('exit')}{_last_words(report)}",
            "see the trial's log",
        )
    elif closing.get("reason") == "load-died":
        yield _reject("load-died", f"the load {asked.cell.load} died{_told(closing)}", "run the load's command by hand")
    elif closing.get("reason") != "exit" or not report.is_whole:
        yield _broken_off(report)
    elif not reading.samples_us and reading.summary is None:
        yield _fail("no-samples", f"the runner printed no latency{_last_words(report)}", "see the trial's log")


def _crash(report: Report) -> Finding:
    signal = report.closing.get("signal")
    memory_kb = report.closing.get("maxrss_kb")
    reason = f"the runner was killed by signal {signal}" + (" (SIGKILL)" if signal == 9 else "")
    if signal == 9:
        return _fail("killed", reason, f"see whether the device ran out of memory (the runner had {memory_kb} KB)")
    return _fail("crash", reason + _last_words(report), "try the model with another delegate; see the trial's log")


def _broken_off(report: Report) -> Finding:
    said, got = report.closing.get("lines"), report.lines
    if report.closing.get("reason") in ("host-gone", "heartbeat", "terminated"):
        return _fail("cut", f"the agent was cut off ({report.closing['reason']})", "check the connection to the device")
    detail = f"{got} of {said} lines arrived" if said is not None else "the closing record is missing"
    if said == got:
        detail = f"{report.unreadable} of {got} lines cannot be read"
    return _fail("truncated", f"the output of the trial is incomplete: {detail}", "check the connection to the device")


def _last_words(report: Report) -> str:
    for line in reversed(report.stderr):
        if line.strip():
            return ": " + line.decode("utf-8", "replace").strip()[:300]
    return ""


def _told(closing: Mapping[str, Any]) -> str:
    last_line = (closing.get("load_exit") or {}).get("last_line")
    return f": {last_line}" if last_line else ""


# Was it what was asked?


def _content(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    seen = reading.observed.get("model_sha256")
    if seen is not None and seen != asked.cell.model_sha256:
        yield _reject(
            "model-content",
            f"another model ran: {seen[:12]} instead of {asked.cell.model_sha256[:12]}",
            "push it again",
        )
    runner = reading.observed.get("runner_sha256")
    if runner is not None and asked.cell.runner_sha256 and runner != asked.cell.runner_sha256:
        yield _reject(
            "runner-content",
            f"another runner ran: {runner[:12]} instead of {asked.cell.runner_sha256[:12]}",
            "start a new run: devbench was changed in between",
        )


def _delegate(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    total, delegated = reading.observed.get("nodes_total"), reading.observed.get("nodes_delegated")
    if delegated is None:
        return
    if asked.cell.delegate == "cpu" and delegated > 0:
        yield _reject(
            "delegate",
            f"plain CPU kernels were asked for, and {delegated} nodes were delegated",
            "see the log",
        )
    if asked.cell.delegate != "cpu" and delegated == 0:
        yield _reject(
            "delegate",
            f"{asked.cell.delegate} took none of the {total} nodes: the model ran on plain CPU kernels",
            "use delegate cpu for this model, or convert it so that the delegate can take it",
        )
    elif asked.cell.delegate != "cpu" and total and delegated < total:
        yield _warn(
            "delegate-partial",
            f"{asked.cell.delegate} took {delegated} of {total} nodes",
            "look at the operators that are left on the CPU",
        )


def _threads(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """XNNPACK's pool of N is the calling thread and N - 1 more, made at allocation. Plain kernels start theirs
    when an operator is large enough, and not always N - 1: there only one thread can be told from several."""
    before, allocated = reading.observed.get("threads_before"), reading.observed.get("threads_allocated")
    after = reading.observed.get("threads_after")
    if before is None or allocated is None or after is None:
        return
    if asked.cell.delegate == "xnnpack":
        used, is_wrong = allocated - before + 1, allocated - before != asked.cell.threads - 1
    else:
        used, is_wrong = after - before + 1, asked.cell.threads == 1 and after > before
    if is_wrong:
        yield _reject(
            "threads",
            f"{_counted(asked.cell.threads)} asked for, and the runtime uses {used}",
            "this runtime ignores the thread count: use another version",
        )
    seen = (report.closing.get("threads") or {}).get("max")
    looked_ns = _LOOKS_NEEDED * 1e6 * asked.measure.sample_ms
    lasted_ns = reading.metrics.get("steady_wall_ns") or 0
    if seen is not None and seen < after and 0 < looked_ns <= lasted_ns:
        yield _reject(
            "threads", f"the runner speaks of {after} threads, the kernel shows {seen}", "see the trial's log"
        )


def _counted(threads: int) -> str:
    return "1 thread was" if threads == 1 else f"{threads} threads were"


def _affinity(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    if asked.affinity_mask is None:
        return
    for when, seen in (
        ("at the start", report.started.get("affinity")),
        ("at the end", report.closing.get("affinity")),
    ):
        if seen is not None and int(seen, 16) != int(asked.affinity_mask, 16):
            yield _reject(
                "affinity",
                f"mask {asked.affinity_mask} was asked for, and {when} the process may run on {seen}",
                "see which of these CPUs are online and permitted",
            )
            return


def _count(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    count = reading.observed.get("count")
    if count is not None and reading.samples_us and count != len(reading.samples_us):
        yield _reject(
            "count",
            f"the runner counted {count} inferences, {len(reading.samples_us)} arrived",
            "see the log",
        )
    elif reading.samples_us and len(reading.samples_us) < asked.measure.runs:
        if reading.observed.get("stopped_by") == "cap":
            yield _warn(
                "count-capped",
                f"{len(reading.samples_us)} of {asked.measure.runs} inferences within max_ms = {asked.measure.max_ms}",
                "raise max_ms under [measure]",
            )
        else:
            yield _reject(
                "count",
                f"{len(reading.samples_us)} of {asked.measure.runs} inferences were made",
                "see the log",
            )


# Was the load what was asked?


def _load(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    if asked.cell.load == "idle":
        return
    if not report.loads:
        yield _reject("load", f"the agent says nothing of the load {asked.cell.load}", "see the trial's log")
        return
    tolerance = asked.conditions.load_tolerance_points
    for phase in report.loads:
        if phase.get("alive") is False:
            yield _reject(
                "load", f"the load {asked.cell.load} was not running in phase {phase['phase']}", "see the log"
            )
    settle = _last_phase(report, "settle")
    for offered, achieved in _shares(settle):
        if abs(offered - achieved) > tolerance:
            yield _reject(
                "load-not-achieved",
                f"the load {asked.cell.load} held {achieved:.0f} % of a CPU where {offered:.0f} % was asked, "
                "before the model started",
                "other programs keep the CPUs busy: stop them, or ask for less load",
            )
            return
    yield from _squeezed(asked, report)


def _squeezed(asked: Asked, report: Report) -> Iterator[Finding]:
    """Beside a running model a load may get less than it offers: that is the competition being measured."""
    shares = list(_shares(_last_phase(report, "run")))
    if not shares:
        return
    offered, achieved = (sum(column) / len(shares) for column in zip(*shares, strict=True))
    if offered - achieved > asked.conditions.load_tolerance_points:
        yield Finding(
            "load-squeezed",
            Severity.NOTE,
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
            yield _reject("hold", f"{hold.path} could not be held at {hold.value}: {why}", "run as root on the device")
            return
    if asked.holds and report.closing.get("holds_restored") is False:
        yield _warn("hold-not-restored", "a held setting could not be put back", "see the trial's log")


def _states(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    for reason in asked.breaches:
        yield _reject("limit", reason, "let the device rest, or change its limits in devices.toml")


def _limits(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    hottest, lowest = telemetry.temperature_c(report.samples), telemetry.battery_percent(report.samples)
    limit_c, limit_percent = asked.limits.temperature_c_max, asked.limits.battery_percent_min
    if limit_c is not None and hottest is not None and hottest > limit_c:
        yield _reject("temperature", f"{hottest:.1f} degrees C, and the limit is {limit_c:g}", "cool the device")
    if limit_c is not None and hottest is None:
        yield _warn("temperature-unread", "temperature_c_max is set, and no sensor can be read", "remove the limit")
    if limit_percent is not None and lowest is None:
        yield _warn("battery-unread", "battery_percent_min is set, and no battery can be read", "remove the limit")
    if limit_percent is not None and lowest is not None and lowest < limit_percent:
        yield _reject("battery", f"battery at {lowest:g} %, and the limit is {limit_percent:g} %", "charge the device")


def _neighbours(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    used = telemetry.usage(report)
    if used is None:
        return
    limit = asked.conditions.other_cpu_percent_max
    if limit is not None and used.other is not None and 100.0 * used.other > limit:
        yield _reject(
            "other-cpu",
            f"other programs used {100 * used.other:.0f} % of a CPU, and the limit is {limit:g} %",
            "stop them, or raise other_cpu_percent_max under [conditions]",
        )
    elif used.other is not None and used.other > _OTHER_CPUS_NOTABLE and asked.cell.load.partition(":")[0] != "model":
        yield _warn("other-cpu", f"other programs used {100 * used.other:.0f} % of a CPU", "stop them while measuring")
    if used.steal is not None and used.steal > _STEAL_NOTABLE:
        yield _warn(
            "steal",
            f"the hypervisor took {100 * used.steal:.0f} % of a CPU away",
            "measure on a quieter host",
        )


def _frequency(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    drop = telemetry.frequency_drop([sample for sample in report.samples if sample.get("child")])
    if drop is not None and drop > _FREQUENCY_DROP_NOTABLE:
        yield _warn(
            "frequency",
            f"the fastest CPU's clock moved by {100 * drop:.0f} %",
            "hold the governor if permitted",
        )


_RULES = (_content, _delegate, _threads, _affinity, _count, _load, _holds, _limits, _states, _neighbours, _frequency)
