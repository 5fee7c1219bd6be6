"""The host's cache of `benchmark_model` builds, programs and APKs: kept by hash, told apart by what they are."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.binary_lock import read_lock
from orchestrator.clock import SYSTEM, timestamp
from orchestrator.content_hash import sha256
from orchestrator.errors import HostError, UsageError
from orchestrator.runners.benchmark_model import BenchmarkModel
from orchestrator.runners.benchmark_model_apk import read_apk
from orchestrator.runners.benchmark_model_delegates import Program
from orchestrator.runners.benchmark_model_fingerprint import Elf, machine_name, read_fingerprint, read_program
from orchestrator.runners.benchmark_model_flags import Fingerprint
from orchestrator.whole_files import write_whole, written_whole

_SCHEMA, _VERSION = "devbench.binaries", 1
PROGRAM, APP = "program", "app"
"""The forms of a build: what a shell runs, and what Android installs."""
_RUNNERS = {PROGRAM: "benchmark_model", APP: "benchmark_app"}
_FILES = {PROGRAM: "benchmark_model", APP: "benchmark_app.apk"}
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
_GET_ONE = {
    PROGRAM: "`devbench binaries add FILE` adds a build, "
    "`devbench binaries fetch VERSION PLATFORM` gets a published one",
    APP: "`devbench binaries add FILE.apk` adds one, `devbench binaries fetch tf-nightly-app android-arm64` gets one",
}


def default_folder() -> Path:
    """Where the cache is: DEVBENCH_BINARIES, or the user's data folder."""
    given = os.environ.get("DEVBENCH_BINARIES")
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(given) if given else Path(data) / "devbench" / "binaries"


@dataclass(frozen=True)
class Binary:
    """One build. A name may stand for several, one for each ABI."""

    name: str
    program: Program
    machine: str
    system: str
    sha256: str
    size: int
    added_at: str
    source: str
    flags: tuple[str, ...]
    form: str = PROGRAM

    @property
    def runner(self) -> str:
        """What to write in a plan to have it run."""
        return f"{_RUNNERS[self.form]}:{self.name}"

    @property
    def machines(self) -> set[str]:
        """An APK may be for several."""
        return set(self.machine.split(","))

    @property
    def abi(self) -> str:
        return Elf(self.machine, self.system).abi

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(self.program, frozenset(self.flags))

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "form": self.form,
            "program": str(self.program),
            "release": self.fingerprint.release,
            "abi": self.abi,
            "machine": self.machine,
            "system": self.system,
            "sha256": self.sha256,
            "size": self.size,
            "added_at": self.added_at,
            "source": self.source,
            "flags": list(self.flags),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Binary:
        texts = {key: str(content[key]) for key in ("name", "machine", "system", "sha256", "added_at", "source")}
        flags = tuple(str(flag) for flag in content["flags"])
        form = str(content.get("form", PROGRAM))  # an index from before there were APKs has none
        return cls(program=Program(content["program"]), size=int(content["size"]), flags=flags, form=form, **texts)


