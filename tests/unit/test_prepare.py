"""From a plan and a fleet to a run that can start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.content_hash import sha256
from orchestrator.delegates import Delegate
from orchestrator.errors import RunNotFound, StoreError, UsageError, error_text
from orchestrator.fleet import Device
from orchestrator.overrides import Overrides, apply_overrides
from orchestrator.plan import Collect, Measure, Plan, Sweep
from orchestrator.prepare import keep_files, prepare, prepare_resume, runner_files, with_baseline
from orchestrator.store import open_store

TINY = Path(__file__).parents[1] / "data" / "models" / "tiny_add.tflite"
HERE = Device("here", "local")


def a_plan(**sweep: object) -> Plan:
    return Plan(sweep=Sweep(models=(str(TINY),), threads=(1,), loads=("idle",), **sweep))  # type: ignore[arg-type]  # as a test has it


def test_the_plan_chooses_the_runner_then_the_device_then_the_platform() -> None:
    """Whoever says something more particular wins."""
    device = Device("here", "local", runner="litert_runner:zero-copy")
    assert prepare(a_plan(runners=("litert_runner",)), [device]).runner_names(device) == ("litert_runner",)
    assert prepare(a_plan(), [device]).runner_names(device) == ("litert_runner:zero-copy",)
    assert prepare(a_plan(), [HERE]).runner_names(HERE) == ("litert_runner",)


def test_a_runner_that_is_not_installed_is_refused_by_name() -> None:
    """Before any device is touched."""
    with pytest.raises(UsageError, match='no runner "litert_runer" is installed'):
        prepare(a_plan(runners=("litert_runer",)), [HERE])


def test_a_kept_run_is_measured_from_the_store(tmp_path: Path) -> None:
    """Models and runner come from the store's own copies, whose hashes are the originals'."""
    store = open_store(tmp_path / "store")
    kept = keep_files(store, prepare(a_plan(), [HERE]))
    (model,) = kept.inventory.models
    assert model.path.is_relative_to(tmp_path)
    assert sha256(model.path) == sha256(TINY)
    runner = runner_files(store, "litert_runner", "x86_64", None)["runner"]
    assert runner.is_relative_to(tmp_path)


def test_a_resumed_run_keeps_the_runner_it_began_with(tmp_path: Path) -> None:
    """A newer runner on the host does not get into a run under way."""
    store = open_store(tmp_path / "store")
    old = tmp_path / "litert_runner.py"
    old.write_text("# an older one")
    store.keep_blob(old)
    assert (
        runner_files(store, "litert_runner", "x86_64", {"runner": sha256(old)})["runner"].read_text() == old.read_text()
    )


def test_a_store_that_lost_a_file_cannot_resume(tmp_path: Path) -> None:
    """The very bytes are needed; without them the run is not the same."""
    store = open_store(tmp_path / "store")
    kept = keep_files(store, prepare(a_plan(), [HERE]))
    store.add_run(kept.record, [])
    kept.inventory.models[0].path.unlink()
    with pytest.raises(StoreError, match="has lost the file"):
        prepare_resume(store, "last")


@pytest.mark.parametrize("runner", ["benchmark_model", "benchmark_app"])
def test_inputs_that_a_runner_cannot_take_are_refused_before_any_device_is_touched(tmp_path: Path, runner: str) -> None:
    """Not at its first trial; the phone of this plan does not even exist."""
    (tmp_path / "in.npz").write_bytes(b"")
    plan = replace(a_plan(runners=(runner,)), measure=Measure(inputs="in.npz"), folder=tmp_path)
    phone = Device("phone", "adb", address={"serial": "nowhere"})
    with pytest.raises(UsageError) as caught:
        prepare(plan, [phone])
    assert error_text(caught.value) == (
        f"error: {runner} cannot be given inputs\n"
        "  try:   leave inputs out of [measure], or measure with litert_runner alone"
    )


def test_a_delegate_that_devices_toml_names_must_exist() -> None:
    """Otherwise every cell of the device is skipped, and nobody sees why; the plan's own count."""
    device = Device("here", "local", delegates=("xnnpack", "mine"))
    with pytest.raises(UsageError) as caught:
        prepare(a_plan(), [device])
    assert error_text(caught.value).startswith(
        'error: devices.toml: [[device]] "here" delegates: "mine" is no delegate'
    )
    mine = Delegate("mine", "external", paths=("/l.so",), is_own=True)
    assert prepare(replace(a_plan(), own_delegates=(mine,)), [device])


