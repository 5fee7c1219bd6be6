"""Notices a phone that no longer answers, while somebody waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from android_harness.adb_wire import READABLE, Connection, Frozen, LinkEnded, wait_for_any
from orchestrator.clock import Deadline
from orchestrator.transports.base import Patience

_CLOSED = b"FAIL0006closed"


@dataclass
class Pulse:
    """A question under way: a command that prints `nonce`, on a connection of its own."""

    connection: Connection
    nonce: bytes
    due: Deadline
    heard: bytes = b""

    def listen(self) -> bool:
        """Whether the phone has answered; LinkEnded when it cannot any more."""
        chunk = self.connection.receive_some(4096)
        if chunk is None:
            return False
        self.heard += chunk
        # A phone that closes the stream instead is there too: it has said no.
        if self.nonce in self.heard or self.heard == _CLOSED:
            return True
        if not chunk or self.heard.startswith(b"FAIL"):
            raise LinkEnded(self.heard[8:].decode("utf-8", "replace") or "the phone did not echo")
        return False


class Watchdog:
    """Waits for a connection to a phone. A silent command is no dead link, so the phone is asked.

    adb shows a phone as `device` even when its daemon is frozen or the cable was cut in the middle of a transfer: only
    an answer proves that it is there.
    """

    def __init__(self, ask: Callable[[Deadline], Pulse], patience: Patience) -> None:
        self._ask = ask
        self._patience = patience
        self._pulse: Pulse | None = None
        self._quiet: Deadline | None = None

    def wait(self, connection: Connection, events: int, deadline: Deadline) -> int:
        """Events that are ready, 0 when the deadline passed first; Frozen when the phone does not answer either."""
        while True:
            ready = self._look(connection, events, deadline)
            if ready:
                self._quiet = None
                self._forget()
                return ready
            if self._pulse and self._pulse.due.passed:
                self._forget()
                raise Frozen
            if deadline.passed:
                return 0
            if self._quiet and self._quiet.passed and not self._pulse:
                self._pulse = self._ask(Deadline.after(self._patience.echo_s, deadline.clock))

    def _look(self, connection: Connection, events: int, deadline: Deadline) -> int:
        """Wait until there is something to decide."""
        self._quiet = self._quiet or Deadline.after(self._patience.silence_s, deadline.clock)
        wanted = {connection: events}
        if self._pulse:
            wanted[self._pulse.connection] = READABLE
        until = self._pulse.due if self._pulse else self._quiet
        found = wait_for_any(wanted, deadline.sooner(until.left_s))
        if self._pulse and self._pulse.connection in found and self._pulse.listen():
            self._forget()
            self._quiet = Deadline.after(self._patience.silence_s, deadline.clock)
        return found.get(connection, 0)

    def _forget(self) -> None:
        if self._pulse:
            self._pulse.connection.close()
            self._pulse = None

    def close(self) -> None:
        self._forget()
