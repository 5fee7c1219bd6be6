"""Files that one process at a time holds, in which the holder says who it is."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class Held(Exception):
    """Somebody else holds it; `holder` is what they said of themselves, as far as it can be read."""

    def __init__(self, holder: Mapping[str, Any]) -> None:
        super().__init__("held by somebody else")
        self.holder = holder


@contextmanager
def held(descriptor: int, **told: Any) -> Iterator[None]:
    """Hold an open file, which is closed in the end, and say in it who does. The kernel frees it if we die, so that
    nothing is ever left held."""
    with os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise Held(_read(lock.read())) from error
        lock.seek(0)
        lock.truncate()
        lock.write(json.dumps({"pid": os.getpid(), **told}))
        lock.flush()
        try:
            yield
        finally:
            lock.seek(0)
            lock.truncate()


def _read(text: str) -> Mapping[str, Any]:
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
