"""The agents under test, built once."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

import device_agents
from device_agents.build_agents import BIN, build_agents


@pytest.fixture(scope="session")
def agents() -> dict[str, Path]:
    """The agent by Zig target, up to date with the sources."""
    return build_agents(BIN)


@pytest.fixture(scope="session")
def agent(agents: dict[str, Path]) -> Path:
    """The agent for this very machine."""
    binary = device_agents.agent_binary(platform.machine())
    assert binary is not None and binary in agents.values()
    return binary
