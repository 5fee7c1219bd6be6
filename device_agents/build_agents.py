"""Cross-builds the device agent for every kind of device with the C compiler in the `ziglang` wheel.

Run it as ``python -m device_agents.build_agents`` or by path; the wheel's build hook calls `build_agents`. It
needs nothing but the standard library and ziglang, because it also runs where only the build requirements are
installed.

A binary is up to date when the sources, the flags and the compiler that made it are the ones at hand, and its
own content is what that build wrote. That is recorded beside it in ``NAME.stamp``; dates of files play no part.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

SOURCES = Path(__file__).parent / "agent"
BIN = Path(__file__).parent / "bin"

#: File name of the agent by Zig target.
ALL: Mapping[str, str] = MappingProxyType(
    {
        "x86_64-linux-musl": "devbench-agent-x86_64",
        "aarch64-linux-musl": "devbench-agent-aarch64",
        "arm-linux-musleabihf": "devbench-agent-armv7",
    }
)

FLAGS = (
    *("-std=c11", "-D_GNU_SOURCE", "-O2", "-s", "-static"),
    *("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"),
)

#: The agent is copied to a device before the first trial; a larger one would be a mistake.
SIZE_BYTES_MAX = 200_000


class AgentBuildError(Exception):
    """The agents could not be built: what is wrong, and what to do about it."""

    def __init__(self, fact: str, *, remedy: str) -> None:
        super().__init__(f"{fact}\n  try: {remedy}")
        self.fact = fact
        self.remedy = remedy


def build_agents(target_dir: Path, *, targets: Mapping[str, str] = ALL) -> dict[str, Path]:
    """The path of the agent by Zig target, each built first where it is not up to date."""
    target_dir.mkdir(parents=True, exist_ok=True)
    zig = _zig_version()
    return {target: _up_to_date(target_dir / name, target=target, zig=zig) for target, name in targets.items()}


def _up_to_date(binary: Path, *, target: str, zig: str | None) -> Path:
    recipe = {"target": target, "flags": " ".join(FLAGS), "sources_sha256": _sources_sha256(), "zig": zig}
    stamp = _read_stamp(binary)
    if zig is None:  # a wheel's or a colleague's binary made from these very sources is as good as our own
        recipe["zig"] = stamp.get("zig")
    if binary.is_file() and stamp == recipe | {"binary_sha256": _sha256(binary.read_bytes())}:
        return binary
    if zig is None:
        raise AgentBuildError("ziglang is not installed, and it builds the device agents", remedy="pip install ziglang")
    _compile(binary, target=target)
    stamp_text = json.dumps(recipe | {"binary_sha256": _sha256(binary.read_bytes())}, indent=1)
    _stamp_path(binary).write_text(stamp_text + "\n", encoding="utf-8")
    return binary


def _compile(binary: Path, *, target: str) -> None:
    sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
    # Two builds at the same time must not see each other's half-written file.
    with tempfile.TemporaryDirectory(dir=binary.parent, prefix=f".{binary.name}-") as scratch:
        fresh = Path(scratch) / binary.name
        compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target]
        command = [*compiler, *FLAGS, *sources, "-o", str(fresh)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AgentBuildError(
                f"the agent does not compile for {target}:\n{done.stderr.strip()}",
                remedy=f"correct the sources in {SOURCES}, or reinstall ziglang if it complains about itself",
            )
        size_bytes = fresh.stat().st_size
        if size_bytes > SIZE_BYTES_MAX:
            raise AgentBuildError(
                f"the agent for {target} has {size_bytes} bytes, more than {SIZE_BYTES_MAX}",
                remedy="look for a large initialised array, or a library function that pulls in much of libc",
            )
        fresh.chmod(0o755)
        fresh.replace(binary)


def _zig_version() -> str | None:
    if importlib.util.find_spec("ziglang") is None:
        return None
    try:
        return importlib.metadata.version("ziglang")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _sources_sha256() -> str:
    total = hashlib.sha256()
    for path in sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")]):
        total.update(f"{path.name} {_sha256(path.read_bytes())}\n".encode())
    return total.hexdigest()


def _stamp_path(binary: Path) -> Path:
    return binary.with_name(binary.name + ".stamp")


def _read_stamp(binary: Path) -> dict[str, str]:
    try:
        stamp = json.loads(_stamp_path(binary).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> int:
    """Builds all agents into ``device_agents/bin`` and says how large they are."""
    try:
        built = build_agents(BIN)
    except AgentBuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    for target, path in built.items():
        print(f"{path}  {target}  {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
