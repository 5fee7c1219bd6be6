"""Ratios between cells, paired by block: thread speed-up and load sensitivity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.analysis.estimate import METRICS, Block, CellEstimate, Estimate, Metric, estimates
from orchestrator.trial import Cell

IDLE = "idle"
MARGIN = 0.05
"""Thread counts whose latencies differ by less than this share are as good as each other."""


@dataclass(frozen=True)
class Contrast:
    """The latency of a cell over that of its base cell, for one metric, from the blocks that have both."""

    cell: Cell
    base: Cell
    arm: str | None
    metric: Metric
    ratio: Estimate
    by_block: tuple[float, ...]

    def as_json(self, ratio: Estimate) -> dict[str, Any]:
        """The row of a table; `ratio` is ours or its inverse."""
        return place_as_json(self.cell, self.arm) | {
            "load": self.cell.load,
            "threads": self.cell.threads,
            "metric": self.metric,
            "ratio": ratio.value,
            "low": ratio.low,
            "high": ratio.high,
            "n": ratio.n,
            "note": ratio.note,
            "cell": self.cell.id,
            "base_cell": self.base.id,
        }


@dataclass(frozen=True)
class Sweep:
    """Cells that differ in thread count and load only, and the thread count the others are held against."""

    cells: Mapping[tuple[int, str], CellEstimate]
    base_threads: int

    @property
    def any_cell(self) -> Cell:
        return next(iter(self.cells.values())).cell

    @property
    def arm(self) -> str | None:
        return next(iter(self.cells.values())).arm

    @property
    def loads(self) -> list[str]:
        return list(dict.fromkeys(load for _, load in self.cells))

    @property
    def more_threads(self) -> list[int]:
        return sorted({threads for threads, _ in self.cells} - {self.base_threads})


def place_as_json(cell: Cell, arm: str | None) -> dict[str, Any]:
    """The fields that all cells of a sweep share."""
    return {
        "device": cell.device,
        "model": cell.model,
        "runner": cell.runner,
        "delegate": cell.delegate,
        "affinity": cell.affinity,
        "arm": arm,
    }


def sweeps(cells: Iterable[CellEstimate]) -> list[Sweep]:
    """Cells gathered into sweeps, in the order given. The base is one thread, or the fewest swept."""
    gathered: dict[tuple[Cell, str | None], dict[tuple[int, str], CellEstimate]] = defaultdict(dict)
    for found in cells:
        shared = (replace(found.cell, threads=0, load=IDLE), found.arm)
        gathered[shared][(found.cell.threads, found.cell.load)] = found
    return [Sweep(members, min(threads for threads, _ in members)) for members in gathered.values()]


def thread_contrasts(sweeps: Sequence[Sweep]) -> list[Contrast]:
    """N threads over the base, at the same load: above 1 is slower. The speed-up is the inverse."""
    pairs = [
        (found, base)
        for sweep in sweeps
        for (threads, load), found in sweep.cells.items()
        if threads != sweep.base_threads and (base := sweep.cells.get((sweep.base_threads, load)))
    ]
    return _contrasts(pairs, probes=(1 - MARGIN, 1.0, 1 + MARGIN))


def load_contrasts(sweeps: Sequence[Sweep]) -> list[Contrast]:
    """Loaded over idle, at the same thread count: the load sensitivity."""
    pairs = [
        (found, idle)
        for sweep in sweeps
        for (threads, load), found in sweep.cells.items()
        if load != IDLE and (idle := sweep.cells.get((threads, IDLE)))
    ]
    return _contrasts(pairs, probes=(1.0,))


def _contrasts(pairs: Sequence[tuple[CellEstimate, CellEstimate]], *, probes: Sequence[float]) -> list[Contrast]:
    wanted = [(found, base, metric) for found, base in pairs for metric in METRICS]
    series = [paired(found.by_block[metric], base.by_block[metric]) for found, base, metric in wanted]
    ratios = estimates(series, probes=probes)
    return [
        Contrast(found.cell, base.cell, found.arm, metric, _explained(ratio), tuple(by_block))
        for (found, base, metric), ratio, by_block in zip(wanted, ratios, series, strict=True)
    ]


def paired(over: Mapping[Block, float], under: Mapping[Block, float]) -> list[float]:
    """The ratio of every block that both have."""
    return [over[block] / under[block] for block in over if block in under]


def _explained(ratio: Estimate) -> Estimate:
    return ratio if ratio.n else replace(ratio, note="no block has both cells measured")
