"""What a reader of the numbers should know: findings of measured trials, gathered."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.analysis.remarks import remarks
from orchestrator.trial import Finding, Outcome, Severity, Trial
from tests.unit.trial_factory import make_cell, make_trial


def a_trial(block: int, *findings: Finding, outcome: Outcome = Outcome.MEASURED, threads: int = 1) -> Trial:
    return replace(make_trial(cell=make_cell(threads=threads), block=block, outcome=outcome), findings=findings)


def busy(percent: int) -> Finding:
    return Finding("other-cpu", Severity.WARN, f"other programs used {percent} % of a CPU", "stop them")


SQUEEZED = Finding("load-squeezed", Severity.NOTE, "the load got less", "nothing to do")


def test_findings_are_gathered_by_rule_with_warnings_first() -> None:
    """Each rule once, with how many of the measured trials it is about and the latest reason as an example."""
    found = remarks([a_trial(0, SQUEEZED), a_trial(1, SQUEEZED, busy(30)), a_trial(2, SQUEEZED, busy(80)), a_trial(3)])
    assert [(remark.rule, remark.trials, remark.of) for remark in found] == [
        ("other-cpu", 2, 4),
        ("load-squeezed", 3, 4),
    ]
    assert found[0].example == "other programs used 80 % of a CPU"


def test_the_cells_are_named() -> None:
    """A reader can tell which numbers it is about."""
    found = remarks([a_trial(0, busy(30), threads=1), a_trial(0, threads=2)])
    assert found[0].cells == (make_cell(threads=1).id,)


def test_trials_that_do_not_count_are_left_out() -> None:
    """Why a trial was rejected stands elsewhere; here it is about numbers that count."""
    rejected = a_trial(0, busy(300), outcome=Outcome.REJECTED)
    assert remarks([rejected]) == ()