def test_a_delegates_files_are_kept_with_the_run(tmp_path: Path) -> None:
    """The cells' label is the same before and after, and when the run is resumed."""
    (tmp_path / "libmine.so").write_bytes(b"library")
    mine = Delegate("mine", "external", library="libmine.so", is_own=True)
    plan = replace(a_plan(delegates=("mine", "mine+warm")), own_delegates=(mine,), folder=tmp_path)
    prepared = prepare(plan, [HERE])
    labels = [delegate.label for delegate in prepared.inventory.delegates]
    store = open_store(tmp_path / "store")
    kept = keep_files(store, prepared)
    store.add_run(kept.record, [])
    (tmp_path / "libmine.so").write_bytes(b"changed since")
    resumed = prepare_resume(store, "last")
    for one in (kept, resumed):
        assert [delegate.label for delegate in one.inventory.delegates] == labels
        assert Path(one.inventory.delegates[0].deployed["libmine.so"]).read_bytes() == b"library"
        assert set(one.inventory.files().delegates) == set(labels)
    assert {cell.delegate for cell in kept.grid(HERE, 2, {"litert_runner": None}).cells} == set(labels)


def test_a_delegates_missing_file_is_refused(tmp_path: Path) -> None:
    """Before any device is touched."""
    mine = Delegate("mine", "external", library="libmine.so", is_own=True)
    plan = replace(a_plan(delegates=("mine",)), own_delegates=(mine,), folder=tmp_path)
    with pytest.raises(UsageError, match="no such file for delegate mine"):
        prepare(plan, [HERE])


def test_profiles_that_no_runner_gives_are_refused() -> None:
    """By the runner's own words."""
    with pytest.raises(UsageError, match="litert_runner gives no operator profiles: LiteRT's Python interface"):
        prepare(replace(a_plan(), collect=Collect(profile=True)), [HERE])


JAILBROKEN = Device("one", "ssh", platform="ios", address={"host": "127.0.0.1"})
TRACE_REFUSALS = {
    "an unknown choice": (
        Overrides(trace="everything"),
        HERE,
        '--trace: "everything" is unknown',
        'did you mean "every"? The choices are: every, anomaly',
    ),
    "an unknown tracer": (
        Overrides(trace=True, trace_with="perf,ftrce"),
        HERE,
        '--trace-with: "ftrce" is no tracer of linux',
        'did you mean "ftrace"? The choices are: perf, ftrace',
    ),
    "another platform's": (
        Overrides(trace=True, trace_with="xctrace"),
        HERE,
        '--trace-with: "xctrace" is no tracer of linux',
        'did you mean "ftrace"? The choices are: perf, ftrace',
    ),
    "no tracer's name": (
        Overrides(trace=True, trace_with="a b"),
        HERE,
        '--trace-with: "a b" is no name of a tracer',
        "write it like perfetto or perf",
    ),
    "no size": (
        Overrides(trace=True, trace_max_size="64"),
        HERE,
        '--trace-max-size: "64" is no size',
        "write it like 64MB",
    ),
    "too small": (
        Overrides(trace=True, trace_max_size="1KB"),
        HERE,
        '--trace-max-size: "1KB" is no size for a trace',
        "use 1MB to 4GB",
    ),
    "a baseline for nothing": (
        Overrides(baseline="last"),
        HERE,
        "--baseline tells which cells are odd",
        "say --trace=anomaly with it",
    ),
    "a tracer for nothing": (
        Overrides(trace_with="perf"),
        HERE,
        "--trace-with and --trace-max-size are about traces, and none are asked for",
        "add --trace",
    ),
    "a baseline for every cell": (
        Overrides(trace=True, baseline="last"),
        HERE,
        "--baseline tells which cells are odd",
        "say --trace=anomaly with it",
    ),
    "a jailbroken iPhone": (
        Overrides(trace=True, loads="idle", runner="benchmark_model"),
        JAILBROKEN,
        "--trace: ios-jailbroken gives no system traces: "
        "Instruments records only phones behind a Mac; add gateway and udid",
        "leave trace out",
    ),
}


@pytest.mark.parametrize("name", TRACE_REFUSALS)
def test_traces_that_cannot_be_had_are_refused_before_anything_is_measured(name: str) -> None:
    """By name, and with what to do."""
    said, device, fact, remedy = TRACE_REFUSALS[name]
    with pytest.raises(UsageError) as caught:
        prepare(apply_overrides(a_plan(), said, Path()), [device])
    assert (caught.value.fact, caught.value.remedy) == (fact, remedy)


def test_a_baseline_is_found_before_anything_is_measured(tmp_path: Path) -> None:
    """And written down by its id: when the run has ended, `last` is the run itself."""
    store = open_store(tmp_path / "store")
    wanted = prepare(replace(a_plan(), collect=Collect(trace="anomaly", baseline="last")), [HERE])
    with pytest.raises(RunNotFound):
        with_baseline(store, wanted)
    earlier = replace(wanted.record, id="earlier", created_at="2026-01-01T00:00:00Z", status="finished")
    store.add_run(earlier, [])
    found = with_baseline(store, wanted)
    assert found.plan.collect.baseline == found.record.plan["collect"]["baseline"] == earlier.id
    assert with_baseline(store, prepare(a_plan(), [HERE])).plan.collect.baseline is None
