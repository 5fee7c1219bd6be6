"""Which runs may go: the old ones that nobody tagged and nothing needs. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_SPAN = re.compile(r"\s*(\d{1,6})\s*([dwmy])\s*")
_UNIT_S = {"d": 86400.0, "w": 7 * 86400.0, "m": 30 * 86400.0, "y": 365 * 86400.0}

TAGGED = "is tagged"
NOTED = "has a note"
UNDER_WAY = "is under way"
NEWEST = "is among the newest"
YOUNG = "is young enough"
OPEN_REGRESSION = "an open regression needs it"
BASELINE = "is the newest of a cell"
LAST_GOOD = "is the newest good one of a cell"
NOISE = "calibrates a device"


def span_s(text: str) -> float:
    """Seconds in `90d`, `12w`, `6m` (months of 30 days) or `1y`; ValueError with the accepted forms otherwise."""
    match = _SPAN.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise ValueError(f'"{text}" is no time to keep runs: write it like 90d, 12w, 6m or 1y')
    return int(match[1]) * _UNIT_S[match[2]]


@dataclass(frozen=True)
class Old:
    """What retention looks at in a run."""

    id: str
    created_s: float | None
    is_under_way: bool = False


@dataclass(frozen=True)
class Policy:
    """How long runs are kept: those younger than so many seconds, and the newest so many. What neither keeps may go."""

    keep_s: float | None = None
    keep_last: int | None = None


@dataclass(frozen=True)
class Needs:
    """The runs that stay whatever their age, and why."""

    reasons: Mapping[str, Collection[str]] = field(default_factory=dict)

    def why(self, run_id: str) -> str | None:
        return next((reason for reason, runs in self.reasons.items() if run_id in runs), None)


@dataclass(frozen=True)
class Decision:
    """Which runs go, the oldest first, and why each of the others stays."""

    going: tuple[str, ...]
    staying: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        return {"removed": list(self.going), "kept": dict(self.staying)}

    @property
    def kept_though_old(self) -> dict[str, int]:
        """How many stay for a reason other than their age, by reason."""
        counts: dict[str, int] = {}
        for reason in self.staying.values():
            if reason not in (YOUNG, NEWEST):
                counts[reason] = counts.get(reason, 0) + 1
        return counts


def decide(runs: Sequence[Old], policy: Policy, needs: Needs, now_s: float) -> Decision:
    """`runs` are the newest first. A run whose time cannot be read stays."""
    going: list[str] = []
    staying: dict[str, str] = {}
    for place, run in enumerate(runs):
        reason = _own_reason(run, place, policy, now_s) or needs.why(run.id)
        if reason is None:
            going.append(run.id)
        else:
            staying[run.id] = reason
    return Decision(tuple(reversed(going)), staying)


def _own_reason(run: Old, place: int, policy: Policy, now_s: float) -> str | None:
    if run.is_under_way:
        return UNDER_WAY
    if policy.keep_last is not None and place < policy.keep_last:
        return NEWEST
    is_young = run.created_s is None or (policy.keep_s is not None and now_s - run.created_s < policy.keep_s)
    return YOUNG if is_young else None


def mentioned(content: Any, names: Collection[str]) -> set[str]:
    """The names that occur as texts anywhere in a JSON document."""
    if isinstance(content, str):
        return {content} & set(names)
    if isinstance(content, Mapping):
        return mentioned([*content.keys(), *content.values()], names)
    if isinstance(content, list | tuple):
        return set().union(*(mentioned(item, names) for item in content)) if content else set()
    return set()
