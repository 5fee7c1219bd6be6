"""`devbench` on boards over ssh, as a user types it: a real sshd on loopback, real inference with LiteRT."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.clock import SYSTEM, Deadline
from tests.cli.conftest import TINY, Workplace
from tests.devices.fixtures import StartBoard
from tests.devices.relay import Relay
from tests.devices.ssh_board import IS_ROOT, BoardOptions, SshBoard

PYTHON = sys.executable


def write_fleet(lab: Workplace, **boards: SshBoard) -> None:
    lab.write("devices.toml", "\n".join(entry(name, board) for name, board in boards.items()))


def entry(name: str, board: SshBoard, **keys: str | int) -> str:
    """A `[[device]]`, with the interpreter that has LiteRT, and a workdir that goes with the board."""
    pairs = board.address_keys | {"python": PYTHON, "workdir": str(board.scratch / "devbench")} | keys
    lines = [f"{key} = {json.dumps(value)}" for key, value in pairs.items() if value != ""]
    return "\n".join(["[[device]]", f'name = "{name}"', 'transport = "ssh"', *lines, ""])


@pytest.fixture
def one(board: StartBoard, workplace: Workplace) -> SshBoard:
    """A board whose user can reach the interpreter of this checkout: as root, root, because it may lie in its home."""
    home = workplace.folder / "home"
    home.mkdir()
    workplace.env["HOME"] = str(home)
    return board(BoardOptions(user="root") if IS_ROOT else None)


def wait_for_a_trial(lab: Workplace, process: subprocess.Popen[str]) -> None:
    deadline = Deadline.after(60)
    while not list(lab.folder.glob("devbench-results/artifacts/*/*.log")):
        assert not deadline.passed and process.poll() is None
        SYSTEM.sleep(0.02)


def test_one_command_measures_a_board(workplace: Workplace, one: SshBoard) -> None:
    """Agent, runner and model are brought there; every trial has its samples and its evidence."""
    write_fleet(workplace, board=one)
    done = workplace.devbench("run", "--plan", workplace.quick_plan(loads='["idle", "cpu:1@20"]'), "--json")
    assert done.status == 0, done.stderr
    assert done.json["trials"]["measured"] == 4
    for trial in workplace.exported():
        assert len(trial["samples_us"]) >= 5
        assert trial["evidence"]["closing"]["reason"] == "exit"
        assert trial["evidence"]["observed"]["model_sha256"] == trial["model_sha256"]
    assert one.wait_until_idle()
    again = workplace.devbench("run", "--plan", workplace.quick_plan(blocks="1:1"), "--quiet")
    assert again.status == 0, again.stderr
    blobs = [path.name for path in (one.scratch / "devbench" / "blobs").glob("*/*")]
    assert len(blobs) == len(set(blobs)) == 3  # pushed once, found by their content the second time


def test_a_board_with_nothing_but_dropbear_and_busybox_is_measured(workplace: Workplace, board: StartBoard) -> None:
    """An unprivileged user, no Python, no SFTP: devbench brings the runner and LiteRT's library."""
    bare = board(BoardOptions(server="dropbear", userland="busybox"))
    write_fleet(workplace, bare=bare)
    plan = workplace.quick_plan(blocks="1:1", loads='["idle", "cpu:1@20"]')
    done = workplace.devbench("run", "--plan", plan, "--runner", "litert_native", "--json")
    assert done.status == 0, done.stderr
    assert done.json["trials"]["measured"] == 2
    assert bare.wait_until_idle()


def test_what_a_board_is_can_be_asked(workplace: Workplace, one: SshBoard) -> None:
    """CPU, userland and libc; in words and as JSON. `doctor` finds it fit."""
    write_fleet(workplace, board=one)
    (device,) = workplace.devbench("devices", "--json").json["devices"]
    assert device["facts"]["machine"] == os.uname().machine
    assert device["facts"]["raw"]["board"]["libc"]["name"] in ("glibc", "musl")
    shown = workplace.devbench("doctor")
    assert shown.status == 0, shown.stdout
    assert "board · ssh · fit" in shown.stdout
    assert "userland of 64 bits, glibc" in shown.stdout


def test_a_connection_cut_during_a_trial_costs_nothing_but_time(workplace: Workplace, one: SshBoard) -> None:
    """The board is reached again, the slot is run again; no trial is lost or doubled, and nothing runs on."""
    with Relay(one.port) as relay:
        workplace.write("devices.toml", entry("board", one, port=relay.port))
        process = workplace.start("run", "--plan", workplace.quick_plan(blocks="6:6", loads='["cpu:1@30"]'))
        wait_for_a_trial(workplace, process)
        relay.cut_after = 200
        _, stderr = process.communicate(timeout=90)
        assert relay.cuts == 1
    assert process.returncode == 0, stderr
    trials = workplace.exported()
    assert len({(trial["cell"], trial["block"]) for trial in trials}) == len(trials) == 6
    assert "board: board went away" in stderr
    assert one.wait_until_idle()


