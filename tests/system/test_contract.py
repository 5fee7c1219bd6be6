"""The contract of transports, kept with the adbd that phones run: the suite of tests/contract on another bench."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator

import pytest

from android_harness.adb_link import AdbLink
from android_harness.adb_server import AdbServer as ServerInUse
from android_harness.adb_shell import ExecV1
from android_harness.adb_transport import AdbTransport
from android_harness.adb_wire import ServerAddress
from tests.contract.test_transport import *  # noqa: F403 - every test of the contract, whatever is added to it
from tests.contract.test_transport import Bench, phone_bench
from tests.devices.adb_server import AdbServer

from .real_phone import RealPhone


@pytest.fixture(params=["shell_v2", "before_android_7"])
def bench(request: pytest.FixtureRequest, adb_server: AdbServer, real_phone: RealPhone) -> Iterator[Bench]:
    """Takes the place of the contract's own fixture of this name; both ways of running a command are tried."""
    opened = phone_bench(adb_server, real_phone)
    if request.param == "before_android_7":
        link = AdbLink("phone", ServerInUse(ServerAddress("127.0.0.1", adb_server.port)), real_phone.address)
        opened = dataclasses.replace(opened, transport=AdbTransport(link, ExecV1, None))
    yield opened
    opened.transport.close()
    shutil.rmtree(real_phone.path(opened.scratch))
