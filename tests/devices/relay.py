"""A TCP relay between devbench and a board that can be cut, slowed and frozen."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

from orchestrator.clock import SYSTEM

_CHUNK = 16 * 1024


class Relay:
    """Carries connections to `port` on loopback; as a context it is gone afterwards."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.bytes_per_s: float | None = None
        self.cut_after: int | None = None
        """How many more bytes towards the board are carried before every connection is cut, once."""
        self.cuts = 0
        self.connections = 0
        self._flowing = threading.Event()
        self._flowing.set()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        _shut(self._listener)
        self.thaw()
        self.cut()

    def freeze(self) -> None:
        """Nothing passes any more, and nobody is told: a cable that was pulled."""
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    def cut(self) -> None:
        """Reset every connection."""
        self.cuts += 1
        for end in list(self._open):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            _shut(end)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.connections += 1
                try:
                    far = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    near.close()
                    continue
                self._open |= {near, far}
                threading.Thread(target=self._carry, args=(near, far, True), daemon=True).start()
                threading.Thread(target=self._carry, args=(far, near, False), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, towards_board: bool) -> None:
        try:
            while chunk := source.recv(_CHUNK):
                self._flowing.wait()
                if self.bytes_per_s:
                    SYSTEM.sleep(len(chunk) / self.bytes_per_s)
                if towards_board and self._is_used_up(len(chunk)):
                    return
                sink.sendall(chunk)
        except OSError:
            pass
        finally:
            # Not closed here: the other direction's thread may still use their numbers.
            _shut(source)
            _shut(sink)
            self._open -= {source, sink}

    def _is_used_up(self, count: int) -> bool:
        if self.cut_after is None:
            return False
        self.cut_after -= count
        if self.cut_after > 0:
            return False
        self.cut_after = None
        self.cut()
        return True


def _shut(end: socket.socket) -> None:
    """End a connection for everybody who waits on it; the garbage collector closes it when nobody does."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
