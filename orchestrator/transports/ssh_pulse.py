"""Notices a board that no longer answers, whoever waits for it and for what."""

from __future__ import annotations

import threading

import paramiko
from paramiko.packet import Packetizer

from orchestrator.clock import SYSTEM
from orchestrator.transports.base import Patience

_QUESTION = "keepalive@openssh.com"
"""Every server answers it, most of them with a refusal; either proves that it is there."""


class Hearing(Packetizer):
    """Reads packets as its parent does, and knows when the last one came."""

    heard_s = 0.0

    def read_message(self) -> tuple[int, paramiko.Message]:
        message = super().read_message()
        self.heard_s = SYSTEM.monotonic_s()
        return message


class Pulse:
    """Asks a silent board for a sign of life, and closes the connection when none comes: all who wait then know.

    paramiko's own keepalive asks for no answer, and TCP takes a quarter of an hour to give up on a cut cable.
    """

    def __init__(self, transport: paramiko.Transport, patience: Patience) -> None:
        self._transport = transport
        self._patience = patience
        self._ended = threading.Event()
        self._asked_at_s: float | None = None
        self.is_frozen = False
        """The board was still connected when it stopped answering."""
        self._watcher = threading.Thread(target=self._watch, name="ssh pulse", daemon=True)
        self._watcher.start()

    @property
    def _silence_s(self) -> float:
        return SYSTEM.monotonic_s() - self._transport.packetizer.heard_s  # type: ignore[attr-defined, no-any-return] # a Hearing

    def _watch(self) -> None:
        silence_s, echo_s = self._patience.silence_s, self._patience.echo_s
        while not self._ended.wait(min(silence_s, echo_s) / 4) and self._transport.is_active():
            if self._silence_s < silence_s:
                self._asked_at_s = None
            elif self._asked_at_s is None:
                self._asked_at_s = SYSTEM.monotonic_s()
                # The answer is waited for without end, until the connection is closed; so in a thread of its own.
                threading.Thread(target=self._ask, name="ssh question", daemon=True).start()
            elif SYSTEM.monotonic_s() - self._asked_at_s > echo_s:
                self.is_frozen = True
                self._transport.close()

    def _ask(self) -> None:
        try:
            self._transport.global_request(_QUESTION, wait=True)
        except (paramiko.SSHException, OSError, EOFError):  # the connection has just ended, which the watcher sees
            return

    def end(self) -> None:
        self._ended.set()
