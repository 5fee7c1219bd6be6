"""How much a cell differs from one session to the next when nothing has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.trial import Cell

SESSION_SD_UNKNOWN = 0.03
"""What is assumed where a device was never calibrated; nights on one phone were seen to differ by that much."""
ANY_FAMILY = "any"
OVER_REFERENCE = ", over the reference"
"""Ends the name of a family whose spread is that of its ratio to the pinned reference of the same blocks."""
NOISE_LEFT = 0.5
"""The share of the noise between sessions that the reference is taken to leave where nobody measured it."""


def cell_family(cell: Cell) -> str:
    """Cells of one family are disturbed alike: same delegate, thread count and load, whatever the model."""
    return f"{cell.delegate}, threads {cell.threads}, load {cell.load}"


@dataclass(frozen=True)
class SessionNoise:
    """The spread between sessions of unchanged cells: a robust standard deviation of log session offsets.

    `family` is a `cell_family`, or `any` for the device as a whole.
    """

    device: str
    family: str
    sd_log: float
    sessions: int

    def as_json(self) -> dict[str, Any]:
        return {"device": self.device, "family": self.family, "sd_log": self.sd_log, "sessions": self.sessions}


@dataclass(frozen=True)
class SessionNoises:
    """What is known of all devices. `override` is what the user said instead."""

    known: Sequence[SessionNoise] = field(default_factory=tuple)
    override: float | None = None

    def sd_log(self, cell: Cell) -> tuple[float, str]:
        """The spread that counts for a cell, and where it comes from: its family, its device, or the default."""
        if self.override is not None:
            return self.override, "given"
        of_device = [noise for noise in self.known if noise.device == cell.device]
        for family, source in ((cell_family(cell), "calibrated"), (ANY_FAMILY, "calibrated for the device")):
            for noise in of_device:
                if noise.family == family:
                    return noise.sd_log, source
        return SESSION_SD_UNKNOWN, "assumed"

    def left_log(self, cell: Cell) -> tuple[float, str]:
        """The same for the cell over the pinned reference of the same blocks."""
        if self.override is None:
            for family, source in ((cell_family(cell), "calibrated"), (ANY_FAMILY, "calibrated for the device")):
                for noise in self.known:
                    if noise.device == cell.device and noise.family == f"{family}{OVER_REFERENCE}":
                        return noise.sd_log, source
        sd_log, source = self.sd_log(cell)
        return NOISE_LEFT * sd_log, f"half of what is {source} without a reference"
