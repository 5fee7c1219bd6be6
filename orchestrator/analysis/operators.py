"""What operator profiles say: which operators cost most, what ran where, and where two profiles differ. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.analysis.estimate import trial_latency_us
from orchestrator.cell_pass import CellPass
from orchestrator.op_profile import OpCost, OpProfile, ProfilePass
from orchestrator.trial import Cell, Trial


@dataclass(frozen=True)
class TypeCost:
    """All operators of one type."""

    type: str
    is_delegated: bool
    count: int
    time_us: float
    share: float

    def as_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "delegated": self.is_delegated,
            "count": self.count,
            "time_us": self.time_us,
            "share": self.share,
        }


@dataclass(frozen=True)
class Distortion:
    """What profiling costs: the median inference under it over that without."""

    profiled_us: float
    unprofiled_us: float
    run: str
    """The run that measured the cell without a profiler."""

    @property
    def ratio(self) -> float:
        return self.profiled_us / self.unprofiled_us

    def as_json(self) -> dict[str, Any]:
        return {
            "ratio": self.ratio,
            "profiled_us": self.profiled_us,
            "unprofiled_us": self.unprofiled_us,
            "unprofiled_run": self.run,
        }


@dataclass(frozen=True)
class CellOps:
    """A cell's profile with what can be said of it."""

    passed: ProfilePass
    types: tuple[TypeCost, ...]
    distortion: Distortion | None

    @property
    def cell(self) -> Cell:
        return self.passed.cell

    @property
    def profile(self) -> OpProfile | None:
        return self.passed.profile

    def top(self, count: int) -> list[OpCost]:
        """The most expensive operators, the first of equal ones first."""
        ops = self.profile.ops if self.profile else ()
        return sorted(ops, key=lambda op: -op.time_us)[:count]

    def as_json(self) -> dict[str, Any]:
        profile = self.profile
        return {
            **self.cell.as_json(),
            "id": self.cell.id,
            "outcome": str(self.passed.outcome),
            "reason": self.passed.reason,
            "latency_us": self.passed.latency_us,
            "distortion": self.distortion.as_json() if self.distortion else None,
            "source": profile.source if profile else None,
            "runs": profile.runs if profile else None,
            "total_us": profile.time_us if profile else None,
            "delegated_us": profile.delegated_us if profile else None,
            "cpu_us": profile.time_us - profile.delegated_us if profile else None,
            "types": [row.as_json() for row in self.types],
            "ops": [_op_json(op, profile.time_us) for op in profile.ops] if profile else [],
            "inner": [_op_json(op, None) for op in profile.inner] if profile else [],
            "init": [_op_json(op, None) for op in profile.init] if profile else [],
            "notes": list(profile.notes) if profile else [],
            "findings": [finding.as_json() for finding in self.passed.findings],
            "log": self.passed.log,
            "artifacts": dict(self.passed.artifacts),
        }


def _op_json(op: OpCost, total_us: float | None) -> dict[str, Any]:
    return {
        "name": op.name,
        "type": op.type,
        "node": op.node,
        "subgraph": op.subgraph,
        "delegated": op.is_delegated,
        "time_us": op.time_us,
        "calls": op.calls,
        "share": op.time_us / total_us if total_us else None,
        "memory_kb": op.memory_kb,
    }


def by_type(profile: OpProfile) -> tuple[TypeCost, ...]:
    """The types of operators, the most expensive first."""
    groups: dict[tuple[str, bool], list[OpCost]] = {}
    for op in profile.ops:
        groups.setdefault((op.type, op.is_delegated), []).append(op)
    total_us = profile.time_us
    found = [
        TypeCost(kind, is_delegated, len(ops), time_us, time_us / total_us if total_us else 0.0)
        for (kind, is_delegated), ops in groups.items()
        for time_us in (sum(op.time_us for op in ops),)
    ]
    return tuple(sorted(found, key=lambda row: (-row.time_us, row.type)))