class Binaries:
    """The cache in a folder, or in the default one. `project` is the folder whose lock file is obeyed, `form` what is
    found by name: a program and an APK may share one."""

    def __init__(self, folder: Path | None = None, project: Path | None = None, form: str = PROGRAM) -> None:
        self._folder = folder
        self._project = project
        self._form = form

    @property
    def folder(self) -> Path:
        return self._folder or default_folder()

    @property
    def project(self) -> Path:
        return self._project or Path()

    # What is there

    def all(self) -> list[Binary]:
        """Every build, the newest first."""
        path = self.folder / "index.json"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["version"] > _VERSION:
                raise HostError(f"{path} was written by a newer devbench", remedy="upgrade devbench")
            found = [Binary.from_json(entry) for entry in content["binaries"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise HostError(
                f"{path} cannot be read: {type(error).__name__}",
                remedy="move it away, and add the builds again with `devbench binaries add`",
            ) from error
        return sorted(found, key=lambda binary: binary.added_at, reverse=True)

    def names(self) -> Sequence[str]:
        return sorted({binary.name for binary in self.all() if binary.form == self._form})

    def path(self, binary: Binary) -> Path:
        return self.folder / "blobs" / binary.sha256 / _FILES[binary.form]

    def fingerprint(self, digest: str | None) -> Fingerprint:
        """What the build of this hash is."""
        for binary in self.all():
            if binary.sha256 == digest:
                return binary.fingerprint
        raise HostError(
            f"the cache {self.folder} does not know the {_RUNNERS[self._form]} {(digest or 'of no hash')[:12]}",
            remedy="add that build again with `devbench binaries add FILE`; a run keeps it in its store under blobs",
        )

    # What suits a device

    def find(self, name: str, machine: str) -> Path:
        """The build of that name, or without one the newest, for such a machine, whole and as locked."""
        wanted, known = machine_name(machine), [binary for binary in self.all() if binary.form == self._form]
        named = [binary for binary in known if binary.name == name] if name else known
        if not named:
            raise self._no_such(name, known)
        fitting = [binary for binary in named if wanted in binary.machines]
        if not fitting:
            raise self._wrong_abi(name, machine, named)
        systems = {binary.system for binary in fitting} - {"any"}
        if len(systems) > 1:
            listed = ", ".join(f"{binary.name} ({binary.system})" for binary in fitting)
            raise HostError(
                f"several builds of benchmark_model suit {machine}, for different systems: {listed}",
                remedy=f"give each system a name of its own, and choose one, like benchmark_model:{fitting[0].name}",
            )
        return self._checked(fitting[0])

    def _no_such(self, name: str, known: Sequence[Binary]) -> HostError:
        if name and known:
            names = ", ".join(sorted({binary.name for binary in known}))
            return HostError(
                f'no binary "{name}" in {self.folder}', remedy=f"there are: {names}; {_GET_ONE[self._form]}"
            )
        return HostError(f"no build of {_RUNNERS[self._form]} in {self.folder}", remedy=_GET_ONE[self._form])

    def _wrong_abi(self, name: str, machine: str, named: Sequence[Binary]) -> HostError:
        built = ", ".join(dict.fromkeys(f"{binary.abi} ({binary.system})" for binary in named))
        what = f'the binary "{name}" is' if name else f"the builds of {_RUNNERS[self._form]} in the cache are"
        return HostError(f"{what} for {built}, and the device is {machine}", remedy=_GET_ONE[self._form])

    def _checked(self, binary: Binary) -> Path:
        path = self.path(binary)
        if not path.is_file() or sha256(path) != binary.sha256:
            raise HostError(
                f"{path} is missing or not what was added",
                remedy=f"add it again: `devbench binaries add FILE --name {binary.name}`; it came from {binary.source}",
            )
        for key, locked in read_lock(self.project).items():
            is_meant = (locked.name, locked.machine) == (binary.name, binary.machine)
            if is_meant and locked.sha256 != binary.sha256:
                raise HostError(
                    f"the binary {binary.name} is {binary.sha256[:12]}, and this project has locked "
                    f"{locked.sha256[:12]} for {key}",
                    remedy="get the locked file from a colleague and add it under another name, or remove the lock",
                )
        return path

    # Adding

    def add(self, source: Path, name: str | None, *, origin: str | None = None) -> Binary:
        """Copy a build into the cache and tell from its bytes what it is; what is there already stays as it is."""
        if name is not None:
            _check_name(name)
        if not source.is_file():
            raise UsageError(f"{source}: no such file", remedy="name a benchmark_model build")
        arriving = self.folder / "arriving" / f"{os.getpid()}-{threading.get_ident()}"
        try:
            # Copied first and looked at then: what is examined is what will be pushed.
            with source.open("rb") as content, written_whole(arriving, mode=0o755) as out:
                shutil.copyfileobj(content, out, 1 << 20)
            form, elf, fingerprint = examine(arriving, str(source))
            binary = Binary(
                name=name or _default_name(source, elf, fingerprint),
                program=fingerprint.program,
                machine=elf.machine,
                system=elf.system,
                sha256=sha256(arriving),
                size=arriving.stat().st_size,
                added_at=timestamp(SYSTEM.now()),
                source=origin or str(source.resolve()),
                flags=tuple(sorted(fingerprint.flags)),
                form=form,
            )
            with self._alone():
                return self._enter(binary, arriving)
        except OSError as error:
            raise HostError(
                f"cannot keep {source} in {self.folder}: {error.strerror}",
                remedy="make the folder writable, or set DEVBENCH_BINARIES to another",
            ) from error
        finally:
            with suppress(OSError):
                arriving.unlink(missing_ok=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time changes the index."""
        with (self.folder / "index.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _enter(self, binary: Binary, arriving: Path) -> Binary:
        """Give the file its place, then the index its entry: an entry without a file would be a lie."""
        known = self.all()
        same = next((other for other in known if _share_a_place(other, binary)), None)
        if same and same.sha256 != binary.sha256:
            raise UsageError(
                f'"{binary.name}" is already another build for {binary.abi} ({same.sha256[:12]})',
                remedy="choose another name with --name: results must not change their meaning",
            )
        self.path(binary).parent.mkdir(parents=True, exist_ok=True)
        arriving.replace(self.path(binary))
        if same:
            return same
        entries = [entry.as_json() for entry in (binary, *known)]
        document = {"schema": _SCHEMA, "version": _VERSION, "binaries": entries}
        write_whole(self.folder / "index.json", json.dumps(document, indent=1).encode())
        return binary


def _share_a_place(one: Binary, other: Binary) -> bool:
    """Whether a plan could mean either by one name on one device."""
    is_alike = (one.name, one.system, one.form) == (other.name, other.system, other.form)
    return is_alike and bool(one.machines & other.machines)


def examine(path: Path, origin: str) -> tuple[str, Elf, Fingerprint]:
    """The form of a file, where it runs and what it is, without running it; UsageError, naming where it came from,
    when it is no benchmark_model."""
    try:
        if path.stat().st_size == 0:
            raise ValueError("an empty file")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content[:2] != b"PK":
                return PROGRAM, read_program(content), read_fingerprint(content)
        apk = read_apk(path)
        return APP, apk.elf, apk.fingerprint
    except ValueError as error:
        raise UsageError(
            f"{origin} is {error}", remedy="give a build of TFLite's benchmark_model for Linux, Android or iOS"
        ) from error


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(f'"{name}" is no name for a binary', remedy="use small letters, digits and dashes")


def _default_name(source: Path, elf: Elf, fingerprint: Fingerprint) -> str:
    """The file's own name, as far as it tells it from others; otherwise what it is."""
    stem = re.sub(r"[^a-z0-9]+", "-", source.name.lower().replace("benchmark_model", "")).strip("-")
    return stem[:64].strip("-") or re.sub(r"[^a-z0-9]+", "-", f"{fingerprint.program}-{elf.system}-{elf.machine}")


BENCHMARK_MODEL = BenchmarkModel(Binaries())
