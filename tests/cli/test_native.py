"""`devbench run --runner litert_native`, as a user types it: real agent, real native runner, real runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import DATA, TINY, Workplace

pytest.importorskip("ai_edge_litert", reason="needs the extra `local`")
PARTIAL = DATA / "partial.tflite"


@pytest.fixture
def native_place(workplace: Workplace, tmp_path: Path) -> Workplace:
    """A place whose cache has no runtime: this machine's comes from the installed package."""
    workplace.env["DEVBENCH_BINARIES"] = str(tmp_path / "binaries")
    return workplace


def test_a_run_is_measured_with_evidence(native_place: Workplace) -> None:
    """Every cell gets its trials; threads and delegation are verified, the runner and its runtime known by hash."""
    plan = native_place.quick_plan(blocks="1:1", threads="[1, 2]")
    done = native_place.devbench(
        "run", "--plan", plan, "--runner", "litert_native,litert_native:zero-copy", "--delegate", "xnnpack", "--json"
    )
    assert done.status == 0, done.stderr
    trials = native_place.exported()
    assert len(trials) == 4
    for trial in trials:
        seen = trial["evidence"]["observed"]
        assert trial["outcome"] == "measured" and len(trial["samples_us"]) >= 5
        assert seen["runner_sha256"] == trial["runner_sha256"]
        assert seen["threads_allocated"] - seen["threads_before"] == trial["threads"] - 1
        assert (seen["nodes_total"], seen["nodes_delegated"]) == (1, 1)
        assert len(seen["library_sha256"]) == 64
        assert {finding["rule"] for finding in trial["findings"]}.isdisjoint({"delegate", "threads"})


def test_it_agrees_with_the_runner_in_python(native_place: Workplace) -> None:
    """One plan, two runners: the same bytes come out, and the same part of the graph is delegated."""
    plan = native_place.quick_plan(blocks="1:1", model=PARTIAL)
    done = native_place.devbench("run", "--plan", plan, "--runner", "litert_runner,litert_native", "--json")
    assert done.status == 0, done.stderr
    observed = {trial["runner"]: trial["evidence"]["observed"] for trial in native_place.exported()}
    for key in ("output_sha256", "nodes_delegated", "nodes_total", "partitions", "threads_after"):
        assert observed["litert_native"][key] == observed["litert_runner"][key], key


def test_a_model_beside_it(native_place: Workplace) -> None:
    """The native runner is the load of a native cell."""
    plan = native_place.quick_plan(blocks="1:1", loads=f'["model:{TINY}"]')
    done = native_place.devbench("run", "--plan", plan, "--runner", "litert_native", "--json")
    assert done.status == 0, done.stderr
    (trial,) = native_place.exported()
    assert "--beside" in trial["evidence"]["beside"]


def test_dry_run_and_skipped_cells(native_place: Workplace) -> None:
    """What it would do is told beforehand; what it cannot do is skipped by name."""
    plan = native_place.quick_plan(blocks="1:1", threads="[2]")
    options = ("--plan", plan, "--runner", "litert_native", "--delegate", "cpu")
    planned = native_place.devbench("run", *options, "--dry-run", "--json")
    assert planned.status == 0, planned.stderr
    (cell,) = planned.json["cells"]
    assert cell["runner"] == "litert_native" and len(cell["runner_sha256"]) == 64
    done = native_place.devbench("run", *options, "--json")
    assert done.status == 5
    (trial,) = native_place.exported()
    assert (trial["outcome"], trial["reason"]) == (
        "skipped",
        "litert_native runs plain kernels on one thread only (litert_runner can use more)",
    )


def test_operators_are_timed_by_the_runtime_itself(native_place: Workplace) -> None:
    """A real profile of a real model: every operator of its graph, those of the CPU told from the delegate's."""
    plan = native_place.quick_plan(blocks="1:1", model=PARTIAL)
    done = native_place.devbench("run", "--plan", plan, "--runner", "litert_native", "--profile", "--json")
    assert done.status == 0, done.stderr
    shown = native_place.devbench("show", "--ops", "--json")
    (found,) = shown.json["profiles"]
    assert (found["outcome"], found["source"]) == ("measured", "lines")
    assert [(op["type"], op["delegated"]) for op in found["ops"]] == [
        ("Add (ND)", True),
        ("CUMSUM", False),
        ("Add (ND)", True),
        ("Multiply (ND)", True),
    ]
    assert found["distortion"]["ratio"] > 0
    assert "--profile" not in native_place.exported()[0]["evidence"]["argv"]
    assert "CUMSUM" in native_place.devbench("show", "--ops").stdout


def test_one_runner_of_two_gives_profiles(native_place: Workplace) -> None:
    """The other is skipped by name, and the exit code says that not all was had."""
    plan = native_place.quick_plan(blocks="1:1")
    done = native_place.devbench("profile", "--plan", plan, "--runner", "litert_runner,litert_native", "--json")
    assert done.status == 5, done.stderr
    outcomes = {found["runner"]: (found["outcome"], found["reason"]) for found in done.json["profiles"]}
    reason = "litert_runner gives no operator profiles: LiteRT's Python interface exposes none"
    assert outcomes == {"litert_runner": ("skipped", reason), "litert_native": ("measured", None)}
