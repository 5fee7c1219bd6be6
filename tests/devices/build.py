"""Builds the native parts of the virtual phone with the C compiler in the `ziglang` wheel."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent / "native"
BIN = Path(__file__).parent / "bin"
FLAGS = ("-target", "x86_64-linux-musl", "-std=c11", "-D_GNU_SOURCE", "-O2", "-s", "-static", "-Wall", "-Wextra")
WARNINGS = ("-Wconversion", "-Wshadow", "-Werror")

_TOOL = (
    *("benchmark_model.c", "bm_flags.c", "bm_latency.c", "bm_profile.c"),
    *("bm.h", "bm_ops.h", "bm_tables.h"),
)
#: The sources of each program.
PROGRAMS = {
    "phone_init": ("phone_init.c", "world.c", "affinity.c", "phone_init.h"),
    "benchmark_model": ("bm_main.c", *_TOOL),
    "tracer": ("tracer.c",),
    "app_world": ("app_world.c", "app.c", "logcat.c", "app_world.h", *_TOOL),
}


class CannotBuild(Exception):
    """The compiler is missing; the message says what to install."""


def build(program: str) -> Path:
    """The path of a program that is up to date with its sources: the name holds their hash."""
    sources = [SOURCES / name for name in PROGRAMS[program]]
    recipe = hashlib.sha256(" ".join(FLAGS).encode())
    for source in sources:
        recipe.update(source.read_bytes())
    binary = BIN / f"{program}-{recipe.hexdigest()[:16]}"
    if not binary.exists():
        for stale in BIN.glob(f"{program}-*"):
            stale.unlink(missing_ok=True)  # one that runs goes on running
        _compile(binary, [source for source in sources if source.suffix == ".c"])
    return binary


_MARK = b"BM_BUILD 1.00000 ----------------"


def build_variant(binary: Path, target: Path, *, slowdown: float = 1.0, name: str = "") -> Path:
    """The stand-in as another build: so many times slower, and by its name another file."""
    content, mark = binary.read_bytes(), f"BM_BUILD {slowdown:.5f} {name:->16.16}".encode()
    assert content.count(_MARK) == 1 and len(mark) == len(_MARK)
    target.write_bytes(content.replace(_MARK, mark))
    target.chmod(0o755)
    return target


def _compile(binary: Path, sources: list[Path]) -> None:
    if importlib.util.find_spec("ziglang") is None:
        raise CannotBuild("ziglang is not installed, and it builds the virtual phone's init: pip install ziglang")
    BIN.mkdir(exist_ok=True)
    # Two builds at the same time must not see each other's half-written file.
    with tempfile.TemporaryDirectory(dir=BIN, prefix=".building-") as scratch:
        fresh = Path(scratch) / binary.name
        command = [
            sys.executable,
            "-m",
            "ziglang",
            "cc",
            *FLAGS,
            *WARNINGS,
            "-o",
            str(fresh),
            *map(str, sources),
            "-lm",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotBuild(f"{binary.name} does not build:\n{done.stderr}")
        fresh.replace(binary)