def cell_ops(passed: ProfilePass, unprofiled: Sequence[Trial]) -> CellOps:
    """A profile pass with the measured trials of its cell, from one run, whichever."""
    types = by_type(passed.profile) if passed.profile else ()
    return CellOps(passed, types, distortion_of(passed, unprofiled))


def distortion_of(passed: CellPass, unwatched: Sequence[Trial]) -> Distortion | None:
    """What the pass costs, where its cell was measured without."""
    medians = [value for trial in unwatched if (value := trial_latency_us(trial, "p50")) is not None]
    if not medians or not passed.latency_us:
        return None
    return Distortion(passed.latency_us, statistics.median(medians), unwatched[0].run)


# Two profiles


@dataclass(frozen=True)
class OpChange:
    """One operator in two profiles; None where one of them has it not."""

    name: str
    type: str
    base_us: float | None
    new_us: float | None

    @property
    def delta_us(self) -> float:
        return (self.new_us or 0.0) - (self.base_us or 0.0)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "base_us": self.base_us,
            "new_us": self.new_us,
            "delta_us": self.delta_us,
        }


@dataclass(frozen=True)
class OpsComparison:
    """Where two profiles of one setting differ, operator by operator, the largest difference first."""

    base: CellOps
    new: CellOps
    ops: tuple[OpChange, ...]
    types: tuple[OpChange, ...]

    @property
    def base_us(self) -> float:
        return self.base.profile.time_us if self.base.profile else 0.0

    @property
    def new_us(self) -> float:
        return self.new.profile.time_us if self.new.profile else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "base": {"run": self.base.passed.run, "cell": self.base.cell.id, "total_us": self.base_us},
            "new": {"run": self.new.passed.run, "cell": self.new.cell.id, "total_us": self.new_us},
            "setting": f"{self.new.cell.model} ({self.new.cell.setting}) on {self.new.cell.device}",
            "delta_us": self.new_us - self.base_us,
            "types": [change.as_json() for change in self.types],
            "ops": [change.as_json() for change in self.ops],
        }


def compare_ops(base: CellOps, new: CellOps) -> OpsComparison:
    """Operators are the same where subgraph and name are; of several with one name each in its turn."""
    mine = _keyed(base.profile.ops if base.profile else ())
    other = _keyed(new.profile.ops if new.profile else ())
    ops = [_change(mine.get(key), other.get(key)) for key in dict.fromkeys((*mine, *other))]
    before = {row.type: row.time_us for row in _merged(base.types)}
    after = {row.type: row.time_us for row in _merged(new.types)}
    types = [OpChange(kind, kind, before.get(kind), after.get(kind)) for kind in dict.fromkeys((*before, *after))]
    return OpsComparison(base, new, _by_size(ops), _by_size(types))


def _keyed(ops: Iterable[OpCost]) -> dict[tuple[int, str, int], OpCost]:
    found: dict[tuple[int, str, int], OpCost] = {}
    seen: dict[tuple[int, str], int] = {}
    for op in ops:
        turn = seen[op.subgraph, op.name] = seen.get((op.subgraph, op.name), -1) + 1
        found[op.subgraph, op.name, turn] = op
    return found


def _change(base: OpCost | None, new: OpCost | None) -> OpChange:
    one = new or base
    assert one is not None, "a key is of one or the other"
    return OpChange(one.name, one.type, base.time_us if base else None, new.time_us if new else None)


def _merged(types: Sequence[TypeCost]) -> list[TypeCost]:
    """A type that ran in part on a delegate counts once."""
    found: dict[str, TypeCost] = {}
    for row in types:
        one = found.get(row.type)
        found[row.type] = row if one is None else TypeCost(row.type, False, 0, one.time_us + row.time_us, 0.0)
    return list(found.values())


def _by_size(changes: Iterable[OpChange]) -> tuple[OpChange, ...]:
    return tuple(sorted(changes, key=lambda change: (-abs(change.delta_us), change.name)))
