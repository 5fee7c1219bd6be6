"""Writes files that are either whole or not there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

TEMPORARY = ".devbench-"
"""How the names of files begin that are there only while something is under way, on this host and on devices."""


@contextmanager
def written_whole(path: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A file that gets the name `path` when the block ends well, and vanishes when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=TEMPORARY)
    try:
        with os.fdopen(descriptor, "wb") as out:
            yield out
            out.flush()
            os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    with written_whole(path) as out:
        out.write(content)


def copy_whole(source: Path, target: Path, mode: int = 0o644) -> None:
    """A copy that is all there once it has its name."""
    with source.open("rb") as content, written_whole(target, mode) as out:
        shutil.copyfileobj(content, out, 1 << 20)
