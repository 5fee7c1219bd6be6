"""Cells over time as rows for a plot: one line a point, every column a plain value."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from orchestrator.analysis.history import History

_CELL = ("device", "model", "runner", "delegate", "threads", "affinity", "load", "arm", "metric")
_POINT = (
    "run",
    "session",
    "started_s",
    "value_us",
    "low_us",
    "high_us",
    "n",
    "model_sha256",
    "runner_sha256",
    "runtime",
    "system",
    "standing",
    "verdict",
    "reference",
)
COLUMNS = (*_CELL, *_POINT, "change_percent")
"""`change_percent` is how far the level moved at this point, where it did."""


def history_csv(histories: Sequence[History]) -> str:
    """Comma-separated values with a header; every cell's points in time order."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for item in histories:
        writer.writerows(_rows(item))
    return out.getvalue()


def _rows(item: History) -> Iterator[dict[str, Any]]:
    content = item.as_json()
    changes = {change["index"]: change["effect_percent"] for change in content["change_points"]}
    for index, point in enumerate(content["points"]):
        row = {key: content[key] for key in _CELL} | {key: point[key] for key in _POINT}
        yield {key: _plain(value) for key, value in row.items()} | {"change_percent": changes.get(index)}


def _plain(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is marked as text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
