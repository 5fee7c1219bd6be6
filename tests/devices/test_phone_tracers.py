"""Tracers on a virtual phone that go wrong, and hosts that die: what is told, what is kept, what is left behind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from android_harness.adb_transport import ADB
from android_harness.platform import ANDROID
from orchestrator.clock import SYSTEM, Deadline
from orchestrator.errors import DevbenchError, DeviceLost, TracerFailed
from orchestrator.fleet import Device
from orchestrator.plan import Conditions
from orchestrator.platforms.base import Ask, Facts
from orchestrator.platforms.tracing import Room, Tracer
from orchestrator.recorder import Patience, Recorder
from orchestrator.trace import TraceSummary
from orchestrator.trace_pass import Brought, bring
from orchestrator.transports.base import Completed, Transport
from tests.unit.android_phone import NO_FACTS

from .adb_server import AdbServer
from .virtual_phone import FLAGSHIP, PhoneRack, VirtualPhone

FOLDER = "/data/local/tmp/devbench/scratch/abc"
TRACES = "/data/misc/perfetto-traces"
DEVICE = Device("phone", "adb")


@dataclass
class Bench:
    """A phone, the way to it, and its tracers."""

    phone: VirtualPhone
    transport: Transport
    facts: Facts

    def ask(self, argv: Sequence[str]) -> Completed:
        return self.transport.run(argv, deadline=Deadline.after(30))

    def tracer(self, kind: str, ask: Ask | None = None) -> Tracer:
        return next(t for t in ANDROID.tracers(DEVICE, self.facts, ask or self.ask) if t.kind == kind)

    def recorder(self, kind: str, *, bytes_max: int = 2_000_000) -> Recorder:
        recording = self.tracer(kind).recording(Room(FOLDER, "name", bytes_max, 60))
        return Recorder(self.transport, recording, FOLDER, Patience(start_s=20, stop_s=1, killed_s=10))

    def left(self) -> list[str]:
        places = (self.phone.path(TRACES), self.phone.path("/data/local/tmp/devbench/scratch"))
        return [path.name for place in places if place.exists() for path in place.iterdir()]

    def prop(self, name: str) -> str:
        return self.ask(["getprop", name]).stdout.decode().strip()

    def tracing(self) -> list[str]:
        return [process.argv[0] for process in self.phone.processes() if "perfetto" in process.argv[0]]


@pytest.fixture(scope="module")
def shared(adb_server: AdbServer, rack: PhoneRack) -> Iterator[Bench]:
    one = rack.start(FLAGSHIP)
    adb_server.connect(one)
    address = {"serial": one.address, "adb_server": f"127.0.0.1:{adb_server.port}"}
    transport = ADB.open(Device("phone", "adb", address=address), deadline=Deadline.after(30))
    facts = NO_FACTS
    yield Bench(one, transport, facts)
    transport.close()
    adb_server.run("disconnect", one.address)
    rack.stop(one)


@pytest.fixture
def bench(shared: Bench) -> Iterator[Bench]:
    yield shared
    shared.phone.set_state("tracer", "")


def recorded(
    bench: Bench, kind: str, tmp_path: Path, *, bytes_max: int = 2_000_000, seconds: float = 0.1
) -> tuple[Recorder, TraceSummary]:
    recorder = bench.recorder(kind, bytes_max=bytes_max)
    try:
        with recorder:
            SYSTEM.sleep(seconds)
        recorder.pull(tmp_path / "trace")
    finally:
        recorder.remove()
    return recorder, bench.tracer(kind).read(tmp_path / "trace")


def test_a_tracer_that_ends_in_order(bench: Bench, tmp_path: Path) -> None:
    """Nothing is wrong, and nothing is left."""
    recorder, trace = recorded(bench, "perfetto", tmp_path)
    assert (recorder.problem, trace.problem) == (None, None)
    assert trace.events > 10
    assert bench.left() == []


def test_a_tracer_that_does_not_start(bench: Bench, tmp_path: Path) -> None:
    """Its own words are the reason."""
    bench.phone.set_state("tracer", "refuse")
    with pytest.raises(TracerFailed) as caught:
        recorded(bench, "perfetto", tmp_path)
    assert caught.value.fact == (
        "the tracer ended at once (status 1): perfetto_cmd.cc:1130 Service error: traced is not accepting connections"
    )
    with pytest.raises(TracerFailed, match="Permission denied"):
        recorded(bench, "atrace", tmp_path)
    assert bench.left() == []


def test_a_tracer_that_hangs_is_killed(bench: Bench, tmp_path: Path) -> None:
    """What it had written is kept."""
    bench.phone.set_state("tracer", "hang")
    recorder, trace = recorded(bench, "perfetto", tmp_path)
    assert recorder.problem == "the tracer did not end when it was told to, and was killed after 1 s"
    assert trace.events > 10
    assert (bench.left(), bench.tracing()) == ([], [])


def test_a_tracer_that_dies(bench: Bench, tmp_path: Path) -> None:
    """It is told how; what it had written is kept."""
    bench.phone.set_state("tracer", "die")
    recorder, trace = recorded(bench, "perfetto", tmp_path, seconds=0.8)
    assert recorder.problem == "the tracer was killed"
    assert trace.events > 10


@pytest.mark.parametrize(
    ("fault", "problem"), [("empty", "it is empty"), ("no_events", "no event of the kernel is in it")]
)
def test_a_trace_with_nothing_in_it(bench: Bench, tmp_path: Path, fault: str, problem: str) -> None:
    """The tracer is content, and the trace is no good."""
    bench.phone.set_state("tracer", fault)
    recorder, trace = recorded(bench, "perfetto", tmp_path)
    assert (recorder.problem, trace.problem) == (None, problem)


def brought(bench: Bench, room: Path, *, bytes_max: int = 1_000_000, seconds: float = 0.2) -> Brought:
    """What a pass makes of a recording."""
    recorder = bench.recorder("perfetto", bytes_max=bytes_max)
    try:
        with recorder:
            SYSTEM.sleep(seconds)
        return bring(recorder, bench.tracer("perfetto"), bytes_max, room)
    finally:
        recorder.remove()


def test_a_tracer_that_does_not_keep_to_its_cap(bench: Bench, tmp_path: Path) -> None:
    """It is seen before the trace is pulled."""
    bench.phone.set_state("tracer", "big")
    found = brought(bench, tmp_path)
    assert found.problem == "it has 12 MB on the device, and 1 MB is the most: it was not pulled"
    assert (found.path, list(tmp_path.iterdir()), bench.left()) == (None, [], [])


def test_a_phone_that_fills_up_while_it_is_traced(bench: Bench, tmp_path: Path) -> None:
    """What was written is pulled and kept, with the reason, and the phone is cleared."""
    bench.phone.leave_free(16_000)
    found = brought(bench, tmp_path, seconds=1.0)
    bench.phone.leave_free(1 << 30)
    assert (found.problem or "").startswith("the device filled up while it was traced")
    assert found.path and found.path.stat().st_size > 4096
    assert found.trace and found.trace.events > 10
    assert bench.left() == []


def test_a_trace_that_changes_on_its_way(bench: Bench, tmp_path: Path) -> None:
    """A pull that brings less than there is on the phone is told, and what came is kept."""

    class Tearing(Recorder):
        def pull(self, target: Path) -> None:
            super().pull(target)
            target.write_bytes(target.read_bytes()[:-5])

    whole = bench.recorder("perfetto")
    torn = Tearing(bench.transport, whole._recording, FOLDER)
    with torn:
        SYSTEM.sleep(0.1)
    found = bring(torn, bench.tracer("perfetto"), 1_000_000, tmp_path)
    torn.remove()
    assert re.fullmatch(r"\d+ of \d+ bytes arrived; it is cut off at byte .*", found.problem or "")
    assert found.path and found.path.exists()


def test_a_connection_that_breaks_ends_the_tracer(bench: Bench) -> None:
    """The shell on the phone notices, ends it and removes its files; a later one removes what was left anyway."""
    leftover = bench.phone.path(TRACES) / "devbench-older.perfetto-trace"
    leftover.write_bytes(b"old")
    with suppress(DevbenchError), bench.recorder("perfetto"):
        assert not leftover.exists()
        assert bench.tracing() != []
        bench.phone.cut()
    deadline = Deadline.after(20)
    while (bench.tracing() or list(bench.phone.path(TRACES).iterdir())) and not deadline.passed:
        SYSTEM.sleep(0.1)
    assert bench.tracing() == []
    assert list(bench.phone.path(TRACES).iterdir()) == []
    while not deadline.passed:  # until adb has it again
        with suppress(DeviceLost):
            bench.ask(["true"])
            break
        SYSTEM.sleep(0.2)


@pytest.mark.parametrize("before", ["", "0", "1"])
def test_tflites_own_slices_are_lent_within_a_session(bench: Bench, before: str) -> None:
    """On while it is traced, then as the session has it, then as it was."""
    bench.phone.set_props({"debug.tflite.trace": before})
    in_session = "0" if before == "1" else before
    with ANDROID.session(Conditions(), bench.facts, bench.ask):
        assert bench.prop("debug.tflite.trace") == in_session
        with bench.tracer("perfetto").held():
            assert bench.prop("debug.tflite.trace") == "1"
        assert bench.prop("debug.tflite.trace") == in_session
    assert bench.prop("debug.tflite.trace") == before
    bench.phone.set_props({"debug.tflite.trace": ""})


def test_a_host_that_dies_while_it_traces(bench: Bench) -> None:
    """The next session puts the property back, and says so."""
    bench.phone.set_props({"debug.tflite.trace": "0"})
    alive = True

    def dying(argv: Sequence[str]) -> Completed:
        if not alive:
            raise DeviceLost("this host is dead", remedy="none")
        return bench.ask(argv)

    with suppress(DeviceLost), bench.tracer("perfetto", dying).held():
        alive = False
    assert bench.prop("debug.tflite.trace") == "1"
    with ANDROID.session(Conditions(), bench.facts, bench.ask) as findings:
        assert [finding.rule for finding in findings] == ["left-over"]
        assert bench.prop("debug.tflite.trace") == "0"


def test_a_service_that_does_not_run_is_an_obstacle(bench: Bench) -> None:
    """With what to do; atrace is there instead."""
    bench.phone.set_props({"init.svc.traced": "stopped"})
    tracers = ANDROID.tracers(DEVICE, bench.facts, bench.ask)
    assert str(tracers[0].obstacle) == (
        "Perfetto's service is stopped (try: run `adb shell setprop persist.traced.enable 1`, or use atrace)"
    )
    assert tracers[1].obstacle is None
    bench.phone.set_props({"init.svc.traced": "running"})
