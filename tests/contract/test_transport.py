"""What every transport promises: one that is added to TRANSPORTS must pass all of it. This file is the contract."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.clock import SYSTEM, Deadline
from orchestrator.errors import CommandTimeout, DeviceError, DeviceUnfit
from orchestrator.fleet import Device
from orchestrator.transports.base import Transport
from orchestrator.transports.local import LOCAL

TRANSPORTS = {"local": (LOCAL, Device("here", "local"))}
HOSTILE = "a b'c\"d$(touch pwned)`id`;&|*?[é]\\ -x"


@pytest.fixture(params=sorted(TRANSPORTS))
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    kind, device = TRANSPORTS[request.param]
    opened = kind.open(device, deadline=soon())
    yield opened
    opened.close()


def soon(seconds: float = 20.0) -> Deadline:
    return Deadline.after(seconds)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and waits for its parent does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_dead(pid: int, seconds: float = 5.0) -> bool:
    deadline = soon(seconds)
    while is_alive(pid) and not deadline.passed:
        SYSTEM.sleep(0.01)
    return not is_alive(pid)


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


def test_a_deadline_kills_the_command_and_its_children(transport: Transport, tmp_path: Path) -> None:
    """When the deadline passes the command is killed with all its children, and the error says so."""
    pidfile = tmp_path / "pid"
    script = f"sleep 60 & echo $! > '{pidfile}'; wait"
    with pytest.raises(CommandTimeout, match="sh did not end in time and was killed"):
        transport.run(["sh", "-c", script], deadline=soon(0.5))
    assert wait_until_dead(int(pidfile.read_text()))


def test_a_missing_program_is_an_error_with_a_remedy(transport: Transport) -> None:
    """A program that is not there is named."""
    with pytest.raises(DeviceUnfit, match="no program /nowhere/prog on this machine") as caught:
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


def test_close_ends_what_was_started(transport: Transport, tmp_path: Path) -> None:
    """Closing the transport leaves nothing running."""
    pidfile = tmp_path / "pid"
    process = transport.start(["sh", "-c", f"echo $$ > '{pidfile}'; echo up; exec sleep 60"])
    assert process.receive(soon()) == b"up\n"
    transport.close()
    assert wait_until_dead(int(pidfile.read_text()))


def test_push_and_pull_keep_every_byte(transport: Transport, tmp_path: Path) -> None:
    """A file goes to the device and comes back the same, whatever its name, folders made on the way."""
    source = tmp_path / HOSTILE.replace("/", "_")
    source.write_bytes(os.urandom(3_000_000))
    target = tmp_path / "device" / "new folder" / HOSTILE
    transport.push(source, str(target), deadline=soon())
    back = tmp_path / "back"
    transport.pull(str(target), back, deadline=soon())
    assert back.read_bytes() == source.read_bytes()


def test_push_can_make_a_file_executable(transport: Transport, tmp_path: Path) -> None:
    """A pushed program can be run."""
    source = tmp_path / "tool"
    source.write_text("#!/bin/sh\necho ran\n")
    target = str(tmp_path / "device" / "tool")
    transport.push(source, target, deadline=soon(), executable=True)
    assert transport.run([target], deadline=soon()).stdout == b"ran\n"


def test_a_failed_push_leaves_nothing_behind(transport: Transport, tmp_path: Path) -> None:
    """A push that cannot be finished leaves neither the file nor a part of it."""
    folder = tmp_path / "device"
    folder.mkdir()
    with pytest.raises(DeviceError):
        transport.push(tmp_path / "missing", str(folder / "file"), deadline=soon())
    assert list(folder.iterdir()) == []


def test_push_replaces_a_running_program(transport: Transport, tmp_path: Path) -> None:
    """A program that is running can be replaced: the copy is made beside it and renamed."""
    target = str(tmp_path / "sleeper")
    transport.push(Path("/bin/sleep"), target, deadline=soon(), executable=True)
    process = transport.start([target, "60"])
    transport.push(Path("/bin/true"), target, deadline=soon(), executable=True)
    assert transport.run([target], deadline=soon()).exit == 0
    process.kill()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files through /proc, which is not here")
def test_a_thousand_commands_leak_nothing(transport: Transport) -> None:
    """Neither open files nor processes pile up."""
    transport.run(["true"], deadline=soon())
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(1000):
        if number % 10:
            transport.run(["true"], deadline=soon())
        else:
            process = transport.start(["true"])
            while not process.at_end:
                process.receive(soon())
            process.wait(soon())
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2


def test_this_python_is_the_device_python() -> None:
    """On this machine Python runners run with the Python that runs devbench."""
    assert LOCAL.python(Device("here", "local")) == sys.executable
