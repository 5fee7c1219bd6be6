"""A private adb server: its own port, keys and log, so that nobody else's devices are touched."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .virtual_phone import VirtualPhone


class NoAdb(Exception):
    """There is no adb to run; the message says what to install."""


def adb_binary() -> Path:
    """The adb of the adbutils wheel."""
    try:
        import adbutils  # type: ignore[import-untyped]  # it has no types
    except ImportError as error:
        raise NoAdb("adbutils is not installed, and it brings adb: pip install adbutils") from error
    return Path(adbutils.__file__).parent / "binaries" / "adb"


@dataclass(frozen=True)
class AdbServer:
    """A running server and how to talk to it."""

    adb: Path
    port: int
    home: Path

    @classmethod
    def start(cls) -> AdbServer:
        """A fresh server on a port that nobody uses."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = cls(adb_binary(), port, Path(tempfile.mkdtemp(prefix="devbench-adb-")))
        server.run("start-server", timeout_s=60)
        return server

    def stop(self) -> None:
        """Ends the server and removes its traces."""
        self.run("kill-server")
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to talk to this server and no other."""
        return {
            **os.environ,
            "ANDROID_ADB_SERVER_PORT": str(self.port),
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "ADB_MDNS": "0",
        }

    def run(
        self, *words: str, stdin: bytes | None = None, timeout_s: float = 30.0
    ) -> subprocess.CompletedProcess[bytes]:
        """One adb command, without a shell of ours between."""
        return subprocess.run(
            [str(self.adb), *words],
            env=self.environment,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            input=stdin or b"",
        )

    def connect(self, phone: VirtualPhone) -> str:
        """Connects a phone and returns the serial under which this server knows it."""
        said = self.run("connect", phone.address).stdout.decode()
        assert "connected to" in said, said
        return phone.address

    def state(self, serial: str) -> str:
        """The state in `adb devices`, or "absent"."""
        for line in self.run("devices").stdout.decode().splitlines()[1:]:
            name, _, state = line.partition("\t")
            if name == serial:
                return state
        return "absent"
