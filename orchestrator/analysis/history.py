"""A cell over time: one point a run, and the runs at which its level changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.analysis.change_points import RUNS_MIN, ChangePoint, change_points
from orchestrator.analysis.comparison import percent
from orchestrator.analysis.design import slots
from orchestrator.analysis.estimate import Estimate, Metric, estimates
from orchestrator.analysis.reduction import Reduced
from orchestrator.analysis.summary import cell_order
from orchestrator.pinned import is_stated
from orchestrator.trial import Cell, Outcome


@dataclass(frozen=True)
class Circumstances:
    """What a run was on a device, as far as anybody knows: its system, the runtime of each runner, what the gate made
    of it and of its cells by their ids, and what its pinned reference is."""

    system: str | None = None
    runtimes: Mapping[str, str] = field(default_factory=dict)
    standing: str | None = None
    verdicts: Mapping[str, str] = field(default_factory=dict)
    reference: Mapping[str, Any] | None = None


NOTHING_KNOWN = Circumstances()


@dataclass(frozen=True)
class Point:
    """One run of a cell: when, what was measured (its hashes are in `cell`), and its latency."""

    run: str
    session: str | None
    started_s: float | None
    cell: Cell
    latency_us: Estimate
    about: Circumstances = NOTHING_KNOWN

    @property
    def is_reference(self) -> bool:
        return is_stated(self.about.reference, self.cell)

    @property
    def verdict(self) -> str | None:
        """What the gate made of the cell in this run."""
        return self.about.verdicts.get(self.cell.id)

    @property
    def build(self) -> dict[str, str | None]:
        """What may change a level, by name."""
        return {
            "model_sha256": self.cell.model_sha256,
            "runner_sha256": self.cell.runner_sha256,
            "runtime": self.about.runtimes.get(self.cell.runner),
            "system": self.about.system,
        }

    def as_json(self) -> dict[str, Any]:
        found = self.latency_us
        return {
            "run": self.run,
            "session": self.session,
            "started_s": self.started_s,
            "value_us": found.value,
            "low_us": found.low,
            "high_us": found.high,
            "n": found.n,
            **self.build,
            "standing": self.about.standing,
            "verdict": self.verdict,
            "reference": self.is_reference,
        }


@dataclass(frozen=True)
class History:
    """All points of a cell in time order, and where its level changed; `note` says why nothing could be told."""

    cell: Cell
    arm: str | None
    metric: Metric
    points: tuple[Point, ...]
    changes: tuple[ChangePoint, ...]
    note: str | None

    def as_json(self) -> dict[str, Any]:
        fields = self.cell.as_json()
        return {
            **{key: value for key, value in fields.items() if not key.endswith("sha256")},
            "id": self.cell.id,
            "arm": self.arm,
            "metric": self.metric,
            "points": [point.as_json() for point in self.points],
            "change_points": [self._change_as_json(change) for change in self.changes],
            "note": self.note,
        }

    def _change_as_json(self, change: ChangePoint) -> dict[str, Any]:
        before, after = self.points[change.index - 1], self.points[change.index]
        return {
            "index": change.index,
            "run": after.run,
            "session": after.session,
            "started_s": after.started_s,
            "previous_run": before.run,
            "direction": "slower" if change.moved.location > 0 else "faster",
            "effect_percent": percent(change.moved.location),
            "ci_low_percent": percent(change.moved.low),
            "ci_high_percent": percent(change.moved.high),
            "p_adjusted": change.p,
            **after.build,
            "changed_fields": changed_fields(before, after),
            "standing": after.about.standing,
        }


def changed_fields(before: Point, after: Point) -> list[str]:
    """What changed with the level: the first suspects. What one of them does not know is no change."""
    was, now = before.build, after.build
    return [field for field in now if None not in (was[field], now[field]) and was[field] != now[field]]


def histories(
    trials: Iterable[Reduced],
    *,
    metric: Metric,
    threshold: float,
    circumstances: Mapping[tuple[str, str], Circumstances] | None = None,
) -> list[History]:
    """The history of every cell, whatever its hashes were: builds and models are what changes over time.

    `circumstances` are by run and device.
    """
    of_cell: dict[tuple[Cell, str | None], list[Reduced]] = {}
    groups: dict[tuple[Cell, str | None], list[Reduced]] = {}
    for trial in trials:
        if trial.outcome is Outcome.MEASURED and trial.latencies_us[metric] is not None:
            group = groups.get((trial.cell, trial.arm))
            if group is None:
                lasting = replace(trial.cell, model_sha256="", runner_sha256=None)
                group = groups[trial.cell, trial.arm] = of_cell.setdefault((lasting, trial.arm), [])
            group.append(trial)
    keys = sorted(of_cell, key=lambda key: cell_order(*key))
    points = [_points(of_cell[key], metric, circumstances or {}) for key in keys]
    logs = [[math.log(point.latency_us.value or 1.0) for point in row] for row in points]
    changes = change_points(logs, threshold=threshold)
    return [
        History(row[-1].cell, arm, metric, tuple(row), tuple(found), _note(row))
        for (_, arm), row, found in zip(keys, points, changes, strict=True)
    ]


def _points(
    trials: Sequence[Reduced], metric: Metric, circumstances: Mapping[tuple[str, str], Circumstances]
) -> list[Point]:
    """One point a run in time order; where there is one run only, one a session."""
    by_session = len({trial.run for trial in trials}) == 1
    groups: dict[tuple[str, str | None], list[Reduced]] = {}
    for trial in trials:
        groups.setdefault((trial.run, trial.session if by_session else None), []).append(trial)
    values = [
        [value for trial in slots(group).values() if (value := trial.latencies_us[metric])] for group in groups.values()
    ]
    points = [
        Point(
            *(run, session, _first_s(group), group[-1].cell, found),
            about=circumstances.get((run, group[-1].cell.device), NOTHING_KNOWN),
        )
        for ((run, session), group), found in zip(groups.items(), estimates(values), strict=True)
    ]
    if all(point.started_s is not None for point in points):
        points.sort(key=lambda point: point.started_s or 0.0)
    return points


def _first_s(trials: Sequence[Reduced]) -> float | None:
    return min((trial.started_s for trial in trials if trial.started_s is not None), default=None)


def _note(points: Sequence[Point]) -> str | None:
    if len(points) >= RUNS_MIN:
        return None
    return f"change points need {RUNS_MIN} runs, there {'is 1' if len(points) == 1 else f'are {len(points)}'}"
