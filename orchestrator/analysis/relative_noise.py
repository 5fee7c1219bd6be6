"""What nights differ by once the pinned reference of the same blocks is taken off: from sessions of a calibration."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from orchestrator.analysis.calibration import ANY_FAMILY, OVER_REFERENCE, cell_family
from orchestrator.analysis.estimate import trial_latency_us
from orchestrator.analysis.noise import SESSION_TRIALS_MIN, Noise, session_spread
from orchestrator.trial import Cell, Outcome, Trial

Block = tuple[str, str, int]


def relative_noises(trials: Iterable[Trial], is_reference: Callable[[Cell], bool]) -> list[Noise]:
    """The spread between sessions of each family of cells, relative to the reference of their device. Nothing from one
    session, or without a reference."""
    logs = _logs(trials)
    references = {cell.device: blocks for cell, blocks in logs.items() if is_reference(cell)}
    families: dict[tuple[str, str], list[list[list[float]]]] = defaultdict(list)
    for cell, blocks in logs.items():
        if cell.device in references and not is_reference(cell):
            levels = _levels(blocks, references[cell.device])
            families[cell.device, cell_family(cell)].append(levels)
            families[cell.device, ANY_FAMILY].append(levels)
    found = []
    for (device, family), members in sorted(families.items()):
        spread = session_spread(members)
        if spread is not None:
            sessions, blocks_count = max(map(len, members)), sum(len(part) for cell in members for part in cell)
            found.append(
                Noise(device, f"{family}{OVER_REFERENCE}", "p50", 0.0, 0.0, spread, sessions, blocks_count, 0.0)
            )
    return found


def _logs(trials: Iterable[Trial]) -> Mapping[Cell, Mapping[Block, float]]:
    """The mean logarithm of each cell in each block, over its arms."""
    found: dict[Cell, dict[Block, list[float]]] = {}
    for trial in trials:
        value = trial_latency_us(trial, "p50") if trial.outcome is Outcome.MEASURED else None
        if value:
            block = trial.run, trial.session, trial.slot.block
            found.setdefault(trial.cell, {}).setdefault(block, []).append(math.log(value))
    return {cell: {block: float(np.mean(values)) for block, values in blocks.items()} for cell, blocks in found.items()}


def _levels(blocks: Mapping[Block, float], reference: Mapping[Block, float]) -> list[list[float]]:
    """The logarithms over the reference, by session; of sessions that have enough of them."""
    sessions: dict[tuple[str, str], list[float]] = defaultdict(list)
    for block, value in blocks.items():
        if block in reference:
            sessions[block[:2]].append(value - reference[block])
    return [logs for logs in sessions.values() if len(logs) >= SESSION_TRIALS_MIN]
