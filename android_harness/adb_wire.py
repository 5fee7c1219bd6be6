"""A connection to an adb server: bytes and requests, every wait with a deadline.

Our own client and not adbutils': that one leaves TCP_NODELAY off (40 ms stalls), sleeps 20 ms per call, has timeouts
per receive or none at all, returns cut-off output as if it were whole, and hides why a push failed. What devbench
needs of the protocol is small. The adbutils wheel is still what brings the adb program.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from orchestrator.clock import Deadline

READABLE, WRITABLE = select.POLLIN, select.POLLOUT
_REQUEST_BYTES_MAX = 0xFFFF
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
"""The server holds a second small answer back until the first is acknowledged, which kernels delay by 40 ms; Linux can
be told not to, until the next time."""


class WireError(Exception):
    """What can happen to a connection. Callers within android_harness translate it; it never gets further."""


class NoServer(WireError):
    """Nobody listens where the server should be."""


class Refused(WireError):
    """The server or the phone said FAIL, and why."""


class LinkEnded(WireError):
    """The connection ended before everything was said."""


class Frozen(WireError):
    """The connection stands, but the phone behind it does not answer."""


class Overdue(WireError):
    """The deadline passed first."""


@dataclass(frozen=True)
class ServerAddress:
    """Where an adb server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_this_machine(self) -> bool:
        return self.host in ("localhost", "127.0.0.1", "::1")


class Connection:
    """One socket to the server. It never blocks by itself: all waiting is done by `waiter`."""

    def __init__(self, address: ServerAddress, deadline: Deadline) -> None:
        self.waiter: Waiter = wait_plainly
        self.on_close: Callable[[], None] = lambda: None
        try:
            self._socket = socket.create_connection((address.host, address.port), max(0.01, deadline.left_s))
        except OSError as error:
            raise NoServer(error.strerror or str(error)) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.on_close()
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send_some(self, content: memoryview) -> int:
        """Send what fits now; how many bytes that was."""
        try:
            return self._socket.send(content)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise LinkEnded(error.strerror or str(error)) from error

    def receive_some(self, limit: int) -> bytes | None:
        """What is there now: None when nothing, empty at the end."""
        try:
            chunk = self._socket.recv(limit)
            if _QUICKACK is not None:
                self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        except BlockingIOError:
            return None
        except OSError as error:
            raise LinkEnded(error.strerror or str(error)) from error
        return chunk

    def wait(self, events: int, deadline: Deadline) -> int:
        """Which of the events are ready; Overdue when the deadline passed, even if there is always more to come."""
        ready = self.waiter(self, events, deadline)
        if not ready or deadline.passed:
            raise Overdue
        return ready

    def send(self, content: bytes, deadline: Deadline) -> None:
        """Send all of it."""
        rest = memoryview(content)
        while rest:
            self.wait(WRITABLE, deadline)
            rest = rest[self.send_some(rest) :]

    def receive(self, limit: int, deadline: Deadline) -> bytes:
        """The next bytes; empty at the end."""
        while (chunk := self.receive_some(limit)) is None or deadline.passed:
            self.wait(READABLE, deadline)
        return chunk

    def exactly(self, count: int, deadline: Deadline) -> bytes:
        """So many bytes, or LinkEnded."""
        received = bytearray()
        while len(received) < count:
            chunk = self.receive(count - len(received), deadline)
            if not chunk:
                raise LinkEnded(f"{len(received)} of {count} bytes")
            received += chunk
        return bytes(received)

    def rest(self, deadline: Deadline) -> bytes:
        """Everything up to the end."""
        received = bytearray()
        while chunk := self.receive(1 << 16, deadline):
            received += chunk
        return bytes(received)

    def request(self, service: bytes, deadline: Deadline) -> None:
        """Ask for a service and wait until it is granted; Refused says why it is not."""
        self.begin(service, deadline)
        self.granted(deadline)

    def begin(self, service: bytes, deadline: Deadline) -> None:
        """Ask for a service."""
        if len(service) > _REQUEST_BYTES_MAX:
            raise Refused(f"a command line of {len(service)} bytes is longer than adb carries ({_REQUEST_BYTES_MAX})")
        self.send(b"%04x" % len(service) + service, deadline)

    def granted(self, deadline: Deadline) -> None:
        """Wait until what was asked for is granted."""
        status = self.exactly(4, deadline)
        if status == b"FAIL":
            raise Refused(self.text(deadline))
        if status != b"OKAY":
            raise LinkEnded(f"this is no adb server: it said {status!r}")

    def text(self, deadline: Deadline) -> str:
        """A text that the server sends with its length before it."""
        length = self.exactly(4, deadline)
        with contextlib.suppress(ValueError):
            return self.exactly(int(length, 16), deadline).decode("utf-8", "replace")
        raise LinkEnded(f"this is no adb server: it said {length!r}")


Waiter = Callable[[Connection, int, Deadline], int]
"""Waits for events of a connection: those that are ready, or 0 when the deadline passed first."""


def wait_plainly(connection: Connection, events: int, deadline: Deadline) -> int:
    return wait_for_any({connection: events}, deadline).get(connection, 0)


def wait_for_any(wanted: dict[Connection, int], deadline: Deadline) -> dict[Connection, int]:
    """The connections of which something is ready, and what; none when the deadline passed first."""
    poll = select.poll()
    by_number = {connection.fileno(): connection for connection in wanted}
    for connection, events in wanted.items():
        poll.register(connection, events)
    # Rounded up: a wait that ends a fraction of a millisecond too early would spin until the deadline.
    found = poll.poll(int(deadline.left_s * 1000) + (not deadline.passed))
    return {by_number[number]: events for number, events in found}
