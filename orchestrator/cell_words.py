"""Which cell a user means: the start of its id, or words that fit only one. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields

from orchestrator.errors import UsageError
from orchestrator.trial import Cell

_ID_START_MIN = 4
_LISTED = 8


def cell_meant(cells: Sequence[Cell], text: str, where: str) -> Cell:
    """The one cell; several that fit are listed, and so is what there is where none does."""
    words = text.replace(",", " ").split()
    if not words:
        raise UsageError("no cell is named", remedy=f"there are: {_listed(cells)}")
    found = [cell for cell in cells if len(text) >= _ID_START_MIN and cell.id.startswith(text)]
    found = found or [cell for cell in cells if all(_fits(cell, word) for word in words)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f'"{text}" may mean {len(found)} cells of {where}', remedy=f"say which: {_listed(found)}")
    raise UsageError(f'no cell "{text}" in {where}', remedy=f"there are: {_listed(cells)}")


def same_setting(cells: Sequence[Cell], like: Cell) -> list[Cell]:
    """Those that are the same but for their hashes."""
    return [cell for cell in cells if not setting_differences(cell, like)]


def setting_differences(one: Cell, other: Cell) -> list[str]:
    """The fields, hashes apart, in which two cells differ."""
    names = [item.name for item in fields(Cell) if not item.name.endswith("_sha256")]
    return [name for name in names if getattr(one, name) != getattr(other, name)]


def _fits(cell: Cell, word: str) -> bool:
    """A part of the model's name, a whole word of the rest, a number of threads, or FIELD=VALUE."""
    field, mark, value = word.partition("=")
    if mark and field in Cell.__dataclass_fields__:
        return str(getattr(cell, field)) == value
    if word.isdecimal():
        return str(cell.threads) == word
    text = f"{cell.setting}, {cell.runner}, affinity {cell.affinity}, {cell.device}"
    return word in cell.model or re.search(rf"(?<![\w:@]){re.escape(word)}(?![\w:@])", text) is not None


def _listed(cells: Sequence[Cell]) -> str:
    shown = "; ".join(f"{cell.id} {cell}" for cell in cells[:_LISTED])
    more = f"; and {len(cells) - _LISTED} more" if len(cells) > _LISTED else ""
    return f"{shown}{more}" if cells else "none"
