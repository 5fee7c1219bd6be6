"""The phone's adbd: listens, and gives each service that a host opens to the one who serves it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path

from .auth import KeyRing
from .body import Body
from .faults import Faults
from .link import Identity, Link, Stream
from .profile import Profile
from .rootfs import replace_text
from .sandbox import Sandbox
from .shell import ShellRequest, ShellService
from .storage import PhoneFiles
from .sync import SyncService

_BEAT_S = 0.2
#: What a phone's adbd gives to commands.
ENVIRONMENT = {
    "PATH": "/product/bin:/apex/com.android.runtime/bin:/system/bin:/system/xbin:/vendor/bin",
    "ANDROID_ROOT": "/system",
    "ANDROID_DATA": "/data",
    "EXTERNAL_STORAGE": "/sdcard",
    "HOME": "/",
    "HOSTNAME": "localhost",
    "LOGNAME": "shell",
    "SHELL": "/system/bin/sh",
    "TMPDIR": "/data/local/tmp",
    "USER": "shell",
}


class Daemon:
    """Everything of one phone that lives in the event loop."""

    def __init__(
        self,
        *,
        phone_dir: Path,
        profile: Profile,
        serial: str,
        faults: Faults,
        keys: KeyRing,
        sandbox: Sandbox,
        clock: Callable[[], float],
    ) -> None:
        self.phone_dir = phone_dir
        self.profile = profile
        self.faults = faults
        self.keys = keys
        self.sandbox = sandbox
        self.body = Body(phone_dir, profile, clock=clock, look=sandbox.processes)
        self.environment = dict(ENVIRONMENT)
        #: The names of all services that hosts have opened, in order.
        self.opened: list[str] = []
        self.port = 0
        self.thawed = asyncio.Event()
        self.thawed.set()
        self._serial = serial
        self._links: set[Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._commands = 0
        self._heart: asyncio.Task[None] | None = None

    # -- the link

    async def plug(self) -> None:
        """Listens, always on the same port."""
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=4 << 20)
            self.port = self._server.sockets[0].getsockname()[1]
            assert not 5555 <= self.port <= 5585, "adb servers would find it by themselves"

    def unplug(self) -> None:
        """Stops listening and cuts all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut_links()

    def cut_links(self) -> None:
        for link in list(self._links):
            link.cut()

    async def stop(self) -> None:
        """Ends everything."""
        self.thawed.set()
        self.unplug()
        if self._heart is not None:
            self._heart.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.sandbox.stop()

    @property
    def identity(self) -> Identity:
        props = self.profile.props(self._serial)
        shown = ("ro.product.name", "ro.product.model", "ro.product.device")
        words = [f"{name}={props[name]}" for name in shown] + [f"features={','.join(self.profile.features)}"]
        return Identity(banner=f"device::{';'.join(words)}".encode(), maxdata=self.profile.maxdata)

    def without_feature(self, name: str) -> None:
        """From the next connection on, the daemon does not offer this feature."""
        features = tuple(feature for feature in self.profile.features if feature != name)
        self.profile = dataclasses.replace(self.profile, features=features)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(
            reader,
            writer,
            identity=self.identity,
            keys=self.keys,
            faults=self.faults,
            thawed=self.thawed,
            serve=self._serve,
        )
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    # -- services

    async def _serve(self, name: str, stream: Stream) -> None:
        self.opened.append(name)
        kind = name.partition(":")[0].partition(",")[0]
        if kind in ("shell", "exec"):
            await self._shell(name, stream)
        elif name == "sync:":
            await stream.link.accept(stream)
            await SyncService(stream, PhoneFiles(self.sandbox.root_fd), self.faults).run()
        elif kind == "reboot":
            await stream.link.accept(stream)
            self.in_background(self.reboot(gone_s=2.0))
        elif kind in ("root", "unroot", "remount"):
            await stream.link.accept(stream)
            await stream.send(self._about_root(kind))
        else:
            await stream.link.refuse(stream)

    def _about_root(self, kind: str) -> bytes:
        if kind == "unroot":
            return b"adbd not running as root\n"
        if kind == "root":
            return b"adbd cannot run as root in production builds\n"
        return b'Not running as root. Try "adb root" first.\n'

    async def _shell(self, name: str, stream: Stream) -> None:
        request = ShellRequest.parse(name)
        if request.v2 and "shell_v2" not in self.profile.features:
            await stream.link.refuse(stream)
            return
        await stream.link.accept(stream)
        if self.faults.wedged is not None and self.faults.wedged.search(request.command):
            self.faults.strike("wedged")
            while await stream.receive():
                pass
            return
        with self._working():
            service = ShellService(stream, self.sandbox, self.faults, request=request, env=self.environment)
            await service.run(crlf=self.profile.crlf and not request.v2 and name.startswith("shell"))
        if (self.phone_dir / "state/reboot").exists():
            (self.phone_dir / "state/reboot").unlink()
            self.in_background(self.reboot(gone_s=2.0))

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """While a command runs, the heart beats."""
        self._commands += 1
        if self._heart is None:
            self._heart = asyncio.create_task(self._beat_while_working())
        try:
            yield
        finally:
            self._commands -= 1

    async def _beat_while_working(self) -> None:
        try:
            while self._commands:
                await asyncio.sleep(_BEAT_S)
                self.body.beat()
        finally:
            self._heart = None

    def in_background(self, work: Coroutine[None, None, None]) -> None:
        """Does something that nobody waits for; it ends with the phone at the latest."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- the whole phone

    async def reboot(self, *, gone_s: float, boot_s: float = 0.0) -> None:
        """Everything dies, /data and the settings stay. It is away for `gone_s`, then not fully booted for `boot_s`."""
        await asyncio.sleep(0.05)  # the answer to who asked gets out first
        self.unplug()
        self.sandbox.kill(-1)
        for file in (self.phone_dir / "state").glob("*_override*"):
            file.unlink()
        self.set_props({"sys.boot_completed": "", "debug.tflite.trace": ""})
        await asyncio.sleep(gone_s)
        self.body.beat()
        await self.plug()
        await asyncio.sleep(boot_s)
        self.set_props({"sys.boot_completed": "1"})

    def set_props(self, changed: Mapping[str, str]) -> None:
        """Changes properties, read-only ones too."""
        path = self.phone_dir / "state/props"
        props = dict(line.split("=", 1) for line in path.read_text().splitlines()) | dict(changed)
        replace_text(path, "".join(f"{name}={value}\n" for name, value in props.items()))
