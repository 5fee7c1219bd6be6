"""Stage two of the gate: what a duel makes of a suspect, and which suspects no duel can decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.analysis.comparison import Change, Comparison
from orchestrator.analysis.gate_words import Row, Verdict
from orchestrator.analysis.trust import Trust, TrustVerdict
from orchestrator.confirming import decided, lost_runtime
from orchestrator.content_hash import sha256
from orchestrator.contest import Side
from orchestrator.duel import DuelResult
from orchestrator.model import Model
from orchestrator.plan import Plan
from tests.unit.trial_factory import make_cell

CELL = make_cell()
SUSPECT = Row(CELL, Verdict.SUSPECTED, "because", "base", CELL)


def answer(metric: str, verdict: Change) -> Comparison:
    trust = Trust(TrustVerdict.TRUSTED, ())
    return Comparison(CELL, metric, verdict, 0.08, 0.06, 0.1, 0.01, 0.01, 12, 12, trust, (), is_interleaved=True)  # type: ignore[arg-type]  # a metric's name


def duel(*rows: Comparison, missing: dict[str, str] | None = None) -> DuelResult:
    return DuelResult("duel", rows, missing or {}, ())


@pytest.mark.parametrize(
    ("p50", "p95", "verdict"),
    [
        (Change.SLOWER, Change.UNKNOWN, Verdict.CONFIRMED),
        (Change.UNSTABLE_SLOWER, Change.SAME, Verdict.CONFIRMED),
        (Change.SAME, Change.SLOWER, Verdict.CONFIRMED),
        (Change.SAME, Change.UNKNOWN, Verdict.REFUTED),
        (Change.FASTER, Change.UNKNOWN, Verdict.REFUTED),
        (Change.UNKNOWN, Change.UNKNOWN, Verdict.SUSPECTED),
    ],
)
def test_what_the_duel_says_decides(p50: Change, p95: Change, verdict: Verdict) -> None:
    """Slower by any metric confirms; only what is proven to be the same, or faster, is refuted."""
    found = decided(SUSPECT, duel(answer("p50", p50), answer("p95", p95)))
    assert found.verdict is verdict
    assert found.confirmation is not None
    assert found.confirmation.metric == ("p95" if p95 is Change.SLOWER else "p50")


def test_a_pair_that_was_not_measured_enough_decides_nothing() -> None:
    assert decided(SUSPECT, duel(answer("p50", Change.SLOWER), missing={CELL.id: "went away"})) == SUSPECT
    assert decided(SUSPECT, duel()) == SUSPECT


def test_other_rows_are_left_alone() -> None:
    steady = Row(CELL, Verdict.STEADY, "")
    assert decided(steady, duel(answer("p50", Change.SLOWER))) == steady


def test_a_runtime_that_is_not_kept_cannot_be_held_against_another(tmp_path: Path) -> None:
    """Both would run on tonight's, and a slower one would be cleared; one among the runner's files is kept."""
    library = tmp_path / "libLiteRt.so"
    library.write_bytes(b"a runtime")

    def side(digest: str | None, *files: Path) -> Side:
        facts = {"library_sha256": digest, "runtime_version": "2.3.0"}
        model = Model("m", library, "ab" * 32)
        return Side(CELL, model, {path.name: path for path in files}, Plan(), runner_facts=facts)

    assert "is not kept, and another is installed now" in (lost_runtime(side("1" * 64), side("2" * 64)) or "")
    assert lost_runtime(side("1" * 64), side("1" * 64)) is None
    assert lost_runtime(side(sha256(library), library), side("2" * 64)) is None
    assert lost_runtime(side(None), side(None)) is None
