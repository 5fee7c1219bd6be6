"""Files to and from a board, as streams through its shell.

A stream through `cat` is as fast as SFTP, and works where there is no SFTP subsystem: one way for all boards.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path, PurePosixPath

from orchestrator.clock import Deadline
from orchestrator.errors import DeviceError, DeviceLost, DeviceUnfit, HostError
from orchestrator.transports.remote_commands import file_error
from orchestrator.transports.ssh_link import SshLink
from orchestrator.transports.ssh_process import SshProcess
from orchestrator.whole_files import written_whole

TEMPORARY = ".devbench-push-"
_CLEAN_S = 5.0

# $1 target, $2 temporary name, $3 size, $4 mode. A connection that is cut ends the input early: so the size decides
# whether the file gets its name, and what has none is removed by the board itself.
_PUSH = """\
umask 022
mkdir -p -- "$(dirname -- "$1")" || exit 1
if [ -d "$1" ]; then echo "mv: Is a directory" >&2; exit 1; fi
trap 'rm -f -- "$2"' 0
trap '' 1 13
cat >"$2" || exit 1
got=$(wc -c <"$2") || exit 1
if [ "$got" -ne "$3" ]; then echo "kept $got of $3 bytes" >&2; exit 1; fi
chmod "$4" "$2" && mv -f -- "$2" "$1"
"""


class SshFiles:
    """Pushes and pulls for one board."""

    def __init__(self, link: SshLink) -> None:
        self._link = link
        self._leftovers: set[str] = set()
        """Torn files of pushes that had to be killed."""

    def push(self, source: Path, target: str, deadline: Deadline, *, executable: bool) -> None:
        temporary = str(PurePosixPath(target).parent / f"{TEMPORARY}{secrets.token_hex(8)}")
        mode = "755" if executable else "644"
        process: SshProcess | None = None
        try:
            with source.open("rb", buffering=0) as content:
                size = os.fstat(content.fileno()).st_size
                argv = ["sh", "-c", _PUSH, "sh", target, temporary, str(size), mode]
                process = SshProcess(self._link, argv, deadline)
                self._leftovers.add(temporary)
                process.pour(content, deadline)
                status = process.wait(deadline)
                self._leftovers.discard(temporary)
        except DeviceLost:
            self._leftovers.discard(temporary)  # the board removes it by itself
            raise
        except OSError as error:
            raise DeviceUnfit(f"cannot read {source}: {error.strerror}", remedy="check path and permissions") from error
        finally:
            if process:
                process.kill()
            self._remove_leftovers()
        if status:
            raise file_error(self._link.name, f"write {target}", process.stderr_tail.decode("utf-8", "replace"))

    def _remove_leftovers(self) -> None:
        if not self._leftovers:
            return
        with contextlib.suppress(DeviceError):
            deadline = Deadline.after(_CLEAN_S)
            SshProcess(self._link, ["rm", "-f", "--", *sorted(self._leftovers)], deadline).wait(deadline)
            self._leftovers.clear()

    def pull(self, source: str, target: Path, deadline: Deadline) -> None:
        process: SshProcess | None = None
        try:
            with written_whole(target) as out:
                process = SshProcess(self._link, ["cat", "--", source], deadline)
                while not process.at_end:
                    out.write(process.receive(deadline))
                    if deadline.passed and not process.has_ended:
                        raise process.overdue()
                if process.exit:
                    raise file_error(self._link.name, f"read {source}", process.stderr_tail.decode("utf-8", "replace"))
        except OSError as error:
            raise HostError(
                f"cannot write {target}: {error.strerror}", remedy="check path, permissions and free space"
            ) from error
        finally:
            if process:
                process.kill()
