"""Records one trace on one device: a shell there that starts the tracer, waits for our word and stops it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from orchestrator.clock import Deadline
from orchestrator.errors import StoreError, TracerFailed
from orchestrator.platforms.tracing import Recording
from orchestrator.transports.base import Process, Transport

_COMMAND_S, _PULL_S = 60.0, 900.0
_TICK_S = 1.0
_ENDED_IN_ORDER = (0, 128 + 2, 128 + 15)
"""By itself, or by the signal that was meant to end it."""
_KILLED = 128 + 9
_FULL = re.compile(r"No space left|ENOSPC|disk full", re.I)
_ROOM_LEFT_BYTES = 64 * 1024

_SCRIPT = """\
o=$1; c=$2; l=$3; p=; s=0; true >"$l"; trap "" PIPE
bye() {{ {undo}; rm -rf "$o" "$c" "$l"; }}
dead() {{ [ -n "$p" ] && wait $p; s=$?; echo "@@dead $s"; tail -n 5 "$l"; bye; exit 0; }}
trap "bye; exit 1" HUP INT TERM
{start}
echo "@@recording $p"
read -r word
{stop}
[ "$word" = stop ] || {{ bye; exit 1; }}
echo "@@stopped $s"; tail -n 5 "$l"
"""
_REMOVE = 'rm -rf "$1" "$2"; rmdir "${2%/*}" 2>/dev/null; true'
_SIZE = 'wc -c <"$1" 2>/dev/null || echo none; df -k "${1%/*}" 2>/dev/null'


@dataclass(frozen=True)
class Written:
    """What the tracer left on the device."""

    size_bytes: int | None
    is_full: bool
    """The device has no room left."""


@dataclass(frozen=True)
class Patience:
    """How long a tracer may take to begin, to end when it is told to, and to be gone when it is killed."""

    start_s: float = 90.0
    stop_s: float = 60.0
    killed_s: float = 10.0


PATIENCE = Patience()


class Recorder:
    """Within it the device records; after it there is a file to be pulled, and to be removed."""

    def __init__(self, transport: Transport, recording: Recording, folder: str, patience: Patience = PATIENCE) -> None:
        self._patience = patience
        self._transport = transport
        self._recording = recording
        self._folder = folder
        self._process: Process | None = None
        self._output = bytearray()
        self.problem: str | None = None
        """Why the trace may not be whole, in the tracer's words; None when it ended in order."""

    def __enter__(self) -> Recorder:
        places = [self._recording.output, f"{self._folder}/trace.config", f"{self._folder}/trace.log"]
        clear = f'rm -f {self._recording.leftovers}; mkdir -p "$1" && cat >"$2"'
        content = self._recording.config.encode()
        done = self._transport.run(
            ["sh", "-c", clear, "sh", self._folder, places[1]], deadline=Deadline.after(_COMMAND_S), content=content
        )
        if done.exit != 0:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise TracerFailed(f"the device takes no configuration: {said[-200:]}", remedy="free space on the device")
        parts = {"start": self._recording.start, "stop": self._recording.stop, "undo": self._recording.undo}
        self._process = self._transport.start(["sh", "-c", _SCRIPT.format(**parts), "sh", *places])
        try:
            self._await_start()
        except BaseException:
            self._process.kill()
            raise
        return self

    def _await_start(self) -> None:
        word, rest = self._heard(("@@recording", "@@dead"), Deadline.after(self._patience.start_s))
        if word == "@@recording":
            return
        if word == "@@dead":
            status, said = self._parts(rest)
            raise TracerFailed(f"the tracer ended at once (status {status}): {said}", remedy="see its words")
        raise TracerFailed(
            f"the tracer did not start within {self._patience.start_s:.0f} s", remedy="try it by hand on the device"
        )

    def __exit__(self, *_error: object) -> None:
        assert self._process
        try:
            self._process.send(b"stop\n")
            word, rest = self._heard(("@@stopped",), Deadline.after(self._patience.stop_s))
            is_hung = word is None and not self._process.at_end
            if is_hung:
                word, rest = self._killed()
            status, said = self._parts(rest)
            self.problem = self._judged(word, status, said, is_hung=is_hung)
            self._process.close_input()
        finally:
            self._process.kill()

    def _parts(self, rest: str) -> tuple[str, str]:
        """How the tracer ended, and its last words, wherever it left them."""
        assert self._process
        status, _, said = rest.partition("\n")
        heard = self._process.stderr_tail.decode("utf-8", "replace")
        return status.strip(), _one_line(said) or _one_line(heard)

    def _killed(self) -> tuple[str | None, str]:
        """End a tracer that does not heed its signal; the shell that waits for it then goes on."""
        pid = re.search(rb"@@recording (\d+)", bytes(self._output))
        if pid:
            argv = ["kill", "-KILL", pid[1].decode()]
            self._transport.run(argv, deadline=Deadline.after(_COMMAND_S))
        return self._heard(("@@stopped",), Deadline.after(self._patience.killed_s))

    def _judged(self, word: str | None, status: str, said: str, *, is_hung: bool) -> str | None:
        if is_hung:
            return f"the tracer did not end when it was told to, and was killed after {self._patience.stop_s:.0f} s"
        if word is None:
            return "the tracer's shell ended before the tracer"
        if _FULL.search(said):
            return f"the device filled up: {said}"
        number = int(status) if status.isdigit() else None
        if number in _ENDED_IN_ORDER:
            return None
        if number == _KILLED:
            return "the tracer was killed"
        return f"the tracer ended with status {status}" + (f": {said}" if said else "")

    def _heard(self, words: tuple[str, ...], deadline: Deadline) -> tuple[str | None, str]:
        """The first of these words that the shell says, and what follows it; None when it says none."""
        assert self._process
        while True:
            lines = bytes(self._output).decode("utf-8", "replace").splitlines(keepends=True)
            for index, line in enumerate(lines):
                for word in words:
                    if line.startswith(word) and line.endswith("\n"):
                        rest = line.removeprefix(word).strip()
                        return word, "\n".join([rest, *(self._tail(lines[index + 1 :], word))])
            if self._process.at_end or deadline.passed:
                return None, ""
            self._output += self._process.receive(deadline.sooner(_TICK_S))

    def _tail(self, lines: list[str], word: str) -> list[str]:
        """What is said after the last word of all comes until the shell ends."""
        assert self._process
        if word == "@@recording":
            return []
        more, deadline = bytearray(), Deadline.after(_TICK_S)
        while not self._process.at_end and not deadline.passed:
            more += self._process.receive(deadline)
        return [line.rstrip("\n") for line in (*lines, *more.decode("utf-8", "replace").splitlines())]

    def written(self) -> Written:
        """How much there is to pull."""
        argv = ["sh", "-c", _SIZE, "sh", self._recording.output]
        said = self._transport.run(argv, deadline=Deadline.after(_COMMAND_S)).stdout.decode("utf-8", "replace")
        size, _, table = said.strip().partition("\n")
        free = [int(row[1]) for line in table.splitlines() if (row := re.search(r"\s(\d+)\s+\d+%", line))]
        return Written(
            int(size.strip()) if size.strip().isdigit() else None,
            bool(free) and 1024 * free[-1] < _ROOM_LEFT_BYTES,
        )

    def pull(self, target: Path) -> None:
        """The trace, streamed to a file on this host."""
        try:
            self._transport.pull(self._recording.output, target, deadline=Deadline.after(_PULL_S))
        except OSError as error:
            raise StoreError(f"no room for the trace: {error.strerror}", remedy="free space") from error

    def remove(self) -> None:
        """Leave nothing of it on the device."""
        argv = ["sh", "-c", _REMOVE, "sh", self._recording.output, self._folder]
        self._transport.run(argv, deadline=Deadline.after(_COMMAND_S))


def _one_line(text: str) -> str:
    return " ".join(text.split())[-400:]
