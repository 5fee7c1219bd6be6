"""Where the variance lies: between iterations, processes, sessions or devices. It says where to spend repetitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orchestrator.analysis.reduction import Reduced
from orchestrator.trial import Cell, Outcome

GROUPS_MIN = 3
"""A spread between fewer sessions or devices than this is not stated."""


@dataclass(frozen=True)
class Components:
    """Standard deviations of log latency, which are shares of it; None where there are too few to tell."""

    cell: Cell
    arm: str | None
    iteration: float | None
    process: float | None
    session: float | None
    device: float | None
    devices: int

    def as_json(self) -> dict[str, Any]:
        fields = {key: value for key, value in self.cell.as_json().items() if key != "device"}
        return fields | {
            "arm": self.arm,
            "iteration": self.iteration,
            "process": self.process,
            "session": self.session,
            "device": self.device,
            "devices": self.devices,
        }


def components(trials: Sequence[Reduced]) -> list[Components]:
    """The split for each cell over all its devices, by the method of moments from the inside out."""
    groups: dict[tuple[Cell, str | None], list[Reduced]] = {}
    for trial in trials:
        if trial.outcome is Outcome.MEASURED and trial.latencies_us["p50"] is not None:
            groups.setdefault((replace(trial.cell, device=""), trial.arm), []).append(trial)
    return [_split(cell, arm, group) for (cell, arm), group in groups.items()]


def _split(cell: Cell, arm: str | None, trials: Sequence[Reduced]) -> Components:
    sessions: dict[tuple[str, str, str], list[float]] = {}
    for trial in trials:
        place = (trial.cell.device, trial.run, trial.session)
        sessions.setdefault(place, []).append(math.log(trial.latencies_us["p50"] or 1.0))
    within = [trial.within_cv for trial in trials if trial.within_cv is not None]
    iteration = float(np.median(within)) if within else None
    process = _pooled_sd(list(sessions.values()))
    means = {place: float(np.mean(values)) for place, values in sessions.items()}
    by_device: dict[str, list[float]] = {}
    for (name, _, _), mean in means.items():
        by_device.setdefault(name, []).append(mean)
    noise = 0.0 if process is None else process**2 / float(np.mean([len(values) for values in sessions.values()]))
    session = _excess(_pooled_sd([means for means in by_device.values() if len(means) >= GROUPS_MIN]), noise)
    device = _excess(_pooled_sd([[float(np.mean(means)) for means in by_device.values()]], GROUPS_MIN), noise)
    return Components(cell, arm, iteration, process, session, device, len(by_device))


def _pooled_sd(groups: Sequence[Sequence[float]], least: int = 2) -> float | None:
    """The standard deviation within groups, pooled over those that are large enough."""
    usable = [values for values in groups if len(values) >= least]
    freedom = sum(len(values) - 1 for values in usable)
    if freedom < 2:
        return None
    return math.sqrt(sum(float(np.square(np.array(values) - np.mean(values)).sum()) for values in usable) / freedom)


def _excess(spread: float | None, noise: float) -> float | None:
    """What remains of a spread between means when the noise of the means is taken out."""
    return None if spread is None else math.sqrt(max(spread**2 - noise, 0.0))
