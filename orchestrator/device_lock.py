"""One run at a time on one device: a lock on this host, held for as long as a run measures the device."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import DeviceBusy, HostError


def _folder() -> Path:
    return Path(os.environ.get("DEVBENCH_LOCKS") or Path(tempfile.gettempdir()) / "devbench-locks")


@contextmanager
def device_lock(identity: str, *, device: str, run: str) -> Iterator[None]:
    """Hold the device of this identity. DeviceBusy names the run that has it. The kernel frees it if we die."""
    folder = _folder()
    name = hashlib.sha256(identity.encode()).hexdigest()[:24]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):
            folder.chmod(0o1777)
        descriptor = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, 0o666)  # other users measure this machine too
    except OSError as error:
        raise HostError(
            f"cannot make a lock in {folder}: {error.strerror}",
            remedy="set DEVBENCH_LOCKS to a folder that is writable",
        ) from error
    with os.fdopen(descriptor, "r+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise _busy(device, lock.read()) from error
        lock.seek(0)
        lock.truncate()
        lock.write(json.dumps({"pid": os.getpid(), "run": run, "device": device}))
        lock.flush()
        try:
            yield
        finally:
            lock.seek(0)
            lock.truncate()


def _busy(device: str, holder: str) -> DeviceBusy:
    try:
        told = json.loads(holder)
        who = f"run {told['run']} (process {told['pid']}) measures it"
    except (ValueError, KeyError, TypeError):
        who = "another run measures it"
    return DeviceBusy(f"{device} is busy: {who}", remedy="wait for that run to end, or stop it")
