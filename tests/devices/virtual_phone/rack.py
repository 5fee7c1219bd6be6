"""A rack of virtual phones: any number of them, one thread, one event loop."""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from ..build import CannotBuild, build
from .auth import KeyRing
from .daemon import Daemon
from .faults import Faults
from .phone import VirtualPhone
from .profile import FLAGSHIP, Profile
from .rootfs import write_phone, write_system
from .sandbox import NoSandbox, Sandbox

_FREE_BYTES_MIN = 512 << 20


class PhoneRack:
    """Starts phones, and stops all of them at the end."""

    def __init__(self) -> None:
        _allow_many_descriptors()
        self._dir = Path(tempfile.mkdtemp(prefix="devbench-phones-", dir=_fast_dir()))
        self._dir.chmod(0o755)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="phones", daemon=True)
        self._thread.start()
        self._systems: dict[Profile, Path] = {}
        self._daemons: dict[VirtualPhone, Daemon] = {}
        self._count = 0

    def __enter__(self) -> PhoneRack:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def start(
        self,
        profile: Profile = FLAGSHIP,
        *,
        serial: str | None = None,
        auth_required: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> VirtualPhone:
        """A phone that listens at its `address`."""
        serials = None if serial is None else [serial]
        return self.start_many(1, profile, serials=serials, auth_required=auth_required, clock=clock)[0]

    def start_many(
        self,
        count: int,
        profile: Profile = FLAGSHIP,
        *,
        serials: Sequence[str] | None = None,
        auth_required: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> list[VirtualPhone]:
        """Several phones of one kind, started side by side."""
        build("phone_init")  # may take a while the first time, and would stop the loop there
        system_dir = self._system(profile)
        first = self._count
        self._count += count
        names = serials or [f"VPHONE{first + number:04d}" for number in range(count)]

        async def start_all() -> list[VirtualPhone]:
            limit = asyncio.Semaphore(8)
            return await asyncio.gather(
                *(
                    self._start(profile, name, system_dir, f"{first + number}", auth_required, clock, limit)
                    for number, name in enumerate(names)
                )
            )

        return asyncio.run_coroutine_threadsafe(start_all(), self._loop).result(120)

    def _system(self, profile: Profile) -> Path:
        if profile not in self._systems:
            self._systems[profile] = self._dir / f"system-{len(self._systems)}"
            write_system(self._systems[profile], profile)
        return self._systems[profile]

    async def _start(
        self,
        profile: Profile,
        serial: str,
        system_dir: Path,
        name: str,
        auth_required: bool,
        clock: Callable[[], float],
        limit: asyncio.Semaphore,
    ) -> VirtualPhone:
        phone_dir = self._dir / f"phone-{name}"
        async with limit:
            write_phone(phone_dir, profile, serial)
            sandbox = await Sandbox.start(
                phone_dir, system_dir=system_dir, cpus=profile.cpus, data_bytes=profile.data_bytes
            )
        daemon = Daemon(
            phone_dir=phone_dir,
            profile=profile,
            serial=serial,
            faults=Faults(),
            keys=KeyRing(required=auth_required),
            sandbox=sandbox,
            clock=clock,
        )
        await daemon.plug()
        phone = VirtualPhone(daemon, self._loop, serial=serial)
        self._daemons[phone] = daemon
        return phone

    def stop(self, phone: VirtualPhone) -> None:
        """Ends one phone for good."""
        daemon = self._daemons.pop(phone)
        asyncio.run_coroutine_threadsafe(daemon.stop(), self._loop).result(30)
        shutil.rmtree(daemon.phone_dir, ignore_errors=True)

    def close(self) -> None:
        """Ends all phones and the thread."""
        for phone in list(self._daemons):
            self.stop(phone)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        shutil.rmtree(self._dir, ignore_errors=True)


def _fast_dir() -> Path | None:
    """Where many small files are made quickly: in memory, if there is room (a phone has about 150 files)."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= _FREE_BYTES_MIN:
        return memory
    return None


def _allow_many_descriptors() -> None:
    """A phone keeps four descriptors open and three more per command: too many for the usual soft limit of 1024."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def why_not() -> str | None:
    """Why no phone can run on this machine, or None."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return f"virtual phones need Linux on x86_64, this is {platform.system()} on {platform.machine()}"
    try:
        with PhoneRack() as rack:
            rack.start()
    except (CannotBuild, NoSandbox, OSError) as error:
        return f"this machine cannot confine a virtual phone: {error}"
    return None
