"""However a trial ends, nothing the agent started is left, and settings are put back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents.agent_host import (
    STUBBORN,
    alive,
    cpu_ticks,
    descendants,
    finish,
    parse,
    pid_in,
    run,
    start,
    wait_until,
)

#: A host that starts an agent, tells its process number, and then reads the agent's output, or does not.
HOST = """
import subprocess, sys, time
reads = sys.argv[1] == "reads"
agent = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(agent.pid, flush=True)
while reads and agent.stdout.read(4096): pass
time.sleep(1000)
"""


@pytest.fixture
def setting(tmp_path: Path) -> Path:
    """A file that stands for a kernel setting."""
    file = tmp_path / "setting"
    file.write_text("old\n")
    return file


HostStart = Callable[..., tuple[subprocess.Popen[bytes], int]]


@pytest.fixture
def host_of() -> Iterator[HostStart]:
    """Starts a host and its agent; gives the host and the agent's process number. A failed test leaves neither."""
    hosts: list[subprocess.Popen[bytes]] = []

    def start_host(command: list[str], *, reads: bool = True) -> tuple[subprocess.Popen[bytes], int]:
        how = "reads" if reads else "does-not-read"
        host = subprocess.Popen([sys.executable, "-c", HOST, how, *command], stdout=subprocess.PIPE)
        hosts.append(host)
        assert host.stdout is not None
        return host, int(host.stdout.readline())

    yield start_host
    for host in hosts:
        host.kill()
        host.wait()


def _leads_its_group(pid: int) -> bool:
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:  # a sleep of the load's, which has ended meanwhile
        return False


def _kill_and_time(victim: subprocess.Popen[bytes], doomed: set[int]) -> float:
    """The seconds from SIGKILL to the last of `doomed` being gone."""
    victim.kill()
    took_s = wait_until(lambda: not any(map(alive, doomed)), within_s=5, what=f"{doomed} are dead")
    victim.wait()
    if victim.stdout is not None:
        victim.stdout.close()
    return took_s


def test_deadline_ends_a_stubborn_child_and_its_daemon(agent: Path, tmp_path: Path, setting: Path) -> None:
    """A child that ignores every polite signal is killed, and so is what it daemonised."""
    options = ["--chdir", str(tmp_path), "--deadline-s", "0.6", "--hold", f"{setting}=new"]
    began = time.monotonic()
    said = run([agent, "run", *options, "--", "sh", "-c", STUBBORN])
    assert time.monotonic() - began < 1.6
    assert (said.closing["reason"], said.closing["signal"]) == ("deadline", signal.SIGKILL)
    assert not alive(pid_in(tmp_path / "child.pid")) and not alive(pid_in(tmp_path / "grandchild.pid"))
    assert said.closing["holds_restored"] is True
    assert setting.read_text().strip() == "old"


def test_host_killed_while_running(agent: Path, tmp_path: Path, setting: Path, host_of: HostStart) -> None:
    """SIGKILL of the host ends child, grandchild, load and agent within a second and restores the hold."""
    options = ["--chdir", str(tmp_path), "--load", "cpu:1@5", "--settle-ms", "20", "--hold", f"{setting}=new"]
    host, agent_pid = host_of([str(agent), "run", *options, "--", "sh", "-c", STUBBORN])
    grandchild, child = pid_in(tmp_path / "grandchild.pid"), pid_in(tmp_path / "child.pid")
    doomed = descendants(agent_pid) | {agent_pid, child, grandchild}
    assert len(doomed) >= 4 and setting.read_text() == "new"
    assert _kill_and_time(host, doomed) < 1.0
    assert setting.read_text().strip() == "old"


def test_host_killed_while_settling(agent: Path, setting: Path, host_of: HostStart) -> None:
    """The load does not outlive the host when the child has not even started."""
    options = ["--load", "cpu:2@5", "--settle-ms", "60000", "--hold", f"{setting}=new"]
    host, agent_pid = host_of([str(agent), "run", *options, "--", "true"])
    wait_until(lambda: bool(descendants(agent_pid)), within_s=5, what="the load has started")
    assert setting.read_text() == "new"
    assert _kill_and_time(host, descendants(agent_pid) | {agent_pid}) < 1.0
    assert setting.read_text().strip() == "old"


