"""A healthy virtual phone through the real adb: commands, files, facts."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import device_agents
from tests.agents.agent_host import parse, wait_until

from .adb_server import AdbServer
from .fixtures import StartPhone
from .virtual_phone import FLAGSHIP, MID, OLD, PhoneRack, VirtualPhone

TMP = "/data/local/tmp"


class Adb:
    """adb for one phone."""

    def __init__(self, server: AdbServer, phone: VirtualPhone) -> None:
        self.server = server
        self.phone = phone

    def __call__(self, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        return self.server.run("-s", self.phone.address, *words, stdin=stdin)

    def shell(self, command: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        return self("shell", command, stdin=stdin)

    def says(self, command: str) -> str:
        return self.shell(command).stdout.decode().strip()


@pytest.fixture(scope="module")
def adb(adb_server: AdbServer, rack: PhoneRack) -> Adb:
    """One flagship for all tests that leave it as it was."""
    phone = rack.start(FLAGSHIP)
    adb_server.connect(phone)
    return Adb(adb_server, phone)


class TestShell:
    @pytest.mark.parametrize(("command", "status"), [("exit 7", 7), ("kill -9 $$", 137), ("no_such_thing", 127)])
    def test_exit_codes_arrive(self, adb: Adb, command: str, status: int) -> None:
        """With shell v2 the exit code is the command's, a signal shows as 128 and its number."""
        assert adb.shell(command).returncode == status

    def test_streams_are_apart(self, adb: Adb) -> None:
        """With shell v2 standard output and standard error arrive apart."""
        done = adb.shell("echo out; echo err >&2")
        assert (done.stdout, done.stderr) == (b"out\n", b"err\n")

    def test_old_phones_have_one_stream_and_no_exit_code(self, adb_server: AdbServer, phone: StartPhone) -> None:
        """Without shell v2 adb always exits with 0, and both streams are one."""
        done = Adb(adb_server, phone(OLD)).shell("echo out; echo err >&2; exit 7")
        assert (done.returncode, sorted(done.stdout.split())) == (0, [b"err", b"out"])

    def test_very_old_phones_send_crlf(self, adb_server: AdbServer, phone: StartPhone) -> None:
        """A profile can have the terminal of old daemons, with CR LF; exec is not affected."""
        old = Adb(adb_server, phone(dataclasses.replace(OLD, crlf=True)))
        assert old.shell("echo one; echo two").stdout == b"one\r\ntwo\r\n"
        assert old("exec-out", "echo one").stdout == b"one\n"

    def test_stdin_arrives_whole_and_ends(self, adb: Adb) -> None:
        """A megabyte through `cat` comes back, and the command sees the end of its input."""
        payload = os.urandom(1 << 20)
        assert adb.shell("cat", stdin=payload).stdout == payload

    def test_binary_output_is_untouched(self, adb: Adb) -> None:
        """All byte values pass, also CR, LF and NUL; the same by exec-out."""
        payload = bytes(range(256)) * 16
        assert adb.shell("cat", stdin=payload).stdout == payload
        (adb.phone.path(TMP) / "bytes").write_bytes(payload)
        assert adb("exec-out", "cat", f"{TMP}/bytes").stdout == payload

    @pytest.mark.parametrize("way", ["shell", "exec-out"])
    def test_large_output_is_not_cut(self, adb: Adb, way: str) -> None:
        """Ten megabytes arrive to the last byte."""
        assert len(adb(way, "head -c 10485760 /dev/zero").stdout) == 10 << 20

    def test_commands_run_side_by_side(self, adb: Adb) -> None:
        """Twenty commands of half a second each take far less than ten, and none gets another's output."""
        began = time.monotonic()
        with ThreadPoolExecutor(20) as pool:
            said = list(pool.map(lambda number: adb.says(f"sleep 0.5; echo {number}"), range(20)))
        assert said == [str(number) for number in range(20)]
        assert time.monotonic() - began < 5

    def test_a_terminal_is_given_when_asked_for(self, adb: Adb) -> None:
        """`adb shell -tt` runs the command on a terminal."""
        assert b"terminal\r\n" in adb("shell", "-tt", "test -t 0 && echo terminal").stdout

    def test_who_leaves_takes_the_command_along(self, adb: Adb) -> None:
        """When the host goes away, the command and its children die, as with adbd 34; `nohup` survives."""
        command = "nohup sleep 3333 >/dev/null 2>&1 & sleep 2222; true"
        client = subprocess.Popen(
            [adb.server.adb, "-s", adb.phone.address, "shell", command],
            env=adb.server.environment,
            stdin=subprocess.PIPE,
        )

        def running(word: str) -> bool:
            return any(process.argv[-2:] == ("sleep", word) for process in adb.phone.processes())

        wait_until(lambda: running("2222") and running("3333"), within_s=10, what="both run")
        client.kill()
        client.communicate()
        wait_until(lambda: not running("2222"), within_s=5, what="the command is gone")
        assert running("3333")
        adb.phone.kill("3333")


