"""What can go wrong with an ssh board on the way, during a command and during a transfer: real servers, real cuts."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.clock import SYSTEM, Deadline
from orchestrator.errors import DeviceError, DeviceFull, DeviceLost, DeviceUnfit
from orchestrator.transports.base import Patience
from orchestrator.transports.ssh import SSH, open_board
from tests.devices.fixtures import StartBoard
from tests.devices.relay import Relay
from tests.devices.ssh_board import IS_ROOT, BoardOptions, SshBoard

HOSTILE = "a b'c\"d$(touch pwned)`id`;&|*?[é]\\ -x\nnext!! %s \\\\n"
needs_root = pytest.mark.skipif(not IS_ROOT, reason="needs root, for a mount namespace of the board's own")


def soon(seconds: float = 20.0) -> Deadline:
    return Deadline.after(seconds)


@pytest.fixture
def one(board: StartBoard) -> SshBoard:
    return board()


@pytest.fixture
def relay(one: SshBoard) -> Iterator[Relay]:
    with Relay(one.port) as between:
        yield between


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(8_000_000))
    return path


class TestCuts:
    def test_a_connection_cut_during_a_push_leaves_no_part_of_the_file(
        self, one: SshBoard, relay: Relay, large: Path
    ) -> None:
        """The board removes what it got so far by itself; the next push makes a connection of its own."""
        transport = SSH.open(one.device(port=relay.port), deadline=soon())
        relay.cut_after = 3_000_000
        with pytest.raises(DeviceLost, match="board went away"):
            transport.push(large, f"{one.scratch}/file", deadline=soon())
        assert relay.cuts == 1
        assert one.wait_until_idle()
        assert list(one.scratch.iterdir()) == []
        transport.push(large, f"{one.scratch}/file", deadline=soon())
        assert (one.scratch / "file").read_bytes() == large.read_bytes()
        transport.close()

    def test_a_connection_cut_during_a_pull_leaves_no_file(
        self, one: SshBoard, relay: Relay, large: Path, tmp_path: Path
    ) -> None:
        """Neither under its name nor under another."""
        (one.scratch / "file").write_bytes(large.read_bytes())
        transport = SSH.open(one.device(port=relay.port), deadline=soon())
        relay.bytes_per_s = 4_000_000
        cutting = threading.Timer(0.3, relay.cut)
        cutting.start()
        back = tmp_path / "folder" / "back"
        with pytest.raises(DeviceLost):
            transport.pull(f"{one.scratch}/file", back, deadline=soon())
        cutting.join()
        assert list(back.parent.iterdir()) == []
        transport.close()

    def test_a_connection_cut_during_a_command_is_a_loss_worth_a_retry(self, one: SshBoard, relay: Relay) -> None:
        """And a command that reads its input ends on the board, as the agent does."""
        transport = SSH.open(one.device(port=relay.port), deadline=soon())
        process = transport.start(["sh", "-c", "echo up; cat"])
        assert process.receive(soon()) == b"up\n"
        relay.cut()
        with pytest.raises(DeviceLost) as caught:
            process.receive(soon())
        assert caught.value.retryable
        assert one.wait_until_idle()
        assert transport.run(["echo", "again"], deadline=soon()).stdout == b"again\n"
        transport.close()

    def test_a_killed_server_is_a_loss_and_the_next_command_finds_the_new_one(self, one: SshBoard) -> None:
        """As when a board restarts."""
        transport = SSH.open(one.device(), deadline=soon())
        process = transport.start(["sh", "-c", "echo up; cat"])
        assert process.receive(soon()) == b"up\n"
        one.down()
        with pytest.raises(DeviceLost):
            process.wait(soon())
        with pytest.raises(DeviceLost, match="nothing listens at 127"):
            transport.run(["true"], deadline=soon())
        one.up()
        assert transport.run(["echo", "again"], deadline=soon()).stdout == b"again\n"
        transport.close()

    def test_a_frozen_link_is_noticed_by_whoever_waits(self, one: SshBoard, relay: Relay, large: Path) -> None:
        """No packet comes and no connection breaks; only an unanswered question tells. TCP would wait for minutes."""
        impatient = Patience(silence_s=0.2, echo_s=0.3)
        transport = open_board(one.device(port=relay.port), soon(), impatient)
        assert transport.run(["sleep", "1"], deadline=soon()).exit == 0  # silent, and alive
        relay.freeze()
        with pytest.raises(DeviceLost, match="connected but no longer answers"):
            transport.run(["sleep", "60"], deadline=soon(60))
        with pytest.raises(DeviceError, match=r"does not answer|cannot be reached"):
            transport.push(large, f"{one.scratch}/file", deadline=soon(1))
        transport.close()

    def test_a_link_that_freezes_during_a_push_ends_it(self, one: SshBoard, relay: Relay, large: Path) -> None:
        """Long before the push's own deadline."""
        transport = open_board(one.device(port=relay.port), soon(), Patience(silence_s=0.2, echo_s=0.3))
        relay.bytes_per_s = 2_000_000
        freezing = threading.Timer(0.3, relay.freeze)
        freezing.start()
        with pytest.raises(DeviceLost):
            transport.push(large, f"{one.scratch}/file", deadline=soon(60))
        freezing.join()
        transport.close()

    def test_a_slow_link_is_no_dead_one(self, one: SshBoard, relay: Relay, tmp_path: Path) -> None:
        """What is sent takes longer than the patience with silence, and arrives."""
        source = tmp_path / "file"
        source.write_bytes(os.urandom(1_200_000))
        transport = open_board(one.device(port=relay.port), soon(), Patience(silence_s=0.3, echo_s=0.4))
        relay.bytes_per_s = 600_000
        transport.push(source, f"{one.scratch}/file", deadline=soon(60))
        assert (one.scratch / "file").read_bytes() == source.read_bytes()
        transport.close()

    def test_a_push_past_its_deadline_is_stopped_on_the_board_too(
        self, one: SshBoard, relay: Relay, large: Path
    ) -> None:
        """The error says so, and nothing is left."""
        transport = SSH.open(one.device(port=relay.port), deadline=soon())
        relay.bytes_per_s = 1_000_000
        with pytest.raises(DeviceError, match=r"in time|no longer answers"):
            transport.push(large, f"{one.scratch}/file", deadline=soon(0.5))
        relay.bytes_per_s = None
        transport.close()
        assert one.wait_until_idle(10)
        assert list(one.scratch.iterdir()) == []

    def test_a_board_that_is_not_there_says_what_to_check(self, one: SshBoard) -> None:
        """Refused, unknown and mute are three things."""
        with pytest.raises(DeviceLost, match=r"cannot be found: no-such-host.invalid"):
            SSH.open(one.device(host="no-such-host.invalid"), deadline=soon())
        with Relay(one.port) as between:
            between.freeze()
            with pytest.raises(DeviceLost, match=r"cannot be reached at .*in time"):
                SSH.open(one.device(port=between.port), deadline=soon(0.5))
        one.down()
        with pytest.raises(DeviceLost, match=r"board is there, but nothing listens at 127.0.0.1:"):
            SSH.open(one.device(), deadline=soon())


