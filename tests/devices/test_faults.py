"""Every fault of a virtual phone, as the real adb shows it."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.agents.agent_host import wait_until

from .adb_server import AdbServer
from .fixtures import StartPhone
from .virtual_phone import VirtualPhone

TMP = "/data/local/tmp"


class Adb:
    """adb for one phone, with a deadline for what is meant to hang."""

    def __init__(self, server: AdbServer, phone: VirtualPhone) -> None:
        self.server = server
        self.phone = phone

    def __call__(self, *words: str, timeout_s: float = 20.0) -> subprocess.CompletedProcess[bytes]:
        return self.server.run("-s", self.phone.address, *words, timeout_s=timeout_s)

    def wait_for(self, state: str, within_s: float = 10.0) -> None:
        wait_until(lambda: self.server.state(self.phone.address) == state, within_s=within_s, what=f"state {state}")


@pytest.fixture
def adb(adb_server: AdbServer, phone: StartPhone) -> Adb:
    return Adb(adb_server, phone())


@pytest.fixture
def megabytes(tmp_path: Path) -> Path:
    """A file of four megabytes."""
    path = tmp_path / "four.bin"
    path.write_bytes(os.urandom(4 << 20))
    return path


class TestLink:
    @pytest.mark.parametrize("stays", [True, False])
    def test_dropped_mid_push(self, adb: Adb, megabytes: Path, stays: bool) -> None:
        """The push fails; a partial file stays or not, as scripted; the server comes back by itself."""
        adb.phone.faults.drop_push_after = 1_000_000
        adb.phone.faults.partial_files_stay = stays
        assert adb("push", str(megabytes), f"{TMP}/file").returncode == 1
        partial = adb.phone.path(f"{TMP}/file")
        assert partial.stat().st_size == 1_000_000 if stays else not partial.exists()
        adb.wait_for("device")
        assert adb("push", str(megabytes), f"{TMP}/file").returncode == 0

    def test_dropped_mid_pull(self, adb: Adb, megabytes: Path, tmp_path: Path) -> None:
        """The pull fails."""
        assert adb("push", str(megabytes), f"{TMP}/file").returncode == 0
        adb.phone.faults.drop_pull_after = 1_000_000
        assert adb("pull", f"{TMP}/file", str(tmp_path / "back")).returncode == 1

    def test_dropped_mid_run(self, adb: Adb) -> None:
        """The output ends early with a failure, and the command is dead. Of what came before the cut, the server
        may still have had some in its hands."""
        adb.phone.faults.drop_run_after = 10
        done = adb("shell", "echo 123456789; echo more; sleep 1111")
        assert done.returncode != 0
        assert b"123456789\n".startswith(done.stdout)
        wait_until(lambda: not adb.phone.processes(), within_s=5, what="no process is left")

    def test_cut_silently_mid_push(self, adb: Adb, megabytes: Path) -> None:
        """The push hangs while the phone still is a "device"; a new connection helps."""
        adb.phone.faults.drop_push_after, adb.phone.faults.cut_is_silent = 1_000_000, True
        with pytest.raises(subprocess.TimeoutExpired):
            adb("push", str(megabytes), f"{TMP}/file", timeout_s=1)
        assert adb.server.state(adb.phone.address) == "device"
        adb.phone.thaw()
        adb.server.run("disconnect", adb.phone.address)
        adb.server.connect(adb.phone)
        assert adb("push", str(megabytes), f"{TMP}/file").returncode == 0

    def test_offline(self, adb: Adb) -> None:
        """A phone that does not answer the handshake is offline, until it does."""
        adb.phone.go_offline()
        adb.wait_for("offline")
        assert adb("shell", "true").returncode == 1
        adb.phone.come_online()
        adb.wait_for("device")

    def test_unplugged(self, adb: Adb) -> None:
        """An unplugged phone is not a device; plugged in again it comes back at the same address."""
        address = adb.phone.address
        adb.phone.unplug()
        adb.wait_for("offline")
        adb.phone.plug()
        assert adb.phone.address == address
        adb.server.run("disconnect", address)
        adb.server.connect(adb.phone)
        assert adb("shell", "echo back").stdout == b"back\n"

    def test_unauthorized_until_the_user_allows(self, adb: Adb) -> None:
        """A phone that asks for keys is unauthorized until the tap; from then on the host's signature is enough."""
        adb.phone.require_authorisation()
        adb.wait_for("unauthorized")
        assert b"unauthorized" in adb("shell", "true").stderr
        adb.phone.allow_host()
        adb.wait_for("device")
        adb.phone.cut()
        adb.wait_for("device")
        assert adb("shell", "echo trusted").stdout == b"trusted\n"

    def test_authorized_after_a_delay(self, adb: Adb) -> None:
        """A scripted user allows the host by itself."""
        adb.phone.require_authorisation(user_allows_after_s=1.0)
        adb.wait_for("unauthorized")
        adb.wait_for("device")

    def test_a_slow_link_is_slow(self, adb: Adb, tmp_path: Path) -> None:
        """Half a megabyte at a megabyte per second takes half a second."""
        (tmp_path / "half").write_bytes(bytes(500_000))
        adb.phone.faults.bytes_per_s = 1_000_000
        began = time.monotonic()
        assert adb("push", str(tmp_path / "half"), f"{TMP}/half").returncode == 0
        assert time.monotonic() - began > 0.45
        adb.phone.faults.bytes_per_s, adb.phone.faults.latency_s = None, 0.05
        began = time.monotonic()
        assert adb("shell", "echo slow").stdout == b"slow\n"
        assert time.monotonic() - began > 0.1

    def test_frozen_and_thawed(self, adb: Adb) -> None:
        """A frozen phone still is a "device" and answers nothing; thawed, it goes on."""
        adb.phone.freeze()
        with pytest.raises(subprocess.TimeoutExpired):
            adb("shell", "echo x", timeout_s=1)
        assert adb.server.state(adb.phone.address) == "device"
        adb.phone.thaw()
        assert adb("shell", "echo x").stdout == b"x\n"

    def test_no_shell_v2(self, adb: Adb) -> None:
        """A phone can lose shell v2: exit codes are gone from the next connection on."""
        adb.phone.drop_feature("shell_v2")
        adb.wait_for("device")
        wait_until(lambda: b"shell_v2" not in adb("features").stdout, within_s=10, what="the feature is gone")
        assert adb("shell", "exit 7").returncode == 0

    def test_a_service_is_refused(self, adb: Adb) -> None:
        """A refused service shows as "closed"."""
        adb.phone.faults.refused = ("shell",)
        done = adb("shell", "true")
        assert done.returncode == 1 and b"closed" in done.stderr


