"""Fixtures for tests against virtual phones; a folder's conftest.py imports those it wants."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.unit.apk_factory import make_apk

from .adb_server import AdbServer, NoAdb
from .build import CannotBuild, build
from .ssh_board import BoardOptions, SshBoard, why_no_board
from .virtual_phone import FLAGSHIP, PhoneRack, Profile, VirtualPhone, why_not


class StartPhone(Protocol):
    """Starts a phone and connects it to the test's adb server."""

    def __call__(
        self, profile: Profile = FLAGSHIP, *, connected: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> VirtualPhone: ...


@pytest.fixture(scope="session")
def adb_server() -> Iterator[AdbServer]:
    """A private adb server, ended with the session."""
    try:
        server = AdbServer.start()
    except NoAdb as error:
        pytest.skip(str(error))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def rack() -> Iterator[PhoneRack]:
    """Where the session's phones run."""
    try:
        reason = why_not()
    except CannotBuild as error:
        reason = str(error)
    if reason is not None:
        pytest.skip(reason)
    with PhoneRack() as phones:
        yield phones


@pytest.fixture
def phone(adb_server: AdbServer, rack: PhoneRack) -> Iterator[StartPhone]:
    """Starts phones that are gone after the test: `phone(MID).address` is the serial."""
    started: list[VirtualPhone] = []

    def start(
        profile: Profile = FLAGSHIP, *, connected: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> VirtualPhone:
        fresh = rack.start(profile, clock=clock)
        started.append(fresh)
        if connected:
            adb_server.connect(fresh)
        return fresh

    yield start
    for one in started:
        adb_server.run("disconnect", one.address)
        rack.stop(one)


class StartBoard(Protocol):
    """Starts an ssh server that is a board."""

    def __call__(self, options: BoardOptions | None = None) -> SshBoard: ...


@pytest.fixture
def board() -> Iterator[StartBoard]:
    """Starts boards that are gone after the test; the test is skipped where there is no such server."""
    started: list[SshBoard] = []

    def start(options: BoardOptions | None = None) -> SshBoard:
        options = options or BoardOptions()
        if reason := why_no_board(options):
            pytest.skip(reason)
        started.append(fresh := SshBoard.start(options))
        return fresh

    yield start
    for one in started:
        one.stop()


@pytest.fixture(scope="session")
def benchmark_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in for benchmark_model, under that name."""
    try:
        built = build("benchmark_model")
    except CannotBuild as error:
        pytest.skip(str(error))
    return Path(shutil.copy(built, tmp_path_factory.mktemp("bin") / "benchmark_model"))


@pytest.fixture(scope="session")
def benchmark_apk(benchmark_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An APK of the benchmark app for the virtual phone, which brings the app's process itself."""
    path = tmp_path_factory.mktemp("apk") / "benchmark_app.apk"
    path.write_bytes(make_apk({"x86_64": benchmark_model.read_bytes()}))
    return path
