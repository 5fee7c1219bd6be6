"""What the adb transport does when phones, links and servers misbehave; against virtual phones and the real server."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from android_harness.adb_server import AdbServer as Server
from android_harness.adb_server import ServerAddress
from android_harness.adb_transport import ADB, AdbTransport, open_phone
from orchestrator.clock import SYSTEM, Deadline
from orchestrator.errors import CommandTimeout, DeviceError, DeviceFull, DeviceLost, DeviceUnfit, HostError, error_text
from orchestrator.fleet import Device
from orchestrator.transports.base import Patience

from ..devices.adb_server import AdbServer, adb_binary
from ..devices.fixtures import StartPhone
from ..devices.virtual_phone import FLAGSHIP, OLD, Profile, VirtualPhone

QUICK = Patience(silence_s=0.3, echo_s=0.5)
SCRATCH = "/data/local/tmp/scratch"
Opener = Callable[[VirtualPhone], AdbTransport]


def soon(seconds: float = 20.0) -> Deadline:
    return Deadline.after(seconds)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(statement: Callable[[], object], seconds: float = 10.0) -> bool:
    """Whether it comes true in time."""
    deadline = soon(seconds)
    while not statement() and not deadline.passed:
        SYSTEM.sleep(0.02)
    return bool(statement())


@pytest.fixture
def device(adb_server: AdbServer) -> Callable[[str], Device]:
    def make(serial: str) -> Device:
        return Device("pixel8", "adb", address={"serial": serial, "adb_server": f"127.0.0.1:{adb_server.port}"})

    return make


@pytest.fixture
def opened(device: Callable[[str], Device]) -> Iterator[Opener]:
    transports: list[AdbTransport] = []

    def make(phone: VirtualPhone) -> AdbTransport:
        transports.append(open_phone(device(phone.address), soon(), QUICK))
        return transports[-1]

    yield make
    for transport in transports:
        transport.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    path.write_bytes(os.urandom(4_000_000))
    return path


def names(phone: VirtualPhone, folder: str) -> list[str]:
    place = phone.path(folder)
    return sorted(path.name for path in place.iterdir()) if place.exists() else []


class TestOpening:
    def test_a_phone_on_the_network_is_connected_to(self, phone: StartPhone, opened: Opener) -> None:
        """Nobody has to type `adb connect`."""
        transport = opened(phone(connected=False))
        assert transport.run(["echo", "hi"], deadline=soon()).stdout == b"hi\n"

    def test_nothing_listens(self, phone: StartPhone, device: Callable[[str], Device]) -> None:
        """adb says success when it is refused; its words are read instead."""
        gone = phone(connected=False)
        gone.unplug()
        with pytest.raises(DeviceLost) as caught:
            ADB.open(device(gone.address), deadline=soon())
        assert error_text(caught.value) == (
            f"error: pixel8 cannot be reached at {gone.address}: Connection refused\n"
            "  try:   check that it is on the network, and that `adb tcpip 5555` or wireless debugging is on"
        )

    def test_no_such_serial(self, adb_server: AdbServer, device: Callable[[str], Device]) -> None:
        """The server that was asked is named."""
        adb_server.run("disconnect")  # whatever other tests left attached
        with pytest.raises(DeviceLost) as caught:
            ADB.open(device("R5CT10"), deadline=soon(0.3))
        assert error_text(caught.value) == (
            f'error: pixel8: the adb server at 127.0.0.1:{adb_server.port} has no phone with serial "R5CT10"\n'
            "  try:   plug it in and turn on USB debugging; no phone is attached now"
        )

    def test_a_serial_that_is_nearly_right(
        self, adb_server: AdbServer, phone: StartPhone, device: Callable[[str], Device]
    ) -> None:
        """Those attached are listed, the nearest is suggested."""
        adb_server.run("disconnect")
        there = phone()
        wrong = there.address.replace(":", ".")
        with pytest.raises(DeviceLost) as caught:
            ADB.open(device(wrong), deadline=soon(0.3))
        assert caught.value.remedy == f'did you mean "{there.address}"? The choices are: {there.address}'

    def test_unauthorized(self, phone: StartPhone, device: Callable[[str], Device]) -> None:
        """A phone that waits for its user says what to tap, and is not worth a retry."""
        there = phone()
        there.require_authorisation()
        with pytest.raises(DeviceUnfit) as caught:
            ADB.open(device(there.address), deadline=soon())
        assert error_text(caught.value) == (
            "error: pixel8 has not allowed this host to debug it\n"
            '  try:   unlock the phone and accept "Allow USB debugging?"; tick "Always allow from this computer"'
        )

    def test_offline(self, phone: StartPhone, device: Callable[[str], Device]) -> None:
        """A phone whose daemon does not speak."""
        there = phone()
        there.go_offline()
        with pytest.raises(DeviceLost) as caught:
            ADB.open(device(there.address), deadline=soon(4))
        assert error_text(caught.value) == (
            "error: pixel8 is offline\n  try:   unplug it and plug it in again, or turn USB debugging off and on"
        )

    def test_not_booted(self, phone: StartPhone, device: Callable[[str], Device]) -> None:
        """`device` comes long before the system is up."""
        there = phone()
        there.set_props({"sys.boot_completed": ""})
        with pytest.raises(DeviceLost) as caught:
            ADB.open(device(there.address), deadline=soon(1))
        assert error_text(caught.value) == (
            "error: pixel8 has not finished booting\n  try:   wait until its screen shows the lock, then run again"
        )

    def test_a_booting_phone_is_waited_for(self, phone: StartPhone, opened: Opener) -> None:
        """As long as the deadline allows."""
        there = phone()
        there.set_props({"sys.boot_completed": ""})
        later = threading.Timer(0.5, lambda: there.set_props({"sys.boot_completed": "1"}))
        later.start()
        assert opened(there).hardware_id == there.serial
        later.join()

    def test_one_phone_under_two_serials(
        self, adb_server: AdbServer, phone: StartPhone, device: Callable[[str], Device]
    ) -> None:
        """The hardware tells its own number, whatever it is called."""
        there = phone()
        port = there.address.rpartition(":")[2]
        first = open_phone(device(there.address), soon(), QUICK)
        second = open_phone(device(f"localhost:{port}"), soon(), QUICK)
        assert first.hardware_id == second.hardware_id == there.serial
        adb_server.run("disconnect", f"localhost:{port}")

    def test_a_frozen_phone(self, phone: StartPhone, device: Callable[[str], Device]) -> None:
        """adb goes on calling it `device`; devbench does not wait past its deadline."""
        there = phone()
        there.freeze()
        began = SYSTEM.monotonic_s()
        with pytest.raises(DeviceError) as caught:
            open_phone(device(there.address), soon(5), QUICK)
        there.thaw()
        assert caught.value.retryable
        assert SYSTEM.monotonic_s() - began < 8


class TestServer:
    def test_one_is_started_where_none_runs(
        self, phone: StartPhone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And it is used; the port is the one asked for."""
        private = AdbServer(adb_binary(), free_port(), tmp_path)
        for key, value in private.environment.items():
            monkeypatch.setenv(key, value)
        there = phone(connected=False)
        transport = ADB.open(Device("pixel8", "adb", address={"serial": there.address}), deadline=soon(60))
        try:
            assert transport.run(["echo", "hi"], deadline=soon()).stdout == b"hi\n"
            assert private.state(there.address) == "device"
        finally:
            transport.close()
            private.run("kill-server")

    def test_no_adb_to_start_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What to install is said."""
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr("sys.path", [])
        monkeypatch.delitem(sys.modules, "adbutils", raising=False)
        port = free_port()
        with pytest.raises(HostError) as caught:
            Server(ServerAddress("127.0.0.1", port)).ensure_running(soon(5))
        assert error_text(caught.value) == (
            f"error: no adb server runs at 127.0.0.1:{port}, and there is no adb to start one\n"
            "  try:   `pip install adbutils`, which brings adb, or install Android's platform-tools"
        )

    def test_another_machines_server_does_not_answer(self) -> None:
        """It is not for us to start."""
        port = free_port()
        address = {"serial": "R5CT10", "adb_server": f"127.0.0.2:{port}"}
        with pytest.raises(DeviceLost) as caught:
            ADB.open(Device("pixel8", "adb", address=address), deadline=soon(5))
        assert error_text(caught.value) == (
            f"error: no adb server answers at 127.0.0.2:{port}\n"
            "  try:   on that machine run `adb -a start-server`, and let this host through its firewall"
        )

    def test_a_server_that_ends_in_the_middle_of_a_run(self, phone: StartPhone, tmp_path: Path) -> None:
        """Cut-off output is no output."""
        server = AdbServer.start()
        address = {"serial": phone(connected=False).address, "adb_server": f"127.0.0.1:{server.port}"}
        transport = open_phone(Device("pixel8", "adb", address=address), soon(), QUICK)
        later = threading.Timer(0.3, server.stop)
        later.start()
        with pytest.raises(DeviceLost):
            transport.run(["sh", "-c", "echo a; sleep 30; echo b"], deadline=soon())
        later.join()


@pytest.mark.parametrize("profile", [FLAGSHIP, OLD], ids=lambda profile: profile.name)
class TestRunning:
    def test_a_link_dropped_in_the_middle(self, phone: StartPhone, opened: Opener, profile: Profile) -> None:
        """Truncated output is never taken as whole."""
        there = phone(profile)
        transport = opened(there)
        there.faults.drop_run_after = 1_000_000
        with pytest.raises(DeviceLost, match="pixel8 went away"):
            transport.run(["head", "-c", "3000000", "/dev/zero"], deadline=soon())

    def test_it_is_back_after_a_drop(
        self, phone: StartPhone, opened: Opener, device: Callable[[str], Device], profile: Profile
    ) -> None:
        """Opened anew, the phone works; so does the transport that saw the drop."""
        there = phone(profile)
        transport = opened(there)
        there.cut()
        again = open_phone(device(there.address), soon(), QUICK)
        assert again.run(["echo", "hi"], deadline=soon()).stdout == b"hi\n"
        assert transport.run(["echo", "hi"], deadline=soon()).stdout == b"hi\n"

    def test_a_phone_that_freezes(self, phone: StartPhone, opened: Opener, profile: Profile) -> None:
        """It is noticed long before the deadline: the phone is asked, and does not answer."""
        there = phone(profile)
        process = opened(there).start(["sh", "-c", "echo up; sleep 60"])
        assert process.receive(soon()) == b"up\n"
        there.freeze()
        began = SYSTEM.monotonic_s()
        with pytest.raises(DeviceLost, match="pixel8 is connected but no longer answers"):
            while True:
                process.receive(soon(0.25))
        assert 0.5 < SYSTEM.monotonic_s() - began < 5
        there.thaw()

    def test_a_silent_command_is_no_dead_phone(self, phone: StartPhone, opened: Opener, profile: Profile) -> None:
        """The phone is asked meanwhile, and answers; the command goes on."""
        there = phone(profile)
        done = opened(there).run(["sh", "-c", "sleep 1.5; echo done"], deadline=soon())
        assert done.stdout == b"done\n"
        assert sum(service.startswith("exec:echo ") for service in there.opened) >= 2

    def test_a_frozen_phone_and_a_deadline(self, phone: StartPhone, opened: Opener, profile: Profile) -> None:
        """The error comes within the deadline and what a kill may take, and says what may still run."""
        there = phone(profile)
        process = opened(there).start(["sleep", "60"])
        there.freeze()
        with pytest.raises(DeviceLost, match="pixel8 no longer answers; sleep may still run there"):
            process.wait(soon(0.1))
        there.thaw()

    def test_a_command_that_never_starts(self, phone: StartPhone, opened: Opener, profile: Profile) -> None:
        """The phone lives, so the command is to blame."""
        there = phone(profile)
        transport = opened(there)
        there.faults.wedged = re.compile("wedge")
        with pytest.raises(CommandTimeout, match="wedge did not end in time"):
            transport.run(["wedge"], deadline=soon(0.3))

    def test_a_deadline_leaves_no_trace(self, phone: StartPhone, opened: Opener, profile: Profile) -> None:
        """What ran is killed on the phone, children included, and no file of ours is left."""
        there = phone(profile)
        with pytest.raises(CommandTimeout):
            opened(there).run(["sh", "-c", "sleep 60 & sleep 61 & trap '' HUP; wait"], deadline=soon(0.5))
        assert until(lambda: there.processes() == [])
        assert names(there, "/data/local/tmp") == []

    def test_a_program_that_may_not_be_run(
        self, phone: StartPhone, opened: Opener, file: Path, profile: Profile
    ) -> None:
        """The phone's reason is kept."""
        there = phone(profile)
        transport = opened(there)
        transport.push(file, f"{SCRATCH}/model", deadline=soon())
        with pytest.raises(DeviceUnfit) as caught:
            transport.run([f"{SCRATCH}/model"], deadline=soon())
        assert error_text(caught.value) == (
            f"error: cannot start {SCRATCH}/model on pixel8: Permission denied\n"
            "  try:   its folder may be mounted noexec, or it is built for another CPU: see workdir in devices.toml"
        )

    @pytest.mark.parametrize("status", [126, 127, 255])
    def test_a_status_of_the_command_itself(
        self, phone: StartPhone, opened: Opener, status: int, profile: Profile
    ) -> None:
        """What a program exits with is not mistaken for the shell's "no such program"."""
        done = opened(phone(profile)).run(["sh", "-c", f"echo no; exit {status}"], deadline=soon())
        assert (done.exit, done.stdout, done.stderr) == (status, b"no\n", b"")

    def test_hostile_arguments(self, phone: StartPhone, opened: Opener, profile: Profile) -> None:
        """Newlines, quotes, dollars and empty arguments arrive as they are."""
        hostile = [
            "",
            "'",
            "''",
            '"',
            "a\nb",
            "\n",
            "$HOME",
            "`id`",
            "\\",
            "\\n",
            "!x",
            "~",
            "#",
            "-n",
            "é\t☃",
            "x'\n'y",
        ]
        done = opened(phone(profile)).run(["/usr/bin/printf", "%s|", *hostile], deadline=soon())
        assert done.stdout.decode() == "".join(f"{word}|" for word in hostile)


