"""What every transport promises: one that is added to TRANSPORTS must pass all of it. This file is the contract."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from android_harness.adb_transport import ADB
from device_agents import agent_binary
from orchestrator.clock import SYSTEM, Deadline
from orchestrator.errors import CommandTimeout, DeviceError, DeviceUnfit
from orchestrator.fleet import Device
from orchestrator.transports.base import Transport
from orchestrator.transports.local import LOCAL
from orchestrator.transports.ssh import SSH

from ..devices.adb_server import AdbServer
from ..devices.fixtures import StartBoard, StartPhone
from ..devices.ssh_board import BoardOptions, SshBoard
from ..devices.virtual_phone import FLAGSHIP, OLD, Profile
from ..devices.virtual_phone.sandbox import Process

HOSTILE = "a b'c\"d$(touch pwned)`id`;&|*?[é]\\ -x\nnext"


class Phone(Protocol):
    """A phone that lives on this host, seen from behind."""

    @property
    def address(self) -> str: ...

    def path(self, path: str) -> Path: ...

    def processes(self) -> Sequence[Process]: ...


@dataclass(frozen=True)
class Bench:
    """A device under the contract, and how a test looks into it without the transport."""

    transport: Transport
    scratch: str
    """A folder on the device that is the test's own."""
    phone: Phone | None = None
    board: SshBoard | None = None

    def host_path(self, path: str) -> Path:
        """A file of the device, as this host sees it."""
        return self.phone.path(path) if self.phone else Path(path)

    def processes(self) -> list[object]:
        """What runs on the device; this machine has its own life, and is not asked."""
        if self.board:
            return [*self.board.processes()]
        return [*self.phone.processes()] if self.phone else []

    def is_alive(self, pid: int) -> bool:
        """Whether a process runs; one that ended and waits for its parent does not count."""
        if self.phone:
            return any(process.pid == pid for process in self.phone.processes())
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def wait_until_dead(self, pid: int, seconds: float = 5.0) -> bool:
        deadline = soon(seconds)
        while self.is_alive(pid) and not deadline.passed:
            SYSTEM.sleep(0.01)
        return not self.is_alive(pid)


def local_bench(request: pytest.FixtureRequest) -> Bench:
    scratch = request.getfixturevalue("tmp_path") / "scratch"
    scratch.mkdir()
    return Bench(LOCAL.open(Device("here", "local"), deadline=soon()), str(scratch))


def adb_bench(request: pytest.FixtureRequest, profile: Profile) -> Bench:
    start: StartPhone = request.getfixturevalue("phone")
    return phone_bench(request.getfixturevalue("adb_server"), start(profile, connected=False))


def phone_bench(server: AdbServer, phone: Phone) -> Bench:
    """A phone with a scratch folder that is empty."""
    address = {"serial": phone.address, "adb_server": f"127.0.0.1:{server.port}"}
    transport = ADB.open(Device("phone", "adb", address=address), deadline=soon(60))
    scratch = "/data/local/tmp/scratch"
    phone.path(scratch).mkdir()
    return Bench(transport, scratch, phone)


def ssh_bench(request: pytest.FixtureRequest, options: BoardOptions) -> Bench:
    start: StartBoard = request.getfixturevalue("board")
    board = start(options)
    transport = SSH.open(Device("board", "ssh", address=board.address_keys), deadline=soon(60))
    return Bench(transport, str(board.scratch), board=board)


BOARDS = {
    "ssh": BoardOptions(),
    "ssh_as_boards_are": BoardOptions(server="dropbear", userland="busybox"),
    "ssh_one_session_only": BoardOptions(config=["MaxSessions 1"], userland="busybox"),
}

TRANSPORTS = {
    "local": local_bench,
    **{name: partial(ssh_bench, options=options) for name, options in BOARDS.items()},
    "adb": lambda request: adb_bench(request, FLAGSHIP),
    "adb_before_android_7": lambda request: adb_bench(request, OLD),
}


@pytest.fixture(params=sorted(TRANSPORTS))
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    opened = TRANSPORTS[request.param](request)
    yield opened
    opened.transport.close()


@pytest.fixture
def transport(bench: Bench) -> Transport:
    return bench.transport


def soon(seconds: float = 20.0) -> Deadline:
    return Deadline.after(seconds)


def test_run_gives_status_and_both_streams_apart(transport: Transport) -> None:
    """A command's exit status, standard output and standard error arrive whole and apart."""
    done = transport.run(["sh", "-c", "printf out; printf err >&2; exit 7"], deadline=soon())
    assert (done.exit, done.stdout, done.stderr) == (7, b"out", b"err")


