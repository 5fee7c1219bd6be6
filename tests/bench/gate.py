"""How often stage one of the gate is wrong, and how often it finds a slow build: many simulated nights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from orchestrator.analysis.calibration import SessionNoises
from orchestrator.analysis.gate import Night, stage_one
from orchestrator.analysis.gate_words import Verdict
from tests.unit.gate_nights import UPDATE, WARM, Lab, Noises, fleet_cells

_NIGHTS, _CELLS = 500, 20


def suspicions() -> None:
    """Stage one over 500 nights of 20 cells: false suspicions and slow builds found, with and without the reference."""
    print(f"{'nights':34}{'reference':>10}{'suspected':>11}{'device-moved':>14}{'+5 % found':>12}{'+10 % found':>13}")
    kinds = {
        "ordinary": (0.0, Noises()),
        "warm room (+8 % for the device)": (WARM, Noises()),
        "new system (+6 % for the device)": (UPDATE, Noises()),
        "cells differ by 2 % a night": (0.0, Noises(cell=0.02)),
    }
    for name, (shared, noises) in kinds.items():
        for has_reference in (True, False):
            _line(name, shared, noises, has_reference=has_reference)


def _line(name: str, shared: float, noises: Noises, *, has_reference: bool) -> None:
    rng = np.random.default_rng(7)
    lab = Lab(rng, cells=fleet_cells(_CELLS), noises=noises)
    false = moved = 0
    found = {0.05: 0, 0.10: 0}
    for number in range(_NIGHTS):
        effect = (0.05, 0.10)[number % 2]
        before, now = lab.night(), lab.night(slower={0: effect}, shared=shared)
        verdicts = _verdicts(before, now, has_reference=has_reference)
        found[effect] += verdicts[0] is Verdict.SUSPECTED
        false += verdicts[1:].count(Verdict.SUSPECTED)
        moved += verdicts[1:].count(Verdict.DEVICE_MOVED)
    unchanged, half = _NIGHTS * (_CELLS - 1), _NIGHTS / 2
    word = "yes" if has_reference else "no"
    print(
        f"{name:34}{word:>10}{100 * false / unchanged:>9.2f} %{100 * moved / unchanged:>12.1f} %"
        f"{100 * found[0.05] / half:>10.0f} %{100 * found[0.10] / half:>11.0f} %"
    )


def _verdicts(before: Night, now: Night, *, has_reference: bool) -> list[Verdict]:
    if not has_reference:
        before, now = (_unpinned(night) for night in (before, now))
    rows, _ = stage_one(now, [before], noises=SessionNoises(), threshold=0.03)
    of_cell = {row.cell.model: row.verdict for row in rows}
    return [of_cell[f"model-{number}"] for number in range(_CELLS)]


def _unpinned(night: Night) -> Night:
    return replace(night, references=frozenset())
