"""The loads: what they offer, what they achieve, and how they end.

This machine is shared, so a load may get less than it offers; what must never happen is more.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.agents.agent_host import Record, descendants, finish, pid_in, run, start


def _load(agent: Path, spec: str, *options: str) -> Record:
    said = run([agent, "load", spec, "--seconds", "0.6", *options])
    (phase,) = said.records("L")
    assert (said.closing["reason"], phase["phase"], phase["spec"]) == ("done", "run", spec)
    assert phase["alive"] is True
    return phase


@pytest.mark.parametrize(("threads", "percent"), [(1, 25), (2, 50), (1, 75), (1, 100), (3, 10)])
def test_cpu_load_never_exceeds_its_offer(agent: Path, threads: int, percent: int) -> None:
    """Each thread offers its share of one CPU and takes no more than that; on a quiet machine just that."""
    phase = _load(agent, f"cpu:{threads}@{percent}")
    assert [thread["offered"] for thread in phase["threads"]] == [percent / 100] * threads
    for thread in phase["threads"]:
        assert 0 < thread["achieved"] <= percent / 100 + 0.01
    assert phase["gb_per_s"] is None


def test_memory_load_moves_memory(agent: Path) -> None:
    """The memory load offers no CPU share and says how much it moved."""
    phase = _load(agent, "mem:2")
    assert len(phase["threads"]) == 2 and all("offered" not in thread for thread in phase["threads"])
    assert phase["gb_per_s"] > 0.05


def test_app_load_has_an_apps_rhythm(agent: Path) -> None:
    """Two threads at 40 and 20 percent, the first with memory traffic."""
    phase = _load(agent, "app")
    assert [thread["offered"] for thread in phase["threads"]] == [0.4, 0.2]
    for thread in phase["threads"]:
        assert 0 < thread["achieved"] <= thread["offered"] + 0.01
    assert phase["gb_per_s"] > 0.01


def test_settling_comes_before_the_child(agent: Path) -> None:
    """The load runs alone for its time, then the child starts, and each phase is accounted for on its own."""
    said = run([agent, "run", "--load", "cpu:1@20", "--settle-ms", "300", "--", "sleep", "0.3"])
    *settling, running = said.records("L")
    settle = settling[-1]
    assert {phase["phase"] for phase in settling} == {"settle"} and running["phase"] == "run"
    assert settle["to_ns"] - settle["from_ns"] >= 300_000_000
    assert settle["to_ns"] <= said.started["t_ns"] <= running["to_ns"]
    assert running["threads"][0]["achieved"] <= 0.21
    order = [line.letter for line in said.lines if line.letter in "HLCX"]
    assert order == ["H", *["L"] * len(settling), "C", "L", "X"]


def test_a_load_that_is_not_steady_settles_again(agent: Path) -> None:
    """Two busy threads on one CPU can never have 80 percent each: five times, then the child starts all the same."""
    options = ["--load", "cpu:2@80", "--load-affinity", "1", "--settle-ms", "60"]
    said = run([agent, "run", *options, "--", "true"])
    *settling, _ = said.records("L")
    assert [phase["steady"] for phase in settling] == [False] * 5
    assert said.closing["reason"] == "exit"


def test_idle_has_no_phases_and_no_wait(agent: Path) -> None:
    """Without a load there is nothing to settle and nothing to report."""
    said = run([agent, "run", "--settle-ms", "60000", "--", "true"])
    assert said.records("L") == []
    assert said.started["load"] is None


def test_samples_carry_the_loads_cpu_time(agent: Path) -> None:
    """Each sample shows the running total of each load thread."""
    said = run([agent, "run", "--load", "cpu:2@20", "--settle-ms", "100", "--", "sleep", "0.3"])
    totals = [sample["load_cpu_ns"] for sample in said.records("S") if "load_cpu_ns" in sample]
    assert len(totals) >= 3 and all(len(row) == 2 for row in totals)
    assert totals[0][0] < totals[-1][0]


def test_load_affinity_is_read_back(agent: Path) -> None:
    """The load's mask is its own."""
    options = ["--load", "cpu:1@5", "--load-affinity", "1", "--settle-ms", "20"]
    said = run([agent, "run", *options, "--", "true"])
    assert said.started["load"]["affinity"] == "1"


