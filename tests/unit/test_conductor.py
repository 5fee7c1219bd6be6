"""The conductor and deployment on this machine, with the real agent and a made-up sensor."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.clock import Deadline, SystemClock
from orchestrator.conductor import Conductor, Files
from orchestrator.content_hash import sha256
from orchestrator.deploy import Deployment
from orchestrator.errors import DeviceError
from orchestrator.fleet import Device, Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.platforms.linux import LINUX
from orchestrator.runners.litert_runner import LITERT_RUNNER
from orchestrator.transports.local import LocalTransport
from orchestrator.trial import Cell, Outcome, Slot

TINY = Path(__file__).parents[1] / "data" / "models" / "tiny_add.tflite"
QUICK = Measure(runs=5, min_ms=0, warmup_runs=1, warmup_min_ms=0, settle_ms=20)


class CoolingClock(SystemClock):
    """A clock whose sleep takes no time but cools the sensor by five degrees."""

    def __init__(self, sensor: Path) -> None:
        self.sensor = sensor
        self.slept_s = 0.0
        self._offset_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self._offset_s

    def now(self) -> datetime.datetime:
        return super().now()

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        self._offset_s += seconds
        self.sensor.write_text(str(int(self.sensor.read_text()) - 5000))


@pytest.fixture
def sensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A thermal zone at 90 degrees that the agent finds under a root of the test's own."""
    zone = tmp_path / "root" / "sys" / "class" / "thermal" / "thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "type").write_text("cpu-thermal\n")
    (zone / "temp").write_text("90000")
    monkeypatch.setenv("DEVBENCH_SYSROOT", str(tmp_path / "root"))
    return zone / "temp"


def a_slot() -> Slot:
    runner = sha256(LITERT_RUNNER.files("", "x86_64")["runner"])
    return Slot(Cell("here", "tiny", sha256(TINY), "litert_runner", runner, "xnnpack", 1, "any", "idle"), 0, 0)


def a_conductor(tmp_path: Path, limits: Limits, clock: SystemClock) -> Conductor:
    device = Device("here", "local", workdir=str(tmp_path / "device"), limits=limits)
    files = Files(models={sha256(TINY): TINY}, load_models={})
    conductor = Conductor(device, measure=QUICK, conditions=Conditions(), files=files, clock=clock)
    conductor.use_runner("litert_runner", LITERT_RUNNER.files("", conductor.facts.machine))
    return conductor


def test_a_hot_device_is_left_to_cool(tmp_path: Path, sensor: Path) -> None:
    """Before a trial the conductor waits until the sensor is below the limit, with a margin, and no longer."""
    clock = CoolingClock(sensor)
    conductor = a_conductor(tmp_path, Limits(temperature_c_max=80.0), clock)
    trial, _ = conductor.conduct(a_slot(), run="r", session="s", stopped=lambda: False)
    conductor.close()
    assert trial.outcome == Outcome.MEASURED, trial.reason
    assert int(sensor.read_text()) == 75_000
    assert clock.slept_s == pytest.approx(7.0)
    assert trial.metrics["cool_down_s"] >= 7.0
    assert [finding.rule for finding in trial.findings if finding.rule == "cool-down"] == ["cool-down"]


def test_a_device_that_stays_hot_is_rejected(tmp_path: Path, sensor: Path) -> None:
    """When the wait is over and it is still too hot, the trial runs and is rejected with the reading."""

    class NeverCools(CoolingClock):
        def sleep(self, seconds: float) -> None:
            self._offset_s += seconds

    conductor = a_conductor(tmp_path, Limits(temperature_c_max=80.0), NeverCools(sensor))
    trial, _ = conductor.conduct(a_slot(), run="r", session="s", stopped=lambda: False)
    conductor.close()
    assert trial.outcome == Outcome.REJECTED
    assert trial.reason == "90.0 degrees C, and the limit is 80"


# Deployment


def test_a_file_is_pushed_once_and_known_by_content(tmp_path: Path) -> None:
    """A second push of the same content moves no bytes; another content under the same name goes beside it."""
    source = tmp_path / "model.tflite"
    source.write_bytes(b"a" * 1000)
    deployment = Deployment(LocalTransport(), LINUX, str(tmp_path / "device"))
    first = Path(deployment.ensure(source))
    changed_at = first.stat().st_mtime_ns
    assert Deployment(LocalTransport(), LINUX, str(tmp_path / "device")).ensure(source) == str(first)
    assert first.stat().st_mtime_ns == changed_at
    source.write_bytes(b"b" * 1000)
    second = Path(deployment.ensure(source))
    assert second != first
    assert (first.read_bytes()[:1], second.read_bytes()[:1]) == (b"a", b"b")


def test_a_damaged_file_on_the_device_is_replaced(tmp_path: Path) -> None:
    """A file whose content is no longer what its name says is pushed again."""
    source = tmp_path / "model.tflite"
    source.write_bytes(b"a" * 1000)
    target = Path(Deployment(LocalTransport(), LINUX, str(tmp_path / "device")).ensure(source))
    target.write_bytes(b"rotten")
    again = Deployment(LocalTransport(), LINUX, str(tmp_path / "device")).ensure(source)
    assert Path(again).read_bytes() == source.read_bytes()


def test_a_device_that_alters_files_is_noticed(tmp_path: Path) -> None:
    """The hash is read back on the device: storage that does not keep what it is given is an error."""

    class Corrupting(LocalTransport):
        def push(self, source: Path, target: str, *, deadline: object, executable: bool = False) -> None:
            super().push(source, target, deadline=deadline, executable=executable)  # type: ignore[arg-type]  # as given
            if not executable:
                Path(target).write_bytes(b"other")

    source = tmp_path / "model.tflite"
    source.write_bytes(b"a" * 1000)
    deployment = Deployment(Corrupting(), LINUX, str(tmp_path / "device"))
    with pytest.raises(DeviceError, match=r"model\.tflite has another content on the device than on the host"):
        deployment.ensure(source)


def test_a_process_that_ended_is_never_signalled_again() -> None:
    """Its number may belong to a stranger by then: killing and closing leave it alone."""
    transport = LocalTransport()
    process = transport.start(["true"])
    while not process.at_end:
        process.receive(Deadline.after(10))
    process.wait(Deadline.after(10))
    killed: list[int] = []
    original, os.killpg = os.killpg, lambda pid, number: killed.append(pid)
    try:
        process.kill()
        transport.close()
    finally:
        os.killpg = original
    assert killed == []


def test_a_canary_goes_before_a_trial_where_it_is_asked_for(tmp_path: Path) -> None:
    """Its pace and its best pace are evidence of the trial; by default a virtual machine or a fast host has none."""
    device = Device("here", "local", workdir=str(tmp_path / "device"))
    files = Files(models={sha256(TINY): TINY}, load_models={})
    paces = {}
    for wanted in ("on", "off"):
        conductor = Conductor(
            device, measure=QUICK, conditions=Conditions(canary=wanted, canary_slack=0.9), files=files
        )
        conductor.use_runner("litert_runner", LITERT_RUNNER.files("", conductor.facts.machine))
        trial, _ = conductor.conduct(a_slot(), run="r", session="s", stopped=lambda: False)
        conductor.close()
        paces[wanted] = trial.evidence["cool_down"]
    assert paces["on"]["canary_ns"] >= paces["on"]["canary_best_ns"] > 0
    assert paces["off"]["canary_ns"] is None
