"""The SHA-256 of files on the host."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def _digest(path: Path, size: int, changed_ns: int) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def sha256(path: Path) -> str:
    """The file's SHA-256; read once as long as the file does not change."""
    state = path.stat()
    return _digest(path, state.st_size, state.st_mtime_ns)