def test_a_server_that_is_killed_during_a_run_leaves_no_load_behind(workplace: Workplace, one: SshBoard) -> None:
    """The agent sees its host go and ends everything within a second or two; `--resume` does the rest."""
    write_fleet(workplace, board=one)
    process = workplace.start("run", "--plan", workplace.quick_plan(blocks="8:8", loads='["cpu:1@30"]'))
    wait_for_a_trial(workplace, process)
    one.down()
    assert one.wait_until_idle()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    one.up()
    done = workplace.devbench("run", "--resume", "--json")
    assert done.status == 0, done.stderr
    assert done.json["trials"]["measured"] == 8


def test_an_interrupted_run_leaves_nothing_on_the_board(workplace: Workplace, one: SshBoard) -> None:
    """Ctrl-C during a trial: exit 130, and neither agent nor load runs on."""
    write_fleet(workplace, board=one)
    process = workplace.start("run", "--plan", workplace.quick_plan(blocks="50:50", loads='["cpu:1@30"]'), "--quiet")
    wait_for_a_trial(workplace, process)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.communicate()
    assert one.wait_until_idle()


def test_one_board_under_two_addresses_is_measured_once(workplace: Workplace, one: SshBoard) -> None:
    """The second name for the same hardware is refused while the first is measured."""
    with Relay(one.port) as relay:
        fleet = entry("first", one) + "\n" + entry("second", one, port=relay.port)
        workplace.write("devices.toml", fleet)
        done = workplace.devbench("run", "--plan", workplace.quick_plan(blocks="3:3"), "--json")
    assert done.status == 5
    assert "is busy: run" in done.stderr


def test_a_board_with_another_host_key_is_not_measured(workplace: Workplace, one: SshBoard) -> None:
    """Exit 4 with the fingerprint; `doctor` says the same."""
    fleet = entry("board", one)
    one.renew_host_key()
    workplace.write("devices.toml", fleet)
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--quiet")
    assert done.status == 4, done.stderr
    assert f"shows the host key ed25519 {one.fingerprint()}" in done.stderr
    shown = workplace.devbench("doctor")
    assert shown.status == 4
    assert one.fingerprint() in shown.stdout and "change host_key" in shown.stdout


def test_a_board_without_the_runtime_is_told_what_it_lacks(workplace: Workplace, one: SshBoard) -> None:
    """The board's own python3 has no LiteRT."""
    workplace.write("devices.toml", entry("board", one, python="/usr/bin/python3"))
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--quiet")
    assert done.status == 4, done.stderr
    assert "ai_edge_litert" in done.stderr or "ai-edge-litert" in done.stderr


def test_clean_leaves_no_trace_on_the_board(workplace: Workplace, one: SshBoard) -> None:
    """`devbench devices --clean` removes what devbench pushed."""
    write_fleet(workplace, board=one)
    assert workplace.devbench("run", "--plan", workplace.quick_plan(blocks="1:1"), "--quiet").status == 0
    assert (one.scratch / "devbench" / "blobs").exists()
    assert workplace.devbench("devices", "--clean").stdout == "board: clean\n"
    assert list(one.scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('password = "hunter2"', '[[device]] "board" password: no secret belongs in this file'),
        ('host = "pi@board"', 'host = "pi@board" is no host name'),
        ('host = ""', "host"),
        ("port = 70000", "port"),
        ('host_key = "SHA256:short"', 'host_key = "SHA256:short" is no fingerprint'),
        ('key = "/no/such/key"', 'key = "/no/such/key": no such file'),
        ('serial = "123"', 'belongs to transport "adb"'),
        ('hosst = "x"', "hosst"),
    ],
)
def test_a_wrong_entry_is_refused_before_anything_is_touched(workplace: Workplace, lines: str, words: str) -> None:
    """Exit 2, and the message names the key."""
    host = "" if "host =" in lines else 'host = "board.invalid"\n'
    fleet = f'[[device]]\nname = "board"\ntransport = "ssh"\n{host}{lines}\n'
    workplace.write("devices.toml", fleet)
    done = workplace.devbench("run", "--model", TINY, "--quiet")
    assert done.status == 2, done.stderr
    assert words in done.stderr
    assert "hunter2" not in done.stderr


def test_without_paramiko_the_extra_is_named(workplace: Workplace) -> None:
    """Exit 3: the host lacks something."""
    workplace.write("devices.toml", '[[device]]\nname = "board"\ntransport = "ssh"\nhost = "board.invalid"\n')
    code = "import sys; sys.modules['paramiko'] = None; from orchestrator.cli import main; main()"
    command = [PYTHON, "-c", code, "run", "--model", TINY, "--quiet"]
    done = subprocess.run(command, cwd=workplace.folder, env=workplace.env, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "pip install 'devbench[ssh]'" in done.stderr


def test_the_agent_is_the_one_for_the_userland(one: SshBoard, tmp_path: Path) -> None:
    """The right program for this machine was pushed: it says so itself."""
    from orchestrator.deploy import Deployment
    from orchestrator.platforms.linux import LINUX
    from orchestrator.transports.ssh import SSH

    transport = SSH.open(one.device(), deadline=Deadline.after(20))
    deployment = Deployment(transport, LINUX, str(one.scratch / "here"))
    assert deployment.agent.probe(Deadline.after(20))["machine"] == os.uname().machine
    transport.close()
