"""What goes wrong with a store's disk and database, as errors of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from orchestrator.errors import StoreError

DATABASE = "devbench.sqlite"


@contextmanager
def translated(folder: Path) -> Iterator[None]:
    """Foreign errors of disk and database, as ours."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise _store_error(folder, str(error.orig)) from error
    except OSError as error:
        raise _store_error(folder, error.strerror or str(error)) from error


def _store_error(folder: Path, problem: str) -> StoreError:
    if "full" in problem or "No space" in problem or "quota" in problem:
        return StoreError(
            f"no space left for the store {folder}",
            remedy="free space; then `devbench run --resume` goes on where it was",
        )
    if "readonly" in problem or "Read-only" in problem or "Permission" in problem or "unable to open" in problem:
        return StoreError(
            f"cannot write the store {folder}: {problem}",
            remedy="make it writable, or point --store to another folder",
        )
    if "not a database" in problem or "malformed" in problem:
        return StoreError(
            f"{folder / DATABASE} is damaged: {problem}",
            remedy="restore it from a backup, or move it away to start anew",
        )
    return StoreError(f"the store {folder} cannot be used: {problem}", remedy="check the folder and its disk")
