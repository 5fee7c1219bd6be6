"""The host end of the agent protocol (device_agents/PROTOCOL.md): commands out, lines in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.clock import Deadline
from orchestrator.errors import DeviceError, DeviceLost, DeviceUnfit
from orchestrator.platforms.base import Hold
from orchestrator.runners.base import Command
from orchestrator.transports.base import Process, Transport

PROTOCOL = 1
HEARTBEAT_S = 20.0
_BEAT_EVERY_S = 5.0
_GRACE_S = 5.0
_TICK_S = 0.25
_LINE_MAX = 4 * 1024 * 1024


@dataclass(frozen=True)
class Trialling:
    """One `run` command: the measured command beside a load."""

    command: Command
    load: str
    beside: Command | None
    placement: str
    settle_ms: int
    sample_ms: int
    affinity: str | None
    holds: Sequence[Hold]
    deadline_s: float


@dataclass
class Report:
    """What an agent said about one trial. Without `closing` the stream broke off."""

    header: Mapping[str, Any] = field(default_factory=dict)
    started: Mapping[str, Any] = field(default_factory=dict)
    stdout: list[bytes] = field(default_factory=list)
    stderr: list[bytes] = field(default_factory=list)
    samples: list[Mapping[str, Any]] = field(default_factory=list)
    loads: list[Mapping[str, Any]] = field(default_factory=list)
    warnings: list[Mapping[str, Any]] = field(default_factory=list)
    closing: Mapping[str, Any] = field(default_factory=dict)
    lines: int = 0
    unreadable: int = 0
    transcript: bytearray = field(default_factory=bytearray)

    @property
    def is_whole(self) -> bool:
        """The closing record arrived, and as many lines as it says."""
        return bool(self.closing) and self.closing.get("lines") == self.lines and not self.unreadable


class LineReader:
    """Turns the agent's bytes into a Report, line by line."""

    def __init__(self) -> None:
        self.report = Report()
        self._rest = bytearray()
        self._parts: dict[str, bytearray] = {"O": bytearray(), "E": bytearray()}

    def feed(self, chunk: bytes) -> None:
        self.report.transcript += chunk
        self._rest += chunk
        *lines, rest = self._rest.split(b"\n")
        self._rest = rest
        for line in lines:
            self._take(bytes(line).removesuffix(b"\r"))
        if len(self._rest) > _LINE_MAX:
            self.report.unreadable += 1
            self._rest.clear()

    def finish(self) -> Report:
        """The report when nothing more comes. Output that ended without a newline is a line as well."""
        for stream, target in (("O", self.report.stdout), ("E", self.report.stderr)):
            if self._parts[stream]:
                target.append(bytes(self._parts[stream]))
                self._parts[stream].clear()
        return self.report

    def _take(self, line: bytes) -> None:
        letter, content = line[:1].decode("latin-1"), line[2:]
        if letter == "X":
            self.report.closing = self._json(content)
            return
        self.report.lines += 1
        if letter in ("O", "E", "o", "e"):
            self._take_output(letter, content)
            return
        record = self._json(content)
        match letter:
            case "H":
                self.report.header = record
            case "C":
                self.report.started = record
            case "S":
                self.report.samples.append(record)
            case "L":
                self.report.loads.append(record)
            case "W":
                self.report.warnings.append(record)
            case _:
                self.report.unreadable += 1

    def _take_output(self, letter: str, content: bytes) -> None:
        """A line of the child. A small letter says that the line goes on in the next of its kind, if there is one."""
        _, _, text = content.partition(b" ")
        stream = letter.upper()
        self._parts[stream] += text
        if letter == stream:
            target = self.report.stdout if stream == "O" else self.report.stderr
            target.append(bytes(self._parts[stream]))
            self._parts[stream].clear()

    def _json(self, content: bytes) -> Mapping[str, Any]:
        try:
            record = json.loads(content.decode("utf-8", "replace"))
        except ValueError:
            self.report.unreadable += 1
            return {}
        if not isinstance(record, dict):
            self.report.unreadable += 1
            return {}
        return record


