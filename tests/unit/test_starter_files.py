"""What `devbench init` writes must be read back without complaint, comments taken away or not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.errors import UsageError, error_text
from orchestrator.fleet import Device, Limits, read_fleet
from orchestrator.plan import Plan, Sweep, read_plan
from orchestrator.starter_files import DEVICES, PLAN, write_starter_files

TRANSPORTS: dict[str, dict[str, type]] = {"local": {}}


def uncommented(content: str) -> str:
    """Every example key of the file made real."""
    return re.sub(r"(?m)^# (?=\w+ = )", "", content)


def test_both_files_are_written_and_named(tmp_path: Path) -> None:
    """The caller tells the user which."""
    assert write_starter_files(tmp_path, overwrite=False) == [tmp_path / "devices.toml", tmp_path / "plan.toml"]
    assert {path.name for path in tmp_path.iterdir()} == {"devices.toml", "plan.toml"}


def test_the_fleet_is_this_machine(tmp_path: Path) -> None:
    """A fresh checkout has something to measure on."""
    write_starter_files(tmp_path, overwrite=False)
    fleet = read_fleet(tmp_path / "devices.toml", TRANSPORTS, ("linux",))
    assert fleet.devices == (Device("this-machine", "local", tags=("host",)),)


def test_the_plan_says_what_leaving_everything_out_would_say(tmp_path: Path) -> None:
    """The keys shown are the defaults, so they cannot mislead."""
    write_starter_files(tmp_path, overwrite=False)
    assert read_plan(tmp_path / "plan.toml") == Plan(folder=tmp_path)


def test_every_commented_example_is_a_valid_key(tmp_path: Path) -> None:
    """Taking a comment sign away never gives an error."""
    devices, plan = tmp_path / "devices.toml", tmp_path / "plan.toml"
    devices.write_text(uncommented(DEVICES), encoding="utf-8")
    plan.write_text(uncommented(PLAN), encoding="utf-8")
    (device,) = read_fleet(devices, TRANSPORTS, ("linux",)).devices
    assert (device.workdir, device.limits) == ("/var/tmp/devbench", Limits(temperature_c_max=80.0))
    found = read_plan(plan)
    assert found.sweep == Sweep(models=("model.tflite", "models/*.tflite"), runners=("litert_runner",))
    assert (found.measure.budget_s, found.measure.seed) == (1200.0, 1)
    assert (found.conditions.governor, found.conditions.other_cpu_percent_max) == ("performance", 50.0)


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    """And nothing else is written either."""
    (tmp_path / "plan.toml").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        write_starter_files(tmp_path, overwrite=False)
    assert error_text(caught.value) == (
        f"error: {tmp_path}/plan.toml exists already\n  try:   move it away, or say --force to replace it"
    )
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == {"plan.toml": "mine"}


def test_two_files_that_are_there_are_told_in_the_plural(tmp_path: Path) -> None:
    """It is the first message many users meet."""
    write_starter_files(tmp_path, overwrite=False)
    with pytest.raises(UsageError) as caught:
        write_starter_files(tmp_path, overwrite=False)
    assert error_text(caught.value) == (
        f"error: {tmp_path}/devices.toml and {tmp_path}/plan.toml exist already\n"
        "  try:   move them away, or say --force to replace them"
    )


def test_told_to_it_replaces(tmp_path: Path) -> None:
    """`--force` means it."""
    (tmp_path / "plan.toml").write_text("mine", encoding="utf-8")
    write_starter_files(tmp_path, overwrite=True)
    assert (tmp_path / "plan.toml").read_text(encoding="utf-8") == PLAN


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """With the system's reason."""
    with pytest.raises(UsageError) as caught:
        write_starter_files(tmp_path / "no", overwrite=False)
    assert error_text(caught.value) == (
        f"error: cannot write {tmp_path}/no/devices.toml: No such file or directory\n  try:   choose another folder"
    )
