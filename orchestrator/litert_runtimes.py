"""The host's LiteRT runtimes for the native runner: libLiteRt.so by machine, kept by hash, as the project locked it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import mmap
import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.binaries import default_folder
from orchestrator.binary_lock import LOCK, Locked, read_lock
from orchestrator.clock import SYSTEM, timestamp
from orchestrator.content_hash import sha256
from orchestrator.errors import HostError, UsageError
from orchestrator.runners.benchmark_model_fingerprint import machine_name, read_elf, read_fingerprint
from orchestrator.runners.litert_native import LitertNative
from orchestrator.whole_files import copy_whole, write_whole

PACKAGE, VERSION = "ai-edge-litert", "2.3.0"
"""The release whose C interface the native runner knows; its structures differ between releases."""
LIBRARY = "libLiteRt.so"
PLATFORMS: Mapping[str, str] = {"x86_64": "linux-x86-64", "aarch64": "linux-arm64"}
"""What the package is published for, by machine."""
_SCHEMA, _VERSION = "devbench.runtime", 1
_MARK = b"LiteRtCreateCompiledModel"


@dataclass(frozen=True)
class Runtime:
    """One libLiteRt.so."""

    machine: str
    version: str | None
    """The release it came with; None for a file of the user's own."""
    sha256: str
    size: int
    source: str
    added_at: str

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


class Runtimes:
    """The runtimes in a folder, or in the default one. `project` is the folder whose lock file is obeyed."""

    def __init__(self, folder: Path | None = None, project: Path | None = None) -> None:
        self._folder = folder
        self._project = project

    @property
    def folder(self) -> Path:
        return (self._folder or default_folder()) / "runtimes"

    @property
    def project(self) -> Path:
        return self._project or Path()

    def path(self, machine: str) -> Path:
        return self.folder / machine / LIBRARY

    def all(self) -> list[Runtime]:
        """What is kept, by machine."""
        found = [self.kept(path.parent.name) for path in sorted(self.folder.glob("*/runtime.json"))]
        return [runtime for runtime in found if runtime]

    def kept(self, machine: str) -> Runtime | None:
        """What is kept for a machine, by its record."""
        path = self.folder / machine / "runtime.json"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["schema"] != _SCHEMA or content["version"] > _VERSION:
                raise HostError(f"{path} was written by a newer devbench", remedy="upgrade devbench")
            return Runtime(**content["runtime"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise HostError(
                f"{path} cannot be read: {type(error).__name__}", remedy=f"remove {path.parent} and fetch it again"
            ) from error

    def find(self, machine: str) -> Path:
        """The runtime for such a machine: kept here, or that of the package installed on this very machine."""
        wanted = machine_name(machine)
        kept = self.kept(wanted)
        found = self.path(wanted) if kept else _installed(wanted)
        if found is None:
            raise _missing(wanted)
        if kept and (not found.is_file() or sha256(found) != kept.sha256):
            raise HostError(
                f"{found} is missing or not what was added", remedy=f"remove {found.parent} and add or fetch it again"
            )
        self.obey_lock(wanted, sha256(found))
        return found

    def obey_lock(self, machine: str, digest: str) -> None:
        """Refuse what is not what this project got first."""
        locked = self.locked(machine)
        if locked and locked.sha256 != digest:
            raise HostError(
                f"{LIBRARY} for {machine} is {digest[:12]}, and {LOCK} has {locked.sha256[:12]}",
                remedy="get the locked file from a colleague and `devbench binaries add` it, or remove "
                f'"{key(machine)}" from {LOCK}',
            )

    def locked(self, machine: str) -> Locked | None:
        return read_lock(self.project).get(key(machine)) if machine in PLATFORMS else None

    def add(self, library: Path, *, version: str | None, source: str, only_for: str | None = None) -> Runtime:
        """Keep a libLiteRt.so for the machine it is built for, in place of another that was kept for it."""
        try:
            machine, digest = _machine_of(library), sha256(library)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{source} is {error}", remedy=f"give the {LIBRARY} of {PACKAGE} {VERSION} for Linux"
            ) from error
        if only_for not in (None, machine):
            raise HostError(f"{source} is for {machine}, not for {only_for}", remedy="check the registry that pip uses")
        self.obey_lock(machine, digest)
        runtime = Runtime(machine, version, digest, library.stat().st_size, source, timestamp(SYSTEM.now()))
        document = {"schema": _SCHEMA, "version": _VERSION, "runtime": runtime.as_json()}
        try:
            copy_whole(library, self.path(machine), 0o755)
            write_whole(self.folder / machine / "runtime.json", json.dumps(document, indent=1).encode())
        except OSError as error:
            raise HostError(
                f"cannot keep {source} in {self.folder}: {error.strerror}",
                remedy="make the folder writable, or set DEVBENCH_BINARIES to another",
            ) from error
        return runtime


def key(machine: str) -> str:
    """What the lock file calls the runtime for a machine."""
    return f"{PACKAGE}-{VERSION} {PLATFORMS[machine]}"


def is_library(path: Path) -> bool:
    """Whether a file is a LiteRT runtime, and no program that holds one, going by its bytes."""
    try:
        _machine_of(path)
    except (OSError, ValueError):
        return False
    return True


def _machine_of(library: Path) -> str:
    """The machine of a LiteRT runtime; ValueError says what the file is instead."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        elf = read_elf(content)
        is_program = elf.system != "any"
        if not is_program:
            with suppress(ValueError):
                read_fingerprint(content)
                is_program = True
        if is_program or content.find(_MARK) < 0:
            raise ValueError("no LiteRT runtime")
        return elf.machine


def _installed(machine: str) -> Path | None:
    """The library of the installed package, found without loading it; only where it is of the release we know."""
    if sys.platform != "linux" or machine != machine_name(platform.machine()):
        return None
    try:
        if importlib.metadata.version(PACKAGE) != VERSION:
            return None
    except importlib.metadata.PackageNotFoundError:
        return None
    spec = importlib.util.find_spec("ai_edge_litert")
    folders = (spec.submodule_search_locations if spec else None) or []
    return next((path for folder in folders if (path := Path(folder) / LIBRARY).is_file()), None)


def _missing(machine: str) -> HostError:
    if machine not in PLATFORMS:
        return HostError(
            f"{PACKAGE} {VERSION} is published for {' and '.join(PLATFORMS)}, not for {machine}",
            remedy=f"measure with benchmark_model, or `devbench binaries add` a {LIBRARY} of your own for {machine}",
        )
    return HostError(
        f"no LiteRT runtime for {machine} on this host",
        remedy=f"fetch it once: `devbench binaries fetch runtime {PLATFORMS[machine]}`",
    )


LITERT_NATIVE = LitertNative(Runtimes())