class Agent:
    """The agent on one device."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self.path = path

    def probe(self, deadline: Deadline) -> Mapping[str, Any]:
        completed = self._transport.run([self.path, "probe"], deadline=deadline)
        reader = _json_lines(completed.stdout)
        if completed.exit != 0 or not reader:
            raise self._unfit("probe", completed.exit, completed.stderr)
        return reader[0]

    def sample(self, seconds: float, deadline: Deadline) -> Report:
        """Telemetry for so long; 0 is one sample."""
        argv = [self.path, "sample", "--seconds", f"{seconds:g}", "--detached"]
        completed = self._transport.run(argv, deadline=deadline)
        if completed.exit != 0:
            raise self._unfit("sample", completed.exit, completed.stderr)
        reader = LineReader()
        reader.feed(completed.stdout)
        return reader.finish()

    def hash(self, paths: Sequence[str], deadline: Deadline) -> dict[str, str | None]:
        """SHA-256 by path as the device reads the files; None for one that cannot be read."""
        completed = self._transport.run([self.path, "hash", *paths], deadline=deadline)
        return {str(line["path"]): line.get("sha256") for line in _json_lines(completed.stdout)}

    def run(self, trialling: Trialling, stopped: Callable[[], bool]) -> Report:
        """One trial. When `stopped` turns true the agent is told to end, and ends everything it started."""
        process = self._transport.start([self.path, "run", *_arguments(trialling)])
        try:
            return _conversation(process, trialling, stopped)
        finally:
            process.kill()

    def _unfit(self, command: str, status: int, stderr: bytes) -> DeviceError:
        detail = stderr.decode("utf-8", "replace").strip().splitlines()
        return DeviceUnfit(
            f"the agent's {command} ended with {status}" + (f": {detail[-1]}" if detail else ""),
            remedy="run `devbench doctor`; the agent must be executable where `workdir` is",
        )


def _arguments(trialling: Trialling) -> list[str]:
    beside = trialling.beside.argv if trialling.beside else ()
    arguments = ["--load", "exec" if beside else trialling.load, "--load-argc", str(len(beside))]
    arguments += ["--load-placement", trialling.placement, "--settle-ms", str(trialling.settle_ms)]
    arguments += ["--sample-ms", str(trialling.sample_ms), "--deadline-s", f"{trialling.deadline_s:g}"]
    arguments += ["--heartbeat-s", f"{HEARTBEAT_S:g}"]
    if trialling.affinity:
        arguments += ["--affinity", trialling.affinity]
    for hold in trialling.holds:
        arguments += ["--hold", f"{hold.path}={hold.value}"]
    for key, value in sorted(trialling.command.env.items()):
        arguments += ["--env", f"{key}={value}"]
    return [*arguments, "--", *beside, *trialling.command.argv]


def _conversation(process: Process, trialling: Trialling, stopped: Callable[[], bool]) -> Report:
    reader = LineReader()
    deadline = Deadline.after(trialling.deadline_s + _GRACE_S)
    beat = Deadline.after(_BEAT_EVERY_S)
    while not process.at_end:
        if stopped():
            process.close_input()
            deadline = deadline.sooner(_GRACE_S)
        elif beat.passed:
            process.send(b"\n")
            beat = Deadline.after(_BEAT_EVERY_S)
        if deadline.passed:
            raise DeviceLost(
                "the agent fell silent past its own deadline",
                remedy="check the connection; then `devbench run --resume`",
            )
        reader.feed(process.receive(deadline.sooner(_TICK_S)))
    status = process.wait(Deadline.after(_GRACE_S))
    if not reader.report.header:
        detail = process.stderr_tail.decode("utf-8", "replace").strip()
        raise DeviceUnfit(
            f"the agent did not start (status {status})" + (f": {detail}" if detail else ""),
            remedy="run `devbench doctor`; the agent must be executable where `workdir` is",
        )
    return reader.finish()


def _json_lines(content: bytes) -> list[dict[str, Any]]:
    records = []
    for line in content.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records
