"""Which tracer a Linux device has, why not, and what the real ones of this machine write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.clock import Deadline
from orchestrator.platforms.linux_tracing import Found, Ftrace, Perf, ask_about_tracing, linux_tracers
from orchestrator.platforms.tracing import Recording, Room, Tracer
from orchestrator.recorder import Recorder
from orchestrator.transports.base import Completed
from orchestrator.transports.local import LocalTransport

ROOM = Room("/work/scratch/1", "abc", 8_000_000, 60)
ROOT = Found(
    is_root=True,
    paranoid=4,
    perf="6.1",
    perf_trouble="",
    has_max_size=True,
    tracefs="/sys/kernel/tracing",
    has_instances=True,
    events=("sched:sched_switch", "power:cpu_idle"),
    cores=4,
)
USER = replace(ROOT, is_root=False, paranoid=2, tracefs=None, has_instances=False, events=())


def here(argv: Sequence[str]) -> Completed:
    return LocalTransport().run(argv, deadline=Deadline.after(30))


OBSTACLES = {
    "root": (Perf(ROOT), None),
    "a user at level 2": (Perf(USER), None),
    "no perf": (
        Perf(replace(ROOT, perf=None, perf_trouble="no such command")),
        "no perf that runs (no such command) "
        "(try: install it: linux-perf on Debian, linux-tools-generic on Ubuntu, perf elsewhere)",
    ),
    "a user at level 3": (
        Perf(replace(USER, paranoid=3)),
        "kernel.perf_event_paranoid is 3, so that only root may use perf "
        "(try: run `sysctl kernel.perf_event_paranoid=0` as root there, or log in as root)",
    ),
    "a kernel without perf": (
        Perf(replace(USER, paranoid=None)),
        "kernel.perf_event_paranoid cannot be read, so that only root may use perf "
        "(try: run `sysctl kernel.perf_event_paranoid=0` as root there, or log in as root)",
    ),
    "ftrace as root": (Ftrace(ROOT), None),
    "ftrace as a user": (Ftrace(USER), "the kernel's tracefs is not ours to write (try: log in as root there)"),
    "ftrace not mounted": (
        Ftrace(replace(ROOT, tracefs=None, has_instances=False)),
        "the kernel's tracefs is not mounted (try: run `mount -t tracefs nodev /sys/kernel/tracing` as root there)",
    ),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_what_stands_in_the_way(name: str) -> None:
    """Each with what to do about it."""
    tracer, words = OBSTACLES[name]
    assert (None if tracer.obstacle is None else str(tracer.obstacle)) == words


def test_root_sees_the_whole_system() -> None:
    """Samples of every CPU, and the scheduler's events that this kernel has; capped."""
    start = Perf(ROOT).recording(ROOM).start
    assert "perf record -a -g -F 499 -e cpu-clock -e sched:sched_switch -e power:cpu_idle --max-size 8M" in start
    assert "--max-size" not in Perf(replace(ROOT, has_max_size=False)).recording(ROOM).start


def test_a_user_sees_the_measured_program() -> None:
    """Which says its number before it begins, and waits for perf; at level 2 the kernel's part is not shown."""
    recording = Perf(USER).recording(ROOM)
    assert "-e cpu-clock:u --max-size 8M" in recording.start and "-p $t" in recording.start
    assert recording.prefix[:2] == ("sh", "-c")
    assert "-e cpu-clock --max" in Perf(replace(USER, paranoid=1)).recording(ROOM).start
    assert " -a " in Perf(replace(USER, paranoid=0)).recording(ROOM).start


def test_a_device_that_says_nothing_has_no_tracer() -> None:
    """Nor does that raise."""
    found = ask_about_tracing(lambda argv: Completed(127, b"", b"sh: not found"))
    assert Perf(found).obstacle is not None and Ftrace(found).obstacle is not None


def usable(kind: str) -> Tracer:
    tracer = next(tracer for tracer in linux_tracers(here) if tracer.kind == kind)
    if tracer.obstacle:
        pytest.skip(f"{kind} cannot be had on this machine: {tracer.obstacle}")
    return tracer


def recorded(recording: Recording, folder: Path, argv: Sequence[str]) -> tuple[Recorder, Path]:
    recorder = Recorder(LocalTransport(), recording, str(folder))
    with recorder:
        assert here([*recording.prefix, *argv]).exit == 0
    recorder.pull(folder.parent / "pulled")
    recorder.remove()
    assert not folder.exists()
    return recorder, folder.parent / "pulled"


BUSY = ("sh", "-c", "n=0; while [ $n -lt 400000 ]; do n=$((n+1)); done")


@pytest.mark.parametrize("kind", ["perf", "ftrace"])
def test_the_real_one_of_this_machine(tmp_path: Path, kind: str) -> None:
    """Whole, with events over the time that the program ran; nothing is left behind."""
    tracer = usable(kind)
    folder = tmp_path / "scratch"
    recorder, path = recorded(tracer.recording(replace(ROOM, folder=str(folder))), folder, BUSY)
    trace = tracer.read(path)
    assert (recorder.problem, trace.problem) == (None, None)
    assert trace.events > 5 and trace.duration_s
    assert not list(Path("/sys/kernel/tracing/instances").glob("devbench-*"))


def test_the_real_perf_on_one_process(tmp_path: Path) -> None:
    """As for a user who may see no more: the program is what is sampled, from its first moment to its end."""
    usable("perf")
    folder = tmp_path / "scratch"
    recording = Perf(replace(USER, paranoid=1)).recording(replace(ROOM, folder=str(folder)))
    recorder, path = recorded(recording, folder, BUSY)
    assert recorder.problem is None, bytes(recorder._output)
    assert Perf(USER).read(path).events > 3


@pytest.mark.parametrize("kind", ["perf", "ftrace"])
def test_a_host_that_goes_away_leaves_nothing(tmp_path: Path, kind: str) -> None:
    """The shell beside the tracer notices the end of its input, ends the tracer and removes what it wrote."""
    tracer = usable(kind)
    folder = tmp_path / "scratch"
    recording = tracer.recording(replace(ROOM, folder=str(folder)))
    recorder = Recorder(LocalTransport(), recording, str(folder)).__enter__()
    assert recorder._process
    recorder._process.close_input()
    assert recorder._process.wait(Deadline.after(20)) == 1
    assert list(folder.iterdir()) == []
    assert not list(Path("/sys/kernel/tracing/instances").glob("devbench-*"))
    assert here(["sh", "-c", f'ps -ef | grep -c "[p]erf record.*{folder}"']).stdout.strip() == b"0"
