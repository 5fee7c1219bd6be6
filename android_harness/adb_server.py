"""The adb server: where it is, how it is started when none runs, and what it knows of phones."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from android_harness.adb_wire import Connection, NoServer, ServerAddress
from orchestrator.clock import Deadline
from orchestrator.errors import DevbenchError, DeviceError, DeviceLost, HostError, SettingsError

_PORT = 5037
_STARTING = threading.Lock()
"""Many devices open at once; one of them starts the server."""


def server_address(asked: str | None, environment: Mapping[str, str] = os.environ) -> ServerAddress:
    """Where `adb_server` of devices.toml says, else where the environment says, in the order of adb itself."""
    if asked is not None:
        return _parsed(asked, "adb_server")
    if found := environment.get("ADB_SERVER_SOCKET"):
        if not found.startswith("tcp:"):
            raise _unreadable("ADB_SERVER_SOCKET", found)
        place = found.removeprefix("tcp:")
        return _parsed(place if ":" in place else f"localhost:{place}", "ADB_SERVER_SOCKET")
    host = environment.get("ANDROID_ADB_SERVER_ADDRESS") or "localhost"
    port = environment.get("ANDROID_ADB_SERVER_PORT") or str(_PORT)
    return _parsed(f"{host}:{port}", "ANDROID_ADB_SERVER_PORT")


def _parsed(text: str, source: str) -> ServerAddress:
    host, _, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise _unreadable(source, text)
    # adb listens on the IPv4 loopback; trying ::1 first would cost a refused connection each time.
    return ServerAddress("127.0.0.1" if host == "localhost" else host, int(port))


def _unreadable(source: str, text: str) -> SettingsError:
    return SettingsError(
        f'{source}: "{text}" is no place of an adb server', remedy='write it as host:port, as in "lab3:5037"'
    )


@dataclass(frozen=True)
class AdbServer:
    """A server that others use too: it is never ended or restarted by us."""

    address: ServerAddress

    def connect(self, deadline: Deadline) -> Connection:
        return Connection(self.address, deadline)

    def query(self, service: str, deadline: Deadline) -> str:
        """The server's answer to a `host:` request."""
        with self.connect(deadline) as connection:
            connection.request(service.encode(), deadline)
            return connection.text(deadline)

    def states(self, deadline: Deadline) -> dict[str, str]:
        """The state of every phone it knows, by serial."""
        lines = self.query("host:devices", deadline).splitlines()
        return {serial: state for serial, _, state in (line.partition("\t") for line in lines) if state}

    def features(self, serial: str, deadline: Deadline) -> frozenset[str]:
        """What the server and this phone can both do."""
        return frozenset(self.query(f"host-serial:{serial}:features", deadline).split(","))

    def ensure_running(self, deadline: Deadline) -> None:
        """Use the one that runs; start one on this machine if there is none."""
        if self.is_running(deadline):
            return
        if not self.address.is_this_machine:
            raise self.unreachable()
        with _STARTING:
            if self.is_running(deadline):
                return
            adb = adb_program()
            if adb is None:
                raise HostError(
                    f"no adb server runs at {self.address}, and there is no adb to start one",
                    remedy="`pip install adbutils`, which brings adb, or install Android's platform-tools",
                )
            said = self._start(adb, deadline)
            if not self.is_running(deadline):
                raise self._cannot_start(adb, said)

    def unreachable(self) -> DevbenchError:
        """The error for a server that does not answer."""
        if self.address.is_this_machine:
            return DeviceLost(
                f"the adb server at {self.address} is gone", remedy="run again: devbench starts it when none runs"
            )
        return DeviceLost(
            f"no adb server answers at {self.address}",
            remedy="on that machine run `adb -a start-server`, and let this host through its firewall",
        )

    def is_running(self, deadline: Deadline) -> bool:
        """Whether somebody answers there."""
        try:
            self.connect(deadline.sooner(5.0)).close()
        except NoServer:
            return False
        return True

    def _start(self, adb: Path, deadline: Deadline) -> str:
        """What adb said while it started the server."""
        # A session of its own: Ctrl-C in our terminal must not end a server that others have come to use.
        try:
            done = subprocess.run(
                [str(adb), "-P", str(self.address.port), "start-server"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=deadline.left_s,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            raise self._cannot_start(adb, "it took too long") from error
        except OSError as error:
            raise self._cannot_start(adb, error.strerror or str(error)) from error
        return (done.stderr + done.stdout).decode("utf-8", "replace")

    def _cannot_start(self, adb: Path, said: str) -> HostError:
        detail = [line for line in said.splitlines() if line.strip()]
        return HostError(
            f"{adb} could not start a server at {self.address}" + (f": {detail[-1]}" if detail else ""),
            remedy=f"run `{adb} -P {self.address.port} start-server` and see what it says",
        )


def adb_program(path: str | None = None) -> Path | None:
    """The installed adb, else that of the adbutils wheel."""
    if found := shutil.which("adb", path=path):
        return Path(found)
    wheel = importlib.util.find_spec("adbutils")  # found, not imported: only its file is wanted
    if wheel is None or wheel.origin is None:
        return None
    program = Path(wheel.origin).parent / "binaries" / "adb"
    return program if program.exists() else None


def connection_refused(name: str, serial: str, said: str) -> DeviceError:
    """The error for a phone to which the server could not connect; `said` is what it answered."""
    reason = said.strip().rpartition(": ")[2] or "no reason given"
    return DeviceLost(
        f"{name} cannot be reached at {serial}: {reason}",
        remedy="check that it is on the network, and that `adb tcpip 5555` or wireless debugging is on",
    )
