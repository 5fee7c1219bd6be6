"""What ran against what was asked: each rule compares one setting with its evidence and may reject the trial. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.evidence_conditions import CONDITION_RULES
from orchestrator.evidence_delegates import DELEGATE_RULES
from orchestrator.evidence_terms import (
    Asked,
    fail,
    mask_seen,
    process_elsewhere,
    reject,
    threads_seen,
    unverified,
    warn,
)
from orchestrator.evidence_words import WORD_RULES
from orchestrator.runners.base import Reading
from orchestrator.stage import Report
from orchestrator.trial import Finding, Outcome, Severity

_LOOKS_NEEDED = 3
"""The agent looks at the threads once a sample: a shorter trial proves nothing."""


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


# Did it run at all?


def _failures(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """Why there is nothing to judge. The first that applies tells the story; the rest would follow from it."""
    closing = report.closing
    if reading.error:
        yield fail(f"runner-{reading.error.kind}", reading.error.message, reading.error.remedy)
    elif closing.get("reason") == "spawn":
        yield fail(
            "spawn",
            f"the runner could not be started ({closing.get('errno')})",
            "check that the runner's program exists on the device and suits its CPU",
        )
    elif closing.get("reason") == "deadline":
        yield fail(
            "timeout",
            f"no end after {asked.measure.trial_timeout_s:g} s: killed",
            "raise trial_timeout under [measure], or lower runs",
        )
    elif closing.get("reason") == "signal":
        yield _crash(report)
    elif closing.get("reason") == "exit" and closing.get("exit") != 0:
        yield fail(
            "exit",
            f"the runner ended with status {closing.get('exit')}{_last_words(report)}",
            "see the trial's log",
        )
    elif closing.get("reason") == "load-died":
        yield reject("load-died", f"the load {asked.cell.load} died{_told(closing)}", "run the load's command by hand")
    elif closing.get("reason") != "exit" or not report.is_whole:
        yield _broken_off(report)
    elif not reading.samples_us and reading.summary is None:
        yield fail("no-samples", f"the runner printed no latency{_last_words(report)}", "see the trial's log")


def _crash(report: Report) -> Finding:
    signal = report.closing.get("signal")
    memory_kb = report.closing.get("maxrss_kb")
    reason = f"the runner was killed by signal {signal}" + (" (SIGKILL)" if signal == 9 else "")
    if signal == 9:
        return fail("killed", reason, f"see whether the device ran out of memory (the runner had {memory_kb} KB)")
    return fail("crash", reason + _last_words(report), "try the model with another delegate; see the trial's log")


def _broken_off(report: Report) -> Finding:
    said, got = report.closing.get("lines"), report.lines
    if report.closing.get("reason") in ("host-gone", "heartbeat", "terminated"):
        return fail("cut", f"the agent was cut off ({report.closing['reason']})", "check the connection to the device")
    detail = f"{got} of {said} lines arrived" if said is not None else "the closing record is missing"
    if said == got:
        detail = f"{report.unreadable} of {got} lines cannot be read"
    return fail("truncated", f"the output of the trial is incomplete: {detail}", "check the connection to the device")


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
        yield reject(
            "model-content",
            f"another model ran: {seen[:12]} instead of {asked.cell.model_sha256[:12]}",
            "push it again",
        )
    runner = reading.observed.get("runner_sha256")
    if runner is not None and asked.cell.runner_sha256 and runner != asked.cell.runner_sha256:
        yield reject(
            "runner-content",
            f"another runner ran: {runner[:12]} instead of {asked.cell.runner_sha256[:12]}",
            "start a new run: devbench was changed in between",
        )


def _threads(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """XNNPACK's pool of N is the calling thread and N - 1 more, made at allocation. Plain kernels start theirs
    when an operator is large enough, and not always N - 1: there only one thread can be told from several."""
    before, allocated = reading.observed.get("threads_before"), reading.observed.get("threads_allocated")
    after = reading.observed.get("threads_after")
    if before is None or allocated is None or after is None:
        if "threads_echo" not in reading.observed:
            yield unverified("threads", "the runner does not say how many threads it uses")
        return
    if asked.delegate.base == "xnnpack":
        used, is_wrong = allocated - before + 1, allocated - before != asked.cell.threads - 1
    else:
        used, is_wrong = after - before + 1, asked.cell.threads == 1 and after > before
    if is_wrong:
        yield reject(
            "threads",
            f"{_counted(asked.cell.threads)} asked for, and the runtime uses {used}",
            "this runtime ignores the thread count: use another version",
        )
    seen = threads_seen(report, reading)
    looked_ns = _LOOKS_NEEDED * 1e6 * asked.measure.sample_ms
    lasted_ns = reading.metrics.get("steady_wall_ns") or 0
    if seen is not None and seen < after and 0 < looked_ns <= lasted_ns:
        yield reject("threads", f"the runner speaks of {after} threads, the kernel shows {seen}", "see the trial's log")


def _counted(threads: int) -> str:
    return "1 thread was" if threads == 1 else f"{threads} threads were"


def _confinement(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """Whoever started devbench may have confined it, and with it everything it starts, to a few CPUs."""
    seen = mask_seen(report, reading) if asked.affinity_mask is None else None
    cpus = int(seen, 16).bit_count() if seen else None
    if cpus is not None and cpus < asked.cell.threads:
        yield reject(
            "confined",
            f"{asked.cell.threads} threads may run on {cpus} CPUs only (mask {seen})",
            "run devbench without taskset or a cpuset, or ask for fewer threads",
        )


def _affinity(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    if asked.affinity_mask is None:
        return
    if process_elsewhere(reading) is not None:
        yield reject("affinity", "the agent's mask does not reach the process that infers", "leave affinity out")
        return
    if report.started.get("affinity") is None:
        yield reject(
            "affinity", f"mask {asked.affinity_mask} was asked for, and no mask could be read back", "see the log"
        )
    for when, seen in (
        ("at the start", report.started.get("affinity")),
        ("at the end", report.closing.get("affinity")),
    ):
        if seen is not None and int(seen, 16) != int(asked.affinity_mask, 16):
            yield reject(
                "affinity",
                f"mask {asked.affinity_mask} was asked for, and {when} the process may run on {seen}",
                "see which of these CPUs are online and permitted",
            )
            return


def _count(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    count = reading.observed.get("count")
    if count is not None and reading.samples_us and count != len(reading.samples_us):
        yield reject(
            "count",
            f"the runner counted {count} inferences, {len(reading.samples_us)} arrived",
            "see the log",
        )
        return
    made = len(reading.samples_us) or (reading.summary.count if reading.summary else 0)
    if 0 < made < asked.measure.runs:
        if reading.observed.get("stopped_by") == "cap":
            yield warn(
                "count-capped",
                f"{made} of {asked.measure.runs} inferences within max_ms = {asked.measure.max_ms}",
                "raise max_ms under [measure]",
            )
        else:
            yield reject(
                "count",
                f"{made} of {asked.measure.runs} inferences were made",
                "see the log",
            )


def _inputs(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    if reading.observed.get("inputs_intact") is False:
        yield reject(
            "inputs",
            "the model overwrote its inputs, so that later inferences had others",
            "use litert_runner without zero-copy for this model",
        )


_OF_THE_TOOL = (_content, *WORD_RULES, *DELEGATE_RULES, _threads, _confinement, _affinity, _count, _inputs)
_RULES = (*_OF_THE_TOOL, *CONDITION_RULES)
