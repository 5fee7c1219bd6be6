"""A night in one chat message: the verdict first, then what happened, then where to go on."""

from __future__ import annotations

from orchestrator.clock import duration_text
from orchestrator.night import NightResult
from orchestrator.reports.gate_markdown import gate_markdown


def night_summary(night: NightResult) -> str:
    """Markdown of less than 1500 characters whose first line is the verdict."""
    measured = sum(row.blocks[1] > 0 for row in night.gate.rows)
    devices = {row.cell.device for row in night.gate.rows if row.blocks[1]}
    asked = {device.name for device in night.gate.devices}
    words = f"{measured} cells on {len(devices)} of {len(asked)} devices in {duration_text(night.seconds)}"
    if night.is_resumed:
        words += ", resumed"
    return gate_markdown(night.gate, extra=(words,))
