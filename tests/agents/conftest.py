"""The programs under test, built once."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

import device_agents
from device_agents.build_agents import BIN, build_agents, build_runners
from orchestrator.errors import HostError
from orchestrator.litert_runtimes import Runtimes
from tests.runner_process import ROOT, Runner


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


@pytest.fixture(scope="session")
def native_runners() -> dict[str, Path]:
    """The native runner by Zig target, up to date with the sources."""
    return build_runners(BIN)


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runtime of the package that is installed here."""
    try:
        return Runtimes(tmp_path_factory.mktemp("no-cache")).find(platform.machine())
    except HostError as error:
        pytest.skip(f"needs the extra `local`: {error}")


@pytest.fixture(scope="session")
def native(native_runners: dict[str, Path], runtime: Path) -> Runner:
    """The native runner for this very machine."""
    binary = device_agents.native_runner_binary(platform.machine())
    assert binary is not None and binary in native_runners.values()
    return Runner((str(binary), f"--runtime={runtime}"))


@pytest.fixture(scope="session")
def in_python() -> Runner:
    """The runner whose flags and lines the native one shares."""
    pytest.importorskip("ai_edge_litert", reason="needs the extra `local`")
    return Runner((sys.executable, str(ROOT / "device_agents" / "litert_runner.py")))