def test_a_signal_is_a_negative_status(transport: Transport) -> None:
    """A command ended by a signal says which."""
    assert transport.run(["sh", "-c", "kill -9 $$"], deadline=soon()).exit == -9


def test_arguments_arrive_untouched(transport: Transport) -> None:
    """No shell reads an argument: spaces, quotes, `$(…)`, globs and non-ASCII pass through."""
    done = transport.run(["printf", "%s\n", HOSTILE, "", "*"], deadline=soon())
    assert done.stdout.decode() == f"{HOSTILE}\n\n*\n"
    assert not Path("pwned").exists()


def test_standard_input_reaches_the_command(transport: Transport) -> None:
    """What is given as content is the command's standard input, byte for byte."""
    content = bytes(range(256)) * 1000
    assert transport.run(["cat"], deadline=soon(), content=content).stdout == content


def test_output_is_bytes(transport: Transport) -> None:
    """Output that is no text arrives unchanged."""
    done = transport.run(["printf", r"\377\000\r\n"], deadline=soon())
    assert done.stdout == b"\xff\x00\r\n"


def test_large_output_arrives_whole(transport: Transport) -> None:
    """Megabytes of output are neither cut nor slow to come."""
    done = transport.run(["head", "-c", "20000000", "/dev/zero"], deadline=soon())
    assert len(done.stdout) == 20_000_000


def test_a_deadline_kills_the_command_and_its_children(bench: Bench) -> None:
    """When the deadline passes the command is killed with all its children, and the error says so."""
    pidfile = f"{bench.scratch}/pid"
    script = f"sleep 60 & echo $! > '{pidfile}'; wait"
    with pytest.raises(CommandTimeout, match="sh did not end in time and was killed"):
        bench.transport.run(["sh", "-c", script], deadline=soon(0.5))
    assert bench.wait_until_dead(int(bench.host_path(pidfile).read_text()))


def test_a_missing_program_is_an_error_with_a_remedy(transport: Transport) -> None:
    """A program that is not there is named."""
    with pytest.raises(DeviceUnfit, match=r"no program /nowhere/prog on (this machine|phone|board)") as caught:
        transport.run(["/nowhere/prog"], deadline=soon())
    assert caught.value.remedy


def test_start_streams_while_the_command_runs(transport: Transport) -> None:
    """Output can be received and input sent while the command runs."""
    process = transport.start(["cat"])
    process.send(b"ping\n")
    received = b""
    while b"\n" not in received:
        received += process.receive(soon())
    assert received == b"ping\n"
    process.close_input()
    while not process.at_end:
        process.receive(soon())
    assert process.wait(soon()) == 0


def test_receive_gives_nothing_when_the_deadline_passes(transport: Transport) -> None:
    """Waiting for output ends with the deadline, and the process lives on."""
    process = transport.start(["cat"])
    assert process.receive(soon(0.05)) == b""
    assert not process.at_end
    process.kill()


def test_the_last_words_on_standard_error_are_kept(transport: Transport) -> None:
    """Standard error of a started process never blocks it, and its end can be read."""
    process = transport.start(["sh", "-c", "head -c 3000000 /dev/zero >&2; echo last words >&2; exit 3"])
    while not process.at_end:
        process.receive(soon())
    assert process.wait(soon()) == 3
    assert process.stderr_tail.endswith(b"last words\n")


def test_sending_to_a_dead_process_is_no_error(transport: Transport) -> None:
    """What nobody can read any more is dropped."""
    process = transport.start(["true"])
    while not process.at_end:
        process.receive(soon())
    for _ in range(3):
        process.send(b"x" * 100_000)
    process.close_input()
    assert process.wait(soon()) == 0


def test_waiting_past_the_deadline_kills(transport: Transport) -> None:
    """wait() ends a process that does not."""
    process = transport.start(["sleep", "60"])
    with pytest.raises(CommandTimeout):
        process.wait(soon(0.1))


def test_a_killed_process_says_so(transport: Transport) -> None:
    """Killing twice is no error, and the status is the signal's."""
    process = transport.start(["sleep", "60"])
    process.kill()
    process.kill()
    assert process.wait(soon()) == -9


