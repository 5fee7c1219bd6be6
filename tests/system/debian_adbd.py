"""Fetches the adbd of Debian trixie from this machine's own mirror, and unpacks it without installing anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache" / "adbd-trixie"
_KEYRINGS = (
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
)
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_FETCH_S = 300.0


class NoAdbd(Exception):
    """The daemon cannot be had here; the message says why."""


def adbd_folder() -> Path:
    """A folder with `bin/adbd` and `lib/`, all that it needs of its release; fetched once."""
    if not (CACHE / "bin" / "adbd").exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            raise NoAdbd("adbd comes from a Debian mirror, and this machine has no apt")
        CACHE.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE.parent, prefix=".fetching-") as scratch:
            fresh = _unpack(_download(Path(scratch)), Path(scratch))
            shutil.rmtree(CACHE, ignore_errors=True)
            fresh.replace(CACHE)
    return CACHE


def _download(scratch: Path) -> list[Path]:
    """The packages, from the first mirror that has them; apt checks the signatures."""
    reasons = []
    for number, archive in enumerate(_archives()):
        folder = scratch / f"apt-{number}"
        options = _private_apt(folder, archive)
        for command in (["update"], ["install", "--yes", "--download-only", "adbd"]):
            said = _run(["apt-get", *options, *command])
            if said is not None:
                reasons.append(said)
                break
        else:
            return sorted((folder / "cache" / "archives").glob("*.deb"))
    raise NoAdbd(f"the mirror of this machine's apt gave no adbd of trixie: {'; '.join(reasons) or 'none is set up'}")


def _archives() -> list[str]:
    """The archives that this machine's apt uses, but for those of security updates."""
    shown = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)"], capture_output=True, text=True, check=False
    )
    pairs = [line.split() for line in shown.stdout.splitlines()]
    return list(dict.fromkeys(words[0] for words in pairs if len(words) == 2 and "security" not in words[1]))


def _private_apt(folder: Path, archive: str) -> list[str]:
    """Options for an apt with a state of its own, that believes nothing is installed. Proxies are the machine's."""
    for name in ("lists/partial", "cache/archives/partial", "empty"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    keyring = next((path for path in _KEYRINGS if path.exists()), None)
    signed_by = f" signed-by={keyring}" if keyring else ""
    (folder / "sources.list").write_text(f"deb [arch=amd64{signed_by}] {archive} trixie main\n")
    settings = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": folder / "empty",
        "Dir::Etc::preferencesparts": folder / "empty",
        "Dir::State": folder,
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "APT::Architecture": "amd64",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "APT::Update::Error-Mode": "any",
        "Acquire::Languages": "none",
    }
    return ["--quiet=2", *(word for name, value in settings.items() for word in ("--option", f"{name}={value}"))]


def _run(command: Sequence[str]) -> str | None:
    """What went wrong, or None."""
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=_FETCH_S)
    except subprocess.TimeoutExpired:
        return f"{command[0]} took longer than {_FETCH_S:.0f} s"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return None if done.returncode == 0 else (lines or [f"{command[0]} ended with {done.returncode}"])[-1]


def _unpack(packages: Sequence[Path], scratch: Path) -> Path:
    """The daemon, its loader and its libraries, side by side."""
    tree, folder = scratch / "tree", scratch / "adbd"
    for package in packages:
        reason = _run(["dpkg-deb", "--extract", str(package), str(tree)])
        if reason is not None:
            raise NoAdbd(f"{package.name} cannot be unpacked: {reason}")
    daemon = tree / "usr/lib/android-sdk/platform-tools/adbd"
    if not daemon.is_file():
        raise NoAdbd("the package adbd has no adbd where it used to be")
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    shutil.copy(daemon, folder / "bin" / "adbd")
    for library in [*(tree / _LIBRARIES).glob("*.so*"), *(tree / _LIBRARIES / "android").glob("*.so*")]:
        shutil.copy(library, folder / "lib" / library.name)
    return folder
