"""Which cells belong together, which arm is the base, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.analysis.reduction import Reduced, reduced
from orchestrator.analysis.sides import ARMS_MAY_DIFFER, Matching, arms_of, checked_ignored, matched, only_arm
from orchestrator.errors import ComparisonRefused, UsageError
from orchestrator.trial import Outcome
from tests.unit.comparison_models import reduced_trial
from tests.unit.trial_factory import make_cell, make_trial


def trial(arm: str | None = None, **fields: Any) -> Reduced:
    return next(reduced([make_trial(cell=make_cell(**fields), arm=arm)]))


def match(base: list[Reduced], new: list[Reduced], *ignored: str) -> Matching:
    return matched(base, new, ignored=ignored)


def refusal(base: list[Reduced], new: list[Reduced], **options: Any) -> str:
    with pytest.raises(ComparisonRefused) as caught:
        matched(base, new, **{"ignored": (), **options})
    return f"{caught.value.fact} | {caught.value.remedy}"


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("model_sha256", ("ab" * 32, "cd" * 32)),
        ("runner_sha256", ("01" * 32, "02" * 32)),
        ("runner", ("litert_runner", "benchmark_model")),
        ("device", ("pixel8", "pi5")),
        ("load", ("idle", "app")),
        ("delegate", ("cpu", "gpu")),
        ("affinity", ("any", "big")),
        ("threads", (1, 4)),
    ],
)
def test_a_difference_is_refused_by_name(field: str, values: tuple[Any, Any]) -> None:
    """Hash, build, runner or condition: the field is named with both values, and the way to say that it is meant."""
    base, new = [trial(**{field: values[0]})], [trial(**{field: values[1]})]
    text = refusal(base, new)
    assert field in text
    assert f"--ignore {field}" in text
    found = match(base, new, field)
    assert len(found.cells) == 1
    assert found.cells[0].differs == (field,)


@pytest.mark.parametrize(
    ("field", "evidence"),
    [
        ("build", lambda value: {"build": value}),
        ("conditions", lambda value: {"conditions": {"governor": value}}),
        ("load_placement", lambda value: {"load_placement": value}),
        ("runtime_version", lambda value: {"observed": {"runtime_version": value}}),
        ("library_sha256", lambda value: {"observed": {"library_sha256": value}}),
    ],
)
def test_evidence_of_another_build_or_condition_is_refused(field: str, evidence: Any) -> None:
    """What the trials say about how they ran counts as much as what their cells are called."""
    from dataclasses import replace

    sides = [list(reduced([replace(make_trial(), evidence=evidence(value))])) for value in ("one", "two")]
    assert f"{field} differs" in refusal(*sides)
    assert match(*sides, field).cells[0].differs == (field,)


def test_what_one_side_does_not_say_is_no_difference() -> None:
    """An imported trial without a runner's hash or evidence matches."""
    assert len(match([trial(runner_sha256=None)], [trial()]).cells) == 1


def test_arms_may_be_different_builds_but_each_must_be_one() -> None:
    """Which side a trial is on is said by its arm; a hash that changes within an arm is a mix."""
    one, two, three = (trial(model_sha256=letter * 64) for letter in "abc")
    found = matched([one], [two], ignored=(), may_differ=ARMS_MAY_DIFFER)
    assert found.cells[0].differs == ("model_sha256",)
    assert "model_sha256 differs" in refusal([one, three], [two], may_differ=ARMS_MAY_DIFFER)


def test_a_mix_within_both_sides_is_refused() -> None:
    """Two models under one name, on both sides alike."""
    mixed = [trial(model_sha256="a" * 64), trial(model_sha256="b" * 64)]
    assert "model_sha256 is not one and the same within a side" in refusal(mixed, mixed)


def test_cells_of_one_side_only_are_listed() -> None:
    """What both have is compared; the rest is named, not hidden."""
    found = match([trial(), trial(threads=2)], [trial(), trial(threads=4)])
    assert [cell.cell.threads for cell in found.cells] == [1]
    assert [cell.threads for cell in (*found.only_base, *found.only_new)] == [2, 4]


def test_a_side_without_trials() -> None:
    """An empty file is said to be empty."""
    assert "BASE has no trials" in refusal([], [trial()])
    assert "NEW has no trials" in refusal([trial()], [])


def test_an_unknown_field_to_ignore() -> None:
    """The nearest right one is suggested."""
    with pytest.raises(UsageError) as caught:
        checked_ignored(["model_sha"])
    assert "model_sha256" in caught.value.remedy


@pytest.mark.parametrize(
    ("arms", "expected"),
    [
        (("baseline", "candidate"), ("baseline", "candidate")),
        (("candidate", "baseline"), ("baseline", "candidate")),
        (("control", "treatment"), ("control", "treatment")),
        (("after", "before"), ("before", "after")),
        (("B", "A"), ("A", "B")),
        (("New", "v1"), ("v1", "New")),
        (("v2", "v1"), ("v1", "v2")),
    ],
)
def test_the_base_arm_is_known_by_its_name(arms: tuple[str, str], expected: tuple[str, str]) -> None:
    """By what it is called, whatever the order; where no name tells, the first in the alphabet."""
    trials = [trial(arm) for arm in arms]
    assert arms_of(trials, base=None, new=None, source="x") == expected


def test_the_user_chooses_arms() -> None:
    """One named arm of two is enough, and of three both must be named."""
    trials = [trial(arm) for arm in ("a", "b", "c")]
    assert arms_of(trials[:2], base="b", new=None, source="x") == ("b", "a")
    assert arms_of(trials[:2], base=None, new="a", source="x") == ("b", "a")
    assert arms_of(trials, base="c", new="a", source="x") == ("c", "a")


@pytest.mark.parametrize(
    ("arms", "options", "fact"),
    [
        ([None], {}, "x has no arms: there is nothing to compare it with"),
        (["a"], {}, 'x has only one arm ("a"): there is nothing to compare it with'),
        (["a", "b", "c"], {}, "x has 3 arms: a, b, c"),
        (["a", "b", "c"], {"base": "a"}, "x has 3 arms: a, b, c"),
        (["a", "b"], {"base": "z"}, 'x has no arm "z"'),
        (["a", "b"], {"base": "a", "new": "a"}, 'both sides are arm "a"'),
    ],
)
def test_arms_that_cannot_be_told_apart(arms: list[str | None], options: dict[str, str], fact: str) -> None:
    """Each with its reason."""
    with pytest.raises(ComparisonRefused) as caught:
        arms_of([trial(arm) for arm in arms], **{"base": None, "new": None, "source": "x", **options})  # type: ignore[arg-type]  # a table of options
    assert caught.value.fact == fact


def test_a_side_with_two_arms_must_be_chosen_from() -> None:
    """Two builds are not one side."""
    trials = [trial("a"), trial("b")]
    assert [item.arm for item in only_arm(trials, "b", "x", "--base-arm")] == ["b"]
    for arm in (None, "z"):
        with pytest.raises(ComparisonRefused):
            only_arm(trials, arm, "x", "--base-arm")


def test_conditions_of_trials_that_did_not_run_do_not_count() -> None:
    """A rejected trial may have seen anything."""
    from dataclasses import replace

    good = reduced_trial(make_cell(), arm="x", block=0, log_us=6.0, at_s=None)
    odd = replace(good, outcome=Outcome.REJECTED, conditions=(("build", "other"),))
    known = replace(good, conditions=(("build", "one"),))
    assert len(match([known, odd], [known]).cells) == 1
