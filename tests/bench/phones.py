"""Virtual phones for figures: the same that the tests use, behind a private adb server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.devices.adb_server import AdbServer
from tests.devices.virtual_phone import PhoneRack, VirtualPhone, why_not


@contextmanager
def virtual_phones(count: int) -> Iterator[tuple[AdbServer, list[VirtualPhone]]]:
    """So many phones, connected."""
    reason = why_not()
    if reason is not None:
        raise SystemExit(reason)
    server = AdbServer.start()
    try:
        with PhoneRack() as rack:
            phones = rack.start_many(count)
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(server.connect, phones))
            yield server, phones
    finally:
        server.stop()
