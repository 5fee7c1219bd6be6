"""What a run would do: cells, slots, order and time, without touching a device. Pure but for reading the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator import registry
from orchestrator.content_hash import sha256
from orchestrator.course import conducted
from orchestrator.errors import StoreError
from orchestrator.fleet import Device
from orchestrator.grid import Grid, trial_estimate_s
from orchestrator.prepare import Prepared
from orchestrator.schedule import block_slots
from orchestrator.store import open_store
from orchestrator.trial import Cell, Slot


@dataclass(frozen=True)
class Preview:
    """A run seen beforehand: the blocks every cell gets at least, and how much more there may be."""

    cells: tuple[Cell, ...]
    blocks: tuple[tuple[Slot, ...], ...]
    blocks_max: int
    seed: int
    is_seed_drawn: bool
    seconds: tuple[float, float]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        slots = [
            {"block": slot.block, "position": slot.position, "device": slot.cell.device, "cell": slot.cell.id}
            for block in self.blocks
            for slot in block
        ]
        return {
            "cells": [cell.as_json() | {"id": cell.id} for cell in self.cells],
            "slots": slots,
            "blocks_min": len(self.blocks),
            "blocks_max": self.blocks_max,
            "seed": self.seed,
            "seed_drawn": self.is_seed_drawn,
            "estimated_s": {"min": self.seconds[0], "max": self.seconds[1]},
            "notes": list(self.notes),
        }


def preview(prepared: Prepared, store_place: str) -> Preview:
    """What `prepared` would do. Devices run side by side, so the slowest one sets the time."""
    measure, seed = conducted(prepared.plan.measure), prepared.record.seed
    grids = [_grid(prepared, device, store_place) for device in prepared.devices]
    notes = [
        f"{grid.device.name}: its number of cores is not known yet; threads and loads assume 4"
        for grid in grids
        if grid.cores_assumed and (prepared.plan.sweep.threads is None or prepared.plan.sweep.loads is None)
    ]
    per_block_s = max(
        len(measure.arms or (None,)) * sum(trial_estimate_s(cell, measure) for cell in grid.cells) for grid in grids
    )
    seconds = (per_block_s * measure.blocks_min, per_block_s * measure.blocks_max)
    if measure.budget_s:
        notes.append(f"the budget ends it after {measure.budget_s:g} s at the latest")
        seconds = (min(seconds[0], measure.budget_s), min(seconds[1], measure.budget_s))
    blocks = tuple(
        tuple(slot for grid in grids for slot in block_slots(grid.cells, block=block, seed=seed, arms=measure.arms))
        for block in range(measure.blocks_min)
    )
    cells = tuple(cell for grid in grids for cell in grid.cells)
    drawn = prepared.plan.measure.seed is None
    return Preview(cells, blocks, measure.blocks_max, seed, drawn, seconds, tuple(notes))


def _grid(prepared: Prepared, device: Device, store_place: str) -> Grid:
    """From what the address tells, or from when the device was last measured."""
    kind, facts = registry.transport(device.transport), _last_facts(device, store_place)
    cores, machine = kind.cores(device) or facts.get("cores"), kind.machine(device) or facts.get("machine")
    runners = {name: _runner_sha256(name, machine) for name in prepared.runner_names(device)}
    return prepared.grid(device, cores, runners)


def _runner_sha256(name: str, machine: str | None) -> str | None:
    if machine is None:
        return None
    return sha256(registry.runner(name).files(name.partition(":")[2], machine)["runner"])


def _last_facts(device: Device, store_place: str) -> Mapping[str, Any]:
    try:
        store = open_store(store_place, create=False)
    except StoreError:
        return {}
    try:
        return store.last_facts(device.name) or {}
    finally:
        store.close()
