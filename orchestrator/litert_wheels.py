"""Gets the LiteRT runtime for any machine out of the package's wheels, with pip and the registry it is set up for."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from orchestrator.binary_lock import Locked, add_to_lock
from orchestrator.clock import Deadline
from orchestrator.content_hash import sha256
from orchestrator.errors import HostError, UsageError
from orchestrator.litert_runtimes import LIBRARY, PACKAGE, PLATFORMS, VERSION, Runtime, Runtimes, key
from orchestrator.settings import suggestion

_TAGS = {"x86_64": "manylinux_2_27_x86_64", "aarch64": "manylinux_2_27_aarch64"}
_PYTHON = "3.11"
"""Any for which the release has wheels: the library in them is the same."""
_MEMBER = f"ai_edge_litert/{LIBRARY}"
_SIZE_MAX = 1 << 30


def fetch_runtime(runtimes: Runtimes, platform: str, deadline: Deadline) -> Runtime:
    """The runtime for a platform in the cache; what is locked and kept is not fetched again."""
    machine = _machine(platform)
    locked, kept = runtimes.locked(machine), runtimes.kept(machine)
    if locked and kept and locked.sha256 == kept.sha256 == _sha256_or_none(runtimes.path(machine)):
        return kept
    with tempfile.TemporaryDirectory() as folder:
        wheel = _download(machine, Path(folder), deadline)
        runtime = add_wheel(runtimes, wheel, only_for=machine)
    if not locked:
        add_to_lock(runtimes.project, key(machine), Locked(LIBRARY, machine, wheel.name, runtime.sha256, runtime.size))
    return runtime


def add_wheel(runtimes: Runtimes, wheel: Path, *, only_for: str | None = None) -> Runtime:
    """Keep the runtime that a wheel of the package holds, if it is for the machine that is asked for."""
    remedy = f"give a wheel of {PACKAGE} {VERSION} for Linux"
    try:
        with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
            version = _version(archive)
            if version != VERSION:
                raise UsageError(f"{wheel} is of {PACKAGE} {version}, not {VERSION}", remedy=remedy)
            if archive.getinfo(_MEMBER).file_size > _SIZE_MAX:
                raise UsageError(f"{wheel} holds a library of more than {_SIZE_MAX} bytes", remedy=remedy)
            library = Path(archive.extract(_MEMBER, folder))
            return runtimes.add(library, version=version, source=wheel.name, only_for=only_for)
    except KeyError as error:
        raise UsageError(f"{wheel} holds no {_MEMBER}", remedy=remedy) from error
    except FileNotFoundError as error:
        raise UsageError(f"{wheel}: no such file", remedy=remedy) from error
    except (OSError, zipfile.BadZipFile, EOFError) as error:
        raise UsageError(f"{wheel} cannot be read: {error}", remedy="get the wheel again") from error


def _version(archive: zipfile.ZipFile) -> str | None:
    """What the wheel's metadata say; None where it is of another package."""
    name = f"ai_edge_litert-{VERSION}.dist-info/METADATA"
    found = [member for member in archive.namelist() if member.endswith(".dist-info/METADATA")]
    if name in found:
        return VERSION
    return found[0].partition("-")[2].partition(".dist-info")[0] if found else None


def _machine(platform: str) -> str:
    spelled = platform.lower().replace("_", "-").replace("aarch64", "arm64")
    for machine, name in PLATFORMS.items():
        if name == spelled:
            return machine
    raise UsageError(
        f'{PACKAGE} {VERSION} is not published for "{platform}"',
        remedy=suggestion(spelled, list(PLATFORMS.values())),
    )


def _sha256_or_none(path: Path) -> str | None:
    return sha256(path) if path.is_file() else None


def _download(machine: str, folder: Path, deadline: Deadline) -> Path:
    wanted = f"{PACKAGE}=={VERSION}"
    tags = ["--only-binary=:all:", "--platform", _TAGS[machine], "--python-version", _PYTHON]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", *tags, "--implementation", "cp", "--dest", str(folder), wanted]
    by_hand = (
        f"check pip's registry; or where there is a network: pip download --no-deps {' '.join(tags)} {wanted}; "
        "then here: `devbench binaries add FILE.whl`"
    )
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=deadline.left_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise HostError(f"pip did not get {wanted} for {machine} in time", remedy=by_hand) from error
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        complaints = [line for line in done.stderr.splitlines() if "ERROR" in line] or done.stderr.splitlines()
        why = complaints[-1].strip() if complaints else f"status {done.returncode}"
        raise HostError(f"pip cannot get {wanted} for {machine}: {why}", remedy=by_hand)
    return wheels[0]
