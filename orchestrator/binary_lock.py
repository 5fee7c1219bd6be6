"""The lock file of a project: which content a fetched binary has, recorded once and checked ever after."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.whole_files import write_whole

LOCK = "devbench-binaries.lock"
_SCHEMA, _VERSION = "devbench.binaries-lock", 1


@dataclass(frozen=True)
class Locked:
    """A fetched binary as the project knows it."""

    name: str
    machine: str
    url: str
    sha256: str
    size: int


def read_lock(folder: Path) -> dict[str, Locked]:
    """What the lock file in `folder` records, by `VERSION PLATFORM`; nothing where there is none."""
    path = folder / LOCK
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != _SCHEMA or content["version"] != _VERSION:
            raise UsageError(f"{path} is of another version", remedy="upgrade devbench")
        return {key: _locked(entry) for key, entry in content["binaries"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} cannot be read: {type(error).__name__}", remedy="restore it from version control"
        ) from error


def _locked(entry: Mapping[str, object]) -> Locked:
    texts, size = {key: entry[key] for key in ("name", "machine", "url", "sha256")}, entry["size"]
    if not isinstance(size, int) or not all(isinstance(text, str) for text in texts.values()):
        raise TypeError
    return Locked(size=size, **{key: str(text) for key, text in texts.items()})


def add_to_lock(folder: Path, key: str, locked: Locked) -> None:
    """Record it beside the others."""
    entries = {**read_lock(folder), key: locked}
    document = {
        "schema": _SCHEMA,
        "version": _VERSION,
        "binaries": {known: vars(entry) for known, entry in sorted(entries.items())},
    }
    write_whole(folder / LOCK, (json.dumps(document, indent=1) + "\n").encode())
