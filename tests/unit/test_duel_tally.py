"""When the question of a duel is answered: at planned looks, by simulated trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.duels import PAIR_ARMS
from orchestrator.analysis.ends import END_ARMS
from orchestrator.duel_tally import DuelTally, EndsTally
from orchestrator.plan import Measure
from orchestrator.schedule import LOOKS
from orchestrator.tally import Tally
from orchestrator.trial import Cell, Outcome, Slot, Summary, Trial

CELL = Cell("d", "m", "a" * 64, "benchmark_model", "b" * 64, "xnnpack", 1, "any", "idle")
MEASURE = Measure(blocks_min=8, blocks_max=40, arms=PAIR_ARMS)
AT = [look for look in LOOKS if look <= MEASURE.blocks_max]


def a_trial(
    block: int,
    position: int,
    arm: str,
    latency_us: float,
    outcome: Outcome = Outcome.MEASURED,
    *,
    session: str = "s",
) -> Trial:
    minute, second = divmod(2 * block + position, 60)
    summary = Summary(count=50, median=latency_us, avg=latency_us)
    moment = f"2026-01-01T00:{minute:02d}:{second:02d}.000Z"
    return Trial("r", Slot(CELL, block, position, arm), session, outcome, None, moment, 0.5, summary=summary)


def fill(tally: Tally, arms: dict[str, float], seed: int, *, blocks: int = 40, sd: float = 0.015) -> None:
    """Blocks of a device whose level wanders, arms in alternating order; one process in twenty is disturbed."""
    rng = np.random.default_rng(seed)
    level = 1000 * np.exp(np.cumsum(rng.normal(0, 0.02, 40)))
    for block in range(blocks):
        for position, arm in enumerate(list(arms) if block % 2 else reversed(list(arms))):
            noise = rng.normal(0, sd) + (rng.random() < 0.05) * rng.normal(0, 0.3)
            tally.add(a_trial(block, position, arm, float(level[block] * arms[arm] * np.exp(noise))))


def first_answer(tally: Tally) -> int | None:
    """The look at which the duel would stop."""
    return next((look for look in AT if tally.is_tight(CELL, look)), None)


@pytest.mark.parametrize(("slowdown", "verdict"), [(1.10, "slower"), (0.9, "faster"), (1.0, "same")])
def test_a_clear_answer_comes_early(slowdown: float, verdict: str) -> None:
    """A change of 10 %, or none, is mostly clear by 18 blocks; and it is the right answer."""
    early, found = 0, []
    for seed in range(8):
        tally = DuelTally(MEASURE, {CELL.id: "p50"}, 0.03)
        fill(tally, dict(zip(PAIR_ARMS, (1.0, slowdown), strict=True)), seed)
        look = first_answer(tally)
        early += look is not None and look <= 18
        row = tally.row(CELL, look or 40)
        found.append(str(row.verdict) if row else "none")
    assert early >= 6
    assert set(found) <= {verdict, "unknown"}


def test_the_same_side_twice_is_hardly_ever_called_slower() -> None:
    """All five looks together; 30 duels of one build against itself in which noise is large."""
    alarms = 0
    for seed in range(30):
        tally = DuelTally(MEASURE, {CELL.id: "p50"}, 0.03)
        fill(tally, dict.fromkeys(PAIR_ARMS, 1.0), seed, sd=0.05)
        look = first_answer(tally)
        row = tally.row(CELL, look) if look else None
        alarms += row is not None and str(row.verdict) in ("slower", "faster")
    assert alarms <= 2


def test_what_it_decides_depends_on_earlier_blocks_only() -> None:
    """So that a duel that goes on decides as it did before."""
    whole, part = (DuelTally(MEASURE, {CELL.id: "p50"}, 0.03) for _ in range(2))
    arms = dict(zip(PAIR_ARMS, (1.0, 1.04), strict=True))
    fill(whole, arms, 3)
    fill(part, arms, 3, blocks=12)
    for block in (0, 4, 8, 12):
        assert whole.is_tight(CELL, block) == part.is_tight(CELL, block)
        assert whole.half_width_before(CELL, block) == part.half_width_before(CELL, block)


def test_nothing_measured_answers_nothing() -> None:
    """Rejected trials and one side alone are no answer, and no error."""
    tally = DuelTally(MEASURE, {CELL.id: "p50"}, 0.03)
    for block in range(8):
        tally.add(a_trial(block, 0, "baseline", 100.0))
    assert first_answer(tally) is None
    for block in range(8):
        tally.add(a_trial(block, 1, "candidate", 200.0, Outcome.REJECTED))
    assert first_answer(tally) is None and tally.half_width_before(CELL, 40) is None


def test_a_block_that_a_crash_tore_apart_is_made_up_for() -> None:
    """Its two halves are of two sessions, and no pair."""
    tally = DuelTally(MEASURE, {CELL.id: "p50"}, 0.03)
    for block in range(8):
        tally.add(a_trial(block, 0, "baseline", 100.0, session="before" if block < 3 else "after"))
        tally.add(a_trial(block, 1, "candidate", 100.0, session="before" if block < 2 else "after"))
    assert tally.measured_before(CELL, 8) == 7
    assert tally.measured_before(CELL, 2) == 2
    assert not tally.is_complete(CELL)
    assert tally.slots_left([CELL])[0] == 2


@pytest.mark.parametrize(("candidate", "is_answered"), [(1.0, True), (1.1, True), (1.05, False)])
def test_a_candidate_between_two_ends(candidate: float, is_answered: bool) -> None:
    """Like one end it is soon known; in the middle it never is."""
    tally = EndsTally(replace(MEASURE, arms=END_ARMS), {CELL.id: "p50"})
    fill(tally, dict(zip(END_ARMS, (1.0, 1.1, candidate), strict=True)), 4)
    assert (first_answer(tally) is not None) == is_answered
    assert tally.half_width_before(CELL, 40) is not None
