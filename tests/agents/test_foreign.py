"""The agents for other processors, under user-mode emulation: they work; their timing means nothing here."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.agents.agent_host import run

EMULATORS = {"aarch64-linux-musl": "qemu-aarch64-static", "arm-linux-musleabihf": "qemu-arm-static"}


@pytest.fixture(params=EMULATORS, ids=["aarch64", "armv7"])
def foreign(request: pytest.FixtureRequest, agents: dict[str, Path]) -> list[str]:
    """The command that runs a foreign agent on this machine."""
    emulator = shutil.which(EMULATORS[request.param])
    if emulator is None:
        pytest.skip(f"{EMULATORS[request.param]} is not installed")
    return [emulator, str(agents[request.param])]


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout


def test_foreign_agent_answers(foreign: list[str]) -> None:
    """It starts without any library and says its version."""
    assert _output([*foreign, "version"]) == "devbench-agent 0.1.0\n"


def test_foreign_agent_hashes(foreign: list[str], tmp_path: Path) -> None:
    """SHA-256 does not depend on word size or byte order."""
    file = tmp_path / "file"
    file.write_bytes(b"devbench" * 10_000)
    assert json.loads(_output([*foreign, "hash", str(file)]))["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_foreign_agent_probes(foreign: list[str]) -> None:
    """It names its own machine."""
    facts = json.loads(_output([*foreign, "probe"]))
    assert facts["machine"] == ("aarch64" if "aarch64" in foreign[0] else "armv7l")
    assert facts["mem_total_kb"] > 0


def test_foreign_agent_runs_a_child_beside_a_load(foreign: list[str], tmp_path: Path) -> None:
    """A whole trial: load, telemetry, a child that is a foreign program itself, a closing record."""
    file = tmp_path / "file"
    file.write_bytes(b"x" * 1000)
    options = ["--load", "cpu:2@20", "--settle-ms", "200"]
    said = run([*foreign, "run", *options, "--", *foreign, "hash", str(file)])
    assert json.loads(said.output())["bytes"] == 1000
    assert (said.closing["reason"], said.closing["exit"]) == ("exit", 0)
    settle = said.records("L")[0]
    assert all(0 < thread["achieved"] <= 0.25 for thread in settle["threads"])
    assert said.records("S")


def test_foreign_agent_keeps_its_deadline(foreign: list[str]) -> None:
    """The way out works there as well."""
    said = run([*foreign, "run", "--deadline-s", "0.5", "--", "sleep", "1000"])
    assert said.closing["reason"] == "deadline"
