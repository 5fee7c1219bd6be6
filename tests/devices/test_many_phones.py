"""Two hundred phones in one process, behind one adb server."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .adb_server import AdbServer
from .virtual_phone import FLAGSHIP, PhoneRack, VirtualPhone

COUNT = 200


def _rss_kb(pid: str = "self") -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def _request(server: AdbServer, *services: str) -> bytes:
    """What the server answers to services asked one after the other on one connection: adb without a process."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as link:
        for service in services:
            link.sendall(b"%04x%s" % (len(service), service.encode()))
            if link.recv(4, socket.MSG_WAITALL) != b"OKAY":
                return link.recv(4096)
        said = b""
        while chunk := link.recv(65536):
            said += chunk
        return said


def test_two_hundred_phones_answer(adb_server: AdbServer, rack: PhoneRack, capsys: pytest.CaptureFixture[str]) -> None:
    """All come up, connect and answer with what is theirs, in little memory and time."""
    rss_kb = _rss_kb()
    began = time.monotonic()
    phones = rack.start_many(COUNT, FLAGSHIP)
    up_s, rss_up_kb = time.monotonic() - began, _rss_kb() - rss_kb

    def connect(phone: VirtualPhone) -> bytes:
        return _request(adb_server, f"host:connect:{phone.address}")

    def echo(phone: VirtualPhone) -> bool:
        said = _request(adb_server, f"host:transport:{phone.address}", "shell:echo $(getprop ro.serialno)")
        return said.strip() == phone.serial.encode()

    try:
        with ThreadPoolExecutor(16) as pool:
            began = time.monotonic()
            assert all(b"connected to" in said for said in pool.map(connect, phones))
            connect_s = time.monotonic() - began
            began = time.monotonic()
            assert all(pool.map(echo, phones))
            echo_s = time.monotonic() - began
        with capsys.disabled():
            print(
                f"\n{COUNT} phones: up {up_s:.1f} s, connected {connect_s:.1f} s, one command each {echo_s:.2f} s, "
                f"{rss_up_kb / COUNT:.0f} kB of this process per phone ({(_rss_kb() - rss_kb) / COUNT:.0f} after use)"
            )
    finally:
        for phone in phones:
            _request(adb_server, f"host:disconnect:{phone.address}")
            rack.stop(phone)
    assert rss_up_kb / COUNT < 500
