"""Files on a machine that has a shell but not our agent: pushed by content, and hashed there."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from orchestrator.clock import Deadline
from orchestrator.content_hash import sha256
from orchestrator.errors import DeviceError, DeviceUnfit
from orchestrator.transports.base import Transport

_COMMAND_S = 60.0
_PUSH_S = 600.0
_HASH = 'sha256sum "$1" 2>/dev/null || shasum -a 256 "$1" 2>/dev/null || openssl dgst -sha256 -r "$1" 2>/dev/null'
_DIGEST = re.compile(rb"\\?([0-9a-f]{64})\b")


class ShellFiles:
    """The files under one folder there."""

    def __init__(self, transport: Transport, folder: str, device: str) -> None:
        self._transport = transport
        self._device = device
        self.folder = PurePosixPath(folder)

    def path(self, *parts: str) -> str:
        return str(self.folder.joinpath(*parts))

    def has_folder(self, path: str) -> bool:
        return self._run("test", "-d", path) == 0

    def remove(self, *paths: str) -> None:
        self._run("rm", "-rf", *paths)

    def ensure(self, source: Path, *, executable: bool = False) -> str:
        """Where the content of a host file is, pushed if need be, its hash read back."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", source.name).strip("_") or "file"
        target, expected = self.path("blobs", sha256(source), name[-80:]), sha256(source)
        if self._digest(target) != expected:
            self._transport.push(source, target, deadline=Deadline.after(_PUSH_S), executable=executable)
            found = self._digest(target)
            if found is None:
                raise DeviceUnfit(
                    f"{self._device}: no program there can hash files, so that what was pushed cannot be verified",
                    remedy="install coreutils, perl or openssl on it",
                )
            if found != expected:
                raise DeviceError(
                    f"{self._device}: {name} has another content there ({found[:12]} instead of {expected[:12]})",
                    remedy="check its storage; then run again",
                )
        elif executable:
            self._run("chmod", "755", target)
        return target

    def prune(self, days: int) -> int:
        """Remove what was not pushed or used for so many days; gives how many went."""
        command = ["find", self.path("blobs"), "-mindepth", "1", "-maxdepth", "1", "-mtime", f"+{days}"]
        done = self._transport.run(command, deadline=Deadline.after(_COMMAND_S))
        old = done.stdout.decode("utf-8", "replace").split("\n")[:-1] if done.exit == 0 else []
        if old:
            self.remove(*old)
        return len(old)

    def _digest(self, path: str) -> str | None:
        done = self._transport.run(["sh", "-c", _HASH, "sh", path], deadline=Deadline.after(_PUSH_S))
        found = _DIGEST.match(done.stdout)
        return found[1].decode() if found else None

    def _run(self, *argv: str) -> int:
        return self._transport.run(list(argv), deadline=Deadline.after(_COMMAND_S)).exit
