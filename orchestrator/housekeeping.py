"""Deleting and pruning runs: what may go, what it holds, and that it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator import retention
from orchestrator.clock import Clock, seconds_of
from orchestrator.errors import UsageError
from orchestrator.retention import Decision, Needs, Old, Policy
from orchestrator.store import Annals, Standing, Store
from orchestrator.store.ledger import RunLine, Wanted, run_ids, run_lines
from orchestrator.store.needs import calibrations_in_force, newest_of_cells
from orchestrator.store.removal import Swept, Weight, remove_runs, sweep, weigh


@dataclass(frozen=True)
class Pruning:
    """What a retention policy means for a store."""

    decision: Decision
    weight: Weight

    def as_json(self) -> dict[str, Any]:
        return self.decision.as_json() | {"weight": self.weight.as_json()}


def plan_pruning(store: Store, policy: Policy, clock: Clock) -> Pruning:
    """Which runs would go, and what goes with them; nothing is touched."""
    lines = run_lines(store)
    old = [Old(line.id, seconds_of(line.created_at), _is_under_way(store, line)) for line in lines]
    decision = retention.decide(old, policy, _needs(store, lines), clock.now().timestamp())
    return Pruning(decision, weigh(store, decision.going))


def remove(store: Store, ids: Sequence[str]) -> Swept:
    """Take the runs out, and everything that nothing else names."""
    remove_runs(store, ids)
    return sweep(store)


def check_deletion(store: Store, ids: Sequence[str], *, force: bool) -> None:
    """Refuse to delete what is under way, and without `force` what is tagged or what an open regression needs."""
    needs = _protected(store)
    for line in run_lines(store, Wanted(ids=tuple(ids))):
        if _is_under_way(store, line):
            raise UsageError(f"run {line.id} is under way", remedy="stop it first, or wait until it ends")
        if line.tags and not force:
            listed = ", ".join(line.tags)
            raise UsageError(
                f"run {line.id} is tagged: {listed}", remedy="untag it, or say --force to delete it all the same"
            )
        if line.id in needs and not force:
            raise UsageError(
                f"an open regression needs run {line.id}",
                remedy=f"close it first (`devbench runs close {needs[line.id]}`), or say --force",
            )


def close_regression(store: Store, run_id: str, because: str) -> None:
    """Say that an open regression is mended or accepted."""
    annals = Annals(store)
    judgement = annals.judgements().get(run_id)
    if judgement is None or judgement.standing is not Standing.BAD:
        stands = f": it is {judgement.standing}" if judgement else ""
        raise UsageError(
            f"run {run_id} has no open regression{stands}", remedy="`devbench runs` shows which runs stand as bad"
        )
    content = {**judgement.content, "closed_because": because}
    annals.judge(run_id, judgement.baseline_id, Standing.CLOSED, content)


def _is_under_way(store: Store, line: RunLine) -> bool:
    """Whether somebody measures it now; a run that was killed says that it is running, too, but holds no lock."""
    if line.status != "running":
        return False
    with store.use.alone() as is_alone:
        return not is_alone


def _protected(store: Store) -> dict[str, str]:
    """The runs that open regressions need, each with the run that stands as bad."""
    known = set(run_ids(store))
    needed: dict[str, str] = {}
    for run_id, judgement in Annals(store).judgements().items():
        if judgement.standing is Standing.BAD:
            for name in {run_id, judgement.baseline_id, *retention.mentioned(judgement.content, known)}:
                needed[name] = run_id
    return needed


def _needs(store: Store, lines: Sequence[RunLine]) -> Needs:
    good = Annals(store).good_runs()
    return Needs(
        {
            retention.TAGGED: {line.id for line in lines if line.tags},
            retention.NOTED: {line.id for line in lines if line.notes},
            retention.OPEN_REGRESSION: set(_protected(store)),
            retention.LAST_GOOD: newest_of_cells(store, good),
            retention.BASELINE: newest_of_cells(store),
            retention.NOISE: calibrations_in_force(store),
        }
    )
