"""Cross-builds the programs in C for every kind of device with the compiler in the `ziglang` wheel.

There are two: the agent, static, for any kernel; and the native runner, which opens libLiteRt.so and so needs glibc.
Run it as ``python -m device_agents.build_agents`` or by path; the wheel's build hook calls `build_all`. It needs
nothing but the standard library and ziglang, because it also runs where only the build requirements are installed.

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
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

SOURCES = Path(__file__).parent / "agent"
BIN = Path(__file__).parent / "bin"

_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
_COMMON = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-s")

#: A program is copied to a device before the first trial; a larger one would be a mistake.
SIZE_BYTES_MAX = 200_000


@dataclass(frozen=True)
class Program:
    """What is built of which sources; `targets` has the file name by Zig target."""

    name: str
    folder: Path
    shared: tuple[str, ...]
    """Sources of the agent that it is built with too."""
    flags: tuple[str, ...]
    targets: Mapping[str, str]

    @property
    def sources(self) -> list[Path]:
        return sorted(self.folder.glob("*.c")) + [SOURCES / name for name in self.shared]

    @property
    def headers(self) -> list[Path]:
        return sorted({*self.folder.glob("*.h"), *SOURCES.glob("*.h")})


AGENT = Program(
    name="agent",
    folder=SOURCES,
    shared=(),
    flags=(*_COMMON, "-static", *_WARNINGS),
    targets=MappingProxyType(
        {
            "x86_64-linux-musl": "devbench-agent-x86_64",
            "aarch64-linux-musl": "devbench-agent-aarch64",
            "arm-linux-musleabihf": "devbench-agent-armv7",
        }
    ),
)

#: An old glibc to link with, so that the runner starts there and can say that libLiteRt.so needs a newer one.
NATIVE_RUNNER = Program(
    name="native runner",
    folder=Path(__file__).parent / "native_runner",
    shared=("clock.c", "file.c", "sha256.c", "text.c"),
    flags=(*_COMMON, *_WARNINGS, "-ldl"),
    targets=MappingProxyType(
        {
            "x86_64-linux-gnu.2.17": "devbench-litert-x86_64",
            "aarch64-linux-gnu.2.17": "devbench-litert-aarch64",
            "arm-linux-gnueabihf.2.17": "devbench-litert-armv7",
        }
    ),
)


class AgentBuildError(Exception):
    """The agents could not be built: what is wrong, and what to do about it."""

    def __init__(self, fact: str, *, remedy: str) -> None:
        super().__init__(f"{fact}\n  try: {remedy}")
        self.fact = fact
        self.remedy = remedy


def build_agents(target_dir: Path, *, targets: Mapping[str, str] = AGENT.targets) -> dict[str, Path]:
    """The path of the agent by Zig target, each built first where it is not up to date."""
    return _build(AGENT, target_dir, targets)


def build_runners(target_dir: Path, *, targets: Mapping[str, str] = NATIVE_RUNNER.targets) -> dict[str, Path]:
    """The path of the native runner by Zig target, as `build_agents`."""
    return _build(NATIVE_RUNNER, target_dir, targets)


def build_all(target_dir: Path) -> dict[str, Path]:
    """Every program by Zig target."""
    return build_agents(target_dir) | build_runners(target_dir)


def _build(program: Program, target_dir: Path, targets: Mapping[str, str]) -> dict[str, Path]:
    target_dir.mkdir(parents=True, exist_ok=True)
    zig = _zig_version()
    return {target: _up_to_date(program, target_dir / name, target=target, zig=zig) for target, name in targets.items()}


def _up_to_date(program: Program, binary: Path, *, target: str, zig: str | None) -> Path:
    recipe = {
        "target": target,
        "flags": " ".join(program.flags),
        "sources_sha256": _sources_sha256(program),
        "zig": zig,
    }
    stamp = _read_stamp(binary)
    if zig is None:  # a wheel's or a colleague's binary made from these very sources is as good as our own
        recipe["zig"] = stamp.get("zig")
    if binary.is_file() and stamp == recipe | {"binary_sha256": _sha256(binary.read_bytes())}:
        return binary
    if zig is None:
        raise AgentBuildError("ziglang is not installed, and it builds the device agents", remedy="pip install ziglang")
    _compile(program, binary, target=target)
    stamp_text = json.dumps(recipe | {"binary_sha256": _sha256(binary.read_bytes())}, indent=1)
    _stamp_path(binary).write_text(stamp_text + "\n", encoding="utf-8")
    return binary


def _compile(program: Program, binary: Path, *, target: str) -> None:
    # Two builds at the same time must not see each other's half-written file.
    with tempfile.TemporaryDirectory(dir=binary.parent, prefix=f".{binary.name}-") as scratch:
        fresh = Path(scratch) / binary.name
        compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target]
        command = [*compiler, *map(str, program.sources), *program.flags, "-o", str(fresh)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AgentBuildError(
                f"the {program.name} does not compile for {target}:\n{done.stderr.strip()}",
                remedy=f"correct the sources in {program.folder}, or reinstall ziglang if it complains about itself",
            )
        size_bytes = fresh.stat().st_size
        if size_bytes > SIZE_BYTES_MAX:
            raise AgentBuildError(
                f"the {program.name} for {target} has {size_bytes} bytes, more than {SIZE_BYTES_MAX}",
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


def _sources_sha256(program: Program) -> str:
    total = hashlib.sha256()
    for path in [*program.sources, *program.headers]:
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
    """Builds all programs into ``device_agents/bin`` and says how large they are."""
    try:
        built = build_all(BIN)
    except AgentBuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    for target, path in built.items():
        print(f"{path}  {target}  {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
