"""Who uses the files of a store: many may measure, and only one who is alone may sweep up."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.store.trouble import translated

_NAME = ".in-use"


class UseLock:
    """A lock on the store's folder. The kernel lets go of it when the process dies."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
        self._turn = threading.Lock()
        self._descriptor: int | None = None
        self._is_shared = False

    def share(self) -> None:
        """Say that files of the store are needed until it is closed, though no run may name them yet. Waits while
        somebody sweeps up."""
        with self._turn, translated(self._path.parent):
            if not self._is_shared:
                fcntl.flock(self._open(), fcntl.LOCK_SH)
                self._is_shared = True

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody else uses the store; if so, nobody begins to before the block ends."""
        with self._turn:
            with translated(self._path.parent):
                descriptor = self._open()
                is_alone = _is_taken(descriptor)
            try:
                yield is_alone
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_SH if self._is_shared else fcntl.LOCK_UN)

    def release(self) -> None:
        with self._turn:
            if self._descriptor is not None:
                os.close(self._descriptor)
            self._descriptor, self._is_shared = None, False

    def _open(self) -> int:
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        return self._descriptor


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
