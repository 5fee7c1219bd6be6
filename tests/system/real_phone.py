"""Debian's adbd in the world of a virtual phone: the real daemon, namespaces of its own, a network of its own.

The world (sysfs, properties, Android's commands, /data) is that of tests/devices/virtual_phone; only its Python daemon
is replaced. When this process ends, in whatever way, the kernel ends process 1 of the phone, and with it everything
there: processes, mounts and the network.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import TypeVar

from tests.devices.build import build
from tests.devices.virtual_phone.body import Body
from tests.devices.virtual_phone.daemon import ENVIRONMENT
from tests.devices.virtual_phone.profile import FLAGSHIP, Profile
from tests.devices.virtual_phone.rootfs import write_phone, write_system
from tests.devices.virtual_phone.sandbox import Command, Process, Sandbox
from tests.devices.virtual_phone.storage import PhoneFiles

from .network import Cable

_T = TypeVar("_T")
_PORT = 5555
_APEX = "system/apex/com.android.adbd"
_BEAT_S = 0.2
_RESTART_S = 0.5


class RealPhone:
    """A phone whose adbd is the real one; plain calls, from any thread."""

    def __init__(self, adbd: Path, profile: Profile = FLAGSHIP, *, serial: str = "REALADBD0001") -> None:
        """`adbd` is a folder with `bin/adbd` and `lib/`. NoSandbox and NoNetwork say what is not allowed here."""
        build("phone_init")
        self._dir = Path(tempfile.mkdtemp(prefix="devbench-adbd-"))
        self._dir.chmod(0o755)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="real-phone", daemon=True)
        self._thread.start()
        self._sandbox: Sandbox | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._restarts = True
        self._adbd: Command | None = None
        try:
            self._build_world(adbd, profile, serial)
            self._sandbox = self._do(self._start_sandbox(profile))
            self.cable = Cable(self._sandbox.pid)
            self._body = Body(self._dir / "phone", profile, clock=time.monotonic, look=self._sandbox.processes)
            self._do(self._start_tasks())
        except BaseException:
            self.stop()
            raise

    def _do(self, work: Coroutine[object, object, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def _build_world(self, adbd: Path, profile: Profile, serial: str) -> None:
        write_system(self._dir / "system", profile)
        shutil.copytree(adbd, self._dir / _APEX)
        write_phone(self._dir / "phone", profile, serial)

    async def _start_sandbox(self, profile: Profile) -> Sandbox:
        return await Sandbox.start(
            self._dir / "phone",
            system_dir=self._dir / "system",
            cpus=profile.cpus,
            data_bytes=profile.data_bytes,
            within=("unshare", "--net"),  # this adbd listens everywhere and asks nobody for a key
        )

    async def _start_tasks(self) -> None:
        self._tasks = [asyncio.create_task(self._keep_running()), asyncio.create_task(self._beat())]

    async def _keep_running(self) -> None:
        """As a phone's init does: an adbd that ends is started again."""
        while True:
            if self._restarts:
                self._adbd = self._start_adbd()
                await self._adbd.status
                self._adbd = None
            await asyncio.sleep(_RESTART_S)

    def _start_adbd(self) -> Command:
        """Through the loader of its own release: the rest of the phone's world is that of the host."""
        folder = f"/{_APEX}"
        argv = [f"{folder}/lib/ld-linux-x86-64.so.2", "--library-path", f"{folder}/lib", f"{folder}/bin/adbd"]
        assert self._sandbox is not None
        with Path(os.devnull).open("rb") as nothing, (self._dir / "adbd.log").open("ab") as log:
            streams = (nothing.fileno(), log.fileno(), log.fileno())
            return self._sandbox.start_command(argv, ENVIRONMENT | {"ADBD_PORT": str(_PORT)}, streams)

    async def _beat(self) -> None:
        while True:
            self._body.beat()
            await asyncio.sleep(_BEAT_S)

    def stop(self) -> None:
        """Ends everything on the phone, then the phone."""
        if self._loop.is_closed():
            return
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        shutil.rmtree(self._dir, ignore_errors=True)

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._sandbox is not None:
            self._sandbox.stop()

    # What a test looks at

    @property
    def address(self) -> str:
        """What to give to `adb connect`; it is also the serial under which adb then knows the phone."""
        return f"{self.cable.address}:{_PORT}"

    @property
    def log(self) -> str:
        """What adbd said."""
        path = self._dir / "adbd.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def pid(self) -> int:
        """The process on the host that holds the phone's namespaces."""
        assert self._sandbox is not None
        return self._sandbox.pid

    def path(self, path: str) -> Path:
        """A file of the phone, to be looked at from the host; good until the phone stops."""
        assert self._sandbox is not None
        return PhoneFiles(self._sandbox.root_fd).place(path)

    def processes(self) -> list[Process]:
        """What runs on the phone beside its adbd."""
        assert self._sandbox is not None
        return [one for one in self._sandbox.processes() if not _is_adbd(one)]

    # What a test does to it

    def signal_adbd(self, number: int) -> None:
        """SIGKILL: it is restarted, as by a phone's init. SIGSTOP: it hangs, and all connections stay."""
        assert self._sandbox is not None
        for one in self._sandbox.processes():
            if _is_adbd(one):
                self._loop.call_soon_threadsafe(self._sandbox.kill, one.pid, number)

    def turn_debugging_off(self) -> None:
        """adbd ends, and is not started again until `turn_debugging_on`."""
        self._restarts = False
        self.signal_adbd(signal.SIGKILL)

    def turn_debugging_on(self) -> None:
        self._restarts = True

    def unplug(self) -> None:
        """The cable is out: nothing gets through, and neither side is told."""
        self.cable.unplug()

    def plug(self) -> None:
        self.cable.plug()


def _is_adbd(process: Process) -> bool:
    return process.argv[-1] == f"/{_APEX}/bin/adbd"
