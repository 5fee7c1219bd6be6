"""Which runs may go, by age and by what they are needed for."""

from __future__ import annotations

import pytest

from orchestrator.retention import NEWEST, TAGGED, UNDER_WAY, YOUNG, Needs, Old, Policy, decide, mentioned, span_s

DAY_S = 86400.0
RUNS = [Old(f"run{age}", -age * DAY_S) for age in (1, 10, 100, 200)]


@pytest.mark.parametrize(("text", "days"), [("90d", 90), ("2w", 14), ("6m", 180), ("1y", 365), (" 3 d ", 3)])
def test_times_are_read(text: str, days: int) -> None:
    assert span_s(text) == days * DAY_S


@pytest.mark.parametrize("text", ["", "90", "d", "0d", "-3d", "3h", "1.5d", "9999999d", "90d 1w"])
def test_what_is_no_time_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 90d"):
        span_s(text)


def test_the_oldest_go_first() -> None:
    """A removal that is cut short has removed what is oldest."""
    assert decide(RUNS, Policy(keep_s=50 * DAY_S), Needs(), 0.0).going == ("run200", "run100")


def test_either_age_or_number_keeps_a_run() -> None:
    found = decide(RUNS, Policy(keep_s=5 * DAY_S, keep_last=3), Needs(), 0.0)
    assert found.going == ("run200",)
    assert found.staying == {"run1": NEWEST, "run10": NEWEST, "run100": NEWEST}


def test_what_is_needed_stays_and_the_reason_is_told() -> None:
    found = decide(RUNS, Policy(keep_s=DAY_S / 2), Needs({TAGGED: {"run200"}}), 0.0)
    assert found.staying == {"run200": TAGGED}
    assert found.kept_though_old == {TAGGED: 1}


def test_a_run_under_way_and_one_without_a_time_stay() -> None:
    odd = [Old("a", -9 * DAY_S, is_under_way=True), Old("b", None)]
    assert decide(odd, Policy(keep_s=DAY_S), Needs(), 0.0).staying == {"a": UNDER_WAY, "b": YOUNG}


def test_names_are_found_anywhere_in_a_document() -> None:
    """However deep a judgement names the runs that it rests on."""
    content = {"cells": [{"duel": "x1", "more": [["x2"], 3, None]}], "x3": {}}
    assert mentioned(content, {"x1", "x2", "x3", "x4"}) == {"x1", "x2", "x3"}
