"""Content-addressed files on a device: a file is known by its SHA-256, never by name, size or date."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from device_agents import MACHINES, agent_binary
from orchestrator.agent import Agent
from orchestrator.clock import Deadline
from orchestrator.content_hash import sha256
from orchestrator.device_storage import Storage
from orchestrator.errors import DeviceError, DeviceUnfit, HostError, during
from orchestrator.platforms.base import Platform
from orchestrator.runners.base import Command
from orchestrator.stage import Report, Trialling
from orchestrator.transports.base import Completed, Transport

_COMMAND_S = 30.0
_PUSH_S = 600.0


class Deployment:
    """The stage on a device that runs our agent: its files, the agent among them."""

    def __init__(self, transport: Transport, platform: Platform, workdir: str) -> None:
        self._transport = transport
        self._workdir = PurePosixPath(workdir)
        self._verified: dict[str, str] = {}
        self._storage = Storage(transport, workdir)
        self.agent = self._deploy_agent(platform)

    def _target(self, digest: str, name: str) -> str:
        """`blobs/SHA256/name`; the name is for people, so hostile characters in it are dropped."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_") or "file"
        return str(self._workdir / "blobs" / digest / plain[-80:])

    def _deploy_agent(self, platform: Platform) -> Agent:
        answer = self._transport.run(list(platform.machine_command), deadline=Deadline.after(_COMMAND_S))
        machine = answer.stdout.decode("utf-8", "replace").strip()
        binary = agent_binary(machine)
        if binary is None and machine not in MACHINES:
            raise DeviceUnfit(
                f'the device says that it is a "{machine}", for which there is no devbench-agent',
                remedy="devbench measures x86_64, aarch64 and armv7 devices",
            )
        if binary is None:
            raise HostError(
                f'no devbench-agent for machine "{machine}" in this installation',
                remedy="build it with `make agents`, or install devbench from a wheel",
            )
        target = self._target(sha256(binary), binary.name)
        agent = Agent(self._transport, target)
        with during(f"pushing {binary.name}"):
            if self._agent_hash(agent, target) != sha256(binary):
                self._storage.require_room(binary.name, binary.stat().st_size)
                self._transport.push(binary, target, deadline=Deadline.after(_PUSH_S), executable=True)
                self._confirm(agent, target, sha256(binary))
        return agent

    def _agent_hash(self, agent: Agent, target: str) -> str | None:
        """What the agent on the device says its own hash is; None where there is none that runs."""
        try:
            return agent.hash([target], Deadline.after(_COMMAND_S)).get(target)
        except DeviceUnfit:
            return None

    def _confirm(self, agent: Agent, target: str, expected: str) -> None:
        found = agent.hash([target], Deadline.after(_COMMAND_S)).get(target)
        if found != expected:
            raise DeviceError(
                f"{PurePosixPath(target).name} has another content on the device than on the host "
                f"({(found or 'unreadable')[:12]} instead of {expected[:12]})",
                remedy="check the device's storage; then run again",
            )

    def probe(self, deadline: Deadline) -> Mapping[str, Any]:
        return self.agent.probe(deadline)

    def sample(self, seconds: float, deadline: Deadline) -> Report:
        return self.agent.sample(seconds, deadline)

    def canary(self, affinity: str | None, deadline: Deadline) -> int:
        return self.agent.canary(affinity, deadline)

    def check(self, command: Command, deadline: Deadline) -> Completed:
        return self._transport.run(list(command.argv), deadline=deadline)

    def run(self, trialling: Trialling, stopped: Callable[[], bool]) -> Report:
        return self.agent.run(trialling, stopped)

    def clean(self) -> None:
        self._storage.clean()

    def prune(self) -> int:
        """Remove what earlier runs left on the device and nobody used for long; gives how many files went."""
        in_use = [PurePosixPath(target).parent.name for target in (self.agent.path, *self._verified)]
        return self._storage.prune(in_use)

    def ensure(self, source: Path, *, executable: bool = False) -> str:
        """Where `source` is on the device, pushed if its content is not there yet, its hash read back."""
        return self._ensure(source, self._target(sha256(source), source.name), executable=executable)

    def ensure_together(self, sources: Mapping[str, Path]) -> tuple[str, ...]:
        """Where the files are on the device under these names, all in one folder, so that libraries find each other.
        The folder is known by the content of them all."""
        content = "\n".join(sorted(f"{name} {sha256(source)}" for name, source in sources.items()))
        folder = hashlib.sha256(content.encode()).hexdigest()
        return tuple(
            self._ensure(source, self._target(folder, name), executable=False) for name, source in sources.items()
        )

    def _ensure(self, source: Path, target: str, *, executable: bool) -> str:
        expected = sha256(source)
        if self._verified.get(target) == expected:
            return target
        with during(f"pushing {source.name}"):
            if self.agent.hash([target], Deadline.after(_PUSH_S)).get(target) != expected:
                self._storage.require_room(source.name, source.stat().st_size)
                self._transport.push(source, target, deadline=Deadline.after(_PUSH_S), executable=executable)
                self._confirm(self.agent, target, expected)
            elif executable:
                self._transport.run(["chmod", "755", target], deadline=Deadline.after(_COMMAND_S))
        self._verified[target] = expected
        return target
