"""The words of a duel: sides of a cell that are held against each other, each with the bytes that it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.analysis.comparison import THRESHOLD
from orchestrator.analysis.duels import BASELINE, CANDIDATE
from orchestrator.analysis.estimate import Metric
from orchestrator.content_hash import sha256
from orchestrator.delegates import Delegate
from orchestrator.fleet import Device
from orchestrator.model import Model
from orchestrator.plan import Plan
from orchestrator.trial import Cell


@dataclass(frozen=True)
class Side:
    """One side: a cell, and the store's copies of everything it takes."""

    cell: Cell
    model: Model
    runner_files: Mapping[str, Path]
    """By role."""
    plan: Plan
    """How it was measured: conditions, and how single trials are made."""
    delegate: Delegate | None = None
    """Where the cell's label alone does not say it."""
    load_model: tuple[str, Model] | None = None
    """The load as the plan has it, and its model, where the load is one."""
    inputs: Path | None = None
    run: str | None = None
    """The run it was taken from."""
    name: str = ""
    """What people call it: a run, a file, a revision."""
    runner_facts: Mapping[str, Any] = field(default_factory=dict)
    """What its runner said of its runtime in that run."""


@dataclass(frozen=True)
class Pair:
    """One question: is `candidate` slower than `baseline` on this device, by this metric?"""

    device: Device
    baseline: Side
    candidate: Side
    metric: Metric = "p50"

    @property
    def sides(self) -> Mapping[str, Side]:
        return {BASELINE: self.baseline, CANDIDATE: self.candidate}


@dataclass(frozen=True)
class Seat:
    """Who takes the slots of an arm: the side's cell on this device, and its runner's files."""

    cell: Cell
    files: Mapping[str, Path]
    run: str | None = None
    name: str = ""

    @property
    def build(self) -> str:
        """What tells builds of one runner apart: all of their files, as a runtime beside it may be what differs."""
        digests = [sha256(path) for _, path in sorted(self.files.items())]
        return f"{self.cell.runner}@{'+'.join(digest[:12] for digest in digests)}"

    def as_json(self) -> dict[str, Any]:
        files = {role: sha256(path) for role, path in self.files.items()}
        return {"run": self.run, "name": self.name, "cell": self.cell.as_json(), "runner_files": files}


@dataclass(frozen=True)
class Contest:
    """Seats by arm on one device; it is scheduled under the cell of its candidate."""

    seats: Mapping[str, Seat]
    metric: Metric = "p50"

    @property
    def cell(self) -> Cell:
        return self.seats[CANDIDATE].cell


@dataclass(frozen=True)
class Duel:
    """Everything that one run holds against each other. Changes below the threshold do not matter to its question."""

    contests: tuple[Contest, ...]
    threshold: float = THRESHOLD

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(self.contests[0].seats)
