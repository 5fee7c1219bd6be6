"""The phone's files as its daemon sees them: paths are the phone's own, and so are the permissions."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_LINKS_MAX = 40


def _refuse(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class PhoneFiles:
    """Files below the descriptor of the phone's root.

    The host's user may be root, and links on the phone must not lead to the host's files, so links are followed
    and the owner's permission bits are checked here. Read-only and full file systems are the kernel's business.
    """

    def __init__(self, root_fd: int) -> None:
        self._root = Path(f"/proc/self/fd/{root_fd}")

    def place(self, path: str, *, follow: bool = True) -> Path:
        """The host's path of a phone's path, whose last part need not exist."""
        pending = [part for part in path.split("/") if part][::-1]
        done: list[str] = []
        links = 0
        while pending:
            part = pending.pop()
            if part == ".":
                continue
            if part == "..":
                done = done[:-1]
                continue
            here = self._root.joinpath(*done, part)
            try:
                mode = here.lstat().st_mode
            except FileNotFoundError:
                if pending:
                    raise
                return here
            if stat.S_ISLNK(mode) and (pending or follow):
                links += 1
                if links > _LINKS_MAX:
                    raise _refuse(errno.ELOOP, path)
                target = str(here.readlink())
                done = [] if target.startswith("/") else done
                pending += [word for word in target.split("/") if word][::-1]
                continue
            if pending and not stat.S_ISDIR(mode):
                raise _refuse(errno.ENOTDIR, path)
            if pending and not mode & 0o100:
                raise _refuse(errno.EACCES, path)
            done.append(part)
        return self._root.joinpath(*done)

    def stat(self, path: str, *, follow: bool) -> os.stat_result:
        """What `stat` (or `lstat`) says."""
        here = self.place(path, follow=follow)
        # The root itself is behind a link of the host's /proc.
        return here.stat() if here == self._root else here.lstat()

    def list(self, path: str) -> Iterator[tuple[str, os.stat_result]]:
        """The entries of a directory with their lstat."""
        here = self.place(path)
        _need(here, 0o400, path)
        for entry in here.iterdir():
            yield entry.name, entry.lstat()

    def open_to_read(self, path: str) -> int:
        """A descriptor to read from."""
        here = self.place(path)
        _need(here, 0o400, path)
        return os.open(here, os.O_RDONLY | os.O_CLOEXEC)

    def create(self, path: str, mode: int) -> int:
        """A descriptor of an empty file in the place of what was there; missing parents are made, as adbd does."""
        self._make_parents(path)
        here = self.place(path)
        if here.is_dir():
            raise _refuse(errno.EISDIR, path)
        _can_write_in(here.parent, path)
        here.unlink(missing_ok=True)  # as adbd does: a program that runs keeps its old file
        fd = os.open(here, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.fchmod(fd, mode & 0o777)
        return fd

    def link(self, path: str, target: str) -> None:
        """A symbolic link in the place of what was there."""
        self._make_parents(path)
        here = self.place(path, follow=False)
        _can_write_in(here.parent, path)
        here.unlink(missing_ok=True)
        here.symlink_to(target)

    def remove(self, path: str) -> None:
        """Removes a file if it is there."""
        self.place(path, follow=False).unlink(missing_ok=True)

    def _make_parents(self, path: str) -> None:
        parts = [part for part in path.split("/") if part][:-1]
        for count in range(1, len(parts) + 1):
            here = self.place("/".join(parts[:count]))
            if not here.exists():
                _can_write_in(here.parent, path)
                here.mkdir()
                here.chmod(0o771)


def _need(here: Path, bit: int, path: str) -> None:
    if not here.stat().st_mode & bit:
        raise _refuse(errno.EACCES, path)


def _can_write_in(parent: Path, path: str) -> None:
    # On a read-only file system that is the answer, whatever the bits say.
    if os.statvfs(parent).f_flag & os.ST_RDONLY:
        raise _refuse(errno.EROFS, path)
    _need(parent, 0o200, path)
