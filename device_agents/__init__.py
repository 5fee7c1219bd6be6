"""What runs on a device: the agent in C, the runner, and where their built binaries are found on the host."""

from __future__ import annotations

from pathlib import Path

BIN = Path(__file__).parent / "bin"

_FILE_BY_MACHINE = {
    "x86_64": "devbench-agent-x86_64",
    "amd64": "devbench-agent-x86_64",
    "aarch64": "devbench-agent-aarch64",
    "arm64": "devbench-agent-aarch64",
    "armv7l": "devbench-agent-armv7",
    "armv8l": "devbench-agent-armv7",
    "arm": "devbench-agent-armv7",
}


def agent_binary(machine: str) -> Path | None:
    """The built agent for a device whose ``uname -m`` says `machine`; None when there is none (yet)."""
    name = _FILE_BY_MACHINE.get(machine.strip().lower())
    if name is None:
        return None
    path = BIN / name
    return path if path.is_file() else None
