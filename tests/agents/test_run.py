"""`run`: the child's output, its end, and what is told about it."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.agents.agent_host import finish, run, start

PYTHON = sys.executable


def _write_bytes(content: bytes, file: Path) -> list[str]:
    file.write_bytes(content)
    return ["cat", str(file)]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"one\ntwo\n",
        b"no newline at the end",
        b"\n\n\nempty lines\n\n",
        bytes(range(256)) * 3 + b"\n",
        b"\xff\xfe not UTF-8 \x80\n\x00\x00\r\n",
        b"x" * 32768 + b"\n",
        b"x" * 32769 + b"\n",
        b"y" * 100_000 + b"\nshort\n" + b"z" * 1_500_000,
        b"\n" * 300_000,
    ],
    ids=[
        *("nothing", "newline", "lines", "unended", "empty", "all-bytes", "not-utf8"),
        *("at-limit", "over-limit", "long", "many"),
    ],
)
def test_output_arrives_byte_for_byte(agent: Path, tmp_path: Path, content: bytes) -> None:
    """Whatever the child writes can be put together again exactly, and the closing record counts the lines."""
    said = run([agent, "run", "--sample-ms", "0", "--", *_write_bytes(content, tmp_path / "content")])
    assert said.output("O") == content
    assert said.closing["lines"] == len(said.lines) - 1
    assert said.closing["output_complete"] is True
    assert said.status == 0


def test_pieces_of_a_long_line_keep_the_limit(agent: Path, tmp_path: Path) -> None:
    """No line carries more than 32 KiB of text; a line of exactly that length is not cut."""
    content = b"a" * 32768 + b"\n" + b"b" * 32769 + b"\n"
    said = run([agent, "run", "--sample-ms", "0", "--", *_write_bytes(content, tmp_path / "content")])
    pieces = [(line.letter, len(line.text)) for line in said.lines if line.letter in "Oo"]
    assert pieces == [("O", 32768), ("o", 32768), ("O", 1)]


def test_standard_error_is_kept_apart(agent: Path) -> None:
    """Standard output and standard error arrive under their own letters, with times in order."""
    said = run([agent, "run", "--", "sh", "-c", "echo out; echo err >&2; printf tail >&2"])
    assert (said.output("O"), said.output("E")) == (b"out\n", b"err\ntail")
    began = said.started["t_ns"]
    assert all(line.t_ns >= began for line in said.lines if line.letter in "OEoe")


def test_header_comes_first_and_says_what_samples_mean(agent: Path) -> None:
    """H opens the stream and names the clock, the CPUs and what is absent."""
    said = run([agent, "run", "--", "true"])
    header = said.lines[0].record
    assert said.lines[0].letter == "H"
    assert (header["protocol"], header["command"]) == (1, "run")
    assert set(os.sched_getaffinity(0)) <= set(header["cpus"])
    assert {"pid", "t_ns", "wall_s", "zones", "batteries", "tick_hz", "absent"} <= set(header)


@pytest.mark.parametrize("status", [0, 1, 127, 255])
def test_exit_status_is_told(agent: Path, status: int) -> None:
    """The child's exit status stands in X; the agent's own stays 0."""
    said = run([agent, "run", "--", "sh", "-c", f"exit {status}"])
    assert (said.closing["reason"], said.closing["exit"], said.closing["signal"]) == ("exit", status, None)
    assert said.status == 0


def test_signal_of_the_child_is_told(agent: Path) -> None:
    """A child that dies of a signal is no exit."""
    said = run([agent, "run", "--", "sh", "-c", "kill -SEGV $$"])
    assert (said.closing["reason"], said.closing["exit"]) == ("signal", None)
    assert said.closing["signal"] == signal.SIGSEGV


@pytest.mark.parametrize(
    ("words", "errno", "stage"),
    [
        (["--", "/no/such/program"], "ENOENT", "exec"),
        (["--", "/etc"], "EACCES", "exec"),
        (["--chdir", "/no/such/directory", "--", "true"], "ENOENT", "chdir"),
    ],
)
def test_a_child_that_cannot_start_is_told(agent: Path, words: list[str], errno: str, stage: str) -> None:
    """What kept the child from running has a name; there is no C record and no exit status."""
    said = run([agent, "run", *words])
    assert (said.closing["reason"], said.closing["errno"], said.closing["stage"]) == ("spawn", errno, stage)
    assert (said.closing["exit"], said.closing["signal"]) == (None, None)
    assert said.records("C") == []
    assert said.status == 0


def test_environment_and_directory_reach_the_child(agent: Path, tmp_path: Path) -> None:
    """--env and --chdir are for the child, and --env repeats."""
    options = ["--chdir", str(tmp_path), "--env", "DEVBENCH_A=one=1", "--env", "DEVBENCH_B=two"]
    said = run([agent, "run", *options, "--", "sh", "-c", 'pwd; echo "$DEVBENCH_A $DEVBENCH_B"'])
    assert said.output() == f"{tmp_path}\none=1 two\n".encode()


def test_the_child_reads_nothing(agent: Path) -> None:
    """The host's bytes are heartbeats, not the child's input."""
    process = start([agent, "run", "--", "cat"])
    assert process.stdin is not None
    process.stdin.write(b"beat\n")
    process.stdin.flush()
    said = finish(process)
    assert (said.output(), said.closing["reason"]) == (b"", "exit")


def test_affinity_is_applied_and_read_back(agent: Path) -> None:
    """The mask holds before the child's first instruction, and both records show what the kernel says."""
    mask = format(1 << min(os.sched_getaffinity(0)), "x")
    child = [PYTHON, "-c", "import os; print(sum(1 << cpu for cpu in os.sched_getaffinity(0)))"]
    said = run([agent, "run", "--affinity", mask, "--", *child])
    assert said.output() == f"{int(mask, 16)}\n".encode()
    assert (said.started["affinity"], said.closing["affinity"]) == (mask, mask)
    assert said.records("W") == []


