"""Which models nobody beats in both size and latency, on each device and under each load. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.analysis.summary import CellSummary


@dataclass(frozen=True)
class Sized:
    """A model by its best setting on one device under one load."""

    found: CellSummary
    bytes: int
    is_on_front: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "device": self.found.cell.device,
            "load": self.found.cell.load,
            "model": self.found.cell.model,
            "model_sha256": self.found.cell.model_sha256,
            "cell": self.found.cell.id,
            "arm": self.found.estimate.arm,
            "bytes": self.bytes,
            "on_front": self.is_on_front,
        }


def sized_models(cells: Sequence[CellSummary], bytes_of: Mapping[str, int]) -> tuple[Sized, ...]:
    """Every model whose size is known, by its fastest p50, device by device and load by load, the smallest first."""
    best: dict[tuple[str, str, str], CellSummary] = {}
    for found in cells:
        latency_us, digest = _p50_us(found), found.cell.model_sha256
        if latency_us is None or digest not in bytes_of:
            continue
        key = found.cell.device, found.cell.load, digest
        if key not in best or latency_us < (_p50_us(best[key]) or 0.0):
            best[key] = found
    places: dict[tuple[str, str], list[CellSummary]] = {}
    for (device, load, _), found in best.items():
        places.setdefault((device, load), []).append(found)
    return tuple(sized for members in places.values() for sized in _front(members, bytes_of))


def _front(members: Sequence[CellSummary], bytes_of: Mapping[str, int]) -> list[Sized]:
    """In the order of size a model is on the front where it is faster than all smaller ones."""
    ordered = sorted(members, key=lambda found: (bytes_of[found.cell.model_sha256], _p50_us(found) or 0.0))
    fastest_us = float("inf")
    sized = []
    for found in ordered:
        latency_us = _p50_us(found) or 0.0
        sized.append(Sized(found, bytes_of[found.cell.model_sha256], is_on_front=latency_us < fastest_us))
        fastest_us = min(fastest_us, latency_us)
    return sized


def _p50_us(found: CellSummary) -> float | None:
    return found.estimate.latency_us["p50"].value
