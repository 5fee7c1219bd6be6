"""The real phone of these tests, one for the session; without root, or without namespaces, a reason to skip."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.clock import SYSTEM, Deadline
from tests.devices.adb_server import AdbServer
from tests.devices.build import CannotBuild
from tests.devices.virtual_phone.sandbox import NoSandbox

from .debian_adbd import NoAdbd, adbd_folder
from .network import NoNetwork
from .real_phone import RealPhone

pytest.register_assert_rewrite("tests.contract.test_transport")


@pytest.fixture(scope="session")
def adbd() -> Path:
    """The folder of Debian's adbd."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip(f"needs Linux on x86_64, this is {platform.system()} on {platform.machine()}")
    if os.geteuid() != 0:
        pytest.skip("needs root: the phone gets a network of its own, with a cable to this host")
    try:
        return adbd_folder()
    except NoAdbd as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def the_phone(adbd: Path) -> Iterator[RealPhone]:
    """A phone that runs for the whole session."""
    try:
        phone = RealPhone(adbd)
    except (CannotBuild, NoSandbox, NoNetwork, OSError) as error:
        pytest.skip(f"this machine cannot confine a phone: {error}")
    yield phone
    phone.stop()


@pytest.fixture
def real_phone(the_phone: RealPhone, adb_server: AdbServer) -> Iterator[RealPhone]:
    """The phone, connected; what a test started there must be gone after it."""
    connect(adb_server, the_phone)
    yield the_phone
    the_phone.plug()
    the_phone.turn_debugging_on()
    deadline = Deadline.after(30)
    while the_phone.processes() and not deadline.passed:
        SYSTEM.sleep(0.1)
    assert the_phone.processes() == []


def connect(server: AdbServer, phone: RealPhone) -> None:
    """Connect, and wait until the daemon answers; the first connection may come before it listens."""
    deadline = Deadline.after(30)
    while server.state(phone.address) != "device":
        assert not deadline.passed, f"adbd does not answer:\n{phone.log}"
        server.run("disconnect", phone.address)
        server.run("connect", phone.address)
        SYSTEM.sleep(0.2)
