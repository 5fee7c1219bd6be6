"""The items of a bisection: files that are there, or files that a command makes for each revision."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from orchestrator.binaries import examine
from orchestrator.clock import Deadline
from orchestrator.errors import CommandTimeout, DevbenchError, UsageError
from orchestrator.model_files import check_model
from orchestrator.transports.local import LocalTransport

MODEL = "model"
"""What differs from item to item; otherwise it is a role among the runner's files."""
HERE = "{}"
_OUTPUT_KEPT = 4000


class NotBuilt(Exception):
    """An item that cannot be had, with the reason: it is skipped."""


class Source(Protocol):
    """Where items come from."""

    def obtain(self, name: str) -> Path:
        """The item's file, right now; NotBuilt where there is none."""


Check = Callable[[Path], None]
"""Raises a DevbenchError where the file is not what is being searched for."""


def check_of(role: str, runner: str) -> Check:
    """What can be seen of a file before it is tried on a device."""

    def check(path: Path) -> None:
        if role == MODEL:
            check_model(path)
        elif role == "runner" and runner.partition(":")[0] == "benchmark_model":
            examine(path, str(path))

    return check


@dataclass(frozen=True)
class GivenFiles:
    """Items are files, and their names are paths."""

    def obtain(self, name: str) -> Path:
        if not Path(name).is_file():
            raise NotBuilt("the file is gone")
        return Path(name)


@dataclass(frozen=True)
class MadeByCommand:
    """Items are revisions: a command line of the shell, run in this folder, leaves the file of one at a path."""

    command: str
    produces: str
    timeout_s: float
    check: Check

    def obtain(self, name: str) -> Path:
        path = Path(self.produces.replace(HERE, name))
        self._run(self.command.replace(HERE, shlex.quote(name)))
        if not path.is_file():
            raise NotBuilt(f"the command ended well, but there is no {path}")
        try:
            self.check(path)
        except DevbenchError as error:
            raise NotBuilt(error.fact) from error
        return path

    def _run(self, line: str) -> None:
        """To its end; whoever interrupts us ends it, too."""
        deadline, transport = Deadline.after(self.timeout_s), LocalTransport()
        said = b""
        try:
            process = transport.start(["sh", "-c", line])
            process.close_input()
            while not process.at_end and not deadline.passed:
                said = (said + process.receive(deadline))[-_OUTPUT_KEPT:]
            status = process.wait(deadline)
            tail = (process.stderr_tail.strip() or said.strip()).splitlines()[-1:]
        except CommandTimeout as error:
            raise NotBuilt(f"the command took longer than {self.timeout_s:g} s") from error
        finally:
            transport.close()
        if status != 0:
            words = tail[0].decode("utf-8", "replace")[:200] if tail else "it said nothing"
            raise NotBuilt(f"the command ended with {status}: {words}")


def read_revisions(text: str) -> tuple[str, ...]:
    """The revisions of a file, one a line, or of a list with commas; the oldest first."""
    path = Path(text)
    if path.is_file():
        lines = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
        found = [line.split()[0] for line in lines if line]
    else:
        found = [word.strip() for word in text.split(",") if word.strip()]
    if len(found) < 2:
        raise UsageError(
            f"--revisions: {len(found)} revisions", remedy="give a file with one a line, or a list with commas"
        )
    doubled = next((name for name in found if found.count(name) > 1), None)
    if doubled:
        raise UsageError(f"--revisions: {doubled} is there twice", remedy="list every revision once, the oldest first")
    return tuple(found)