class TestFiles:
    def test_twenty_megabytes_there_and_back(self, adb: Adb, tmp_path: Path) -> None:
        """The phone's own hash, the pulled bytes, mode and time are those of the file."""
        source = tmp_path / "weights.bin"
        source.write_bytes(os.urandom(20 << 20))
        source.chmod(0o755)
        assert adb("push", str(source), f"{TMP}/new/dir/weights.bin").returncode == 0
        sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
        assert adb.says(f"sha256sum {TMP}/new/dir/weights.bin").split()[0] == sha256
        assert adb("pull", "-a", f"{TMP}/new/dir/weights.bin", str(tmp_path / "back")).returncode == 0
        assert (tmp_path / "back").read_bytes() == source.read_bytes()
        assert int((tmp_path / "back").stat().st_mtime) == int(source.stat().st_mtime)
        assert adb.says(f"stat -c %a {TMP}/new/dir/weights.bin") == "755"

    def test_directories_there_and_back(self, adb: Adb, tmp_path: Path) -> None:
        """A tree with an empty file and odd names survives the round trip."""
        tree = tmp_path / "tree"
        (tree / "a b" / "ü").mkdir(parents=True)
        for number in range(8):
            (tree / f"file {number}").write_text("x" * number)
        (tree / "a b" / "ü" / "end").write_text("end")
        assert adb("push", str(tree), f"{TMP}/tree").returncode == 0
        assert adb("pull", f"{TMP}/tree", str(tmp_path / "back")).returncode == 0
        assert subprocess.run(["diff", "-r", tree, tmp_path / "back"], check=False).returncode == 0

    def test_old_daemons_speak_the_first_version(
        self, adb_server: AdbServer, phone: StartPhone, tmp_path: Path
    ) -> None:
        """STAT, LIST, SEND and RECV of version 1 serve a phone without the newer features."""
        old = Adb(adb_server, phone(OLD))
        (tmp_path / "file").write_bytes(os.urandom(300_000))
        assert old("push", str(tmp_path / "file"), f"{TMP}/v1/file").returncode == 0
        assert old("pull", f"{TMP}/v1", str(tmp_path / "back")).returncode == 0
        assert (tmp_path / "back" / "file").read_bytes() == (tmp_path / "file").read_bytes()

    @pytest.mark.parametrize(
        ("target", "reason"),
        [
            ("/system/x", b"Read-only file system"),
            ("/data/x", b"Permission denied"),
            ("/data/data/x", b"Permission denied"),
        ],
    )
    def test_refusals_have_a_reason(self, adb: Adb, tmp_path: Path, target: str, reason: bytes) -> None:
        """Where the shell user may not write, push fails and says why."""
        (tmp_path / "file").write_text("x")
        done = adb("push", str(tmp_path / "file"), target)
        assert done.returncode == 1 and reason in done.stderr

    def test_missing_files_cannot_be_pulled(self, adb: Adb, tmp_path: Path) -> None:
        """Pulling what is not there, or may not be read, fails with the reason."""
        assert b"No such file" in adb("pull", f"{TMP}/nothing", str(tmp_path)).stderr
        done = adb("pull", "/sys/class/thermal/thermal_zone6/temp", str(tmp_path))
        assert done.returncode == 1 and b"Permission denied" in done.stderr


