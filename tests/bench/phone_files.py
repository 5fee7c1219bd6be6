"""Files to and from a phone, beside adb's own commands."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from android_harness.adb_transport import ADB
from android_harness.platform import ANDROID
from orchestrator.clock import SYSTEM, Deadline
from orchestrator.deploy import Deployment
from orchestrator.fleet import Device
from orchestrator.transports.base import Transport
from tests.bench.measuring import quartiles
from tests.bench.phones import virtual_phones

_ROUNDS = 11
_BYTES = 100_000_000
_FOLDER = "/data/local/tmp"
_TO_BEGIN = 2
"""Services that a session opens before its first file: which machine it is, and the agent's own hash."""


def against_adb() -> None:
    """100 MB to and from a virtual phone: the transport's time over that of `adb push` and `adb pull`, in turns"""
    # The transport is in a process of its own, as adb is: the phone is a Python program too, and would hold it up.
    with (
        tempfile.TemporaryDirectory() as folder,
        virtual_phones(1) as (server, (phone,)),
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process,
    ):
        source, back, theirs = (Path(folder) / name for name in ("source", "back", "theirs"))
        source.write_bytes(os.urandom(_BYTES))
        place = (phone.address, server.port)

        def adb(*words: str) -> float:
            theirs.unlink(missing_ok=True)
            began = SYSTEM.monotonic_s()
            _must(server.run("-s", phone.address, *words).returncode == 0)
            return SYSTEM.monotonic_s() - began

        _compare(
            "push",
            lambda: process.submit(_push_s, *place, source, f"{_FOLDER}/ours").result(),
            lambda: adb("push", str(source), f"{_FOLDER}/theirs"),
        )
        _must(phone.path(f"{_FOLDER}/ours").read_bytes() == source.read_bytes())
        _compare(
            "pull",
            lambda: process.submit(_pull_s, *place, f"{_FOLDER}/ours", back).result(),
            lambda: adb("pull", f"{_FOLDER}/ours", str(theirs)),
        )
        _must(back.read_bytes() == source.read_bytes())
        process.submit(_ensure_s, *place, source).result()
        opened = len(phone.opened)
        again = [process.submit(_ensure_s, *place, source).result() for _ in range(_ROUNDS)]
        services = (len(phone.opened) - opened) / _ROUNDS - _TO_BEGIN
        print(f"  second push  {quartiles([1000 * value for value in again], 'ms', 1)}, services opened: {services:g}")


def _compare(name: str, ours: Callable[[], float], theirs: Callable[[], float]) -> None:
    ours(), theirs()
    times: dict[Callable[[], float], list[float]] = {ours: [], theirs: []}
    for number in range(_ROUNDS):
        for action in (ours, theirs) if number % 2 else (theirs, ours):
            times[action].append(action())
    ratios = [mine / other for mine, other in zip(times[ours], times[theirs], strict=True)]
    speeds = " and ".join(f"{_BYTES / 1e6 / statistics.median(times[action]):.0f} MB/s" for action in (ours, theirs))
    print(f"  {name:12} ours and adb's {speeds}; time over adb's {quartiles(ratios, '')}", flush=True)


def _must(is_so: bool) -> None:
    if not is_so:
        raise SystemExit("a file did not arrive as it was sent")


# In the other process


@cache
def _transport(serial: str, port: int) -> Transport:
    address: dict[str, str | int] = {"serial": serial, "adb_server": f"127.0.0.1:{port}"}
    return ADB.open(Device("phone", "adb", address=address), deadline=_soon())


def _soon() -> Deadline:
    return Deadline.after(120)


def _push_s(serial: str, port: int, source: Path, target: str) -> float:
    transport, began = _transport(serial, port), SYSTEM.monotonic_s()
    transport.push(source, target, deadline=_soon())
    return SYSTEM.monotonic_s() - began


def _pull_s(serial: str, port: int, source: str, target: Path) -> float:
    # To a new name, as pulls are: ext4 writes a file out when it takes the place of another.
    target.unlink(missing_ok=True)
    transport, began = _transport(serial, port), SYSTEM.monotonic_s()
    transport.pull(source, target, deadline=_soon())
    return SYSTEM.monotonic_s() - began


def _ensure_s(serial: str, port: int, source: Path) -> float:
    """A new session that wants the file there; pushed only if its hash is not."""
    deployment = Deployment(_transport(serial, port), ANDROID, f"{_FOLDER}/devbench")
    began = SYSTEM.monotonic_s()
    deployment.ensure(source)
    return SYSTEM.monotonic_s() - began
