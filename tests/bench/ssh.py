"""What ssh costs: transfers against OpenSSH's own programs, connecting, and a trial beyond the runner's own time."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from orchestrator.clock import SYSTEM, Deadline
from orchestrator.deploy import Deployment
from orchestrator.platforms.linux import LINUX
from orchestrator.transports.base import Transport
from orchestrator.transports.ssh import SSH
from tests.bench.lab import new_lab
from tests.bench.measuring import quartiles
from tests.bench.overhead import report_trials
from tests.devices.ssh_board import IS_ROOT, BoardOptions, SshBoard, why_no_board

_BYTES = 200_000_000
_ROUNDS = 5
_CONNECTS = 20


def _options() -> BoardOptions:
    # The subsystem is for sftp and scp; devbench does not use it.
    return BoardOptions(config=["Subsystem sftp internal-sftp"], user="root" if IS_ROOT else BoardOptions().user)


def against_openssh() -> None:
    """200 MB up and down in turns with scp and sftp; second push; connecting; a trial's time beyond the runner's"""
    if reason := why_no_board(_options()):
        print(f"  not measured: {reason}")
        return
    board = SshBoard.start(_options())
    try:
        board.write_known_hosts()
        with tempfile.TemporaryDirectory() as folder:
            _transfers(board, Path(folder))
            _connecting(board)
            _trials(board)
    finally:
        board.stop()


def _transfers(board: SshBoard, folder: Path) -> None:
    source, back = folder / "large", folder / "back"
    source.write_bytes(os.urandom(_BYTES))
    there = f"{board.scratch}/large"
    transport = SSH.open(board.device(), deadline=Deadline.after(20))
    options = ["-q", "-P", str(board.port), "-i", str(board.key), "-o", f"UserKnownHostsFile={board.known_hosts}"]
    remote = f"{board.options.user}@127.0.0.1"
    ways: dict[str, Callable[[], object]] = {
        "devbench up": lambda: transport.push(source, there, deadline=Deadline.after(120)),
        "scp up": lambda: _do("scp", *options, str(source), f"{remote}:{there}"),
        "sftp up": lambda: _do("sftp", "-b", "-", *options, remote, told=f"put {source} {there}\n"),
        "devbench down": lambda: transport.pull(there, back, deadline=Deadline.after(120)),
        "scp down": lambda: _do("scp", *options, f"{remote}:{there}", str(back)),
        "sftp down": lambda: _do("sftp", "-b", "-", *options, remote, told=f"get {there} {back}\n"),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_ROUNDS):
        for name, way in ways.items():
            taken[name].append(_timed(way))
    for name, seconds in taken.items():
        print(f"  {name:14} best {min(seconds):5.2f} s, median {statistics.median(seconds):5.2f} s (n {_ROUNDS})")
    for way in ("up", "down"):
        best = min(min(taken[f"{tool} {way}"]) for tool in ("scp", "sftp"))
        print(f"  {way}: devbench takes {min(taken[f'devbench {way}']) / best:.2f} of the best of scp and sftp")
    _second_push(transport, board, source)
    transport.close()


def _second_push(transport: Transport, board: SshBoard, source: Path) -> None:
    """By a fresh deployment, as in the next run: the hash is read on the board."""
    workdir = str(board.scratch / "devbench")
    Deployment(transport, LINUX, workdir).ensure(source)
    again = [_timed(lambda: Deployment(transport, LINUX, workdir).ensure(source)) for _ in range(_ROUNDS)]
    print(f"  second push    best {min(again):5.2f} s, median {statistics.median(again):5.2f} s: hashed on the board")


def _connecting(board: SshBoard) -> None:
    device = board.device()

    def connect() -> None:
        SSH.open(device, deadline=Deadline.after(20)).close()

    address = [f"{board.options.user}@127.0.0.1", "-p", str(board.port), "-i", str(board.key)]
    known = ["-o", f"UserKnownHostsFile={board.known_hosts}"]
    ours, theirs = [], []
    for _ in range(_CONNECTS):
        ours.append(1000 * _timed(connect))
        theirs.append(1000 * _timed(lambda: _do("ssh", *address, *known, "true")))
    print(f"  open and close {quartiles(ours, 'ms', 0)}")
    print(f"  ssh … true     {quartiles(theirs, 'ms', 0)}")
    transport = SSH.open(device, deadline=Deadline.after(20))
    commands = [1000 * _timed(lambda: transport.run(["true"], deadline=Deadline.after(20))) for _ in range(100)]
    print(f"  one command    {quartiles(commands, 'ms', 1)}")
    transport.close()


def _trials(board: SshBoard) -> None:
    keys = board.address_keys | {"python": sys.executable, "workdir": str(board.scratch / "devbench")}
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    with new_lab() as lab:
        lab.write("devices.toml", "\n".join(["[[device]]", 'name = "board"', 'transport = "ssh"', *lines, ""]))
        report_trials(lab, "--fleet", "devices.toml")


def _timed(way: Callable[[], object]) -> float:
    began = SYSTEM.monotonic_s()
    way()
    return SYSTEM.monotonic_s() - began


def _do(*argv: str, told: str | None = None) -> None:
    subprocess.run(argv, input=told, text=True, check=True, capture_output=True)
