"""Delegates of a user's own, as a user runs them: on this machine, with the stand-in benchmark_model."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Workplace
from tests.cli.test_phones import lab as lab
from tests.unit.elf_factory import make_elf

OWN = """
[[delegate]]
name = "mine"
library = "libmine.so"
libraries = ["libbeside.so"]
options = {{ level = 3 }}
env = {{ MINE = "{{folder}}/x" }}
{more}
"""


def own_plan(lab: Workplace, machine: str = "x86_64", more: str = "") -> Path:
    for name in ("libmine.so", "libbeside.so"):
        (lab.folder / name).write_bytes(make_elf(machine=machine))
    plan = lab.quick_plan(blocks="1:1")
    sweep = '[sweep]\nrunners = ["benchmark_model"]\ndelegates = ["mine", "xnnpack"]'
    plan.write_text(plan.read_text().replace("[sweep]", sweep) + OWN.format(more=more))
    return plan


def test_a_delegate_that_silently_did_nothing_is_rejected(lab: Workplace) -> None:
    """The tool loads nothing and says nothing, ends with 0, and its numbers are those of the CPU: they do not count."""
    done = lab.devbench("run", "--plan", own_plan(lab), "--quiet", "--json")
    assert done.status == 5, done.stderr
    trials = {trial["delegate"].partition("@")[0]: trial for trial in lab.exported()}
    assert trials["xnnpack"]["outcome"] == "measured"
    mine = trials["mine"]
    assert (mine["outcome"], mine["reason"]) == (
        "rejected",
        "mine took none of the 164 nodes: the model ran on plain CPU kernels",
    )
    argv = mine["evidence"]["argv"]
    (library,) = [word.partition("=")[2] for word in argv if word.startswith("--external_delegate_path=")]
    assert "--external_delegate_options=level:3" in argv
    assert Path(library).name == "libmine.so"
    assert (Path(library).parent / "libbeside.so").exists()
    assert mine["evidence"]["env"]["LD_LIBRARY_PATH"] == str(Path(library).parent)
    assert mine["evidence"]["env"]["MINE"] == f"{Path(library).parent}/x"


def test_a_library_for_another_cpu_is_skipped_by_name(lab: Workplace) -> None:
    """Before anything runs."""
    done = lab.devbench("run", "--plan", own_plan(lab, "aarch64"), "--quiet", "--json")
    assert done.status == 5, done.stderr
    reasons = [trial["reason"] for trial in lab.exported() if trial["outcome"] == "skipped"]
    assert reasons == ["libmine.so of delegate mine is for aarch64, and the device is x86_64"]


def test_what_a_build_cannot_express_is_skipped_by_name(lab: Workplace) -> None:
    """A flag it does not know, from its own --help on the device; a delegate of another platform; a cache it lacks."""
    plan = own_plan(lab, more='flags = { no_such_flag = "1" }')
    done = lab.devbench("run", "--plan", plan, "--delegate", "mine,coreml,npu,cpu+warm,edgetpu", "--quiet", "--json")
    assert done.status == 5, done.stderr
    reasons = {trial["delegate"].partition("@")[0]: trial["reason"] for trial in lab.exported()}
    assert reasons["mine"] == "benchmark_model: this build has no flag --no_such_flag"
    assert reasons["coreml"] == "delegate coreml runs on ios, ios-jailbroken, and this is linux"
    assert "cannot be asked for delegate npu" in reasons["npu"]
    assert reasons["cpu+warm"] == "benchmark_model: delegate cpu keeps no cache that could be warm"
    assert "the device has no readable /usr/lib/aarch64-linux-gnu/libedgetpu.so.1" in reasons["edgetpu"]


def test_a_definition_that_changed_is_another_cell(lab: Workplace) -> None:
    """The label carries its content."""
    lab.devbench("run", "--plan", own_plan(lab), "--delegate", "mine", "--quiet")
    first = {trial["delegate"] for trial in lab.exported()}
    lab.devbench("run", "--plan", own_plan(lab, more='evidence = ["ready"]'), "--delegate", "mine", "--quiet")
    second = {trial["delegate"] for trial in lab.exported()}
    assert len(first) == len(second) == 1
    assert first != second
