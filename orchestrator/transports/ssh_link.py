"""The way to one board: one connection, made anew after a loss, and sessions on it."""

from __future__ import annotations

import contextlib

import paramiko

from orchestrator.clock import Deadline
from orchestrator.errors import DeviceLost, DeviceUnfit
from orchestrator.transports import ssh_shell
from orchestrator.transports.base import Patience
from orchestrator.transports.ssh_connect import BROKEN, Connection, connect
from orchestrator.transports.ssh_route import Route


class SshLink:
    """A board. Where its server allows one session at a time, a second one has a connection of its own."""

    def __init__(self, route: Route, patience: Patience) -> None:
        self.name = route.device
        self.dialect = ssh_shell.Dialect()
        self._route = route
        self._patience = patience
        self._connections: list[Connection] = []

    def execute(self, line: str, deadline: Deadline) -> paramiko.Channel:
        """A session in which the login shell runs the line."""
        session = self._session(deadline)
        try:
            session.settimeout(max(0.001, deadline.left_s))
            session.exec_command(line.encode("utf-8", "surrogateescape"))
        except BROKEN as error:
            end(session)
            if self.is_alive(session) and not deadline.passed:
                raise DeviceUnfit(
                    f"{self.name} lets this user in, but runs no commands for it",
                    remedy="see ForceCommand, internal-sftp and command= in authorized_keys on it; or set user",
                ) from error
            raise self.lost(session) from error
        return session

    def _session(self, deadline: Deadline) -> paramiko.Channel:
        for connection in [*self._connections]:
            if not connection.is_alive:
                self._connections.remove(connection)
                connection.close()
            elif session := connection.session(deadline):
                return session
        connection = connect(self._route, deadline, self._patience)
        self._connections.append(connection)
        if session := connection.session(deadline):
            return session
        raise DeviceUnfit(
            f"{self.name} lets this user in, but opens no session",
            remedy="see MaxSessions in its sshd_config: it must be 1 or more",
        )

    def is_alive(self, session: paramiko.Channel) -> bool:
        """Whether the connection that carries the session stands."""
        return session.get_transport().is_active()

    def lost(self, session: paramiko.Channel) -> DeviceLost:
        """What happened to a session that ended without saying how its command ended."""
        losses = (connection.loss for connection in self._connections if connection.carries(session))
        return next(losses, DeviceLost(f"{self.name} was let go", remedy="run again"))

    def kill(self, group: int, deadline: Deadline) -> None:
        """End a command, in a session of its own; DeviceError when the board could not be told."""
        script = ssh_shell.kill(group, leads=self.dialect.leads)
        session = self.execute(ssh_shell.login_line(script, self.dialect.shell), deadline)
        try:
            if not session.status_event.wait(deadline.left_s) or not self.is_alive(session):
                raise self.lost(session)
        finally:
            end(session)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        self._connections.clear()


def end(session: paramiko.Channel) -> None:
    """Close a session, whose connection may be gone already."""
    with contextlib.suppress(*BROKEN):
        session.close()