def _with_exec_load(agent: Path, script: str, *child: str) -> list[str | Path]:
    words = ["sh", "-c", script]
    options = ["--load", "exec", "--load-argc", "3", "--settle-ms", "100"]
    return [agent, "run", *options, "--", *words, *child]


def test_exec_load_is_ready_at_its_first_line(agent: Path, tmp_path: Path) -> None:
    """The child starts only after the load has said something; what it says is not the child's output."""
    marker = tmp_path / "ready"
    script = f"sleep 0.3; touch {marker}; echo ready; while :; do :; done"
    said = run(_with_exec_load(agent, script, "sh", "-c", f"test -e {marker} && echo there"))
    assert said.output() == b"there\n"
    settle, running = said.records("L")
    assert settle["spec"] == "exec" and "offered" not in settle["threads"][0]
    assert 0 < settle["threads"][0]["achieved"] <= 1.05
    assert running["alive"] is True


def test_exec_load_counts_its_descendants(agent: Path) -> None:
    """CPU time of the load's own children counts as load."""
    script = "echo ready; sh -c 'while :; do :; done' & wait"
    said = run(_with_exec_load(agent, script, "sleep", "0.2"))
    assert said.records("L")[0]["threads"][0]["achieved"] > 0.1


@pytest.mark.parametrize(
    ("script", "status", "last_line"),
    [
        ("echo broken >&2; exit 3", 3, "broken"),
        ("echo ready; sleep 0.3; echo first >&2; echo 'out of \"memory\"' >&2; exit 4", 4, 'out of "memory"'),
    ],
    ids=["before", "during"],
)
def test_a_load_that_dies_ends_the_trial(agent: Path, script: str, status: int, last_line: str) -> None:
    """A child is not measured beside a load that is gone; the reason carries the load's last words."""
    closing = run(_with_exec_load(agent, script, "sleep", "1000")).closing
    assert closing["reason"] == "load-died"
    assert closing["load_exit"] == {"exit": status, "signal": None, "last_line": last_line}


def test_a_load_that_cannot_start_ends_the_trial(agent: Path) -> None:
    """A load command that does not exist is named."""
    options = ["--load", "exec", "--load-argc", "1"]
    closing = run([agent, "run", *options, "--", "/no/such/load", "true"]).closing
    assert closing["reason"] == "load-died"
    assert closing["load_exit"]["last_line"] == "/no/such/load: ENOENT"


def test_a_load_that_will_never_be_ready_ends_the_trial(agent: Path) -> None:
    """A load that closes its output without a line is not waited for until the deadline."""
    closing = run(_with_exec_load(agent, "exec >&-; sleep 1000", "true")).closing
    assert closing["reason"] == "load-died"
    assert closing["load_exit"]["last_line"] == "closed its output before its first line"


def test_a_killed_load_ends_the_trial(agent: Path, tmp_path: Path) -> None:
    """The kernel's memory killer may take the load at any time."""
    options = ["--load", "cpu:1@5", "--settle-ms", "50", "--chdir", str(tmp_path)]
    process = start([agent, "run", *options, "--", "sh", "-c", "echo $$ > child.pid; exec sleep 1000"])
    child = pid_in(tmp_path / "child.pid")
    (load,) = descendants(process.pid) - {child}
    os.kill(load, signal.SIGKILL)
    said = finish(process)
    assert said.closing["reason"] == "load-died"
    assert said.closing["load_exit"]["signal"] == 9
    assert said.records("L")[-1]["alive"] is False


@pytest.mark.bench
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("percent", [25, 50, 75, 100])
def test_load_error_in_points(agent: Path, threads: int, percent: int) -> None:
    """Prints how far a load is from its offer, in points of one CPU; below 0.1 on a quiet machine."""
    said = run([agent, "load", f"cpu:{threads}@{percent}", "--seconds", "0.5"])
    achieved = [thread["achieved"] * 100 - percent for thread in said.records("L")[0]["threads"]]
    print(f"cpu:{threads}@{percent}: error {json.dumps([round(error, 3) for error in achieved])} points")
    assert max(achieved) < 1