def test_host_killed_while_nobody_reads(agent: Path, tmp_path: Path, setting: Path, host_of: HostStart) -> None:
    """An agent whose output is full still notices that its host is gone."""
    options = ["--chdir", str(tmp_path), "--load", "cpu:1@5", "--settle-ms", "20", "--hold", f"{setting}=new"]
    flood = "echo $$ > child.pid; exec yes a line that nobody reads"
    host, agent_pid = host_of([str(agent), "run", *options, "--", "sh", "-c", flood], reads=False)
    child = pid_in(tmp_path / "child.pid")
    _wait_until_blocked(child)
    assert _kill_and_time(host, descendants(agent_pid) | {agent_pid, child}) < 1.0
    assert setting.read_text().strip() == "old"


def _wait_until_blocked(pid: int) -> None:
    """A process that writes without end is blocked once its CPU time no longer grows."""
    seen: list[int] = []

    def blocked() -> bool:
        seen.append(cpu_ticks(pid))
        time.sleep(0.05)
        return len(seen) > 5 and seen[-1] == seen[-5]

    wait_until(blocked, within_s=20, what="the child is blocked")


def test_deadline_holds_while_nobody_reads(agent: Path, tmp_path: Path) -> None:
    """A host that is there but does not read cannot keep a child alive past the deadline."""
    flood = "echo $$ > child.pid; exec yes a line that nobody reads"
    process = start([agent, "run", "--chdir", tmp_path, "--deadline-s", "0.8", "--", "sh", "-c", flood])
    child = pid_in(tmp_path / "child.pid")
    wait_until(lambda: not alive(child), within_s=1.8, what="the child is dead")
    said = finish(process)
    assert said.closing["reason"] == "deadline"
    assert said.closing["lines"] == len(said.lines) - 1


def test_standard_input_closing_ends_the_trial(agent: Path, tmp_path: Path) -> None:
    """Closing standard input is how a host lets go; the closing record still arrives."""
    process = start([agent, "run", "--chdir", tmp_path, "--", "sh", "-c", STUBBORN])
    assert process.stdin is not None
    grandchild = pid_in(tmp_path / "grandchild.pid")
    process.stdin.close()
    said = finish(process, timeout_s=5)
    assert (said.closing["reason"], said.status) == ("host-gone", 0)
    assert not alive(grandchild)


def test_an_empty_standard_input_is_a_host_that_is_gone(agent: Path) -> None:
    """/dev/null as standard input ends the trial at once, unless --detached says not to look."""
    for options, reason in ([], "host-gone"), (["--detached"], "exit"):
        command = [str(agent), "run", *options, "--", "sleep", "0.3"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=5)
        assert parse(done.stdout).closing["reason"] == reason


def test_standard_output_closing_ends_the_trial(agent: Path, tmp_path: Path) -> None:
    """A host that stops listening is gone, even while its hand is still there."""
    process = start([agent, "run", "--chdir", tmp_path, "--sample-ms", "0", "--", "sh", "-c", STUBBORN])
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    grandchild = pid_in(tmp_path / "grandchild.pid")
    process.stdout.close()
    assert process.wait(5) == 74
    assert not alive(grandchild)
    process.stdin.close()
    process.stderr.close()


def test_missed_heartbeat_ends_the_trial(agent: Path, setting: Path) -> None:
    """A host that no longer beats is gone, though its end of the pipe is open."""
    said = run([agent, "run", "--heartbeat-s", "0.3", "--hold", f"{setting}=new", "--", "sleep", "1000"])
    assert said.closing["reason"] == "heartbeat"
    assert setting.read_text().strip() == "old"


def test_heartbeats_keep_the_trial_alive(agent: Path) -> None:
    """While bytes come in time, a trial longer than the heartbeat ends by itself."""
    process = start([agent, "run", "--heartbeat-s", "0.6", "--", "sleep", "1.2"])
    assert process.stdin is not None
    for _ in range(11):
        process.stdin.write(b".")
        process.stdin.flush()
        time.sleep(0.1)
    assert finish(process).closing["reason"] == "exit"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_to_the_agent_ends_the_trial(agent: Path, tmp_path: Path, setting: Path, number: signal.Signals) -> None:
    """A polite end of the agent is an end of everything, with a closing record."""
    options = ["--chdir", str(tmp_path), "--hold", f"{setting}=new"]
    process = start([agent, "run", *options, "--", "sh", "-c", STUBBORN])
    grandchild = pid_in(tmp_path / "grandchild.pid")
    process.send_signal(number)
    assert finish(process).closing["reason"] == "terminated"
    assert not alive(grandchild)
    assert setting.read_text().strip() == "old"


