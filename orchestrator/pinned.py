"""The pinned reference: one fixed model and binary that is measured in every block, so that a device that moved is told
from a build that did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.delegates import Delegate
from orchestrator.model import Model
from orchestrator.settings import Table
from orchestrator.trial import Cell

AFFINITY, LOAD = "any", "idle"
"""How the reference runs: as undisturbed as its device is."""
CELL_FIELDS = ("model", "model_sha256", "runner", "delegate", "threads", "affinity", "load")


@dataclass(frozen=True)
class Reference:
    """What a plan says of it. None: the first bundled model, the first runner, the first delegate of the plan."""

    model: str | None = None
    runner: str | None = None
    delegate: str | None = None
    threads: int = 1

    def as_json(self) -> dict[str, Any]:
        return vars(self)


def read_reference(
    root: Table, check_runner: Callable[[str], str], check_delegate: Callable[[str], object], threads_max: int
) -> tuple[Reference | None, bool]:
    """The `[reference]` of a plan, if it has one; and whether it says `reference = false`."""
    said = root.raw("reference")
    if said is None or isinstance(said, bool):
        return (Reference() if said else None), said is False
    table = root.table("reference")
    reference = Reference(
        model=table.optional_text("model"),
        runner=_checked(table, "runner", check_runner),
        delegate=_checked(table, "delegate", check_delegate),
        threads=table.integer("threads", 1, threads_max, 1),
    )
    table.finish()
    return reference, False


def _checked(table: Table, key: str, check: Callable[[str], object]) -> str | None:
    text = table.optional_text(key)
    try:
        if text is not None:
            check(text)
    except ValueError as error:
        problem, _, remedy = str(error).partition(": ")
        raise table.error(key, problem, remedy) from error
    return text


@dataclass(frozen=True)
class Pinned:
    """The reference of a run, its files found."""

    model: Model
    delegate: Delegate
    runner: str | None
    threads: int

    def as_json(self) -> dict[str, Any]:
        model, delegate = [self.model.name, self.model.sha256], self.delegate.as_json()
        return {"model": model, "delegate": delegate, "runner": self.runner, "threads": self.threads}

    def cell(self, device: str, runner: str, runner_sha256: str | None) -> Cell:
        return Cell(
            device=device,
            model=self.model.name,
            model_sha256=self.model.sha256,
            runner=runner,
            runner_sha256=runner_sha256,
            delegate=self.delegate.label,
            threads=self.threads,
            affinity=AFFINITY,
            load=LOAD,
        )


def described(cells: Mapping[str, Cell]) -> dict[str, Any]:
    """What a run's record says of its reference: the cell of each device, whatever its runner's hash will be."""
    return {device: {field: getattr(cell, field) for field in CELL_FIELDS} for device, cell in cells.items()}


def is_reference(fleet: Mapping[str, Any], cell: Cell) -> bool:
    """Whether a cell is the pinned reference of the run whose record has this fleet."""
    return is_stated(reference_on(fleet, cell.device), cell)


def reference_on(fleet: Mapping[str, Any], device: str) -> Mapping[str, Any] | None:
    """What a run's record says of the reference on a device."""
    stated: Mapping[str, Any] | None = (fleet.get("reference") or {}).get(device)
    return stated


def is_stated(stated: Mapping[str, Any] | None, cell: Cell) -> bool:
    return stated is not None and all(stated.get(field) == getattr(cell, field) for field in CELL_FIELDS)
