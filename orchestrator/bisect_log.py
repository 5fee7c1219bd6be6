"""The log of a bisection: JSON lines, only ever appended to, from which it goes on after a crash."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.clock import SYSTEM, timestamp
from orchestrator.errors import HostError, UsageError

SCHEMA, VERSION = "devbench.bisect-log", 1
BEGIN = "begin"


class BisectLog:
    """What was decided so far, in order; a line is on the disk before the next thing is done."""

    def __init__(self, path: Path, entries: list[dict[str, Any]]) -> None:
        self.path = path
        self.entries = entries

    @classmethod
    def begin(cls, path: Path, content: Mapping[str, Any]) -> BisectLog:
        """A new log; one that exists is not written over."""
        if path.exists():
            raise UsageError(
                f"{path} is there already",
                remedy=f"go on with it: `devbench bisect --resume {path}`; or give another --log",
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(path, error) from error
        log = cls(path, [])
        log.append(BEGIN, {"schema": SCHEMA, "version": VERSION, **content})
        return log

    @classmethod
    def open(cls, path: Path) -> BisectLog:
        """A log as it was left. A last line that was being written when all ended is taken off."""
        try:
            content = path.read_bytes()
        except OSError as error:
            remedy = "name the log of a bisection, as it was said when it began"
            raise UsageError(f"cannot read {path}: {error.strerror}", remedy=remedy) from error
        whole = content[: content.rfind(b"\n") + 1]
        entries = [_entry(path, number, line) for number, line in enumerate(whole.splitlines(), 1)]
        first = entries[0] if entries else {}
        if first.get("event") != BEGIN or first.get("schema") != SCHEMA:
            raise UsageError(f"{path} is no log of a bisection", remedy="name one that `devbench bisect` wrote")
        if first.get("version") != VERSION:
            raise UsageError(f"{path} was written by another version of devbench", remedy="begin anew with this one")
        if len(whole) < len(content):
            try:
                os.truncate(path, len(whole))
            except OSError as error:
                raise _unwritable(path, error) from error
        return cls(path, entries)

    @property
    def first(self) -> dict[str, Any]:
        return self.entries[0]

    def append(self, event: str, content: Mapping[str, Any]) -> None:
        entry = {"event": event, "at": timestamp(SYSTEM.now()), **content}
        try:
            with self.path.open("a", encoding="utf-8") as out:
                out.write(json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n")
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self.entries.append(entry)

    def find(self, event: str, **fields: Any) -> dict[str, Any] | None:
        """The newest entry of this kind with these values."""
        wanted = {"event": event, **fields}
        fitting = (entry for entry in reversed(self.entries) if wanted.items() <= entry.items())
        return next(fitting, None)


def _entry(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry: dict[str, Any] = json.loads(line)
    except ValueError as error:
        remedy = "it was changed or is another file; begin anew with another --log"
        raise UsageError(f"{path}, line {number} is no JSON", remedy=remedy) from error
    if not isinstance(entry, dict) or not isinstance(entry.get("event"), str):
        raise UsageError(f"{path}, line {number} is no entry of a bisection", remedy="begin anew with another --log")
    return entry


def _unwritable(path: Path, error: OSError) -> HostError:
    return HostError(f"cannot write {path}: {error.strerror}", remedy="give --log another place")
