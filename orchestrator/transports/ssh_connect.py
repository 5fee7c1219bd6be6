"""One ssh connection to a board: over every hop, host keys verified, logged in, watched."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import paramiko
from paramiko.transport import Transport

from orchestrator.clock import SYSTEM, Deadline
from orchestrator.errors import CommandTimeout, DeviceError, DeviceLost, DeviceUnfit
from orchestrator.transports import ssh_host_keys
from orchestrator.transports.base import Patience
from orchestrator.transports.ssh_login import log_in
from orchestrator.transports.ssh_pulse import Hearing, Pulse
from orchestrator.transports.ssh_route import Hop, Route

_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr")
"""gcm first: it is twice as fast as paramiko's own first choice, which needs a MAC beside it."""
_BANNER_S = 15.0
_OPEN_S = 15.0
_STALE_S = 0.2
"""How long a server may take to notice that the last session has ended."""
_LOOK_S = 0.005
_REFUSED = (1, 2, 4)
"""Reasons for not opening a channel: prohibited, connect failed (MaxSessions says so), resource shortage."""

BROKEN = (paramiko.SSHException, OSError, EOFError)
"""What paramiko raises when the connection breaks in the middle of something, depending on what."""

logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)  # what it has to say comes as exceptions too


class Connection:
    """Sessions on one connection. `session` gives None where the server wants no further one at the same time."""

    def __init__(self, device: str, transports: list[Transport], patience: Patience) -> None:
        self._device = device
        self._transports = transports
        self._sessions: list[paramiko.Channel] = []
        self._pulse = Pulse(transports[-1], patience)

    @property
    def is_alive(self) -> bool:
        return self._transports[-1].is_active()

    def carries(self, session: paramiko.Channel) -> bool:
        return session.get_transport() is self._transports[-1]

    def session(self, deadline: Deadline) -> paramiko.Channel | None:
        """A fresh session; None when the server allows no more beside those that are open."""
        stale = deadline.sooner(_STALE_S)
        while True:
            self._sessions = [session for session in self._sessions if not session.closed]
            try:
                session = self._transports[-1].open_session(timeout=max(0.001, min(_OPEN_S, deadline.left_s)))
            except paramiko.ChannelException as error:
                if error.code not in _REFUSED:
                    raise DeviceLost(f"{self._device} opens no session: {error}", remedy="run again") from error
                if self._sessions or stale.passed:
                    return None
                deadline.clock.sleep(_LOOK_S)
            except BROKEN as error:
                raise self._no_session(deadline) from error
            else:
                self._sessions.append(session)
                return session

    @property
    def loss(self) -> DeviceLost:
        """What became of a connection that no longer stands."""
        fact = "is connected but no longer answers" if self._pulse.is_frozen else "went away"
        return DeviceLost(f"{self._device} {fact}", remedy="check its power and network, then `devbench run --resume`")

    def _no_session(self, deadline: Deadline) -> DeviceError:
        if not self.is_alive:
            return self.loss
        if deadline.passed:
            return CommandTimeout(
                f"{self._device} did not answer in time", remedy="check the connection; a slow link needs more time"
            )
        return DeviceLost(f"{self._device} is connected but opens no session", remedy="restart its ssh server")

    def close(self) -> None:
        self._pulse.end()
        _close(self._transports)


def _close(transports: list[Transport]) -> None:
    """From the far end to the near one."""
    for transport in reversed(transports):
        with contextlib.suppress(*BROKEN):
            transport.close()


def connect(route: Route, deadline: Deadline, patience: Patience) -> Connection:
    """A connection that stands, or a DeviceError that says which hop is in the way and why."""
    opened: list[Transport] = []
    try:
        for hop in route.hops:
            with _translated(route, hop, deadline):
                wire = _through(opened[-1], hop, deadline) if opened else _dial(hop, deadline)
                opened.append(_handshake(wire, hop, deadline))
                log_in(opened[-1], hop, deadline)
    except BaseException:
        _close(opened)
        raise
    return Connection(route.device, opened, patience)


def _dial(hop: Hop, deadline: Deadline) -> socket.socket:
    wire = socket.create_connection((hop.host, hop.port), timeout=max(0.001, deadline.left_s))
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return wire


def _through(previous: Transport, hop: Hop, deadline: Deadline) -> paramiko.Channel:
    return previous.open_channel(
        "direct-tcpip", (hop.host, hop.port), ("127.0.0.1", 0), timeout=max(0.001, deadline.left_s)
    )


def _handshake(wire: socket.socket | paramiko.Channel, hop: Hop, deadline: Deadline) -> Transport:
    """Agree on keys, and look at the host's before anything is told to it."""
    transport = Transport(wire, packetizer_class=Hearing)
    try:
        transport.packetizer.heard_s = SYSTEM.monotonic_s()  # type: ignore[attr-defined] # a Hearing
        transport.daemon = True
        transport.banner_timeout = min(_BANNER_S, deadline.left_s)
        known = ssh_host_keys.known_keys(hop)
        options = transport.get_security_options()
        options.ciphers = [name for name in _CIPHERS if name in options.ciphers]
        options.key_types = list(ssh_host_keys.preferred_types(known, tuple(options.key_types)))
        transport.start_client(timeout=max(0.001, deadline.left_s))
        ssh_host_keys.verify(transport.get_remote_server_key(), hop, known)
    except BaseException:
        transport.close()
        raise
    return transport


@contextmanager
def _translated(route: Route, hop: Hop, deadline: Deadline) -> Iterator[None]:
    """Turn what happens to sockets and handshakes into what is wrong with the way to the device."""
    name = route.device if hop is route.hops[-1] else f"{route.device}: the jump host"
    try:
        yield
    except socket.gaierror as error:
        raise DeviceLost(
            f"{name} cannot be found: {hop.host}: {error.strerror}",
            remedy="check host in devices.toml, and the network",
        ) from error
    except ConnectionRefusedError as error:
        raise DeviceLost(
            f"{name} is there, but nothing listens at {hop.address}", remedy="start its ssh server, or set port"
        ) from error
    except TimeoutError as error:
        raise DeviceLost(
            f"{name} does not answer at {hop.address}", remedy="check that it is switched on, and the network"
        ) from error
    except paramiko.ChannelException as error:
        raise DeviceLost(
            f"{route.device}: the jump host does not reach {hop.address}: {error.text}",
            remedy="log in to the jump host and try from there; it must allow AllowTcpForwarding",
        ) from error
    except paramiko.ssh_exception.IncompatiblePeer as error:
        raise DeviceUnfit(
            f"{name} at {hop.address} offers no algorithm that is still safe: {error}",
            remedy="bring its ssh server up to date",
        ) from error
    except BROKEN as error:
        reason = str(error) or type(error).__name__
        if deadline.passed:
            reason = "it did not answer in time"
        raise DeviceLost(
            f"{name} cannot be reached at {hop.address}: {reason}",
            remedy=f"check with `{hop.command}`; is that an ssh server?",
        ) from error
