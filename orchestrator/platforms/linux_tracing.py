"""Tracers of Linux: perf where the kernel lets us, else its own ftrace. Pure, but for one question to the device."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.platforms.base import Ask
from orchestrator.platforms.questions import NOT_ASKED, Answer, answers, batch, whole_number
from orchestrator.platforms.tracing import Obstacle, Recording, Room, Tracer, attached_recording, process_recording
from orchestrator.trace import TraceSummary
from orchestrator.trace_files import read_ftrace, read_perf

KINDS = ("perf", "ftrace")

_QUESTIONS = {
    "uid": "id -u",
    "paranoid": "cat /proc/sys/kernel/perf_event_paranoid",
    "perf": "perf --version",
    "max_size": "perf record -h 2>&1 | grep -c -e --max-size",
    "tracefs": 'd=/sys/kernel/tracing; [ -d "$d/events" ] || d=/sys/kernel/debug/tracing; cd "$d/events" && echo "$d"',
    "events": "ls -d sched/sched_switch sched/sched_wakeup power/cpu_frequency power/cpu_idle 2>/dev/null; true",
    "instances": '[ -w "$d/instances" ] && echo yes',
    "cores": "nproc",
}
_HERTZ = 499
_PERF_EVENT = re.compile(r"\w+/\w+")
_FTRACE_EVENTS = (
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_migrate_task",
    "power/cpu_frequency",
    "power/cpu_idle",
    "thermal",
    "irq/irq_handler_entry",
    "irq/softirq_entry",
)
_INSTANCES = "devbench-"
_TEXT_OVER_BINARY = 8
"""About how many bytes of text the kernel makes of one in its buffer."""


@dataclass(frozen=True)
class Found:
    """What a Linux device said about tracing."""

    is_root: bool
    paranoid: int | None
    perf: str | None
    """Its version; None where there is none that runs."""
    perf_trouble: str
    has_max_size: bool
    tracefs: str | None
    """Where the kernel's tracer can be seen."""
    has_instances: bool
    """Whether it can be used."""
    events: tuple[str, ...]
    """What of it perf can record, as `sched:sched_switch`."""
    cores: int

    @property
    def sees_system(self) -> bool:
        return self.is_root or (self.paranoid is not None and self.paranoid <= 0)


def ask_about_tracing(ask: Ask) -> Found:
    """One round trip."""
    said = answers(ask(["sh", "-c", batch(_QUESTIONS)]).stdout)
    got: Mapping[str, Answer] = {name: said.get(name, NOT_ASKED) for name in _QUESTIONS}
    version = re.search(r"perf version (\S+)", got["perf"].text)
    return Found(
        is_root=got["uid"].text == "0",
        paranoid=whole_number(got["paranoid"].text),
        perf=version[1] if version else None,
        perf_trouble=got["perf"].trouble or "it does not say its version",
        has_max_size=(whole_number(got["max_size"].text) or 0) > 0,
        tracefs=got["tracefs"].text or None,
        has_instances=got["instances"].text == "yes",
        events=tuple(line.replace("/", ":") for line in got["events"].text.split() if _PERF_EVENT.fullmatch(line)),
        cores=whole_number(got["cores"].text) or 1,
    )


def linux_tracers(ask: Ask) -> Sequence[Tracer]:
    """The better one first."""
    found = ask_about_tracing(ask)
    return (Perf(found), Ftrace(found))


@dataclass(frozen=True)
class Perf:
    """Samples of what every CPU does, and the scheduler's decisions; of our own process alone where no more is let."""

    found: Found
    kind = "perf"
    suffix = ".perf.data"
    is_asked_for = False

    @property
    def obstacle(self) -> Obstacle | None:
        found = self.found
        if found.perf is None:
            package = "install it: linux-perf on Debian, linux-tools-generic on Ubuntu, perf elsewhere"
            fact = f"no perf that runs ({found.perf_trouble})"
            return Obstacle(fact, package)
        if found.is_root or (found.paranoid is not None and found.paranoid <= 2):
            return None
        level = "cannot be read" if found.paranoid is None else f"is {found.paranoid}"
        return Obstacle(
            f"kernel.perf_event_paranoid {level}, so that only root may use perf",
            "run `sysctl kernel.perf_event_paranoid=0` as root there, or log in as root",
        )

    def recording(self, room: Room) -> Recording:
        output = f"{room.folder}/trace.perf.data"
        cap = f" --max-size {max(1, room.bytes_max // 1_000_000)}M" if self.found.has_max_size else ""
        if self.found.sees_system:
            events = "".join(f" -e {event}" for event in self.found.events if self.found.is_root)
            command = f'perf record -a -g -F {_HERTZ} -e cpu-clock{events}{cap} -o "$o"'
            return process_recording(command, output, ready='[ -s "$o" ]')
        kernel_too = self.found.paranoid is not None and self.found.paranoid <= 1
        event = "cpu-clock" if kernel_too else "cpu-clock:u"
        return attached_recording(f'perf record -g -F {_HERTZ} -e {event}{cap} -o "$o" -p $t', output)

    def held(self) -> AbstractContextManager[None]:
        return nullcontext()

    def read(self, path: Path) -> TraceSummary:
        return read_perf(path)


@dataclass(frozen=True)
class Ftrace:
    """The scheduler's and the clocks' events as the kernel writes them, in a buffer of our own."""

    found: Found
    kind = "ftrace"
    suffix = ".ftrace.txt"
    is_asked_for = False

    @property
    def obstacle(self) -> Obstacle | None:
        if self.found.has_instances:
            return None
        if self.found.tracefs is not None or not self.found.is_root:
            return Obstacle("the kernel's tracefs is not ours to write", "log in as root there")
        return Obstacle(
            "the kernel's tracefs is not mounted", "run `mount -t tracefs nodev /sys/kernel/tracing` as root there"
        )

    def recording(self, room: Room) -> Recording:
        """A ring buffer: of what does not fit, the latest stays."""
        place = f"{self.found.tracefs}/instances/{_INSTANCES}"
        kilobytes = max(64, room.bytes_max // (1000 * _TEXT_OVER_BINARY * self.found.cores))
        # Only one devbench is at work on a device, so that buffers of that name are left-overs.
        start = f"""for d in {place}*; do [ -d "$d" ] && echo 0 >"$d/tracing_on" && rmdir "$d"; done 2>/dev/null
t={place}{room.name}; mkdir "$t" 2>"$l" && echo {kilobytes} >"$t/buffer_size_kb" || dead
for e in {" ".join(_FTRACE_EVENTS)}; do [ -d "$t/events/$e" ] && echo 1 >"$t/events/$e/enable"; done 2>>"$l"
echo 1 >"$t/tracing_on" 2>>"$l" || dead"""
        stop = f"""echo 0 >"$t/tracing_on"; cat "$t/trace" | head -c {room.bytes_max} >"$o" 2>>"$l" || s=1
rmdir "$t" """
        return Recording(f"{room.folder}/trace.ftrace.txt", start, stop, 'rmdir "$t" 2>/dev/null')

    def held(self) -> AbstractContextManager[None]:
        return nullcontext()

    def read(self, path: Path) -> TraceSummary:
        return replace(read_ftrace(path), tflite_slices=None)  # TFLite tells the kernel of none but on Android