class TestReboot:
    def test_it_goes_and_comes_back(self, adb: Adb) -> None:
        """Processes and overrides die, files and settings stay, and boot_completed comes last."""
        adb("shell", f"echo kept > {TMP}/kept; settings put global mine 1; setsid sleep 1234 >/dev/null 2>&1 &")
        adb("shell", "dumpsys battery set level 5")
        adb.phone.reboot(gone_s=0.5, boot_s=3.0)
        adb.wait_for("offline")
        adb.wait_for("device")
        assert adb("shell", "getprop sys.boot_completed").stdout == b"\n"
        assert adb("shell", f"cat {TMP}/kept; settings get global mine").stdout == b"kept\n1\n"
        assert b"level: 85" in adb("shell", "dumpsys battery").stdout
        assert not any("1234" in process.argv for process in adb.phone.processes())
        wait_until(
            lambda: adb("shell", "getprop sys.boot_completed").stdout == b"1\n", within_s=10, what="boot is completed"
        )

    def test_adb_reboot(self, adb: Adb) -> None:
        """`adb reboot` takes it away."""
        assert adb("reboot").returncode == 0
        adb.wait_for("offline")


class TestStorage:
    def test_full_for_push_and_for_commands(self, adb: Adb, megabytes: Path) -> None:
        """With too little room push says so and leaves nothing; a command gets the same error; with room it works."""
        adb.phone.leave_free(1 << 20)
        done = adb("push", str(megabytes), f"{TMP}/file")
        assert done.returncode == 1 and b"No space left on device" in done.stderr
        assert not adb.phone.path(f"{TMP}/file").exists()
        done = adb("shell", f"head -c 2000000 /dev/zero > {TMP}/zeros")
        assert done.returncode != 0 and b"No space left" in done.stderr
        adb.phone.leave_free(100 << 20)
        assert adb("push", str(megabytes), f"{TMP}/file").returncode == 0

    def test_noexec(self, adb: Adb) -> None:
        """Programs in /data cannot be run while it is noexec; never from /sdcard."""
        program = f"printf '#!/system/bin/sh\\necho ran\\n' > {TMP}/p; chmod 755 {TMP}/p; cp {TMP}/p /sdcard/p; "
        assert adb("shell", program + f"{TMP}/p").stdout == b"ran\n"
        assert adb("shell", "/sdcard/p").returncode == 126
        adb.phone.set_noexec(True)
        assert adb("shell", f"{TMP}/p").returncode == 126
        adb.phone.leave_free(1 << 20)
        assert adb("shell", f"{TMP}/p").returncode == 126
        adb.phone.set_noexec(False)
        assert adb("shell", f"{TMP}/p").stdout == b"ran\n"

    def test_torn_push(self, adb: Adb, megabytes: Path) -> None:
        """A torn push reports success and keeps a part."""
        adb.phone.faults.torn_push_bytes = 100_000
        assert adb("push", str(megabytes), f"{TMP}/file").returncode == 0
        assert adb("shell", f"stat -c %s {TMP}/file").stdout == b"100000\n"


class TestProcesses:
    def test_killed(self, adb: Adb) -> None:
        """A killed program shows its signal."""
        done: list[int] = []
        runner = threading.Thread(target=lambda: done.append(adb("shell", "exec sleep 4321").returncode))
        runner.start()
        wait_until(lambda: adb.phone.kill("4321") == 1, within_s=5, what="it runs")
        runner.join()
        assert done == [137]

    def test_wedged(self, adb: Adb) -> None:
        """A wedged command never answers, and others do."""
        adb.phone.faults.wedged = re.compile("dumpsys")
        with pytest.raises(subprocess.TimeoutExpired):
            adb("shell", "dumpsys battery", timeout_s=0.5)
        assert adb("shell", "echo alive").stdout == b"alive\n"