class TestWorld:
    def test_the_host_is_out_of_reach(self, adb: Adb, tmp_path: Path) -> None:
        """A command sees neither the host's files nor its processes, and can write nothing of the host's."""
        (tmp_path / "secret").write_text("secret")
        assert adb.shell(f"cat {tmp_path}/secret").returncode == 1
        assert adb.shell("touch /usr/x /system/x").returncode == 1
        assert str(os.getpid()) not in adb.says("ls /proc").split()

    def test_it_looks_like_a_phone(self, adb: Adb) -> None:
        """User, properties, machine, cores, clusters and storage are the profile's."""
        assert adb.says("id").startswith("uid=2000(shell)")
        assert adb.says("getprop ro.product.model; uname -m; nproc") == "Pixel 8\nx86_64\n8"
        assert adb.says("cat /sys/devices/system/cpu/cpu7/cpufreq/cpuinfo_max_freq") == "2914000"
        assert adb.shell("ls /data").returncode != 0
        assert adb.shell("su -c id").returncode == 127
        assert adb.says("df -k /data | tail -1").split()[1] == str(FLAGSHIP.data_bytes // 1024)

    def test_sensors_can_be_unreadable_or_absurd(self, adb: Adb) -> None:
        """One thermal zone is denied and one shows −273 °C; clock limits cannot be written."""
        done = adb.shell("cat /sys/class/thermal/thermal_zone*/temp")
        assert b"Permission denied" in done.stderr and b"-273000\n" in done.stdout
        assert adb.shell("echo 1 > /sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq").returncode != 0

    def test_affinity_has_the_phones_cores(self, adb: Adb) -> None:
        """A mask of cores that the host does not have is accepted and inherited."""
        assert adb.says("taskset f0 nproc") == "4"
        assert adb.shell("taskset f00 true").returncode != 0

    def test_settings_can_be_changed_and_read_back(self, adb: Adb) -> None:
        """Properties, settings, stay-awake and the thermal override are kept, and can be undone."""
        assert (
            adb.says("setprop debug.tflite.trace 1; getprop debug.tflite.trace; setprop debug.tflite.trace ''") == "1"
        )
        assert adb.says("settings get global no_such_key") == "null"
        assert (
            adb.says("svc power stayon usb; settings get global stay_on_while_plugged_in; svc power stayon false")
            == "2"
        )
        said = adb.says("cmd thermalservice override-status 3; dumpsys thermalservice; cmd thermalservice reset")
        assert "Thermal Status: 3" in said and "Thermal Status: 0" in adb.says("dumpsys thermalservice")
        assert adb.shell("setprop ro.product.model x").returncode == 1

    def test_an_old_phone_lacks_things(self, adb_server: AdbServer, phone: StartPhone) -> None:
        """The old phone has no thermal service and no nproc."""
        old = Adb(adb_server, phone(OLD))
        assert "Can't find service: thermalservice" in old.says("dumpsys thermalservice")
        assert "not found" in old.says("nproc")

    def test_a_rooted_phone_has_su(self, adb_server: AdbServer, phone: StartPhone) -> None:
        """A rooted profile has su, and its governor can be written."""
        rooted = Adb(adb_server, phone(dataclasses.replace(FLAGSHIP, rooted=True)))
        assert rooted.says("su -c 'id -u'") == "0"
        governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
        assert rooted.says(f"su -c 'echo performance > {governor}; cat {governor}'") == "performance"

    def test_root_is_refused(self, adb: Adb) -> None:
        """A production build does not let adbd be root."""
        assert b"cannot run as root" in adb("root").stdout


class _Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class TestHeat:
    def test_load_heats_throttles_and_cools(self, adb_server: AdbServer, phone: StartPhone) -> None:
        """Under load the phone gets hot, its clock limit falls and the status rises; at rest it cools again."""
        clock = _Clock()
        one = phone(FLAGSHIP, clock=clock)
        adb = Adb(adb_server, one)
        cool = one.condition()
        one.set_load(dict.fromkeys(range(8), 1.0))
        clock.now_s = 600.0
        hot = one.condition()
        assert hot.die_c > 70 > cool.die_c and hot.status >= 1 and hot.limit_khz[7] < 2_914_000
        assert int(adb.says("cat /sys/class/thermal/thermal_zone0/temp")) == round(hot.die_c * 1000)
        assert int(adb.says("cat /sys/devices/system/cpu/cpu7/cpufreq/scaling_max_freq")) == hot.limit_khz[7]
        assert f"Thermal Status: {hot.status}" in adb.says("dumpsys thermalservice")
        one.set_load({})
        clock.now_s = 4000.0
        assert one.condition().status == 0 and one.condition().limit_khz[7] == 2_914_000

    def test_real_work_is_load(self, adb_server: AdbServer, phone: StartPhone) -> None:
        """A program that burns CPU time on the phone raises the clock of the fastest core."""
        one = phone(MID)
        clocks = []
        worker = threading.Thread(
            target=lambda: Adb(adb_server, one).shell("i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done")
        )
        worker.start()
        while worker.is_alive():
            clocks.append(one.condition().clock_khz[6])
            time.sleep(0.1)
        assert max(clocks) > MID.clusters[1].khz_min


class TestAgent:
    def test_the_agent_runs_end_to_end(self, adb: Adb) -> None:
        """A pushed static binary runs a child with a big-core mask and reads the phone's sensors."""
        binary = device_agents.agent_binary("x86_64")
        assert binary is not None
        agent = f"{TMP}/devbench/bin/agent"
        assert adb("push", str(binary), agent).returncode == 0
        run = f"{agent} run --detached --sample-ms 50 --affinity 80 -- sh -c 'echo measured; sleep 0.2'"
        done = adb.shell(run)
        transcript = parse(done.stdout, status=done.returncode, complaints=done.stderr.decode())
        assert transcript.output() == b"measured\n"
        assert transcript.closing["reason"] == "exit" and transcript.closing["exit"] == 0
        assert transcript.started["affinity"] == "80" and not transcript.records("W")
        (header,) = transcript.records("H")
        assert header["cpus"] == list(range(8)) and "quiet_therm" in header["zones"]
        sample = transcript.records("S")[0]
        assert len(sample["freq_khz"]) == 8 and sample["temp_mc"][6] is None and sample["temp_mc"][7] == -273000
