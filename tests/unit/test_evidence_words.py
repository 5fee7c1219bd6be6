"""Each rule over a tool's own words, tripped by a recording of the real tool."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.evidence import judge
from orchestrator.evidence_terms import Asked
from orchestrator.fleet import Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.stage import Report
from orchestrator.trial import Outcome, Severity
from tests.unit.test_benchmark_model_output import ALL
from tests.unit.trial_factory import make_cell


def judged(
    name: str, delegate: str, threads: int = 1, runs: int = 1, seen: int | None = None
) -> tuple[Outcome, str | None, set[str]]:
    recording = ALL[name]
    closing = {"reason": "exit", "exit": recording.exit, "lines": 0, "wall_ns": 10**10, "threads": {"max": seen}}
    asked = Asked(make_cell(delegate=delegate, threads=threads), Measure(runs=runs), Conditions(), Limits(), None, ())
    outcome, reason, findings = judge(asked, Report(closing=closing), recording.reading)
    return outcome, reason, {finding.rule for finding in findings}


@pytest.mark.parametrize(
    ("name", "delegate", "threads", "rule"),
    [
        ("delegate_use_gpu", "gpu", 1, "flags"),
        ("flag_unknown", "xnnpack", 1, "flags"),
        ("flag_single_dash", "xnnpack", 2, "flags"),
        ("flag_bool_bare", "xnnpack", 1, "flags"),
        ("ext_delegate_missing", "external", 1, "delegate"),
        ("ext_delegate_notalib", "external", 1, "delegate"),
        ("extd_noop", "external", 1, "delegate"),
        ("more/delegate_use_gpu", "gpu", 1, "delegate"),
        ("more/delegate_use_nnapi", "nnapi", 1, "delegate"),
        ("more/delegate_two", "xnnpack", 1, "delegate-fallback"),
        ("plain_default", "cpu", 1, "delegate"),
        ("flag_duplicate", "xnnpack", 2, "threads"),
        ("flag_empty_int", "xnnpack", 1, "threads"),
    ],
)
def test_rejected(name: str, delegate: str, threads: int, rule: str) -> None:
    """Each ended with status 0."""
    outcome, reason, rules = judged(name, delegate, threads)
    assert (outcome, rule in rules) == (Outcome.REJECTED, True), (reason, rules)


def test_measured() -> None:
    """What ran as it was asked, wholly or in part."""
    assert judged("xnnpack_true_threads_1", "xnnpack", seen=1)[0] == Outcome.MEASURED
    assert judged("xnnpack_false_threads_1", "cpu")[0] == Outcome.MEASURED
    assert judged("xnnpack_true_pose", "xnnpack", 2, seen=2)[0] == Outcome.MEASURED
    assert "delegate-partial" in judged("extd_conv", "external")[2]
    assert "delegate-partial" in judged("profx_partial_stdout", "xnnpack")[2]


def test_threads_seen_by_the_kernel() -> None:
    """Whatever the tool's echo says."""
    assert judged("xnnpack_true_pose", "xnnpack", 2, seen=1)[1] == "2 threads were asked for, and the kernel shows 1"


def test_count() -> None:
    """A time cap is told; failed inferences and a killed process are failures."""
    assert judged("max_secs_small", "xnnpack", runs=1000)[2] >= {"count-capped"}
    assert judged("extd_err_invoke_result", "external")[0] == Outcome.FAILED
    assert judged("kill9_midrun", "xnnpack")[0] == Outcome.FAILED


class TestAnotherProcess:
    """Where the agent's child only drives an app, what the agent saw of the child proves nothing of the app."""

    def judged(self, *, threads: int = 2, conditions: Conditions | None = None, **process: object) -> set[str]:
        recording = ALL["xnnpack_true_pose"]
        samples = [
            {"t_ns": at * 10**9, "busy": [at * 100, at * 100], "child": {"cpu_ns": 0, "threads": 1}} for at in (1, 2, 3)
        ]
        report = Report(
            header={"tick_hz": 100, "cpus": [0, 1]},
            started={"t_ns": 10**9, "affinity": "1"},
            samples=samples,
            closing={
                "t_ns": 3 * 10**9,
                "reason": "exit",
                "exit": 0,
                "lines": 0,
                "wall_ns": 10**10,
                "threads": {"max": 1},
            },
        )
        reading = recording.reading
        reading = replace(reading, observed={**reading.observed, "process": process})
        cell = make_cell(delegate="xnnpack", threads=threads, runner="benchmark_app")
        asked = Asked(cell, Measure(runs=1), conditions or Conditions(), Limits(), None, ())
        outcome, _, findings = judge(asked, report, reading)
        assert (outcome == Outcome.REJECTED) == any(finding.severity == Severity.REJECT for finding in findings)
        return {finding.rule for finding in findings if finding.severity in (Severity.REJECT, Severity.WARN)}

    def test_the_drivers_threads_mask_and_cpu_time_are_not_the_apps(self) -> None:
        """A shell has one thread and one CPU here, the app what it has: neither is taken for the other."""
        assert self.judged(threads_max=25, affinity="3", cpu_ticks=400) == set()

    def test_too_few_threads_or_cpus_of_the_app_reject(self) -> None:
        """What was seen of the app counts."""
        assert "threads" in self.judged(threads_max=1, affinity="3", cpu_ticks=400)
        assert "confined" in self.judged(threads_max=25, affinity="1", cpu_ticks=400)

    def test_an_app_in_the_background_is_rejected(self) -> None:
        """It is another population."""
        assert "foreground" in self.judged(threads_max=25, affinity="3", cpu_ticks=400, cpuset="/background")
        assert self.judged(threads_max=25, affinity="3", cpu_ticks=400, cpuset="/top-app") == set()

    def test_what_was_not_seen_is_said(self) -> None:
        """Then others' share is not known either."""
        assert self.judged() == {"other-cpu-unverified"}

    def test_starting_an_app_is_no_neighbour_unless_the_plan_sets_a_limit(self) -> None:
        """Android itself works to start it."""
        assert self.judged(threads_max=25, affinity="3", cpu_ticks=100) == {"other-cpu"}
        strict = Conditions(other_cpu_percent_max=10)
        assert self.judged(conditions=strict, threads_max=25, affinity="3", cpu_ticks=100) == {"other-cpu"}

    def test_a_mask_that_was_asked_for_is_not_claimed(self) -> None:
        """The agent's mask reaches the driver alone."""
        recording = ALL["xnnpack_true_pose"]
        reading = replace(recording.reading, observed={**recording.reading.observed, "process": {"affinity": "3"}})
        asked = Asked(make_cell(threads=2), Measure(runs=1), Conditions(), Limits(), "3", ())
        closing = {"reason": "exit", "exit": 0, "lines": 0, "affinity": "3"}
        outcome, reason, _ = judge(asked, Report(started={"affinity": "3"}, closing=closing), reading)
        assert (outcome, reason) == (
            Outcome.REJECTED,
            "the agent's mask does not reach the process that infers",
        )