class TestServers:
    @pytest.mark.parametrize("shell", ["/bin/csh", "/usr/bin/fish", "/bin/bash"])
    def test_any_login_shell_passes_arguments_untouched(self, board: StartBoard, shell: str) -> None:
        """Backslashes, exclamation marks, quotes and newlines mean nothing to whatever shell the user has."""
        transport = SSH.open(board(BoardOptions(shell=shell)).device(), deadline=soon())
        done = transport.run(["printf", "%s|", HOSTILE, "", "*"], deadline=soon())
        assert done.stdout.decode() == f"{HOSTILE}||*|"
        transport.close()

    def test_words_of_the_login_shell_are_not_the_commands(self, board: StartBoard) -> None:
        """A start-up file that greets spoils neither output nor files."""
        one = board(BoardOptions(shell="/bin/bash"))
        (one.home / ".bashrc").write_text("echo Welcome to the lab; echo really\n")
        transport = SSH.open(one.device(), deadline=soon())
        assert transport.run(["echo", "out"], deadline=soon()).stdout == b"out\n"
        transport.close()

    def test_an_account_without_a_shell_is_explained(self, board: StartBoard) -> None:
        """What it says instead is passed on."""
        one = board(BoardOptions(shell="/usr/sbin/nologin"))
        with pytest.raises(DeviceUnfit, match="login shell on board does not run commands; it says: This account"):
            SSH.open(one.device(), deadline=soon())

    def test_a_server_that_gives_files_only_is_explained(self, board: StartBoard) -> None:
        """internal-sftp as the forced command takes a command line and speaks no shell."""
        one = board(BoardOptions(config=["ForceCommand echo files only"]))
        with pytest.raises(DeviceUnfit, match="does not run commands; it says: files only"):
            SSH.open(one.device(), deadline=soon())

    def test_a_server_without_sessions_is_explained(self, board: StartBoard) -> None:
        """MaxSessions 0 lets people in for tunnels only."""
        one = board(BoardOptions(config=["MaxSessions 0"]))
        with pytest.raises(DeviceUnfit, match="opens no session") as caught:
            SSH.open(one.device(), deadline=soon())
        assert "MaxSessions" in caught.value.remedy

    def test_a_second_session_gets_a_connection_of_its_own_only_where_it_must(self, board: StartBoard) -> None:
        """One connection for everything that happens one after the other."""
        one = board(BoardOptions(config=["MaxSessions 1"]))
        with Relay(one.port) as between:
            transport = SSH.open(one.device(port=between.port), deadline=soon())
            for _ in range(20):
                transport.run(["true"], deadline=soon())
            assert between.connections == 1
            process = transport.start(["cat"])
            transport.run(["true"], deadline=soon())
            assert between.connections == 2
            process.kill()
            transport.close()

    @needs_root
    def test_a_board_that_starts_no_groups_still_has_its_commands_killed(self, board: StartBoard) -> None:
        """dropbear without `setsid`: the command itself is ended; what it started is not reached."""
        one = board(BoardOptions(server="dropbear", userland="busybox", without=("setsid",)))
        transport = SSH.open(one.device(), deadline=soon())
        with pytest.raises(DeviceError, match="sleep did not end in time and was killed"):
            transport.run(["sleep", "60"], deadline=soon(0.5))
        assert one.wait_until_idle()
        transport.close()

    def test_commands_are_found_where_the_path_is_empty(self, board: StartBoard) -> None:
        """Some boards give a session that is no login next to nothing."""
        one = board(BoardOptions(config=["SetEnv PATH=/nowhere"]))
        transport = SSH.open(one.device(), deadline=soon())
        assert transport.run(["uname", "-s"], deadline=soon()).stdout == b"Linux\n"
        transport.close()

    def test_a_board_has_one_hardware_by_all_its_addresses(self, one: SshBoard, relay: Relay) -> None:
        """So that two entries for one board are not measured at the same time."""
        opened = [SSH.open(device, deadline=soon()) for device in (one.device(), one.device(port=relay.port))]
        assert opened[0].hardware_id == opened[1].hardware_id
        for transport in opened:
            transport.close()

    def test_an_address_of_ipv6_leads_there(self, board: StartBoard) -> None:
        """With or without brackets."""
        one = board(BoardOptions(address="::1")) if IS_ROOT else pytest.skip("needs root")
        for host in ("::1", "[::1]"):
            transport = SSH.open(one.device(host=host), deadline=soon())
            assert transport.run(["true"], deadline=soon()).exit == 0
            transport.close()


