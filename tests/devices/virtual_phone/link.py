"""One connection of an adb server to the phone: handshake, authentication and multiplexed streams."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NoReturn

from .auth import KeyRing
from .faults import Faults
from .wire import (
    AUTH,
    AUTH_PUBLIC_KEY,
    AUTH_SIGNATURE,
    AUTH_TOKEN,
    CLSE,
    CNXN,
    HEADER,
    OKAY,
    OPEN,
    VERSION_SKIP_CHECKSUM,
    WRTE,
    Message,
    NotAdb,
    unpack_header,
)


class LinkCut(Exception):
    """The connection to the host is gone."""


@dataclass(frozen=True)
class Identity:
    """What the phone says of itself in CNXN."""

    banner: bytes
    maxdata: int


class Stream:
    """One open service: bytes both ways, each message acknowledged before the next."""

    def __init__(self, link: Link, local: int, remote: int) -> None:
        self.link = link
        self.local = local
        self.remote = remote
        self._incoming: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._may_send = asyncio.Event()
        self._may_send.set()
        self.closed = False

    async def receive(self) -> bytes:
        """The next message's payload, acknowledged as it is taken; empty when the host has closed the stream."""
        if self.closed and self._incoming.empty():
            return b""
        payload = await self._incoming.get()
        if payload is None:
            return b""
        if not self.closed:
            await self.link.send(Message(OKAY, self.local, self.remote))
        return payload

    async def send(self, payload: bytes) -> None:
        """Sends all of it, in pieces that the host can take; LinkCut when the host has closed the stream."""
        for start in range(0, len(payload), self.link.maxdata):
            await self._may_send.wait()
            if self.closed:
                raise LinkCut("stream closed by the host")
            self._may_send.clear()
            piece = payload[start : start + self.link.maxdata]
            await self.link.send(Message(WRTE, self.local, self.remote, piece))

    async def flushed(self) -> None:
        """Returns when the host has acknowledged all that was sent."""
        await self._may_send.wait()

    async def close(self) -> None:
        """Tells the host that this is the end."""
        if not self.closed:
            self.ended()
            await self.link.send(Message(CLSE, self.local, self.remote))
        self.link.forget(self)

    def arrived(self, payload: bytes) -> None:
        self._incoming.put_nowait(payload)

    def acknowledged(self) -> None:
        self._may_send.set()

    def ended(self) -> None:
        """The host has closed the stream, or the link is gone."""
        self.closed = True
        self._incoming.put_nowait(None)
        self._may_send.set()


Service = Callable[[str, Stream], Awaitable[None]]


