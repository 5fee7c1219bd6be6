"""A small host for the tests: starts a real agent, reads its protocol, and looks at real processes."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """One protocol line, taken apart as PROTOCOL.md says."""

    letter: str
    body: bytes

    @property
    def record(self) -> Record:
        """The JSON object of any line that is not the child's output."""
        record: Record = json.loads(self.body)
        return record

    @property
    def t_ns(self) -> int:
        """The time of a line of the child's output."""
        return int(self.body.split(b" ", 1)[0])

    @property
    def text(self) -> bytes:
        """The bytes of a line of the child's output."""
        return self.body.split(b" ", 1)[1]


@dataclass(frozen=True)
class Transcript:
    """All that an agent said."""

    lines: Sequence[Line]
    status: int
    complaints: str

    def records(self, letter: str) -> list[Record]:
        return [line.record for line in self.lines if line.letter == letter]

    @property
    def closing(self) -> Record:
        assert self.lines[-1].letter == "X", f"no closing record: {self.complaints}"
        return self.lines[-1].record

    @property
    def started(self) -> Record:
        (record,) = self.records("C")
        return record

    def output(self, letter: str = "O") -> bytes:
        """The child's standard output ("O") or error ("E") as it wrote it."""
        parts = []
        for line in self.lines:
            if line.letter == letter:
                parts.append(line.text + b"\n")
            elif line.letter == letter.lower():
                parts.append(line.text)
        return b"".join(parts)


def parse(stream: bytes, *, status: int = 0, complaints: str = "") -> Transcript:
    """Takes a whole protocol stream apart."""
    lines = [Line(chr(raw[0]), raw[2:]) for raw in stream.split(b"\n")[:-1]]
    return Transcript(lines, status, complaints)


def start(command: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
    """An agent whose hand we hold: all three standard streams are pipes."""
    return subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def finish(agent: subprocess.Popen[bytes], timeout_s: float = 20.0) -> Transcript:
    """Reads to the end while standard input stays open, as a host does; an agent that hangs is killed."""
    assert agent.stdout is not None and agent.stderr is not None and agent.stdin is not None
    watchdog = threading.Timer(timeout_s, agent.kill)
    watchdog.start()
    try:
        stream = agent.stdout.read()
        complaints = agent.stderr.read().decode()
        status = agent.wait(timeout_s)
    finally:
        watchdog.cancel()
    agent.stdin.close()
    agent.stdout.close()
    agent.stderr.close()
    return parse(stream, status=status, complaints=complaints)


def run(command: Sequence[str | Path], **options: Any) -> Transcript:
    """An agent from start to end."""
    return finish(start(command, **options))


def wait_until(true: Callable[[], bool], *, within_s: float, what: str) -> float:
    """The seconds it took until `true`; fails after `within_s`."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < within_s, f"not within {within_s} s: {what}"
        time.sleep(0.005)
    return time.monotonic() - began


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def alive(pid: int) -> bool:
    """Whether a process exists and is more than a zombie."""
    try:
        return _stat(pid)[0] not in "ZX"
    except OSError:
        return False


def cpu_ticks(pid: int) -> int:
    """User and system time of a process."""
    stat = _stat(pid)
    return int(stat[11]) + int(stat[12])


def descendants(pid: int) -> set[int]:
    """Every process below `pid` that is still tied to it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(_stat(int(entry.name))[1])
            except OSError:
                continue
    found: set[int] = set()
    fresh = {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh}
        found |= fresh
    return found


def pid_in(file: Path, *, within_s: float = 10.0) -> int:
    """The process number that a script writes to `file`."""
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"), within_s=within_s, what=f"{file} is written")
    return int(file.read_text())


#: A child that will not go quietly, with a grandchild that left the group and the session.
STUBBORN = """
trap '' TERM HUP INT
setsid sh -c 'trap "" TERM HUP INT; echo $$ > grandchild.pid; while :; do sleep 1000; done' >/dev/null 2>&1 &
echo $$ > child.pid
while :; do sleep 1000; done
"""