@needs_root
class TestStorage:
    def test_a_full_disk_is_told_and_left_as_it_was(self, board: StartBoard, large: Path) -> None:
        """No part of the file takes the room that is left."""
        one = board(BoardOptions(scratch_mount="size=1m"))
        transport = SSH.open(one.device(), deadline=soon())
        with pytest.raises(DeviceFull, match="board has no space left: cannot write"):
            transport.push(large, f"{one.scratch}/file", deadline=soon())
        assert transport.run(["ls", "-A", str(one.scratch)], deadline=soon()).stdout == b""
        transport.close()

    def test_a_folder_that_takes_no_files_is_told(self, board: StartBoard, large: Path) -> None:
        """Read-only, or another user's."""
        one = board(BoardOptions(scratch_mount="ro"))
        transport = SSH.open(one.device(), deadline=soon())
        for target, reason in ((f"{one.scratch}/file", "Read-only file system"), ("/file", "Permission denied")):
            with pytest.raises(DeviceUnfit, match=f"cannot write {target}: {reason}"):
                transport.push(large, target, deadline=soon())
        transport.close()

    def test_a_folder_in_which_nothing_may_be_executed_is_told(self, board: StartBoard, tmp_path: Path) -> None:
        """The remedy is another workdir."""
        program = tmp_path / "program"
        program.write_text("#!/bin/sh\n")
        one = board(BoardOptions(scratch_mount="noexec"))
        transport = SSH.open(one.device(), deadline=soon())
        transport.push(program, f"{one.scratch}/program", deadline=soon(), executable=True)
        with pytest.raises(DeviceUnfit, match=r"cannot start .*program on board: Permission denied") as caught:
            transport.run([f"{one.scratch}/program"], deadline=soon())
        assert "noexec" in caught.value.remedy and "workdir" in caught.value.remedy
        transport.close()

    def test_a_default_folder_of_somebody_else_is_refused(self, one: SshBoard) -> None:
        """/var/tmp is everybody's: whoever owns the folder could exchange what is run from it."""
        device = one.device()
        folder = Path(SSH.default_workdir(device))
        if folder.exists():
            pytest.skip(f"{folder} exists on this machine")
        folder.mkdir()
        try:
            with pytest.raises(DeviceUnfit, match=f"board: {folder} belongs to another user"):
                SSH.open(device, deadline=soon())
        finally:
            folder.rmdir()


def test_closing_leaves_no_thread_behind(one: SshBoard) -> None:
    """Closing ends the watcher too."""
    before = threading.active_count()
    transport = SSH.open(one.device(), deadline=soon())
    transport.close()
    settled = soon(5)
    while threading.active_count() > before and not settled.passed:
        SYSTEM.sleep(0.01)
    assert threading.active_count() <= before