class Link:
    """The daemon's end of one TCP connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        identity: Identity,
        keys: KeyRing,
        faults: Faults,
        thawed: asyncio.Event,
        serve: Service,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._identity = identity
        self._keys = keys
        self._faults = faults
        self._thawed = thawed
        self._serve = serve
        self._streams: dict[int, Stream] = {}
        self._services: set[asyncio.Task[None]] = set()
        self._next_id = 1
        self._token = b""
        self._prompt: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()
        self.maxdata = identity.maxdata
        self.online = False

    async def run(self) -> None:
        """Serves until the connection ends, then ends all its services."""
        try:
            while True:
                await self._obey(await self._next_message())
        except (OSError, EOFError, NotAdb, LinkCut):
            pass  # whatever ends a link, the same follows
        finally:
            self._cut()
            for service in self._services:
                service.cancel()
            await asyncio.gather(*self._services, return_exceptions=True)

    def cut(self) -> None:
        """Cuts the connection as a pulled plug would, without a goodbye."""
        self._cut()

    async def strike(self, fault: str) -> NoReturn:
        """A scripted cut happens now; never returns."""
        if self._faults.cut_is_silent:
            self._thawed.clear()
            await asyncio.Event().wait()  # until the service is cancelled with its link
        self._cut()
        raise LinkCut(fault)

    def _cut(self) -> None:
        self.online = False
        if self._prompt is not None:
            self._prompt.cancel()
        for stream in self._streams.values():
            stream.ended()
        self._writer.transport.abort()

    async def send(self, message: Message) -> None:
        """Puts one message on the wire, at the link's speed."""
        async with self._sending:
            await self._thawed.wait()
            await self._take_time(len(message.payload))
            if self._writer.is_closing():
                raise LinkCut("link is gone")
            self._writer.write(message.packed())
            try:
                await self._writer.drain()
            except OSError as error:
                raise LinkCut(str(error)) from error

    async def _next_message(self) -> Message:
        command, arg0, arg1, length = unpack_header(await self._reader.readexactly(HEADER.size))
        payload = await self._reader.readexactly(length) if length else b""
        await self._thawed.wait()
        await self._take_time(length)
        return Message(command, arg0, arg1, payload)

    async def _take_time(self, length: int) -> None:
        seconds = self._faults.latency_s
        if self._faults.bytes_per_s is not None:
            seconds += (length + HEADER.size) / self._faults.bytes_per_s
        if seconds > 0:
            await asyncio.sleep(seconds)

    async def _obey(self, message: Message) -> None:
        if message.command == CNXN:
            await self._greet(message)
        elif message.command == AUTH:
            await self._authenticate(message)
        elif not self.online:
            raise LinkCut("not authorised")
        elif message.command == OPEN:
            await self._open(message)
        elif message.command in (OKAY, WRTE, CLSE):
            self._pass_on(message)

    async def _greet(self, message: Message) -> None:
        self.maxdata = min(self._identity.maxdata, message.arg1)
        for stream in list(self._streams.values()):
            stream.ended()
        if self._faults.offline:
            return
        if self._keys.required:
            await self._challenge()
        else:
            await self._accept()

    async def _challenge(self) -> None:
        self._token = os.urandom(20)
        await self.send(Message(AUTH, AUTH_TOKEN, 0, self._token))

    async def _accept(self) -> None:
        self.online = True
        await self.send(Message(CNXN, VERSION_SKIP_CHECKSUM, self._identity.maxdata, self._identity.banner))

    async def _authenticate(self, message: Message) -> None:
        if message.arg0 == AUTH_SIGNATURE:
            if self._keys.verify(self._token, message.payload):
                await self._accept()
            else:
                await self._challenge()
        elif message.arg0 == AUTH_PUBLIC_KEY and self._prompt is None:
            self._prompt = asyncio.create_task(self._ask_user(message.payload))

    async def _ask_user(self, public_key: bytes) -> None:
        # The dialog stands on the phone's screen; the host meanwhile shows "unauthorized".
        await self._keys.user_allows(public_key)
        with contextlib.suppress(LinkCut):
            await self._accept()

    async def _open(self, message: Message) -> None:
        name = message.payload.rstrip(b"\0").decode("utf-8", "surrogateescape")
        if name.startswith(self._faults.refused) and self._faults.refused:
            await self.send(Message(CLSE, 0, message.arg0))
            return
        stream = Stream(self, self._next_id, message.arg0)
        self._next_id += 1
        self._streams[stream.local] = stream
        service = asyncio.create_task(self._run_service(name, stream))
        self._services.add(service)
        service.add_done_callback(self._services.discard)

    async def _run_service(self, name: str, stream: Stream) -> None:
        try:
            await self._serve(name, stream)
        except LinkCut:
            self.forget(stream)
        else:
            with contextlib.suppress(LinkCut):
                await stream.flushed()
                await stream.close()

    async def accept(self, stream: Stream) -> None:
        """Tells the host that the service it opened exists."""
        await self.send(Message(OKAY, stream.local, stream.remote))

    async def refuse(self, stream: Stream) -> None:
        """Tells the host that there is no such service ("closed")."""
        stream.closed = True
        await self.send(Message(CLSE, 0, stream.remote))

    def forget(self, stream: Stream) -> None:
        self._streams.pop(stream.local, None)

    def _pass_on(self, message: Message) -> None:
        stream = self._streams.get(message.arg1)
        if stream is None:
            return
        if message.command == WRTE:
            stream.arrived(message.payload)
        elif message.command == OKAY:
            stream.acknowledged()
        else:
            stream.ended()
