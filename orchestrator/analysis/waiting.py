"""How long each device was waited for before its trials. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.trial import Trial


@dataclass(frozen=True)
class Waiting:
    """The waits of one device: before how many of its trials, and for how long in all."""

    device: str
    trials: int
    of: int
    seconds: float
    longest_s: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def waits(trials: Sequence[Trial]) -> tuple[Waiting, ...]:
    """One entry for each device that was waited for."""
    waited: dict[str, list[float]] = defaultdict(list)
    for trial in trials:
        if trial.duration_s:
            waited[trial.cell.device].append(trial.waited_s)
    return tuple(
        Waiting(device, sum(1 for s in seconds if s), len(seconds), round(sum(seconds), 1), max(seconds))
        for device, seconds in sorted(waited.items())
        if any(seconds)
    )
