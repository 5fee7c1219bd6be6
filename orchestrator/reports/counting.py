"""Numbers of things in words."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"
