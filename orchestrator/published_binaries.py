"""Fetches published builds of `benchmark_model`, and holds a project to the content it got first."""

from __future__ import annotations

import http.client
import os
import re
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from orchestrator.binaries import APP, PROGRAM, Binaries, Binary, examine
from orchestrator.binary_lock import LOCK, Locked, add_to_lock, read_lock
from orchestrator.clock import Deadline
from orchestrator.content_hash import sha256
from orchestrator.errors import HostError, UsageError
from orchestrator.runners.benchmark_model_delegates import Program
from orchestrator.settings import suggestion

BASE = "https://storage.googleapis.com"
"""Where Google publishes; DEVBENCH_BINARIES_URL names a mirror."""
_CHECK_MIRROR = "check DEVBENCH_BINARIES_URL, or add a file of your own with `devbench binaries add`"
_QUIET_S = 30.0
_CHUNK = 1 << 18
_SIZE_MAX = 1 << 30


@dataclass(frozen=True)
class Publication:
    """One series of published builds."""

    program: Program
    versions: re.Pattern[str]
    path: str
    platforms: Mapping[str, str]
    """Our names of platforms, and what they are called there."""
    form: str = PROGRAM


_NIGHTLY = "tensorflow-nightly-public/prod/tensorflow/release/lite/tools/nightly/latest"
PUBLICATIONS = (
    # There is no archive of releases for the Interpreter program: only what is newest.
    Publication(
        Program.INTERPRETER,
        re.compile("tf-nightly"),
        f"{_NIGHTLY}/{{platform}}_benchmark_model",
        {
            "android-arm64": "android_aarch64",
            "android-arm": "android_arm",
            "linux-x86-64": "linux_x86-64",
            "linux-arm64": "linux_aarch64",
            "linux-arm": "linux_arm",
        },
    ),
    Publication(
        Program.INTERPRETER,
        re.compile("tf-nightly-app"),
        f"{_NIGHTLY}/{{platform}}_benchmark_model.apk",
        {"android-arm64": "android_aarch64", "android-arm": "android_arm"},
        APP,
    ),
    Publication(
        Program.COMPILED_MODEL,
        re.compile(r"latest|nightly|\d{1,3}\.\d{1,3}\.\d{1,3}"),
        "litert/binaries/{version}/{platform}/benchmark_model",
        {"android-arm64": "android_arm64", "linux-x86-64": "linux_x86_64", "linux-arm64": "linux_arm64"},
    ),
)
_MACHINES = {"arm64": "aarch64", "arm": "armv7l", "x86-64": "x86_64"}


@dataclass(frozen=True)
class Wanted:
    """One published file."""

    version: str
    platform: str
    program: Program
    url: str
    form: str = PROGRAM

    @property
    def key(self) -> str:
        return f"{self.version} {self.platform}"

    @property
    def system(self) -> str:
        return self.platform.partition("-")[0]

    @property
    def machine(self) -> str:
        return _MACHINES[self.platform.partition("-")[2]]

    @property
    def name(self) -> str:
        """Builds of one version share a name over CPUs, where the device's own chooses, but not over systems."""
        return f"{self.version.replace('.', '-')}-{self.system}"


def published(version: str, platform: str) -> Wanted:
    """Where this version for this platform is published; UsageError says what there is."""
    spelled = platform.lower().replace("_", "-").replace("aarch64", "arm64")
    for publication in PUBLICATIONS:
        if publication.versions.fullmatch(version):
            if spelled not in publication.platforms:
                raise UsageError(
                    f'no build of version {version} is published for "{platform}"',
                    remedy=suggestion(spelled, list(publication.platforms)),
                )
            base = (os.environ.get("DEVBENCH_BINARIES_URL") or BASE).rstrip("/")
            path = publication.path.format(version=version, platform=publication.platforms[spelled])
            return Wanted(version, spelled, publication.program, f"{base}/{path}", publication.form)
    raise UsageError(
        f'"{version}" is no published version',
        remedy="use tf-nightly (Interpreter program), tf-nightly-app (the same as an APK), "
        "or latest, nightly or a number such as 2.2.0 (CompiledModel)",
    )


def fetch(binaries: Binaries, wanted: Wanted, *, name: str | None, deadline: Deadline) -> Binary:
    """The published build in the cache. What the project has locked is not fetched again while the cache has it."""
    locked = read_lock(binaries.project).get(wanted.key)
    if locked and (kept := _kept(binaries, locked)):
        return kept
    with tempfile.TemporaryDirectory() as folder:
        arrived = Path(folder) / "benchmark_model"
        with arrived.open("wb") as out:
            _download(wanted.url, out, deadline)
        chosen = name or (locked.name if locked else wanted.name)
        binary = _added(binaries, wanted, arrived, chosen, locked)
    if not locked:
        add_to_lock(
            binaries.project, wanted.key, Locked(binary.name, binary.machine, wanted.url, binary.sha256, binary.size)
        )
    return binary


def _kept(binaries: Binaries, locked: Locked) -> Binary | None:
    for binary in binaries.all():
        if binary.sha256 == locked.sha256 and binary.name == locked.name:
            return binary
    return None


def _added(binaries: Binaries, wanted: Wanted, arrived: Path, name: str, locked: Locked | None) -> Binary:
    """The file in the cache, once it is what was locked and what was asked for."""
    digest = sha256(arrived)
    if locked and digest != locked.sha256:
        raise HostError(
            f"{wanted.url} has changed: it is {digest[:12]}, and {LOCK} has {locked.sha256[:12]}",
            remedy=f'to take the new one, remove "{wanted.key}" from {LOCK} and fetch it with another --name; '
            "otherwise get the old file from a colleague and `devbench binaries add` it",
        )
    try:
        form, elf, fingerprint = examine(arrived, wanted.url)
    except UsageError as error:
        raise HostError(error.fact, remedy=_CHECK_MIRROR) from error
    is_meant = (form, fingerprint.program) == (wanted.form, wanted.program)
    if wanted.machine not in elf.machine.split(",") or elf.system not in (wanted.system, "any") or not is_meant:
        what = "APK" if form == APP else "program"
        raise HostError(
            f"{wanted.url} is the {fingerprint.program} {what} for {elf.abi} ({elf.system}), not what was asked for",
            remedy=_CHECK_MIRROR,
        )
    return binaries.add(arrived, name, origin=wanted.url)


def _download(url: str, out: BinaryIO, deadline: Deadline) -> None:
    by_hand = f"download {url} where there is a network, then `devbench binaries add FILE`"
    try:
        with urllib.request.urlopen(url, timeout=min(_QUIET_S, max(0.1, deadline.left_s))) as answer:
            promised, got = answer.headers.get("Content-Length"), 0
            while chunk := answer.read(_CHUNK):
                got += len(chunk)
                if deadline.passed or got > _SIZE_MAX:
                    raise HostError(f"{url} takes too long, or is too large ({got} bytes so far)", remedy=by_hand)
                out.write(chunk)
    except urllib.error.HTTPError as error:
        raise HostError(f"{url}: the server says {error.code} {error.reason}", remedy=by_hand) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise HostError(f"{url} cannot be fetched: {reason}", remedy=by_hand) from error
    if promised is not None and promised.isdigit() and int(promised) != got:
        raise HostError(f"{url} arrived in part: {got} of {promised} bytes", remedy=by_hand)
