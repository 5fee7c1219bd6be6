"""Operator profiles as a user asks for them: virtual phones, and a stand-in whose operators are known."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from tests.cli.conftest import Workplace
from tests.cli.test_phones import lab as lab
from tests.cli.test_phones import write_fleet, write_plan
from tests.devices.adb_server import AdbServer
from tests.devices.fixtures import StartPhone


def profiles_of(lab: Workplace, *more: str) -> list[dict[str, Any]]:
    done = lab.devbench("show", "--ops", "--json", *more)
    assert done.status == 0, done.stderr
    return done.json["profiles"]


def test_a_run_with_profiles_keeps_them_apart_from_latency(
    lab: Workplace, adb_server: AdbServer, phone: StartPhone
) -> None:
    """A pass of its own after the trials: pulled as a proto, parsed, stored, and no trial is one."""
    one = phone()
    one.set_benchmark(seed=7, noise=0.001)
    write_fleet(lab, adb_server, one=one)
    done = lab.devbench("run", "--plan", write_plan(lab), "--profile", "--json")
    assert done.status == 0, done.stderr
    assert done.json["trials"]["measured"] == 4
    assert all("--enable_op_profiling=false" in trial["evidence"]["argv"] for trial in lab.exported())
    found = profiles_of(lab)
    assert [(row["threads"], row["outcome"], row["source"]) for row in found] == [
        (1, "measured", "proto"),
        (2, "measured", "proto"),
    ]
    for row in found:
        assert len(row["ops"]) == 89
        assert row["delegated_us"] == row["total_us"] > 0
        assert row["distortion"]["ratio"] == pytest.approx(row["latency_us"] / row["distortion"]["unprofiled_us"])
        assert 0.3 < row["distortion"]["ratio"] < 3.0  # 1.07 on a phone whose heat and neighbours stay as they are
        assert sum(op["share"] for op in row["ops"]) == pytest.approx(1.0)
        assert (lab.folder / "devbench-results" / row["artifacts"]["profile"]).stat().st_size > 1000
    shown = lab.devbench("show", "--ops", "--cell", found[0]["id"])
    assert "Delegate/Convolution (NHWC, F32) IGEMM:0" in shown.stdout
    assert f"profiling costs: {found[0]['distortion']['ratio']:.2f}x" in shown.stdout


def test_what_was_delegated_is_known_from_the_runtime(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """The result file and the runtime info are pulled after every trial and agree with the text."""
    one = phone()
    write_fleet(lab, adb_server, one=one)
    assert lab.devbench("run", "--plan", write_plan(lab, blocks="1:1"), "--quiet").status == 0
    for trial in lab.exported():
        observed = trial["evidence"]["observed"]
        assert (observed["nodes_delegated"], observed["nodes_total"]) == (164, 164)
        assert observed["result_proto"] == "agrees"
        assert set(trial["evidence"]["artifacts"]) == {"result", "runtime"}
    assert {path.name for path in one.path("/data/local/tmp/devbench").iterdir()} == {"blobs"}


def test_only_profiles(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """`devbench profile` measures no latency; a second run with a slower operator shows where it sits."""
    one = phone()
    one.set_benchmark(seed=7, noise=0.001)
    write_fleet(lab, adb_server, one=one)
    plan = write_plan(lab)
    first = lab.devbench("profile", "--plan", plan, "--threads", "1", "--json", "--quiet")
    assert first.status == 0, first.stderr
    assert first.json["profiles"][0]["distortion"] is None
    assert lab.exported() == []
    one.set_benchmark(seed=7, noise=0.001, slow_node=1)
    assert lab.devbench("profile", "--plan", plan, "--threads", "1", "--quiet").status == 0
    done = lab.devbench("show", "last", "--ops", "--against", first.json["run"], "--json")
    (found,) = done.json["comparisons"]
    ratios = {op["name"]: op["new_us"] / op["base_us"] for op in found["ops"] if op["base_us"] > 5}
    slow = "Delegate/Convolution (NHWC, F32) IGEMM:0"
    assert max(ratios, key=lambda name: ratios[name]) == slow
    others = statistics.median(ratio for name, ratio in ratios.items() if name != slow)
    assert ratios[slow] / others == pytest.approx(2.0, rel=0.1)
    shown = lab.devbench("show", "last", "--ops", "--against", first.json["run"])
    assert "Delegate/Convolution (NHWC, F32) IGEMM:0" in shown.stdout


def test_cold_and_warm_caches_are_cells_of_their_own(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """Init shows which: a cold cache is empty before each trial, a warm one was filled by another process."""
    write_fleet(lab, adb_server, one=phone())
    plan = write_plan(lab)
    plan.write_text(
        plan.read_text().replace("[sweep]", '[sweep]\ndelegates = ["xnnpack", "xnnpack+cold", "xnnpack+warm"]')
    )
    assert lab.devbench("run", "--plan", plan, "--threads", "1", "--quiet").status == 0
    inits: dict[str, set[float]] = {}
    for trial in lab.exported():
        assert trial["outcome"] == "measured"
        inits.setdefault(trial["delegate"], set()).add(trial["metrics"]["init_us"])
    assert {label: len(values) for label, values in inits.items()} == {
        "xnnpack": 1,
        "xnnpack+cold": 1,
        "xnnpack+warm": 1,
    }
    assert min(inits["xnnpack+cold"]) > 2 * max(inits["xnnpack+warm"])
    assert "start-up (idle, 1 thread): init" in lab.devbench("show").stdout


def test_a_runner_without_a_profiler_says_so(workplace: Workplace) -> None:
    """Before anything is measured."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--profile")
    assert done.status == 2
    assert done.stderr == (
        "error: --profile: litert_runner gives no operator profiles: LiteRT's Python interface exposes none\n"
        "  try:   use --runner benchmark_model, or leave profile out\n"
    )


def test_a_run_without_profiles_is_told_so(workplace: Workplace) -> None:
    """With what to do."""
    assert workplace.devbench("run", "--plan", workplace.quick_plan(blocks="1:1"), "--quiet").status == 0
    done = workplace.devbench("show", "--ops")
    assert done.status == 2
    assert "has no operator profiles" in done.stderr
    assert workplace.devbench("show", "--cell", "x").status == 2
