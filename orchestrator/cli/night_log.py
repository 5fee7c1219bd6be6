"""A log of what a night says on standard error, every line with its time."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from orchestrator.clock import SYSTEM, timestamp
from orchestrator.errors import HostError


class _Logged(io.TextIOBase):
    """A stream whose whole lines go to a log as well, as they come. It is no terminal: nothing is drawn over."""

    def __init__(self, stream: TextIO, log: TextIO) -> None:
        self._stream = stream
        self._log = log
        self._begun = ""
        self._turn = threading.Lock()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # TextIOBase has it as an attribute
        return self._stream.encoding

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        with self._turn:
            *lines, self._begun = (self._begun + text).split("\n")
            for line in lines:
                self.note(line)
            with suppress(OSError):  # nobody may be listening any more; the log goes on
                self._stream.write(text)
                self._stream.flush()
        return len(text)

    def note(self, line: str) -> None:
        """A line for the log alone."""
        self._log.write(f"{timestamp(SYSTEM.now())} {line}\n")
        self._log.flush()

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def end(self) -> None:
        if self._begun:
            self.note(self._begun)


@contextmanager
def logged(place: Path | None) -> Iterator[None]:
    """Everything that is said on standard error meanwhile goes to the log too. A folder gets a file for each night; a
    file is added to."""
    if place is None:
        yield
        return
    path = place / f"night-{timestamp(SYSTEM.now())[:19].replace(':', '')}Z.log" if _is_folder(place) else place
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.open("a", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise HostError(f"cannot write the log {path}: {error.strerror}", remedy="name another place") from error
    original = sys.stderr
    with log:
        sys.stderr = doubled = _Logged(original, log)
        try:
            yield
        finally:
            sys.stderr = original
            doubled.end()


def _is_folder(place: Path) -> bool:
    """What is a folder, or has no ending and so is meant as one."""
    return place.is_dir() or (not place.suffix and not place.is_file())
