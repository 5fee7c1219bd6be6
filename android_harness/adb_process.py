"""A command under way on a phone."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Sequence

from android_harness.adb_link import AdbLink
from android_harness.adb_shell import Dialect
from android_harness.adb_wire import READABLE, WRITABLE, Connection, LinkEnded, WireError
from orchestrator.clock import Deadline
from orchestrator.errors import DeviceError
from orchestrator.transports.posix_shell import exit_of, quoted
from orchestrator.transports.remote_commands import cannot_start, left_early, too_late

STDERR_KEPT = 16 * 1024
_CHUNK = 256 * 1024
_KILL_S = 5.0
_GROUP_S = 2.0
_LAST_WORDS_S = 1.0


class AdbProcess:
    """One command, on one connection; `stderr_kept` bounds what is remembered of its standard error."""

    def __init__(
        self,
        link: AdbLink,
        argv: Sequence[str],
        dialect: Dialect,
        deadline: Deadline,
        *,
        stderr_kept: int | None = STDERR_KEPT,
    ) -> None:
        self._link = link
        self._argv = argv
        self._dialect = dialect
        self._stderr_kept = stderr_kept
        self._outgoing = bytearray()
        self._input_open = True
        self._was_killed = False
        with link.translated():
            self._connection: Connection | None = link.open(dialect.service, deadline)

    @property
    def has_ended(self) -> bool:
        """Nothing of it is left to wait for."""
        return self._connection is None

    @property
    def at_end(self) -> bool:
        return self._connection is None and not self._dialect.stdout

    @property
    def stderr_tail(self) -> bytes:
        return bytes(self._dialect.stderr)

    def receive(self, deadline: Deadline) -> bytes:
        while self._output_is_due:
            with self._link.translated():
                if not self._pump(deadline):
                    return b""
        output = bytes(self._dialect.stdout)
        self._dialect.stdout.clear()
        return output

    @property
    def _output_is_due(self) -> bool:
        return self._connection is not None and (self._dialect.pid is None or not self._dialect.stdout)

    def send(self, content: bytes) -> None:
        """What the connection cannot take now goes out while somebody waits for output."""
        if self._connection is None or not self._input_open:
            return
        self._outgoing += self._dialect.input(content)
        self._send_some()

    def close_input(self) -> None:
        if self._connection is None or not self._input_open:
            return
        self._input_open = False
        self._outgoing += self._dialect.end_of_input()
        self._send_some()

    def _send_some(self) -> None:
        # A connection that broke is noticed, and told of, by whoever waits for output.
        with contextlib.suppress(LinkEnded):
            while self._connection and self._outgoing:
                sent = self._connection.send_some(memoryview(bytes(self._outgoing[:_CHUNK])))
                if not sent:
                    return
                del self._outgoing[:sent]

    def _pump(self, deadline: Deadline) -> bool:
        """Carry bytes both ways, once; False when the deadline passed first."""
        assert self._connection
        wanted = READABLE | (WRITABLE if self._outgoing else 0)
        try:
            ready = self._connection.waiter(self._connection, wanted, deadline)
        except WireError:
            self._let_go()
            raise
        if not ready:
            return False
        if ready & WRITABLE:
            self._send_some()
        if ready & ~WRITABLE:
            self._take_output()
        return True

    def _take_output(self) -> None:
        assert self._connection
        try:
            chunk = self._connection.receive_some(_CHUNK)
            if chunk is None:
                return
            self._dialect.feed(chunk)
            if self._stderr_kept is not None:
                del self._dialect.stderr[: -self._stderr_kept]
            if self._dialect.status is not None:
                self._let_go()
            elif not chunk:
                raise LinkEnded("the output ended before the command did")
        except WireError:
            self._let_go()
            raise

    def wait(self, deadline: Deadline) -> int:
        """Output that comes meanwhile can still be received."""
        while self._connection:
            with self._link.translated():
                if not self._pump(deadline):
                    raise self.overdue()
        return self.exit

    @property
    def exit(self) -> int:
        """How it ended. DeviceUnfit when it could not be started, DeviceLost when nobody knows."""
        if self._dialect.status is None and self._was_killed:
            return -signal.SIGKILL
        if self._dialect.status is None:
            raise left_early(self._argv[0], self._link.name)
        if not self._dialect.has_started:
            raise cannot_start(self._argv[0], self._link.name, self._dialect.status, self.stderr_tail)
        return exit_of(self._dialect.status)

    def overdue(self) -> DeviceError:
        """Kill it because its time is over; the error says whether the phone still heard us."""
        return too_late(self._argv[0], self._link.name, was_killed=self._kill_on_phone())

    def kill(self) -> None:
        """A phone that cannot be reached is left to the agent there, which dies without its host."""
        if self._connection:
            self._kill_on_phone()

    def _kill_on_phone(self) -> bool:
        """Whether the phone heard. Killed by its group, over a connection of its own; then the old one is closed."""
        try:
            group = self._group()
            if self._connection and group is None:  # it never started; the daemon ends it with the connection
                return self._link.answers(Deadline.after(_KILL_S))
            if self._connection:
                clean_up = f"; rm -f {quoted([self._dialect.traces])}" if self._dialect.traces else ""
                self._link.ask(f"kill -9 -{group} || kill -9 {group}{clean_up}", Deadline.after(_KILL_S))
                self._was_killed = True
                self._hear_last_words()
        except WireError:
            return False
        finally:
            self._let_go()
        return True

    def _group(self) -> int | None:
        """The process group on the phone, waited for a little: it is the first thing that comes."""
        deadline = Deadline.after(_GROUP_S)
        while self._connection and self._dialect.pid is None and self._pump(deadline):
            pass
        return self._dialect.pid

    def _hear_last_words(self) -> None:
        """Wait for the daemon to report the end: then it is one."""
        deadline = Deadline.after(_LAST_WORDS_S)
        with contextlib.suppress(LinkEnded):
            while self._connection and self._pump(deadline):
                self._dialect.stdout.clear()

    def _let_go(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None
