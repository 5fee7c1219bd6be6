"""What a trial writes on its device: a folder of its own, files pulled with a cap, caches that are cold or warm."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from orchestrator.clock import Deadline
from orchestrator.errors import DeviceError, DeviceLost, StoreError
from orchestrator.transports.base import Transport

_COMMAND_S = 60.0
_PULL_S = 300.0
OUTPUT_BYTES_MAX = 64 * 1024 * 1024

_SIZES = 'for file; do wc -c < "$file" 2>/dev/null || echo none; done'
_ENTRIES = 'ls -A "$1" 2>/dev/null'


class TrialFiles:
    """The folders of one device that trials write in."""

    def __init__(self, transport: Transport, workdir: str) -> None:
        self._transport = transport
        self._scratch = str(PurePosixPath(workdir) / "scratch")
        self._caches = str(PurePosixPath(workdir) / "caches")
        self._is_used = False

    def _run(self, *argv: str) -> str:
        done = self._transport.run(argv, deadline=Deadline.after(_COMMAND_S))
        return done.stdout.decode("utf-8", "replace")

    def name(self) -> str:
        """A folder that no trial has had; it is not there yet."""
        return f"{self._scratch}/{secrets.token_hex(6)}"

    def make(self, folder: str) -> None:
        """Make it, with room for a cache. What an earlier session left behind goes with the first."""
        script = 'mkdir -p "$2/cache"' if self._is_used else 'rm -rf "$1"; mkdir -p "$2/cache"'
        self._run("sh", "-c", script, "sh", self._scratch, folder)
        self._is_used = True

    def remove(self, folder: str) -> None:
        self._run("rm", "-rf", folder)

    def clear(self) -> None:
        """Leave nothing of trials behind; called when the work on the device is done."""
        if self._is_used:
            self._run("rm", "-rf", self._scratch, self._caches)

    def warm_cache(self, cell_id: str) -> str:
        """The folder of a cell's cache, emptied, to be filled by a process that is not measured."""
        self._is_used = True
        folder = f"{self._caches}/{cell_id}"
        self._run("sh", "-c", 'rm -rf "$1"; mkdir -p "$1"', "sh", folder)
        return folder

    def entries(self, folder: str) -> int:
        """How many files a cache holds."""
        return len(self._run("sh", "-c", _ENTRIES, "sh", folder).split("\n")) - 1

    def pull(self, outputs: Mapping[str, str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """The content of each file that is there, by role, and why others are not. One that cannot be pulled takes no
        other with it."""
        if not outputs:
            return {}, {}
        found, lost = dict[str, bytes](), dict[str, str]()
        sizes = self._run("sh", "-c", _SIZES, "sh", *outputs.values()).split("\n")
        for (role, place), size in zip(outputs.items(), (*sizes, *[""] * len(outputs)), strict=False):
            known = int(size) if size.strip().isdigit() else None
            if size.strip() == "none":
                lost[role] = "it was not written"
            elif known == 0:
                lost[role] = "it is empty"
            elif known is not None and known > OUTPUT_BYTES_MAX:
                lost[role] = (
                    f"it has {known / 1e6:.0f} MB, and {OUTPUT_BYTES_MAX / 1e6:.0f} MB is the most that is kept"
                )
            else:
                self._pull_one(role, place, found, lost)
        return found, lost

    def _pull_one(self, role: str, place: str, found: dict[str, bytes], lost: dict[str, str]) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="devbench-") as folder:
                target = Path(folder) / "output"
                self._transport.pull(place, target, deadline=Deadline.after(_PULL_S))
                found[role] = target.read_bytes()[:OUTPUT_BYTES_MAX]
        except DeviceLost:
            raise
        except DeviceError as error:
            lost[role] = error.fact
        except OSError as error:
            raise StoreError(f"no room for what the device wrote: {error.strerror}", remedy="free space") from error
