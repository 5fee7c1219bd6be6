"""The words for operator profiles: what each operator of a model costs, per inference."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.cell_pass import CellPass

_NODE = re.compile(r".*:(\d{1,9})")


@dataclass(frozen=True)
class OpCost:
    """One operator as it was run, per inference."""

    name: str
    """As the runtime names the node: its outputs and its index, or what a delegate calls its kernel."""
    type: str
    time_us: float
    calls: float = 1.0
    subgraph: int = 0
    is_delegated: bool = False
    memory_kb: float | None = None

    @property
    def node(self) -> int | None:
        """The index that the name ends with."""
        match = _NODE.fullmatch(self.name)
        return int(match[1]) if match else None


@dataclass(frozen=True)
class OpProfile:
    """What a runner's profiler says of the inferences of one trial."""

    source: str
    """What it was read from: proto, csv or text."""
    ops: tuple[OpCost, ...] = ()
    """In the order in which they ran; their times add up to the inference."""
    inner: tuple[OpCost, ...] = ()
    """What a delegate says of its own parts: a closer look at rows of `ops`, not to be added to them."""
    init: tuple[OpCost, ...] = ()
    """The steps of the initialisation."""
    runs: int | None = None
    """How many inferences were profiled."""
    total_us: float | None = None
    """The runtime's own sum over all operators, per inference."""
    problem: str | None = None
    """Why it is not whole; what could be read is here all the same."""
    notes: tuple[str, ...] = ()

    @property
    def time_us(self) -> float:
        return sum(op.time_us for op in self.ops)

    @property
    def delegated_us(self) -> float:
        return sum(op.time_us for op in self.ops if op.is_delegated)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> OpProfile:
        rows = {key: tuple(OpCost(**op) for op in content[key]) for key in ("ops", "inner", "init")}
        return cls(**{**content, **rows, "notes": tuple(content["notes"])})


@dataclass(frozen=True)
class ProfilePass(CellPass):
    """One execution of a cell with its operators timed."""

    profile: OpProfile | None = None
