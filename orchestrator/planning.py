"""What a plan comes to before anything runs: cells, time, and the blocks that find a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.analysis.calibration import cell_family
from orchestrator.analysis.noise import DEFAULT_BAD_SHARE, Noise
from orchestrator.analysis.power import blocks_needed, power_of
from orchestrator.grid import trial_estimate_s
from orchestrator.noise_book import noise_for
from orchestrator.plan import Measure
from orchestrator.prepare import Prepared
from orchestrator.preview import Preview, preview
from orchestrator.trial import Cell


@dataclass(frozen=True)
class FamilyOutlook:
    """What finding the change takes in one family of cells of one device. `blocks` is None where no plan reaches it."""

    device: str
    family: str
    cells: int
    noise: Noise
    source: str
    blocks: int | None
    power: float | None
    seconds: float | None
    """Device time of an interleaved comparison: both sides of every cell in every block."""

    def as_json(self) -> dict[str, Any]:
        return {
            "device": self.device,
            "family": self.family,
            "cells": self.cells,
            "block_sd": self.noise.block_sd,
            "bad_share": self.noise.bad_share,
            "source": self.source,
            "blocks": self.blocks,
            "power": self.power,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Outlook:
    """A plan that was checked, and what finding a change with it would take."""

    preview: Preview
    detect: float | None
    power: float
    families: tuple[FamilyOutlook, ...]

    @property
    def assumed(self) -> list[str]:
        """Devices whose noise was never measured."""
        return sorted({found.device for found in self.families if found.source == "assumed"})

    @property
    def notes(self) -> list[str]:
        notes = list(self.preview.notes)
        if self.assumed:
            notes.append(
                f"never calibrated: {', '.join(self.assumed)}; block noise of 1 % alone and 4 % under load, and "
                f"{100 * DEFAULT_BAD_SHARE:.0f} % disturbed blocks are assumed. `devbench calibrate` measures them"
            )
        if self.detect is not None:
            notes.append(f"compare with a --threshold well below {100 * self.detect:g} %: half of it is good")
        return notes

    def as_json(self) -> dict[str, Any]:
        content = self.preview.as_json()
        return {key: content[key] for key in ("cells", "blocks_min", "blocks_max", "estimated_s")} | {
            "detect": self.detect,
            "wanted_power": self.power,
            "families": [found.as_json() for found in self.families],
            "notes": self.notes,
        }


def outlook(
    prepared: Prepared, store_place: str, known: Sequence[Noise], *, detect: float | None, power: float
) -> Outlook:
    """The outlook of a plan; without `detect` the plan is only checked."""
    seen = preview(prepared, store_place)
    families: dict[tuple[str, str], list[Cell]] = {}
    for cell in seen.cells if detect is not None else ():
        families.setdefault((cell.device, cell_family(cell)), []).append(cell)
    found = tuple(
        _family(cells, known, prepared.plan.measure, detect=detect or 0.0, power=power) for cells in families.values()
    )
    return Outlook(seen, detect, power, found)


def _family(
    cells: Sequence[Cell], known: Sequence[Noise], measure: Measure, *, detect: float, power: float
) -> FamilyOutlook:
    noise, source = noise_for(cells[0], known)
    blocks = blocks_needed(detect, noise.block_sd, power=power, bad_share=noise.bad_share)
    trial_s = noise.trial_s or trial_estimate_s(cells[0], measure)
    counting = None if blocks is None else round(blocks * (1 - noise.bad_share))
    return FamilyOutlook(
        device=cells[0].device,
        family=cell_family(cells[0]),
        cells=len(cells),
        noise=noise,
        source=source,
        blocks=blocks,
        power=None if counting is None else power_of(counting, detect, noise.block_sd),
        seconds=None if blocks is None else 2 * blocks * len(cells) * trial_s,
    )
