"""Traces that nobody can have are refused before anything is measured, by name."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.errors import UsageError
from orchestrator.plan import Collect
from orchestrator.platforms.base import Platform
from orchestrator.settings import suggestion
from orchestrator.trace import ANOMALY


def refuse_untraced(collect: Collect, platforms: Iterable[Platform]) -> None:
    """When no device can give such a trace, nobody waits for it; one among several is skipped by name."""
    if collect.baseline and collect.trace != ANOMALY:
        raise UsageError("--baseline tells which cells are odd", remedy="say --trace=anomaly with it")
    if not collect.trace:
        return
    named = {platform.name: platform for platform in platforms}
    known = list(dict.fromkeys(kind for platform in named.values() for kind in platform.trace_kinds))
    if not known:
        listed = "; ".join(f"{name} gives no system traces: {one.no_traces}" for name, one in named.items())
        raise UsageError(f"--trace: {listed}", remedy="leave trace out")
    for tool in collect.trace_with:
        if tool not in known:
            where = ", ".join(named)
            raise UsageError(f'--trace-with: "{tool}" is no tracer of {where}', remedy=suggestion(tool, known))
