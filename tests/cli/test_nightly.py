"""`devbench nightly` on this machine, as cron would call it: killed, stopped, out of time, and two at once."""

from __future__ import annotations

import random
import re
import signal
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator import registry
from orchestrator.cli import app
from orchestrator.clock import SYSTEM
from orchestrator.device_lock import device_lock
from orchestrator.errors import DevbenchError
from orchestrator.fleet import Device
from tests.cli.conftest import Workplace
from tests.cli.test_run import wait_for_trials, wait_until_no_agent

BLOCKS = 6
CELLS = 2
"""One of the plan, and the reference."""


def night(place: Workplace, *options: str | Path) -> tuple[str | Path, ...]:
    place.quick_plan(blocks=f"{BLOCKS}:{BLOCKS}")
    return ("nightly", "--plan", "plan.toml", *options)


def trials(place: Workplace) -> list[tuple[str, str, int, str]]:
    """Run, cell, block and outcome of every trial that is stored."""
    with sqlite3.connect(place.folder / "devbench-results" / "devbench.sqlite") as database:
        return list(database.execute("SELECT run_id, cell_id, block, outcome FROM trials"))


def test_a_night_that_is_killed_again_and_again_is_resumed(workplace: Workplace) -> None:
    """SIGKILL at random points, and SIGTERM once: the same command goes on, no trial is lost and none is made twice;
    a second night beside it is told who holds the first."""
    chance = random.Random(3)
    command = night(workplace, "--log", "night.log")
    seen = 0
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = workplace.start(*command)
        seen = len(list(workplace.folder.glob("devbench-results/artifacts/*/*.log"))) + chance.randint(1, 3)
        wait_for_trials(workplace, seen)
        if number is signal.SIGTERM:
            other = workplace.devbench(*command)
            assert other.status == 4
            assert re.search(rf"another night is under way in .* \(process {process.pid}, since 20", other.stderr)
        kept = trials(workplace)
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == (-9 if number is signal.SIGKILL else 130)
        assert set(kept) <= set(trials(workplace)), "what was stored stays"
        wait_until_no_agent(workplace, 10)
    done = workplace.devbench(*command, "--json", "--quiet")
    assert done.status == 0, done.stderr
    assert done.json["resumed"] is True
    made = Counter((cell, block) for _, cell, block, outcome in trials(workplace) if outcome == "measured")
    assert set(made.values()) == {1}
    assert len(made) == BLOCKS * CELLS
    assert len({run for run, *_ in trials(workplace)}) == 1
    log = (workplace.folder / "night.log").read_text()
    assert "going on with run" in log and "another night is under way" in log
    assert all(re.match(r"20\d\d-\d\d-\d\dT[\d:.]+Z ", line) for line in log.splitlines())

    with sqlite3.connect(workplace.folder / "devbench-results" / "devbench.sqlite") as database:
        database.execute("DELETE FROM judgements")
    before = trials(workplace)
    options = ("--summary", "summary.md", "--junit", "night.xml", "--keep", "90d", "--log", "logs", "--quiet")
    judged = workplace.devbench(*night(workplace, *options))
    assert (judged.status, judged.stdout) == (0, ""), judged.stderr
    assert trials(workplace) == before, "a night that was measured, and killed before it was judged, is only judged"
    text = (workplace.folder / "summary.md").read_text()
    assert text.splitlines()[0] == "**FIRST NIGHT: 2 cells measured, nothing to compare with yet**"
    assert len(text) < 1500
    assert (workplace.folder / "night.xml").exists()
    assert len(list((workplace.folder / "logs").glob("night-*.log"))) == 1


def test_a_budget_ends_the_night_cleanly(workplace: Workplace) -> None:
    """What could not be measured is said, the night is judged, and it is over when it should be."""
    began = SYSTEM.monotonic_s()
    plan = workplace.quick_plan(blocks="500:500")
    done = workplace.devbench("nightly", "--plan", plan, "--budget", "3s", "--json", "--quiet")
    assert SYSTEM.monotonic_s() - began < 60
    assert done.status in (0, 5), done.stderr
    outcomes = Counter(outcome for *_, outcome in trials(workplace))
    assert outcomes["measured"] and outcomes["not-run"]
    assert workplace.devbench("runs", "--json").json["runs"][0]["status"] == "finished"


def test_a_night_that_measured_nothing_says_so_first(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 4, with the reason of every device; the night after is another run, not the same again."""
    monkeypatch.setenv("DEVBENCH_LOCKS", workplace.env["DEVBENCH_LOCKS"])
    identity = registry.transport("local").identity(Device("this-machine", "local"))
    with device_lock(identity, device="this-machine", run="of-somebody"):
        done = workplace.devbench(*night(workplace, "--quiet"))
    assert done.status == 4, done.stderr
    assert done.stdout.startswith("**NOTHING MEASURED: this-machine**")
    assert "this-machine not measured: this-machine is busy: run of-somebody" in done.stdout


def test_a_device_that_cannot_be_had_takes_nothing_from_the_others(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are measured and judged, the night is partial, and the missing one is named with its reason."""
    monkeypatch.setenv("DEVBENCH_LOCKS", workplace.env["DEVBENCH_LOCKS"])
    board = '[[device]]\nname = "board"\ntransport = "ssh"\nhost = "board.invalid"\nuser = "lab"\nplatform = "linux"\n'
    workplace.write("devices.toml", f'[[device]]\nname = "this-machine"\ntransport = "local"\n\n{board}')
    dead = Device("board", "ssh", platform="linux", address={"host": "board.invalid", "user": "lab"})
    with device_lock(registry.transport("ssh").identity(dead), device="board", run="of-somebody"):
        done = workplace.devbench(*night(workplace, "--json", "--quiet", "--junit", "night.xml"))
    assert done.status == 5, done.stderr
    assert done.json["gate"]["ending"] == "partial"
    assert done.json["standing"] in ("good", "undecided")
    lost = {device["name"]: device["lost"] for device in done.json["gate"]["devices"]}
    assert lost["this-machine"] is None and "board is busy" in lost["board"]
    assert len([row for row in trials(workplace) if row[-1] == "measured"]) == BLOCKS * CELLS
    assert 'type="device-lost"' in (workplace.folder / "night.xml").read_text()


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        (("--budget", "soon"), '--budget: "soon" is no duration'),
        (("--keep", "90"), '--keep: "90" is no time to keep runs'),
        (("--fail-on", "maybe"), '--fail-on: "maybe" is unknown'),
        (("--threshold", "300%"), '--threshold: "300%" is no share between 0 and 100 %'),
        (("--plan", "none.toml"), "none.toml: no such file"),
        (("--fleet", "none.toml"), "none.toml: no such file"),
        (
            ("--log", "/proc/nowhere/night.log"),
            "cannot write the log /proc/nowhere/night.log: No such file or directory",
        ),
    ],
)
def test_wrong_words_are_refused_before_anything_starts(options: tuple[str, str], fact: str, tmp_path: Path) -> None:
    """No store is made, and no device looked at."""
    done = CliRunner().invoke(app, ["nightly", *options, "--store", str(tmp_path / "store")])
    assert isinstance(done.exception, DevbenchError)
    assert done.exception.fact == fact
    assert not (tmp_path / "store").exists()
