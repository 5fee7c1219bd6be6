"""The agent on a device, seen from the host: its commands, and the conversation that is a trial."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

from orchestrator.agent_lines import LineReader
from orchestrator.clock import Deadline
from orchestrator.errors import DeviceError, DeviceLost, DeviceUnfit
from orchestrator.stage import Report, Trialling
from orchestrator.transports.base import Process, Transport

PROTOCOL = 1
HEARTBEAT_S = 20.0
_BEAT_EVERY_S = 5.0
_GRACE_S = 5.0
_TICK_S = 0.25


class SamplesWhenRead(Sequence[Mapping[str, Any]]):
    """Telemetry that is asked for when somebody reads it: a round trip that often nobody needs."""

    def __init__(self, sample: Callable[[], Sequence[Mapping[str, Any]]]) -> None:
        self._sample = sample

    @cached_property
    def _samples(self) -> Sequence[Mapping[str, Any]]:
        return self._sample()

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        return self._samples[index]

    def __len__(self) -> int:
        return len(self._samples)


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

    def canary(self, affinity: str | None, deadline: Deadline) -> int:
        """How long a fixed piece of work takes now, in nanoseconds, on the CPUs of a hexadecimal mask."""
        argv = [self.path, "canary", *(["--affinity", affinity] if affinity else [])]
        completed = self._transport.run(argv, deadline=deadline)
        records = _json_lines(completed.stdout)
        if completed.exit != 0 or not records:
            raise self._unfit("canary", completed.exit, completed.stderr)
        return int(records[0]["unit_ns"])

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
    if trialling.command.grace_ms:
        arguments += ["--grace-ms", str(trialling.command.grace_ms)]
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
    _check_protocol(reader.report)
    return reader.finish()


def _check_protocol(report: Report) -> None:
    """A stale build of the agent must not be read as if it meant the same."""
    spoken = report.header.get("protocol")
    if spoken != PROTOCOL:
        raise DeviceUnfit(
            f"the agent speaks protocol {spoken}, and this devbench speaks {PROTOCOL}",
            remedy="build the agents anew with `devbench agent build`, or reinstall devbench",
        )


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
