"""A virtual phone as a test sees it: plain calls, from any thread."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import ParamSpec, TypeVar

from .daemon import Daemon
from .faults import Faults
from .profile import Profile
from .rootfs import replace_text
from .sandbox import Process
from .storage import PhoneFiles
from .thermal import Reading

_T = TypeVar("_T")
_P = ParamSpec("_P")


class VirtualPhone:
    """One running phone. Its `faults` may be changed at any time; what needs doing at once is a method here."""

    def __init__(self, daemon: Daemon, loop: asyncio.AbstractEventLoop, *, serial: str) -> None:
        self._daemon = daemon
        self._loop = loop
        self.serial = serial
        self.faults: Faults = daemon.faults

    def _do(self, work: Coroutine[object, object, _T], within_s: float = 30.0) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(within_s)

    def _call(self, action: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        async def act() -> _T:
            return action(*args, **kwargs)

        return self._do(act())

    @property
    def address(self) -> str:
        """What to give to `adb connect`; it is also the serial under which adb then knows the phone."""
        return f"127.0.0.1:{self._daemon.port}"

    @property
    def profile(self) -> Profile:
        return self._daemon.profile

    @property
    def opened(self) -> list[str]:
        """The names of all services that were opened so far: a count of round trips."""
        return list(self._daemon.opened)

    # -- the link

    def cut(self) -> None:
        """Cuts the connection; the adb server comes back by itself."""
        self._call(self._daemon.cut_links)

    def unplug(self) -> None:
        """Cuts the connection, and nobody can connect until `plug`."""
        self._call(self._daemon.unplug)

    def plug(self) -> None:
        self._do(self._daemon.plug())

    def go_offline(self) -> None:
        """Connections are accepted and never answered: "offline"."""
        self.faults.offline = True
        self.cut()

    def come_online(self) -> None:
        self.faults.offline = False
        self.cut()

    def require_authorisation(self, *, user_allows_after_s: float | None = None) -> None:
        """Forgets all hosts' keys: "unauthorized" until the user allows the host, which may be never (None)."""
        keys = self._daemon.keys
        keys.required = True
        self._call(keys.forget_all)
        self._loop.call_soon_threadsafe(lambda: keys.user_decides(after_s=user_allows_after_s))
        self.cut()

    def allow_host(self) -> None:
        """The user taps "allow" now, and for all who ask later."""
        self._loop.call_soon_threadsafe(lambda: self._daemon.keys.user_decides(after_s=0.0))

    def freeze(self) -> None:
        """The daemon stops, and the connection stays."""
        self._call(self._daemon.thawed.clear)

    def thaw(self) -> None:
        self._call(self._daemon.thawed.set)

    def drop_feature(self, name: str) -> None:
        """The daemon no longer offers a feature (such as shell_v2), from the next connection on."""
        self._call(self._daemon.without_feature, name)
        self.cut()

    def reboot(self, *, gone_s: float, boot_s: float = 0.0) -> None:
        """Starts a reboot and returns at once."""
        self._call(self._daemon.in_background, self._daemon.reboot(gone_s=gone_s, boot_s=boot_s))

    # -- storage and processes

    def leave_free(self, free_bytes: int) -> None:
        """Makes /data so small that only so many bytes can be written; a page is the least."""
        self._do(self._leave_free(free_bytes))

    async def _leave_free(self, free_bytes: int) -> None:
        found = os.statvfs(self.path("/data"))
        used = (found.f_blocks - found.f_bfree) * found.f_frsize
        await self._daemon.sandbox.set_data_bytes(max(4096, used + free_bytes))

    def set_noexec(self, noexec: bool) -> None:
        """Whether programs in /data can be run (if not: "Permission denied", 126)."""
        self._do(self._daemon.sandbox.set_noexec(noexec))

    def processes(self) -> list[Process]:
        """What runs on the phone now."""
        return self._call(self._daemon.sandbox.processes)

    def kill(self, word: str, number: int = signal.SIGKILL) -> int:
        """Signals all processes that have `word` in their command line; how many these were."""
        matching = [process for process in self.processes() if any(word in part for part in process.argv)]
        for process in matching:
            self._call(self._daemon.sandbox.kill, process.pid, number)
        return len(matching)

    def path(self, path: str) -> Path:
        """A file of the phone, to be looked at from the host; good until the phone stops."""
        return PhoneFiles(self._daemon.sandbox.root_fd).place(path)

    # -- facts

    def set_props(self, changed: Mapping[str, str]) -> None:
        self._call(self._daemon.set_props, changed)

    def set_state(self, name: str, text: str) -> None:
        """Changes a file behind a command, such as `battery_level`, `wakefulness`, `machine` (see rootfs._state)."""
        path = self._daemon.phone_dir / "state" / name
        if path.exists():
            replace_text(path, text + "\n")
        else:
            path.write_text(text + "\n")
            path.chmod(0o666)

    def set_environment(self, changed: Mapping[str, str]) -> None:
        """Variables that commands started from now on find in their environment."""
        self._daemon.environment.update(changed)

    def set_benchmark(self, **settings: float) -> None:
        """Settings of the stand-in benchmark_model (see native/bm_latency.c), such as slowdown=1.2, time_scale=0.1."""
        self.set_state("benchmark", "".join(f"{name} {value}\n" for name, value in settings.items()))

    # -- heat

    def set_load(self, busy: Mapping[int, float] | None) -> None:
        """How busy each CPU is, from now on; None: what the processes use."""
        self._call(self._daemon.body.force, None if busy is None else dict(busy))

    def condition(self) -> Reading:
        """Temperatures, clocks and status now; the files on the phone show the same."""
        return self._call(self._daemon.body.beat)