class TestFiles:
    @pytest.mark.parametrize("profile", [FLAGSHIP, OLD], ids=lambda profile: profile.name)
    def test_a_link_dropped_in_the_middle_of_a_push(
        self, phone: StartPhone, opened: Opener, file: Path, profile: Profile
    ) -> None:
        """Nothing has the target's name; what was torn is removed with the next push."""
        there = phone(profile)
        transport = opened(there)
        there.faults.drop_push_after = 1_000_000
        with pytest.raises(DeviceLost, match="pixel8 went away"):
            transport.push(file, f"{SCRATCH}/model", deadline=soon())
        assert "model" not in names(there, SCRATCH)
        assert until(lambda: push_works(transport, file, f"{SCRATCH}/model"))
        assert names(there, SCRATCH) == ["model"]

    def test_a_link_dropped_in_the_middle_of_a_pull(
        self, phone: StartPhone, opened: Opener, file: Path, tmp_path: Path
    ) -> None:
        """Neither target nor torn copy is left on the host."""
        there = phone()
        transport = opened(there)
        transport.push(file, f"{SCRATCH}/model", deadline=soon())
        there.faults.drop_pull_after = 1_000_000
        with pytest.raises(DeviceLost):
            transport.pull(f"{SCRATCH}/model", tmp_path / "back" / "model", deadline=soon())
        assert list((tmp_path / "back").iterdir()) == []

    def test_a_full_phone(self, phone: StartPhone, opened: Opener, file: Path) -> None:
        """The reason is kept, and nothing is left of the file."""
        there = phone()
        transport = opened(there)
        there.leave_free(1_000_000)
        with pytest.raises(DeviceFull) as caught:
            transport.push(file, f"{SCRATCH}/model", deadline=soon())
        assert error_text(caught.value) == (
            f"error: pixel8 has no space left: cannot write {SCRATCH}/model\n  try:   free space on it, then run again"
        )
        assert names(there, SCRATCH) == []

    @pytest.mark.parametrize(
        ("folder", "reason"), [("/system", "Read-only file system"), ("/data", "Permission denied")]
    )
    def test_where_nothing_may_be_written(
        self, phone: StartPhone, opened: Opener, file: Path, folder: str, reason: str
    ) -> None:
        """The phone's reason is in the message."""
        with pytest.raises(DeviceUnfit) as caught:
            opened(phone()).push(file, f"{folder}/model", deadline=soon())
        assert caught.value.fact == f"pixel8: cannot write {folder}/model: {reason}"

    def test_a_torn_push(self, phone: StartPhone, opened: Opener, file: Path) -> None:
        """A phone that keeps less than it says is found out before the file gets its name."""
        there = phone()
        transport = opened(there)
        there.faults.torn_push_bytes = 1_000_000
        with pytest.raises(DeviceError, match=r"pixel8 kept 1000000 of 4000000 bytes of model\.tflite"):
            transport.push(file, f"{SCRATCH}/model", deadline=soon())
        assert names(there, SCRATCH) == []

    def test_a_phone_that_freezes_in_the_middle(
        self, phone: StartPhone, opened: Opener, file: Path, tmp_path: Path
    ) -> None:
        """adb itself would hang for ever; here a push ends when the phone does not answer."""
        there = phone()
        transport = opened(there)
        there.faults.bytes_per_s = 2_000_000
        freezer = threading.Timer(0.5, there.freeze)
        freezer.start()
        with pytest.raises(DeviceLost, match="no longer answers"):
            transport.push(file, f"{SCRATCH}/model", deadline=soon())
        freezer.join()
        there.faults.bytes_per_s = None
        there.thaw()

    def test_a_slow_link_and_a_deadline(self, phone: StartPhone, device: Callable[[str], Device], file: Path) -> None:
        """A push that goes on but too slowly ends with its deadline."""
        there = phone()
        transport = ADB.open(device(there.address), deadline=soon())
        there.faults.bytes_per_s = 500_000
        with pytest.raises(CommandTimeout, match="pixel8 did not answer in time"):
            transport.push(file, f"{SCRATCH}/model", deadline=soon(1))
        there.faults.bytes_per_s = None
        assert "model" not in names(there, SCRATCH)

    def test_a_missing_file(self, phone: StartPhone, opened: Opener, tmp_path: Path) -> None:
        """The phone's reason is in the message."""
        with pytest.raises(DeviceUnfit) as caught:
            opened(phone()).pull(f"{SCRATCH}/none", tmp_path / "back", deadline=soon())
        assert caught.value.fact == f"pixel8: cannot read {SCRATCH}/none: No such file or directory"


def push_works(transport: AdbTransport, file: Path, target: str) -> bool:
    try:
        transport.push(file, target, deadline=soon())
    except DeviceLost:
        return False
    return True


def test_many_phones_at_once(phone: StartPhone, opened: Opener) -> None:
    """A thread each; nobody waits for another."""
    phones = [opened(phone()) for _ in range(8)]
    results: list[bytes] = []

    def work(transport: AdbTransport) -> None:
        for _ in range(20):
            results.append(transport.run(["echo", "hi"], deadline=soon()).stdout)

    threads = [threading.Thread(target=work, args=(transport,)) for transport in phones]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [b"hi\n"] * 160
