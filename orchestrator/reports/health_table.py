"""Devices over nights for a terminal: a line each, and under it what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.analysis.health import recent_share

if TYPE_CHECKING:
    from orchestrator.analysis.health import DeviceHealth, Night

_STYLE = {"healthy": "green", "watch": "yellow", "decaying": "bold red", "new": "dim"}
_ORDER = ("decaying", "watch", "new", "healthy")


def show_healths(console: Console, found: Sequence[DeviceHealth]) -> None:
    """The worst first."""
    if not found:
        console.print("no device has a night kept in this time")
        return
    ordered = sorted(found, key=lambda item: (_ORDER.index(item.verdict), item.device))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for name in ("device", "health", "nights", "lost", "drops", "failed", "rejected", "start", "battery"):
        table.add_column(name, no_wrap=True, justify="left" if name in ("device", "health") else "right")
    for item in ordered:
        table.add_row(
            item.device,
            Text(str(item.verdict), style=_STYLE[item.verdict]),
            str(len(item.nights)),
            str(sum(night.is_lost for night in item.nights)),
            str(sum(night.drops for night in item.nights)),
            _share(item, "failed"),
            _share(item, "rejected"),
            _last(item, "temperature_c", "{:.0f} °C"),
            _last(item, "battery_percent", "{:.0f} %"),
        )
    console.print(table)
    for item in ordered:
        for finding in item.findings:
            style = _STYLE["decaying" if finding.severity == "fail" else "watch"]
            console.print(Text.assemble((f"{item.device}: ", style), f"{finding.reason}; {finding.remedy}"))


def _share(item: DeviceHealth, outcome: str) -> str:
    found = recent_share(item.nights, outcome)
    return "–" if found is None else f"{100 * found:.0f} %"


def _last(item: DeviceHealth, name: str, form: str) -> str:
    night: Night = item.nights[-1]
    value = getattr(night, name)
    return "–" if value is None else form.format(value)
