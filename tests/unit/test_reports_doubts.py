"""What not to believe, and what was not measured: each reason once."""

from __future__ import annotations

from orchestrator.analysis.summary import summarise
from orchestrator.reports.doubts import doubts, key_of, missing
from orchestrator.trial import Outcome
from tests.unit.trial_factory import make_cell, make_trial


def test_cells_with_one_reason_are_listed_together() -> None:
    """The reason that touches the most cells comes first."""
    trials = [make_trial(cell=make_cell(threads=threads), block=block) for threads in (1, 2, 4) for block in range(2)]
    found = doubts(summarise(trials))
    assert [(doubt.verdict, len(doubt.cells)) for doubt in found] == [("insufficient", 3)]
    assert found[0].as_json()["cells"] == [make_cell(threads=threads).id for threads in (1, 2, 4)]


def test_figures_in_a_reason_do_not_part_it() -> None:
    """57 % and 61.5 % of a CPU are one reason; a failure is another."""
    trials = [
        make_trial(block=0, outcome=Outcome.REJECTED, reason="other programs used 57 % of a CPU"),
        make_trial(block=1, outcome=Outcome.REJECTED, reason="other programs used 61.5 % of a CPU"),
        make_trial(block=2, outcome=Outcome.FAILED, reason="other programs used 3 % of a CPU"),
        make_trial(block=3, outcome=Outcome.NOT_RUN),
        make_trial(block=4),
    ]
    found = missing(trials)
    assert [(item.outcome, item.trials, item.reason) for item in found] == [
        (Outcome.REJECTED, 2, "other programs used 57 % of a CPU"),
        (Outcome.FAILED, 1, "other programs used 3 % of a CPU"),
        (Outcome.NOT_RUN, 1, "no reason recorded"),
    ]
    assert found[0].cells == (make_cell().id,)


def test_arms_are_cells_of_their_own() -> None:
    """A baseline and its candidate never share a place on the page."""
    assert key_of("abc", None) == "abc"
    assert key_of("abc", "candidate") == "abc~candidate"
