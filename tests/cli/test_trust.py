"""`--require-trust`, `--sustain`, `calibrate` and `plan` as a user types them: real agent, real runtime, real store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.exchange import write_file
from tests.cli.conftest import Workplace
from tests.unit.disturbed_cells import cell_trials


def file_of(workplace: Workplace, **model: float) -> Path:
    """A file of trials, clean or disturbed."""
    path = workplace.folder / "trials.jsonl"
    write_file(path, cell_trials(np.random.default_rng(1), **model))  # type: ignore[arg-type]  # floats of one model
    return path


def test_a_clean_file_is_trusted(workplace: Workplace) -> None:
    """Exit 0, and the verdict is in the table and in the JSON."""
    path = file_of(workplace)
    done = workplace.devbench("show", path, "--require-trust")
    assert done.status == 0, done.stderr
    assert "trust: 1 trusted" in done.stdout
    content = workplace.devbench("show", path, "--json").json
    assert content["cells"][0]["trust"] == {"verdict": "trusted", "reasons": []}


def test_an_untrusted_file_exits_with_1_when_asked_to(workplace: Workplace) -> None:
    """The reason stands there with its remedy; without --require-trust it is not an error."""
    path = file_of(workplace, drift=0.2)
    done = workplace.devbench("show", path, "--require-trust", "--json")
    assert done.status == 1
    assert "1 cell is not trusted, of 1" in done.stderr
    trust = done.json["cells"][0]["trust"]
    assert trust["verdict"] == "contaminated"
    assert [reason["cause"] for reason in trust["reasons"]] == ["thermal-drift"]
    assert trust["reasons"][0]["remedy"]
    assert workplace.devbench("show", path).status == 0


def test_a_file_without_ordinary_trials_is_not_trusted(workplace: Workplace) -> None:
    """Nothing measured is nothing to trust."""
    path = workplace.folder / "empty.jsonl"
    trials = cell_trials(np.random.default_rng(1), blocks=1)
    write_file(path, [replace(trial, samples_us=(), outcome="failed") for trial in trials])  # type: ignore[arg-type]  # a word is an outcome
    assert workplace.devbench("show", path, "--require-trust").status == 1


def test_a_run_with_too_few_blocks_is_not_trusted(workplace: Workplace) -> None:
    """Two blocks: measured as asked, and yet exit 1. Why the cells stopped is in the JSON."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--require-trust", "--quiet", "--json")
    assert done.status == 1, done.stderr
    assert set(done.json["stopped"]) == {cell["id"] for cell in done.json["cells"]}
    assert set(done.json["stopped"].values()) == {"max blocks"}
    assert {cell["trust"]["verdict"] for cell in done.json["cells"]} == {"insufficient"}


def test_a_sustained_run_gives_a_curve_and_no_estimate(workplace: Workplace) -> None:
    """Three seconds on one thread; the trials carry their pass when they are exported."""
    plan = workplace.quick_plan(blocks="2:2")
    done = workplace.devbench("run", "--plan", plan, "--sustain", "3s", "--quiet", "--json")
    assert done.status == 0, done.stderr
    assert done.json["cells"] == []
    (found,) = done.json["sustained"]
    assert found["seconds"] >= 3
    assert len(found["curve"]) >= 3
    assert {line["pass"] for line in workplace.exported()} == {"sustain"}
    assert "throttled after" in workplace.devbench("show").stdout


def test_calibration_is_kept_and_used_for_planning(workplace: Workplace) -> None:
    """Two sessions of four blocks: noise of the family and of the device, from then on no assumption in `plan`."""
    plan = workplace.quick_plan()
    before = workplace.devbench("plan", plan, "--detect", "5%", "--json").json
    assert {family["source"] for family in before["families"]} == {"assumed"}
    assert any("never calibrated: this-machine" in note for note in before["notes"])
    done = workplace.devbench("calibrate", "--plan", plan, "--sessions", "2", "--blocks", "4", "--quiet", "--json")
    assert done.status == 0, done.stderr
    assert done.json["schema"] == "devbench.calibration"
    by_p50 = {family["family"]: family for family in done.json["families"] if family["metric"] == "p50"}
    assert set(by_p50) == {"any", "xnnpack, threads 1, load idle"}
    assert by_p50["any"]["sessions"] == 2
    assert by_p50["any"]["blocks"] == 8
    assert set(by_p50["any"]["blocks_needed"]) == {"1%", "2%", "5%", "10%"}
    assert done.json["false_alarms"][0]["comparisons"] == 1
    after = workplace.devbench("plan", plan, "--detect", "5%", "--json").json
    assert {family["source"] for family in after["families"]} == {"calibrated"}
    sessions = {line["session"] for line in workplace_lines(workplace, done.json["run"])}
    assert len(sessions) == 2


def workplace_lines(workplace: Workplace, run: str) -> list[dict[str, str]]:
    done = workplace.devbench("export", run)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_plan_checks_a_plan(workplace: Workplace) -> None:
    """A sound one in a line, without a store and without touching anything."""
    done = workplace.devbench("plan", workplace.quick_plan())
    assert done.status == 0, done.stderr
    assert done.stdout.startswith("the plan is sound: 1 cell, 2 blocks, about 1 s.")
    assert not (workplace.folder / "devbench-results").exists()


def test_plan_says_what_finding_a_change_takes(workplace: Workplace) -> None:
    """Blocks, power and device time, with the assumption named."""
    done = workplace.devbench("plan", workplace.quick_plan(), "--detect", "3%", "--power", "80%")
    assert done.status == 0, done.stderr
    assert "to find a change of 3 %, found in 80 % of cases" in done.stdout
    assert "block noise of 1 % alone and 4 % under load" in done.stdout


BAD = {
    "a change that is none": (("plan", "--detect", "0%"), "--detect"),
    "a power beyond one": (("plan", "--detect", "3%", "--power", "120%"), "--power"),
    "a plan that is not there": (("plan", "nowhere.toml"), "nowhere.toml: no such file"),
    "no sessions": (("calibrate", "--sessions", "0"), "--sessions"),
    "no blocks": (("calibrate", "--blocks", "0"), "--blocks"),
    "a sustained time too short": (("run", "--sustain", "1s"), "--sustain"),
    "sustained and resumed": (("run", "--resume", "last", "--sustain", "10m"), "--resume goes on with the plan"),
}


@pytest.mark.parametrize(("arguments", "words"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_refused_by_name(workplace: Workplace, arguments: tuple[str, ...], words: str) -> None:
    """Exit 2, the option or file named, and no store made."""
    done = workplace.devbench(*arguments)
    assert done.status == 2
    assert words in done.stderr
    assert not (workplace.folder / "devbench-results").exists()


def test_a_sustained_plan_cannot_calibrate(workplace: Workplace) -> None:
    """The two contradict each other."""
    plan = workplace.write("plan.toml", '[measure]\nsustain = "10m"\n')
    done = workplace.devbench("calibrate", "--plan", plan)
    assert done.status == 2
    assert "a sustained plan cannot calibrate" in done.stderr
