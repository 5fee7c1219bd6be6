"""Nights of one phone: runs of builds whose speed is known."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from orchestrator import campaign
from orchestrator.binaries import Binaries
from orchestrator.fleet import Device
from orchestrator.plan import Plan
from orchestrator.prepare import prepare
from orchestrator.reports.progress import SilentProgress
from orchestrator.store import Store

from .build import build_variant


@dataclass
class Nights:
    """Measures one build after the other; the environment must name the same cache of binaries."""

    store: Store
    device: Device
    plan: Plan
    binaries: Path
    original: Path

    def measure(self, name: str, slowdown: float) -> str:
        """A run of a build that is so many times slower; gives its id."""
        self.binaries.mkdir(exist_ok=True)
        built = build_variant(self.original, self.binaries / name, slowdown=slowdown, name=name)
        Binaries(self.binaries).add(built, name)
        prepared = prepare(self.plan, [self.device])
        (result,) = campaign.measure(prepared, self.store, SilentProgress(), threading.Event())
        assert result.measured and not result.incomplete, result
        return prepared.record.id
