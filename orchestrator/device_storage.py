"""The room devbench takes on a device: is there enough, what is old, and how to leave no trace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from orchestrator.clock import Deadline
from orchestrator.errors import DeviceFull
from orchestrator.transports.base import Transport
from orchestrator.whole_files import TEMPORARY

_COMMAND_S = 60.0
_MARGIN_BYTES = 8 * 1024 * 1024
_HASH = re.compile(r"[0-9a-f]{64}")

MAX_AGE_DAYS = 30
MAX_TOTAL_BYTES = 4 * 1024**3

# A link that is cut leaves temporary files behind: pushes beside their target, and what old phones' shells keep. After
# two days nobody is at work on them any more.
_SWEEP = (
    "find \"$1/blobs\" -maxdepth 2 -name '{temporary}*' -type f -mtime +1 -exec rm -f {{}} ';';"
    "find \"${{1%/*}}\" /data/local/tmp -maxdepth 1 -name '{temporary}*' -type f -mtime +1 -exec rm -f {{}} ';'"
)
# What was used now is marked as fresh; then the folders by age, the youngest first, the old ones, and all sizes.
_LIST = (
    'cd "$1/blobs" || exit 0; shift; touch "$@"; ls -1t; echo --; find . -maxdepth 1 -mtime +{days}; echo --; du -sk *'
)
_CLEAN = (
    'rm -rf "$1/blobs" "$1/scratch" "$1/caches" "$1"/{temporary}* &&'
    'rm -f "${{1%/*}}"/{temporary}* /data/local/tmp/{temporary}*;'
    'rmdir "$1" 2>/dev/null || true'
)


@dataclass(frozen=True)
class Storage:
    """The folder of devbench on one device."""

    transport: Transport
    workdir: str

    @property
    def blobs(self) -> str:
        return str(PurePosixPath(self.workdir) / "blobs")

    def _run(self, *argv: str) -> str:
        done = self.transport.run(argv, deadline=Deadline.after(_COMMAND_S))
        return done.stdout.decode("utf-8", "replace")

    def require_room(self, name: str, size_bytes: int) -> None:
        """DeviceFull when the device says that it has no room; one that does not say gets the benefit of the doubt."""
        free_bytes = _free_bytes(self._run("sh", "-c", 'mkdir -p "$1" && df -k "$1"', "sh", self.workdir))
        if free_bytes is not None and free_bytes < size_bytes + _MARGIN_BYTES:
            raise DeviceFull(
                f"{name} needs {_mb(size_bytes + _MARGIN_BYTES)} in {self.workdir}, and {_mb(free_bytes)} are free",
                remedy="free space on the device, or `devbench devices --clean` to remove what devbench left there",
            )

    def prune(self, in_use: Sequence[str]) -> int:
        """Remove files that were not used for long, and the oldest beyond the total; gives how many. What is in use
        (hashes) stays."""
        script = f"{_SWEEP.format(temporary=TEMPORARY)}; {_LIST.format(days=MAX_AGE_DAYS)}"
        answer = self._run("sh", "-c", script, "sh", self.workdir, *in_use)
        doomed = _doomed(answer, frozenset(in_use))
        if doomed:
            self._run("rm", "-rf", *(f"{self.blobs}/{digest}" for digest in doomed))
        return len(doomed)

    def clean(self) -> None:
        """Remove every file of devbench from the device; its folder goes too if nothing else is in it."""
        self._run("sh", "-c", _CLEAN.format(temporary=TEMPORARY), "sh", self.workdir)


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.0f} MB"


def _free_bytes(answer: str) -> int | None:
    """From `df -k`: the number before the percentage. Old phones print another table, which says nothing here."""
    for line in reversed(answer.splitlines()):
        if match := re.search(r"\s(\d+)\s+\d+%", line):
            return int(match[1]) * 1024
    return None


def _doomed(answer: str, in_use: frozenset[str]) -> list[str]:
    """The hashes to remove: those that are old, and from the oldest on those that exceed the total."""
    by_age, old, sizes = ([*part.split("\n"), ""] for part in (answer + "\n--\n--\n").split("--\n")[:3])
    kilobytes = {words[1]: int(words[0]) for line in sizes if len(words := line.split()) == 2 and words[0].isdigit()}
    aged = {line.removeprefix("./") for line in old}
    doomed, total_bytes = [], 0
    for digest in (line for line in by_age if _HASH.fullmatch(line)):
        total_bytes += 1024 * kilobytes.get(digest, 0)
        if digest not in in_use and (digest in aged or total_bytes > MAX_TOTAL_BYTES):
            doomed.append(digest)
    return doomed
