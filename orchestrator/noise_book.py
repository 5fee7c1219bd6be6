"""What calibration found, kept in the store and looked up again: for comparisons and for planning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.analysis.calibration import ANY_FAMILY, SessionNoises, cell_family
from orchestrator.analysis.comparison import THRESHOLD
from orchestrator.analysis.noise import FalseAlarms, Noise, default_noise, false_alarms, noises
from orchestrator.analysis.power import blocks_needed, smallest_change
from orchestrator.analysis.relative_noise import relative_noises
from orchestrator.pinned import is_reference
from orchestrator.store import RunRecord, Store
from orchestrator.trial import Cell

CHANGES = (0.01, 0.02, 0.05, 0.10)
POWER = 0.9


@dataclass(frozen=True)
class Calibration:
    """What one calibration run says."""

    run_id: str
    blocks: int
    """The blocks of an ordinary run, for which the smallest detectable change is stated."""
    noises: tuple[Noise, ...]
    alarms: tuple[FalseAlarms, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run_id,
            "blocks": self.blocks,
            "power": POWER,
            "families": [noise.as_json() | self._finds(noise) for noise in self.noises],
            "false_alarms": [alarm.as_json() | {"threshold": THRESHOLD} for alarm in self.alarms],
        }

    def _finds(self, noise: Noise) -> dict[str, Any]:
        return {
            "smallest_change": self.smallest_change(noise),
            "blocks_needed": {f"{100 * change:g}%": self.blocks_for(noise, change) for change in CHANGES},
        }

    def smallest_change(self, noise: Noise) -> float | None:
        """The smallest change that an interleaved comparison of as many blocks finds nine times in ten."""
        return smallest_change(round(self.blocks * (1 - noise.bad_share)), noise.block_sd, power=POWER)

    def blocks_for(self, noise: Noise, change: float) -> int | None:
        return blocks_needed(change, noise.block_sd, power=POWER, bad_share=noise.bad_share)


def keep_noise(store: Store, record: RunRecord, made_at: str) -> Calibration:
    """Work out the noise of a calibration run and keep it, in place of what the run said before."""
    trials = store.trials(record.id)
    found = noises(trials)
    relative = relative_noises(trials, lambda cell: is_reference(record.fleet, cell))
    store.keep_noise(record.id, made_at, [*found, *relative])
    measure = record.plan["measure"]
    blocks = -(-measure["blocks_min"] // measure["sessions"])
    return Calibration(record.id, blocks, tuple(found), tuple(false_alarms(trials, threshold=THRESHOLD)))


def session_noises(store: Store) -> SessionNoises:
    """The noise between sessions of every calibrated device, for comparisons of runs that were not interleaved."""
    known = [noise.of_sessions for noise in store.noise() if noise.metric == "p50"]
    return SessionNoises(tuple(noise for noise in known if noise))


def noise_for(cell: Cell, known: Sequence[Noise]) -> tuple[Noise, str]:
    """The noise of a cell by p50, and where it comes from: its family, its device, or a stated assumption."""
    of_device = [noise for noise in known if noise.device == cell.device and noise.metric == "p50"]
    for family, source in ((cell_family(cell), "calibrated"), (ANY_FAMILY, "calibrated for the device")):
        for noise in of_device:
            if noise.family == family:
                return noise, source
    return default_noise(cell), "assumed"
