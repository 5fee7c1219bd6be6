"""One night at a time in one store: last night's overrun does not meet tonight's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.clock import SYSTEM, timestamp
from orchestrator.errors import DeviceBusy, StoreError
from orchestrator.held_file import Held, held

_NAME = "night.lock"


@contextmanager
def night_lock(folder: Path) -> Iterator[None]:
    """Hold the nights of a store. DeviceBusy says who holds them, and since when; a holder that died holds nothing."""
    try:
        descriptor = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(f"cannot make a lock in {folder}: {error.strerror}", remedy="make it writable") from error
    try:
        with held(descriptor, since=timestamp(SYSTEM.now())):
            yield
    except Held as error:
        pid, since = error.holder.get("pid"), error.holder.get("since")
        who = f"process {pid}, since {since}" if pid else "another process"
        remedy = "wait for it to end" + (f", or stop it: `kill {pid}` ends it cleanly, to be resumed" if pid else "")
        raise DeviceBusy(f"another night is under way in {folder} ({who})", remedy=remedy) from error
