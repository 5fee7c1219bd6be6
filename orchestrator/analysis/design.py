"""Whether two sides were measured interleaved, which is what allows a definite verdict: the evidence, and the pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.analysis.reduction import Reduced

Key = tuple[str, str, int]
_ADJACENT_SHARE_MIN = 0.75
_ORDERS_MIN = 2


@dataclass(frozen=True)
class Design:
    """The pairs of a cell that ran side by side; `sequential` says why there are none, `left_out` how many trials
    found no partner. `is_order_mixed` means that either side came first in several blocks."""

    pairs: tuple[tuple[Reduced, Reduced], ...]
    sequential: str | None
    left_out: int
    is_order_mixed: bool
    first: str | None = None

    @property
    def is_interleaved(self) -> bool:
        return self.sequential is None


def design_of(base: Sequence[Reduced], new: Sequence[Reduced], *, is_one_run: bool) -> Design:
    """The design of one cell's measured trials.

    Within one file a block number is a claim that its trials ran together, believed unless sessions, times or positions
    say otherwise. Two files are believed to be one interleaved run only if run, session and times prove it.
    """
    by_slot, against = slots(base), slots(new)
    total = len(by_slot) + len(against)
    common = [key for key in by_slot if key in against]
    if not common:
        return _sequential(_why_apart(base, new), total)
    pairs = [(by_slot[key], against[key]) for key in common]
    times = _moments(pairs)
    if not is_one_run and any(one.started_s == other.started_s for one, other in pairs):
        times = None
    if times is None:
        if not is_one_run:
            return _sequential("no times prove that the two files were measured interleaved", total)
        if _positions_apart(pairs):
            return _sequential("all trials of one side came before all of the other", total)
        kept = pairs
    else:
        kept = _adjacent(pairs, times)
        if len(kept) < _ADJACENT_SHARE_MIN * len(pairs):
            return _sequential("the trials of a block did not run one after the other", total)
    kept.sort(key=lambda pair: (pair[0].run, pair[0].session, pair[0].block))
    orders = [order for pair in kept if (order := _order(pair)) is not None]
    is_mixed = min(orders.count(True), orders.count(False)) >= _ORDERS_MIN
    first = None if len(set(orders)) != 1 or len(orders) < len(kept) else ("base" if orders[0] else "new")
    return Design(tuple(kept), None, total - 2 * len(kept), is_mixed, first)


def slots(trials: Sequence[Reduced]) -> Mapping[Key, Reduced]:
    """Trials by run, session and block; of a slot that was repeated the last one counts."""
    return {(trial.run, trial.session, trial.block): trial for trial in trials}


def _sequential(why: str, left_out: int) -> Design:
    return Design((), why, left_out, is_order_mixed=False)


def _why_apart(base: Sequence[Reduced], new: Sequence[Reduced]) -> str:
    if {trial.run for trial in base}.isdisjoint(trial.run for trial in new):
        return "the two sides are different runs"
    if {trial.session for trial in base}.isdisjoint(trial.session for trial in new):
        return "the two sides were measured in different sessions"
    return "no block holds both sides"


def _moments(pairs: Sequence[tuple[Reduced, Reduced]]) -> dict[int, float] | None:
    """When each trial started, by its identity; None where some do not say or all say the same."""
    moments: dict[int, float] = {}
    for pair in pairs:
        for trial in pair:
            if trial.started_s is None:
                return None
            moments[id(trial)] = trial.started_s
    return moments if len(set(moments.values())) > 1 else None


def _adjacent(pairs: Sequence[tuple[Reduced, Reduced]], moments: Mapping[int, float]) -> list[tuple[Reduced, Reduced]]:
    """The pairs between whose trials no other trial of the cell was started."""
    ordered = sorted(
        (moments[id(trial)], index, trial.position, id(trial)) for index, pair in enumerate(pairs) for trial in pair
    )
    place = {identity: rank for rank, (_, _, _, identity) in enumerate(ordered)}
    return [pair for pair in pairs if abs(place[id(pair[0])] - place[id(pair[1])]) == 1]


def _positions_apart(pairs: Sequence[tuple[Reduced, Reduced]]) -> bool:
    """Whether positions count through the whole run, and one side has all the low ones."""
    base, new = [pair[0].position for pair in pairs], [pair[1].position for pair in pairs]
    if len(pairs) < 2 or len({*base, *new}) < 2 * len(pairs):
        return False
    return max(base) < min(new) or max(new) < min(base)


def _order(pair: tuple[Reduced, Reduced]) -> bool | None:
    """Whether the base side ran first; None where nobody knows."""
    base, new = pair
    if base.started_s is not None and new.started_s is not None and base.started_s != new.started_s:
        return base.started_s < new.started_s
    return None if base.position == new.position else base.position < new.position
