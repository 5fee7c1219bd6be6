"""The adb transport: an Android phone as a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from android_harness.adb_connect import get_hold
from android_harness.adb_files import AdbFiles
from android_harness.adb_link import AdbLink
from android_harness.adb_process import AdbProcess
from android_harness.adb_server import AdbServer, server_address
from android_harness.adb_shell import Dialect, ExecV1, ShellV2
from orchestrator.clock import Deadline
from orchestrator.errors import SettingsError
from orchestrator.fleet import AddressKeys, Device
from orchestrator.transports.base import Completed, Patience, Process, Transport
from orchestrator.transports.remote_commands import run_to_end

_START_S = 30.0


class AdbKind:
    """Registers phones by serial, on this machine's adb server or on another's."""

    address_keys: ClassVar[AddressKeys] = {"serial": str, "adb_server": str}

    def identity(self, device: Device) -> str:
        return f"adb:{_server(device).address}/{_serial(device)}"

    def platform_name(self, device: Device) -> str | None:
        return "android"

    def default_workdir(self, device: Device) -> str:
        return "/data/local/tmp/devbench"

    def cores(self, device: Device) -> int | None:
        return None

    def machine(self, device: Device) -> str | None:
        return None

    def python(self, device: Device) -> str:
        """Phones have none; a runner that needs it fails there by this name."""
        return "python3"

    def attached(self, deadline: Deadline) -> Sequence[Mapping[str, str | int]]:
        """The phones this machine's adb server knows, whatever their state; none when no server runs."""
        server = AdbServer(server_address(None))
        return [{"serial": serial} for serial in server.states(deadline)] if server.is_running(deadline) else []

    def open(self, device: Device, *, deadline: Deadline) -> Transport:
        return open_phone(device, deadline, Patience())


ADB = AdbKind()


def open_phone(device: Device, deadline: Deadline, patience: Patience) -> AdbTransport:
    """A phone that answers, watched with this patience."""
    link = AdbLink(device.name, _server(device), _serial(device), patience)
    greeting = get_hold(link, deadline)
    with link.translated():
        features = link.server.features(link.serial, deadline)
    return AdbTransport(link, ShellV2 if "shell_v2" in features else ExecV1, greeting.hardware_id)


def _server(device: Device) -> AdbServer:
    asked = device.address.get("adb_server")
    return AdbServer(server_address(None if asked is None else str(asked)))


def _serial(device: Device) -> str:
    serial = str(device.address.get("serial", "")).strip()
    if not serial:
        raise SettingsError(
            f'device "{device.name}" has no serial', remedy='add serial = "…"; `adb devices -l` lists those attached'
        )
    return serial


class AdbTransport:
    """Runs commands and copies files on a phone.

    On phones before Android 7, which say neither status nor standard error apart, a script on the phone makes up for
    it (see adb_shell); there, standard error arrives when the command has ended.
    """

    def __init__(self, link: AdbLink, dialect: type[ShellV2] | type[ExecV1], hardware_id: str | None) -> None:
        self._link = link
        self._dialect = dialect
        self._files = AdbFiles(link)
        self._started: list[AdbProcess] = []
        self.hardware_id = hardware_id
        """The phone's own serial number, by which one phone under two addresses is recognised."""

    def run(self, argv: Sequence[str], *, deadline: Deadline, content: bytes = b"") -> Completed:
        return run_to_end(self._start(argv, deadline, stderr_kept=None), content, deadline)

    def start(self, argv: Sequence[str]) -> Process:
        process = self._start(argv, Deadline.after(_START_S))
        self._started = [known for known in self._started if not known.has_ended]
        self._started.append(process)
        return process

    def _start(self, argv: Sequence[str], deadline: Deadline, *, stderr_kept: int | None = 16 * 1024) -> AdbProcess:
        dialect: Dialect = self._dialect(argv)
        return AdbProcess(self._link, argv, dialect, deadline, stderr_kept=stderr_kept)

    def push(self, source: Path, target: str, *, deadline: Deadline, executable: bool = False) -> None:
        self._files.push(source, target, deadline, executable=executable)

    def pull(self, source: str, target: Path, *, deadline: Deadline) -> None:
        self._files.pull(source, target, deadline)

    def close(self) -> None:
        for process in self._started:
            process.kill()
        self._started.clear()
