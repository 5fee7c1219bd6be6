"""What runs on a device: agent and native runner in C, a runner in Python; and where the binaries are on the host."""

from __future__ import annotations

from pathlib import Path

BIN = Path(__file__).parent / "bin"

_CPU_BY_MACHINE = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "armv7l": "armv7",
    "armv8l": "armv7",
    "arm": "armv7",
}


MACHINES = tuple(_CPU_BY_MACHINE)
"""What `uname -m` says where the agent runs."""


def agent_binary(machine: str) -> Path | None:
    """The built agent for a device whose ``uname -m`` says `machine`; None when there is none (yet)."""
    return _binary("devbench-agent", machine)


def native_runner_binary(machine: str) -> Path | None:
    """The built native runner for such a device, as `agent_binary`."""
    return _binary("devbench-litert", machine)


def _binary(program: str, machine: str) -> Path | None:
    cpu = _CPU_BY_MACHINE.get(machine.strip().lower())
    path = BIN / f"{program}-{cpu}"
    return path if cpu and path.is_file() else None