@pytest.mark.parametrize("load", ["cpu:2@5", "exec"])
def test_killing_the_agent_itself_kills_child_and_load(agent: Path, tmp_path: Path, load: str) -> None:
    """Not even SIGKILL of the agent leaves the child or the load behind."""
    own = ["--load-argc", "3"] if load == "exec" else []
    words = ["sh", "-c", "echo ready; while :; do sleep 0.01; done"] if load == "exec" else []
    options = ["--chdir", str(tmp_path), "--load", load, *own, "--settle-ms", "20"]
    process = start([agent, "run", *options, "--", *words, "sh", "-c", "echo $$ > child.pid; exec sleep 1000"])
    child = pid_in(tmp_path / "child.pid")
    doomed = {pid for pid in descendants(process.pid) if _leads_its_group(pid)}
    assert child in doomed and len(doomed) == 2
    assert _kill_and_time(process, doomed) < 1.0
    for pipe in (process.stdin, process.stderr):
        assert pipe is not None
        pipe.close()


@pytest.mark.parametrize("command", [["load", "cpu:1@5", "--seconds", "1000"], ["sample", "--seconds", "1000"]])
def test_load_and_sample_die_with_the_host(agent: Path, command: list[str], host_of: HostStart) -> None:
    """The other commands that last hold the host's hand too."""
    host, agent_pid = host_of([str(agent), *command])
    wait_until(lambda: alive(agent_pid), within_s=5, what="the agent runs")
    assert _kill_and_time(host, descendants(agent_pid) | {agent_pid}) < 1.0


def test_holds_are_read_back_and_put_back(agent: Path, setting: Path) -> None:
    """A hold is in force while the child runs, is shown with what it was, and is gone afterwards."""
    said = run([agent, "run", "--hold", f"{setting}=new", "--", "cat", str(setting)])
    assert said.output() == b"new"
    (hold,) = said.started["holds"]
    assert hold == {"path": str(setting), "was": "old", "asked": "new", "seen": "new", "error": None}
    assert said.closing["holds_restored"] is True
    assert setting.read_text() == "old"


def test_a_hold_that_cannot_be_had_is_a_warning(agent: Path, tmp_path: Path) -> None:
    """A setting that is not there is said to be so, twice: as a warning and in C."""
    path = tmp_path / "absent"
    said = run([agent, "run", "--hold", f"{path}=1", "--", "true"])
    (warning,) = said.records("W")
    assert (warning["what"], warning["reason"]) == (f"hold {path}", "ENOENT")
    assert said.started["holds"][0]["error"] == "ENOENT"
    assert said.closing["holds_restored"] is True
    assert not path.exists()


def test_a_child_with_a_grace_undoes_what_no_signal_of_ours_reaches(agent: Path, tmp_path: Path) -> None:
    """SIGTERM first: it has its time to clean up, also when the host is gone, and the load does not wait for it."""
    undo = f"trap 'sleep 0.2; echo undone > {tmp_path}/undone; exit 3' TERM; echo ready; sleep 1000 & wait"
    running = start([agent, "run", "--grace-ms", "5000", "--", "sh", "-c", undo])
    assert running.stdout is not None and running.stdin is not None
    while b"ready" not in running.stdout.readline():
        pass
    running.stdin.close()
    said = parse(running.stdout.read())
    running.wait()
    assert (said.closing["reason"], said.closing["exit"]) == ("host-gone", 3)
    assert (tmp_path / "undone").read_text() == "undone\n"


def test_a_grace_ends_with_sigkill(agent: Path, tmp_path: Path) -> None:
    """A stubborn child keeps nobody waiting longer than it was promised."""
    began = time.monotonic()
    options = ["--chdir", str(tmp_path), "--deadline-s", "0.5", "--grace-ms", "300"]
    said = run([agent, "run", *options, "--", "sh", "-c", STUBBORN])
    assert 0.8 < time.monotonic() - began < 2.5
    assert (said.closing["reason"], said.closing["signal"]) == ("deadline", signal.SIGKILL)
    assert not alive(pid_in(tmp_path / "grandchild.pid"))
