"""A command under way on a board."""

from __future__ import annotations

import select
import signal
from collections.abc import Sequence
from typing import BinaryIO

import paramiko

from orchestrator.clock import Deadline
from orchestrator.errors import DeviceError, DeviceUnfit
from orchestrator.transports import ssh_shell
from orchestrator.transports.posix_shell import CANNOT_START, exit_of
from orchestrator.transports.remote_commands import cannot_start, left_early, too_late
from orchestrator.transports.ssh_connect import BROKEN
from orchestrator.transports.ssh_link import SshLink, end

STDERR_KEPT = 16 * 1024
_CHUNK = 4 << 20
"""More than a window holds: taking all of it at once spares moving the rest."""
_PACKET = 32 * 1024
"""What fits into one packet of every server."""
_WINDOW_LOOK_S = 0.02
_KILL_S = 10.0
_LAST_WORDS_S = 2.0


class SshProcess:
    """One command in one session; `stderr_kept` bounds what is remembered of its standard error."""

    def __init__(
        self, link: SshLink, argv: Sequence[str], deadline: Deadline, *, stderr_kept: int | None = STDERR_KEPT
    ) -> None:
        self._link = link
        self._argv = argv
        self._stderr_kept = stderr_kept
        self._opening = ssh_shell.Opening()
        self._stdout, self._stderr = bytearray(), bytearray()
        self._outgoing = bytearray()
        self._input_open = True
        self._was_killed = False
        self._status: int | None = None
        line = link.dialect.line(ssh_shell.program(argv, self._opening, leads=link.dialect.leads))
        self._session: paramiko.Channel | None = link.execute(line, deadline)
        self._arrivals = select.poll()
        self._arrivals.register(self._session.fileno(), select.POLLIN)

    @property
    def group(self) -> int | None:
        """The process that a kill would take with its group; None before it has said so."""
        return self._opening.group

    @property
    def has_ended(self) -> bool:
        """Nothing of it is left to wait for."""
        return self._session is None

    @property
    def at_end(self) -> bool:
        return self._session is None and not self._stdout

    @property
    def stderr_tail(self) -> bytes:
        return bytes(self._stderr)

    def receive(self, deadline: Deadline) -> bytes:
        while self._session and (self._opening.group is None or not self._stdout):
            if not self._pump(deadline):
                return b""
        output = bytes(self._stdout)
        self._stdout.clear()
        return output

    def _pump(self, deadline: Deadline) -> bool:
        """Carry bytes both ways, once; False when the deadline passed first."""
        assert self._session
        self._send_some()
        if self._take_output():
            return True
        wait = deadline.sooner(_WINDOW_LOOK_S) if self._outgoing else deadline
        if self._session.eof_received:  # from here on there is always something to read: the end
            return self._session.status_event.wait(wait.left_s) or not deadline.passed
        # Rounded up, or the last millisecond is spent in a busy loop.
        return bool(self._arrivals.poll(1000 * wait.left_s + 1)) or not deadline.passed

    def _take_output(self) -> bool:
        """Whether something came; the end counts."""
        session = self._session
        assert session
        came = False
        has_all_come = session.eof_received or session.closed  # asked before the last bytes are taken
        while session.recv_stderr_ready():
            came = True
            self._stderr += session.recv_stderr(_CHUNK)
            if self._stderr_kept is not None:
                del self._stderr[: -self._stderr_kept]
        if session.recv_ready():
            came = True
            self._stdout += session.recv(_CHUNK)
            if self._opening.group is None:
                self._opening.feed(self._stdout)
        elif has_all_come and session.exit_status_ready():
            self._end(session)
            came = True
        return came

    def _end(self, session: paramiko.Channel) -> None:
        """The command has ended, or the connection has: only the first comes with a status."""
        status = session.exit_status
        was_alive = self._link.is_alive(session)
        self._let_go()
        if status == -1 and not was_alive and not self._was_killed:
            raise self._link.lost(session)
        # Without a status the shell itself was killed; only SIGKILL does that to a group.
        self._status = 128 + signal.SIGKILL if status == -1 else status
        self._check_start()

    def _check_start(self) -> None:
        """DeviceUnfit where the login shell never came to the command."""
        if self._opening.group is None and not self._was_killed:
            said = self._opening.noise_text(bytes(self._stdout) + b"\n" + self._stderr)
            self._stdout.clear()
            raise DeviceUnfit(
                f"the login shell on {self._link.name} does not run commands" + (f"; it says: {said}" if said else ""),
                remedy="log in by hand and try `true`; give this user a shell, or set user in devices.toml",
            )

    def send(self, content: bytes) -> None:
        """What the server cannot take now goes out while somebody waits for output."""
        if self._session and self._input_open:
            self._outgoing += content
            self._send_some()

    def close_input(self) -> None:
        if self._session and self._input_open:
            self._input_open = False
            self._send_some()

    def _send_some(self) -> None:
        session = self._session
        if session is None or session.eof_sent:
            return
        try:
            while self._outgoing and session.send_ready():
                sent = session.send(bytes(self._outgoing[:_PACKET]))
                del self._outgoing[:sent]
            if not self._outgoing and not self._input_open:
                session.shutdown_write()
        except BROKEN:  # it has ended; whoever waits for output is told
            self._outgoing.clear()

    def pour(self, content: BinaryIO, deadline: Deadline) -> None:
        """Send a file as standard input, and close it, with no look at the output before it is all sent."""
        session = self._session
        assert session
        try:
            while chunk := content.read(_PACKET):
                session.settimeout(max(0.001, deadline.left_s))
                rest = memoryview(chunk)
                while rest:
                    count = session.send(bytes(rest) if len(rest) < len(chunk) else chunk)
                    rest = rest[count:]
        except TimeoutError:
            raise self.overdue() from None
        except BROKEN:  # it has ended before its input has; its status says why
            pass
        self.close_input()

    def wait(self, deadline: Deadline) -> int:
        """Output that comes meanwhile can still be received."""
        while self._session:
            if not self._pump(deadline):
                raise self.overdue()
        return self.exit

    @property
    def exit(self) -> int:
        """How it ended. DeviceUnfit when it could not be started, DeviceLost when nobody knows."""
        if self._was_killed:
            return -signal.SIGKILL
        if self._status is None:
            raise left_early(self._argv[0], self._link.name)
        mark = self._opening.nonce.encode() + b"\n"
        if self._stderr.endswith(mark):
            del self._stderr[-len(mark) :]
            # Some shells also come back from exec of a command that is built in, with that command's status.
            if self._status in CANNOT_START:
                raise cannot_start(self._argv[0], self._link.name, self._status, self.stderr_tail)
        return exit_of(self._status)

    def overdue(self) -> DeviceError:
        """Kill it because its time is over; the error says whether the board still heard us."""
        return too_late(self._argv[0], self._link.name, was_killed=self._kill_on_board())

    def kill(self) -> None:
        """A board that cannot be reached is left to the agent there, which dies without its host."""
        if self._session:
            self._kill_on_board()

    def _kill_on_board(self) -> bool:
        """Whether the board heard. Killed by its group, in a session of its own; then the old one is closed."""
        deadline = Deadline.after(_KILL_S)
        try:
            while self._session and self._opening.group is None and self._pump(deadline):
                pass
            group = self._opening.group
            if self._session and group is not None and self._link.is_alive(self._session):
                self._link.kill(group, deadline)
                self._was_killed = True
                self._hear_last_words()
            return self._was_killed or self._session is None  # the second: it ended by itself meanwhile
        except DeviceError:
            return False
        finally:
            self._let_go()

    def _hear_last_words(self) -> None:
        """Wait for the server to report the end: then it is one."""
        deadline = Deadline.after(_LAST_WORDS_S)
        while self._session and self._pump(deadline):
            self._stdout.clear()

    def _let_go(self) -> None:
        if self._session:
            end(self._session)
            self._session = None
