"""The way to one phone: services of its daemon, short questions, and what their failures mean."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from android_harness.adb_server import AdbServer
from android_harness.adb_watchdog import Pulse, Watchdog
from android_harness.adb_wire import Connection, Frozen, LinkEnded, NoServer, Overdue, Refused
from orchestrator.clock import Deadline
from orchestrator.errors import CommandTimeout, DeviceError, DeviceLost, DeviceUnfit
from orchestrator.transports.base import Patience

_RESUME = "reconnect it, then `devbench run --resume`"


@dataclass(frozen=True)
class Answer:
    """What a short command said, standard error included."""

    status: int
    text: str


@dataclass(frozen=True)
class AdbLink:
    """A phone behind a server. Every call opens a connection of its own, so nothing is left over when one dies."""

    name: str
    server: AdbServer
    serial: str
    patience: Patience = field(default=Patience())

    def open(self, service: bytes, deadline: Deadline) -> Connection:
        """A connection to a service of the phone's daemon, watched from now on."""
        connection = self.server.connect(deadline)
        try:
            self._choose_phone(connection, deadline)
            watchdog = Watchdog(self._pulse, self.patience)
            connection.waiter, connection.on_close = watchdog.wait, watchdog.close
            connection.request(service, deadline)
        except BaseException:
            connection.close()
            raise
        return connection

    def _choose_phone(self, connection: Connection, deadline: Deadline) -> None:
        # This much is between us and the server; it answers at once whatever the phone does.
        connection.request(f"host:transport:{self.serial}".encode(), deadline)

    def _pulse(self, due: Deadline) -> Pulse:
        connection = self.server.connect(due)
        nonce = secrets.token_hex(8).encode()
        try:
            self._choose_phone(connection, due)
            connection.begin(b"exec:echo " + nonce, due)
        except Overdue as error:
            connection.close()
            raise Frozen from error
        except BaseException:
            connection.close()
            raise
        return Pulse(connection, nonce, due)

    def ask(self, script: str, deadline: Deadline) -> Answer:
        """Run a line of shell on the phone; quoting is the caller's. LinkEnded when the answer is not whole."""
        nonce = secrets.token_hex(8)
        # `exec:` and not `shell:`: no terminal on any release, and the status travels in the text.
        service = f"exec:( {script}\n) </dev/null 2>&1; echo {nonce} $?"
        with self.open(service.encode("utf-8", "surrogateescape"), deadline) as connection:
            said = connection.rest(deadline).decode("utf-8", "surrogateescape")
        text, found, status = said.rpartition(nonce)
        if not found or not status.strip().isdigit():
            raise LinkEnded("the answer was cut off")
        return Answer(int(status), text)

    def answers(self, deadline: Deadline) -> bool:
        """Whether the phone echoes in time."""
        try:
            self.ask(":", deadline)
        except (NoServer, Refused, LinkEnded, Frozen, Overdue):
            return False
        return True

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn what happens to connections into what happened to the phone."""
        try:
            yield
        except NoServer as error:
            raise self.server.unreachable() from error
        except Refused as error:
            raise self.refusal(str(error)) from error
        except LinkEnded as error:
            raise DeviceLost(f"{self.name} went away", remedy=_RESUME) from error
        except Frozen as error:
            raise DeviceLost(
                f"{self.name} is connected but no longer answers",
                remedy="unplug it and plug it in again, or restart it; then `devbench run --resume`",
            ) from error
        except Overdue as error:
            raise CommandTimeout(
                f"{self.name} did not answer in time", remedy="check the connection; a slow link needs more time"
            ) from error

    def refusal(self, reason: str) -> DeviceError:
        """What the server's reason for not reaching the phone means."""
        if "unauthorized" in reason or "authorizing" in reason:
            return unauthorized(self.name)
        if "permissions" in reason:
            return no_permissions(self.name, reason)
        if "not found" in reason or "offline" in reason or "closed" in reason:
            return DeviceLost(f"{self.name} went away ({reason.splitlines()[0]})", remedy=_RESUME)
        if "command line" in reason:
            return DeviceUnfit(f"{self.name}: {reason}", remedy="use shorter names or fewer arguments")
        return DeviceLost(f"{self.name} refused: {reason}", remedy=_RESUME)


def unauthorized(name: str) -> DeviceError:
    return DeviceUnfit(
        f"{name} has not allowed this host to debug it",
        remedy='unlock the phone and accept "Allow USB debugging?"; tick "Always allow from this computer"',
    )


def no_permissions(name: str, reason: str) -> DeviceError:
    return DeviceUnfit(
        f"{name} is plugged in, but this user may not open it: {reason.partition('; see')[0].strip()}",
        remedy="install the package android-sdk-platform-tools-common (udev rules), plug the phone in again",
    )
