"""Building the agents: only when needed, small, and carried by the wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import device_agents
from device_agents.build_agents import SIZE_BYTES_MAX, SOURCES, build_agents

X86 = {"x86_64-linux-musl": "devbench-agent-x86_64"}


def test_agents_are_small_and_static(agents: dict[str, Path]) -> None:
    """Each fits in 200 KB and asks for no interpreter, so it runs on any kernel."""
    for path in agents.values():
        content = path.read_bytes()
        assert len(content) <= SIZE_BYTES_MAX
        assert b"/lib/ld-" not in content


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ("x86_64", "devbench-agent-x86_64"),
        ("amd64", "devbench-agent-x86_64"),
        ("aarch64", "devbench-agent-aarch64"),
        ("arm64", "devbench-agent-aarch64"),
        ("armv7l", "devbench-agent-armv7"),
        ("armv8l\n", "devbench-agent-armv7"),
    ],
)
def test_a_machine_finds_its_agent(agents: dict[str, Path], machine: str, name: str) -> None:
    """What uname says leads to the binary."""
    path = device_agents.agent_binary(machine)
    assert path is not None and path in agents.values() and path.name == name


def test_an_unknown_machine_has_no_program() -> None:
    """There is no guessing."""
    assert device_agents.agent_binary("riscv64") is None
    assert device_agents.native_runner_binary("riscv64") is None


def test_native_runners_are_small_and_ask_for_glibc(native_runners: dict[str, Path]) -> None:
    """Each is a dynamic program, because it opens the runtime."""
    for path in native_runners.values():
        content = path.read_bytes()
        assert len(content) <= SIZE_BYTES_MAX
        assert b"/ld-linux" in content and b"libc.so.6" in content


def test_only_what_is_out_of_date_is_built(agent: Path, tmp_path: Path) -> None:
    """A binary that is what its stamp says is left alone; a damaged one is replaced, whatever its date."""
    for file in (agent, agent.with_name(agent.name + ".stamp")):
        shutil.copy2(file, tmp_path)
    copy = tmp_path / agent.name
    inode = copy.stat().st_ino
    target = {target: name for target, name in X86.items() if name == agent.name}
    build_agents(tmp_path, targets=target)
    assert copy.stat().st_ino == inode
    copy.write_bytes(b"damaged")
    build_agents(tmp_path, targets=target)
    assert copy.read_bytes() == agent.read_bytes()


def test_a_missing_compiler_is_named(tmp_path: Path) -> None:
    """Without ziglang the message says what to install; no traceback."""
    module = SOURCES.parent / "build_agents.py"
    code = (
        "import pathlib, runpy, sys; names = runpy.run_path(sys.argv[1])\n"
        "names['main'].__globals__['BIN'] = pathlib.Path(sys.argv[2])\n"
        "sys.exit(names['main']())"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(module), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == (
        "error: ziglang is not installed, and it builds the device agents\n  try: pip install ziglang\n"
    )
    assert done.returncode == 3


def test_wheel_carries_the_programs(agents: dict[str, Path], native_runners: dict[str, Path], tmp_path: Path) -> None:
    """The build hook puts every agent and native runner into the wheel, executable, though git ignores them."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCES.parent, tmp_path / "device_agents", ignore=ignored)
    (tmp_path / ".gitignore").write_text("/device_agents/bin/\n")
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling", "ziglang"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "example"\nversion = "1"\n'
        '[tool.hatch.build.hooks.custom]\npath = "device_agents/hatch_hook.py"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["device_agents"]\n'
        'artifacts = ["device_agents/bin/devbench-*"]\n'
    )
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert len(names) == len(set(names))
        for path in (agents | native_runners).values():
            entry = archive.getinfo(f"device_agents/bin/{path.name}")
            assert entry.file_size == path.stat().st_size
            assert entry.external_attr >> 16 & 0o111
