"""One run at a time on one device: a lock on this host, held for as long as a run measures the device."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrator.errors import DeviceBusy, HostError
from orchestrator.held_file import Held, held

_SHARED_FOLDERS = ("/run/lock", "/tmp")


def _folder() -> Path:
    """One place for all users of this host, wherever their own temporary files go."""
    if chosen := os.environ.get("DEVBENCH_LOCKS"):
        return Path(chosen)
    for shared in _SHARED_FOLDERS:
        mode = os.stat(shared).st_mode if os.path.isdir(shared) else 0  # noqa: PTH112, PTH116 - a constant, not a path of ours
        if mode & stat.S_IWOTH:
            return Path(shared) / "devbench"
    return Path(tempfile.gettempdir()) / "devbench"


@contextmanager
def device_lock(identity: str, *, device: str, run: str) -> Iterator[None]:
    """Hold the device of this identity. DeviceBusy names the run that has it. The kernel frees it if we die."""
    folder = _folder()
    name = hashlib.sha256(identity.encode()).hexdigest()[:24]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):
            folder.chmod(0o1777)
        descriptor = _open(folder / f"{name}.lock")
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, 0o666)  # other users measure this machine too
    except OSError as error:
        raise HostError(
            f"cannot make a lock in {folder}: {error.strerror}",
            remedy="set DEVBENCH_LOCKS to a folder that is writable",
        ) from error
    try:
        with held(descriptor, run=run, device=device):
            yield
    except Held as error:
        raise _busy(device, error.holder) from error


def _open(path: Path) -> int:
    """Some kernels forbid O_CREAT on another user's file in a shared folder, so what is there is opened as it is."""
    try:
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)


def _busy(device: str, holder: Mapping[str, Any]) -> DeviceBusy:
    who = "another run measures it"
    if "run" in holder and "pid" in holder:
        who = f"run {holder['run']} (process {holder['pid']}) measures it"
    return DeviceBusy(f"{device} is busy: {who}", remedy="wait for that run to end, or stop it")