def test_close_ends_what_was_started(bench: Bench) -> None:
    """Closing the transport leaves nothing running."""
    pidfile = f"{bench.scratch}/pid"
    process = bench.transport.start(["sh", "-c", f"echo $$ > '{pidfile}'; echo up; exec sleep 60"])
    assert process.receive(soon()) == b"up\n"
    bench.transport.close()
    assert bench.wait_until_dead(int(bench.host_path(pidfile).read_text()))


def test_push_and_pull_keep_every_byte(bench: Bench, tmp_path: Path) -> None:
    """A file goes to the device and comes back the same, whatever its name, folders made on the way."""
    source = tmp_path / HOSTILE.replace("/", "_")
    source.write_bytes(os.urandom(3_000_000))
    target = f"{bench.scratch}/new folder/{HOSTILE}"
    bench.transport.push(source, target, deadline=soon())
    back = tmp_path / "back"
    bench.transport.pull(target, back, deadline=soon())
    assert back.read_bytes() == source.read_bytes()


def test_push_can_make_a_file_executable(bench: Bench, tmp_path: Path) -> None:
    """A pushed program can be run."""
    source = tmp_path / "tool"
    source.write_text(f"#!{'/system/bin/sh' if bench.phone else '/bin/sh'}\necho ran\n")
    target = f"{bench.scratch}/new/tool"
    bench.transport.push(source, target, deadline=soon(), executable=True)
    assert bench.transport.run([target], deadline=soon()).stdout == b"ran\n"


def test_a_failed_push_leaves_nothing_behind(bench: Bench, tmp_path: Path) -> None:
    """A push that cannot be finished leaves neither the file nor a part of it."""
    with pytest.raises(DeviceError):
        bench.transport.push(tmp_path / "missing", f"{bench.scratch}/file", deadline=soon())
    assert list(bench.host_path(bench.scratch).iterdir()) == []


def test_a_push_in_the_place_of_a_folder_is_refused(bench: Bench, tmp_path: Path) -> None:
    """The file does not vanish into the folder, and no part of it is left beside."""
    source = tmp_path / "file"
    source.write_bytes(b"x")
    folder = bench.host_path(bench.scratch) / "folder"
    folder.mkdir()
    with pytest.raises(DeviceUnfit, match="Is a directory"):
        bench.transport.push(source, f"{bench.scratch}/folder", deadline=soon())
    assert list(folder.parent.iterdir()) == [folder]
    assert list(folder.iterdir()) == []


def test_pulling_what_is_not_there_is_an_error(bench: Bench, tmp_path: Path) -> None:
    """It leaves no file on the host."""
    with pytest.raises(DeviceError):
        bench.transport.pull(f"{bench.scratch}/missing", tmp_path / "back", deadline=soon())
    assert not (tmp_path / "back").exists()


def test_push_replaces_a_running_program(bench: Bench, tmp_path: Path) -> None:
    """A program that is running can be replaced: the copy is made beside it and renamed."""
    agent = agent_binary(os.uname().machine)  # a static program, which runs anywhere
    assert agent, "build it with `make agents`"
    other = tmp_path / "other"
    other.write_text(f"#!{'/system/bin/sh' if bench.phone else '/bin/sh'}\nexit 4\n")
    target = f"{bench.scratch}/program"
    bench.transport.push(agent, target, deadline=soon(), executable=True)
    process = bench.transport.start([target, "sample", "--seconds", "60"])
    assert process.receive(soon())
    bench.transport.push(other, target, deadline=soon(), executable=True)
    assert bench.transport.run([target], deadline=soon()).exit == 4
    process.kill()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files through /proc, which is not here")
def test_a_thousand_commands_leak_nothing(bench: Bench) -> None:
    """Neither open files nor threads nor processes pile up."""
    transport = bench.transport
    if bench.board and bench.board.options.config:
        pytest.skip("counted on the boards beside it; one session at a time makes no other sessions")
    transport.run(["true"], deadline=soon())
    before, threads_before = open_files(), threading.active_count()
    for number in range(1000):
        if number % 10:
            transport.run(["true"], deadline=soon())
        else:
            process = transport.start(["true"])
            while not process.at_end:
                process.receive(soon())
            process.wait(soon())
    settled = soon(5)  # a virtual phone lives in this process too, and closes its ends a moment later
    while (open_files() > before + 2 or bench.processes()) and not settled.passed:
        SYSTEM.sleep(0.01)
    assert open_files() <= before + 2
    assert threading.active_count() <= threads_before + 2
    assert bench.processes() == []


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_this_python_is_the_device_python() -> None:
    """On this machine Python runners run with the Python that runs devbench."""
    assert LOCAL.python(Device("here", "local")) == sys.executable
