"""Each rule over a tool's own words, tripped by a recording of the real tool."""

from __future__ import annotations

import pytest

from orchestrator.agent_lines import Report
from orchestrator.evidence import judge
from orchestrator.evidence_terms import Asked
from orchestrator.fleet import Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.trial import Outcome
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
