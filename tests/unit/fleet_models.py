"""Fleets over nights drawn from a known truth: a warm room, noise of each night, and one device that may decay."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.health import Night


@dataclass(frozen=True)
class FleetModel:
    """`decay` is on the log scale and befalls `phone00`: slowly over all nights, or at once in the last seven."""

    devices: int = 50
    nights: int = 30
    sd: float = 0.01
    correlation: float = 0.0
    decay: float = 0.0
    at_once: bool = False

    def drawn(self, rng: np.random.Generator) -> list[Night]:
        room = rng.normal(0, 0.01, self.nights)
        return [night for number in range(self.devices) for night in self._device(number, room, rng)]

    def _device(self, number: int, room: np.ndarray, rng: np.random.Generator) -> list[Night]:
        paces, canaries = (self._noise(rng) + room + self._decay(number) for _ in range(2))
        base = rng.uniform(13, 15)
        nights = []
        for index in range(self.nights):
            failed, rejected = int(rng.binomial(32, 0.01)), int(rng.binomial(32, 0.05))
            nights.append(
                Night(
                    device=f"phone{number:02d}",
                    run=f"run{index:03d}",
                    started_s=86400.0 * index,
                    ending="lost: gone" if rng.random() < 0.01 else "done",
                    drops=int(rng.random() < 0.03),
                    outcomes={"measured": 32 - failed - rejected, "failed": failed, "rejected": rejected},
                    temperature_c=float(30 + rng.normal(0, 2) + 300 * room[index]),
                    battery_percent=80.0,
                    battery_health="good",
                    canary_ns=math.exp(base + canaries[index]),
                    pace=float(paces[index]),
                    build="14",
                )
            )
        return nights

    def _noise(self, rng: np.random.Generator) -> np.ndarray:
        values = rng.normal(0, self.sd, self.nights)
        for index in range(1, self.nights):
            fresh = math.sqrt(1 - self.correlation**2) * values[index]
            values[index] = self.correlation * values[index - 1] + fresh
        return values

    def _decay(self, number: int) -> np.ndarray:
        nights = np.arange(self.nights)
        if number:
            return np.zeros(self.nights)
        return self.decay * (nights >= self.nights - 7 if self.at_once else nights / (self.nights - 1))