def test_affinity_that_cannot_be_had_is_a_warning(agent: Path) -> None:
    """A mask of CPUs that do not exist is said to have failed, and the real mask is shown."""
    said = run([agent, "run", "--affinity", "8" + "0" * 200, "--", "true"])
    assert {"what": "affinity", "reason": "EINVAL"}.items() <= said.records("W")[0].items()
    everything = sum(1 << cpu for cpu in os.sched_getaffinity(0))
    assert said.started["affinity"] == format(everything, "x")


def test_threads_are_counted_with_their_cpu_time(agent: Path) -> None:
    """X tells the most threads seen at once and the CPU time of each, most first."""
    code = (
        "import threading, time\n"
        "def work():\n end = time.thread_time() + 0.1\n while time.thread_time() < end: pass\n time.sleep(0.5)\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
    )
    threads = run([agent, "run", "--sample-ms", "50", "--", PYTHON, "-c", code]).closing["threads"]
    assert threads["max"] == 4
    assert threads["by_cpu_ns"] == sorted(threads["by_cpu_ns"], reverse=True)
    assert sum(ns >= 90_000_000 for ns in threads["by_cpu_ns"]) >= 3


def test_resources_of_the_child_are_told(agent: Path) -> None:
    """Times and faults come from the child alone, and its memory is not the agent's."""
    closing = run([agent, "run", "--", "true"]).closing
    assert 0 < closing["maxrss_kb"] < 6000
    assert closing["wall_ns"] > 0
    assert {"user_ns", "system_ns", "minor_faults", "major_faults"} <= set(closing)
    code = "b = bytearray(80_000_000)"
    assert run([agent, "run", "--", PYTHON, "-c", code]).closing["maxrss_kb"] > 78_000


def test_samples_come_at_their_period(agent: Path) -> None:
    """Telemetry is sampled at absolute times, with totals that never fall and the child's own share."""
    said = run([agent, "run", "--sample-ms", "50", "--", PYTHON, "-c", "import time; time.sleep(0.5)"])
    samples = said.records("S")
    assert len(samples) >= 8
    spans = [(later["t_ns"] - first["t_ns"]) / 50e6 for first, later in itertools.pairwise(samples)]
    assert sorted(spans)[len(spans) // 2] == pytest.approx(1.0, abs=0.2)
    for key in ("busy", "idle", "steal"):
        totals = [sample[key] for sample in samples]
        assert all(a <= b for old, new in itertools.pairwise(totals) for a, b in zip(old, new, strict=True))
    child = [sample["child"] for sample in samples if "child" in sample]
    assert child[-1]["cpu_ns"] > 0 and child[-1]["rss_kb"] > 0 and child[-1]["threads"] == 1


def test_no_samples_when_turned_off(agent: Path) -> None:
    """--sample-ms 0 gives no S line, and threads are still counted."""
    said = run([agent, "run", "--sample-ms", "0", "--", "sleep", "0.1"])
    assert said.records("S") == []
    assert said.closing["threads"]["max"] == 1


def test_a_child_that_ends_at_once_is_never_missed(agent: Path) -> None:
    """However the child's end falls between two looks of the agent, the trial ends with it."""
    for _ in range(60):
        said = run([agent, "run", "--sample-ms", "0", "--deadline-s", "5", "--", "true"])
        assert (said.closing["reason"], len(said.records("C"))) == ("exit", 1)


def test_output_of_a_grandchild_that_ends_soon_is_kept(agent: Path) -> None:
    """What is written to the child's pipe within a second of its exit still counts; the trial ends when it closes."""
    said = run([agent, "run", "--", "sh", "-c", "(sleep 0.3; echo late) & echo early"])
    assert said.output() == b"early\nlate\n"
    assert said.closing["wall_ns"] < 300_000_000


def test_a_daemon_left_behind_does_not_outlive_the_trial(agent: Path, tmp_path: Path) -> None:
    """A child that exits while a daemon of its own holds its pipe ends the trial after a second, daemon included."""
    daemon = "setsid sh -c 'echo $$ > daemon.pid; echo late; exec sleep 1000' & echo early"
    wait = "; while [ ! -s daemon.pid ]; do sleep 0.01; done"
    said = run([agent, "run", "--chdir", tmp_path, "--", "sh", "-c", daemon + wait])
    assert sorted(said.output().splitlines()) == [b"early", b"late"]
    assert (said.closing["reason"], said.closing["exit"]) == ("exit", 0)
    assert not Path(f"/proc/{(tmp_path / 'daemon.pid').read_text().strip()}").exists()


def test_where_child_and_load_compete_is_told(agent: Path) -> None:
    """Another group means another session; the same group means the child's."""
    code = "import os; print(os.getsid(0))"
    session: dict[str, bool] = {}
    for placement in ("same-group", "other-group"):
        options = ["--load", "cpu:1@5", "--settle-ms", "20", "--load-placement", placement]
        said = run([agent, "run", *options, "--", PYTHON, "-c", code])
        load = said.started["load"]
        session[placement] = load["autogroup"] == said.started["autogroup"]
        assert load["policy"] == "other" and load["nice"] == said.started["nice"]
    if Path("/proc/sys/kernel/sched_autogroup_enabled").read_text().strip() != "1":
        pytest.skip("autogroup is off on this kernel")
    assert session == {"same-group": True, "other-group": False}
