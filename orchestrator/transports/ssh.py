"""The ssh transport: an embedded Linux board, or anything else that runs an ssh server, as a device."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from orchestrator.clock import Deadline
from orchestrator.errors import DeviceUnfit, HostError
from orchestrator.fleet import AddressKeys, Device
from orchestrator.transports.base import Completed, Patience, Process, Transport
from orchestrator.transports.remote_commands import run_to_end

if TYPE_CHECKING:
    from orchestrator.transports.ssh_link import SshLink
    from orchestrator.transports.ssh_process import SshProcess
    from orchestrator.transports.ssh_route import Route

_START_S = 30.0


class SshKind:
    """Registers boards by host name, address or Host of ~/.ssh/config."""

    address_keys: ClassVar[AddressKeys] = {
        "host": str,
        "port": int,
        "user": str,
        "key": str,
        "host_key": str,
        "passphrase_env": str,
        "password_env": str,
        "python": str,
        "gateway": str,
        "udid": str,
        "app": str,
    }

    def identity(self, device: Device) -> str:
        """Phones behind one Mac have its address, and are told apart by their udid."""
        udid = device.address.get("udid")
        return _route(device).identity + (f"/{udid}" if udid else "")

    def platform_name(self, device: Device) -> str | None:
        return "ios" if "gateway" in device.address else "linux"

    def default_workdir(self, device: Device) -> str:
        """On disk, executable and there on nearly every Linux; /tmp is often memory, and a home often missing."""
        user = re.sub(r"[^A-Za-z0-9._-]+", "_", _route(device).hops[-1].user)
        return f"/var/tmp/devbench-{user}"

    def cores(self, device: Device) -> int | None:
        return None

    def machine(self, device: Device) -> str | None:
        return None

    def python(self, device: Device) -> str:
        return str(device.address.get("python", "python3"))

    def attached(self, deadline: Deadline) -> Sequence[Mapping[str, str | int]]:
        """None: that a host could be reached does not make it a board to be measured."""
        return ()

    def open(self, device: Device, *, deadline: Deadline) -> Transport:
        return open_board(device, deadline, Patience())


SSH = SshKind()


def _route(device: Device) -> Route:
    try:
        from orchestrator.transports.ssh_route import route_to
    except ImportError as error:
        raise HostError(
            f"{device.name} is reached over ssh, and paramiko is not installed here ({error})",
            remedy="install it: pip install 'devbench[ssh]'",
        ) from error
    return route_to(device)


def open_board(device: Device, deadline: Deadline, patience: Patience) -> SshTransport:
    """A board that answers, watched with this patience."""
    route = _route(device)
    from orchestrator.transports.ssh_greeting import greet
    from orchestrator.transports.ssh_link import SshLink

    link = SshLink(route, patience)
    try:
        default = SSH.default_workdir(device)
        greeting = greet(link, default, deadline)
        if greeting.workdir_is_foreign and device.workdir is None:
            raise DeviceUnfit(
                f"{device.name}: {default} belongs to another user",
                remedy="remove it, or set workdir in devices.toml to a folder of your own",
            )
    except BaseException:
        link.close()
        raise
    udid = device.address.get("udid")
    return SshTransport(link, f"udid {udid}" if udid else greeting.hardware_id)


class SshTransport:
    """Runs commands and copies files on a board."""

    def __init__(self, link: SshLink, hardware_id: str | None) -> None:
        from orchestrator.transports.ssh_files import SshFiles

        self._link = link
        self._files = SshFiles(link)
        self._started: list[SshProcess] = []
        self.hardware_id = hardware_id

    def run(self, argv: Sequence[str], *, deadline: Deadline, content: bytes = b"") -> Completed:
        return run_to_end(self._start(argv, deadline, stderr_kept=None), content, deadline)

    def start(self, argv: Sequence[str]) -> Process:
        process = self._start(argv, Deadline.after(_START_S))
        self._started = [known for known in self._started if not known.has_ended]
        self._started.append(process)
        return process

    def _start(self, argv: Sequence[str], deadline: Deadline, *, stderr_kept: int | None = 16 * 1024) -> SshProcess:
        from orchestrator.transports.ssh_process import SshProcess

        return SshProcess(self._link, argv, deadline, stderr_kept=stderr_kept)

    def push(self, source: Path, target: str, *, deadline: Deadline, executable: bool = False) -> None:
        self._files.push(source, target, deadline, executable=executable)

    def pull(self, source: str, target: Path, *, deadline: Deadline) -> None:
        self._files.pull(source, target, deadline)

    def close(self) -> None:
        for process in self._started:
            process.kill()
        self._started.clear()
        self._link.close()
