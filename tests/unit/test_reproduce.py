"""The words of an attempt to reproduce, and what the kept bytes cannot bring back."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.analysis.comparison import Change, Comparison
from orchestrator.analysis.trust import trust_of
from orchestrator.contest import Side
from orchestrator.model import Model
from orchestrator.plan import Plan
from orchestrator.reports.reproduction import case_lines
from orchestrator.reproduce import Answer, Attempt, Case
from orchestrator.store import RunRecord
from orchestrator.then_and_now import Difference
from orchestrator.trial import Cell

CELL = Cell("pixel", "net", "a" * 64, "litert_runner", "b" * 64, "xnnpack", 2, "any", "idle")
SIDE = Side(CELL, Model("net", Path("m"), "a" * 64), {"runner": Path("old")}, Plan())
RECORD = RunRecord("new", "2026", "finished", {}, {}, {}, 0, "0")


def a_row(verdict: Change, effect: float, blocks_needed: int | None = None) -> Comparison:
    low, high = math.log(1 + effect) - 0.01, math.log(1 + effect) + 0.01
    trust = trust_of([])
    return Comparison(
        CELL, "p50", verdict, math.log(1 + effect), low, high, 0.01, 0.01, 8, 8, trust, (), True, 0, 0, blocks_needed
    )


@pytest.mark.parametrize(
    ("answer", "row", "text"),
    [
        (Answer.REPRODUCED, a_row(Change.SLOWER, 0.072), "reproduced +7.2 % [6.1, 8.3]"),
        (
            Answer.REPRODUCED,
            a_row(Change.UNSTABLE_SLOWER, 0.072),
            "reproduced in a part of the processes, +7.2 % [6.1, 8.3]",
        ),
        (Answer.NOT_REPRODUCED, a_row(Change.SAME, 0.0), "not reproduced (equivalent): +0.0 % [-1.0, 1.0]"),
        (
            Answer.NOT_REPRODUCED,
            a_row(Change.FASTER, -0.1),
            "not reproduced, it is faster instead: -10.0 % [-10.9, -9.1]",
        ),
        (
            Answer.UNKNOWN,
            a_row(Change.UNKNOWN, 0.02, 12),
            "unknown: +2.0 % [1.0, 3.0] after 8 blocks; about 12 more blocks would decide",
        ),
        (
            Answer.UNKNOWN,
            a_row(Change.UNKNOWN, 0.02),
            "unknown: +2.0 % [1.0, 3.0] after 8 blocks; no number of blocks that anyone would wait for would decide",
        ),
        (Answer.UNKNOWN, None, "unknown: budget spent"),
    ],
)
def test_the_answer_in_one_line(answer: Answer, row: Comparison | None, text: str) -> None:
    """Faster is said as such; unknown says what would decide it."""
    assert Attempt(answer, row, (), "budget spent", "r").text == text


def test_a_runtime_of_the_devices_own_is_warned_about() -> None:
    """Where it changed between the runs, the bytes alone do not bring the difference back."""
    old, new = (replace(SIDE, runner_facts={"runtime_version": version}) for version in ("2.0", "2.1"))
    case = Case(RECORD, replace(RECORD, id="old"), new, old, math.log(1.05))
    assert case.differs == ()
    assert case.warnings[0] == "both sides are the very same bytes"
    assert "2.0 in the baseline and 2.1 in the suspect run" in case.warnings[1]
    brought = replace(new, cell=replace(CELL, runner="benchmark_model"), runner_files={"runner": Path("new")})
    assert replace(case, suspect=brought).warnings == ()
    assert replace(case, suspect=brought).differs == ("runner",)


def test_what_differs_is_said_before_it_starts() -> None:
    """What is held against what, and how the phone is now."""
    case = Case(RECORD, replace(RECORD, id="old"), SIDE, SIDE, math.log(1.05))
    lines = case_lines(case, "pixel", [Difference("screen_on", True, False, "screen on then, screen off now")])
    assert lines[0].endswith("run new against old; the two runs differ by +5.0 %, but were not interleaved")
    assert lines[-2:] == ["pixel now against pixel in run new:", "  screen on then, screen off now"]
    assert case_lines(case, "pixel", [])[-1] == "pixel is now as pixel was in run new, as far as can be told"
