"""Tracers of phones: Perfetto, atrace where there is no Perfetto, and simpleperf where a user asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from android_harness.changes import PERF_HARDEN, TRACE, Change
from android_harness.conditions import Phone, lent
from android_harness.perfetto_config import perfetto_config
from android_harness.perfetto_trace import read_perfetto
from orchestrator.platforms.base import Ask, Facts
from orchestrator.platforms.questions import NOT_ASKED, Answer, answers, batch
from orchestrator.platforms.tracing import Obstacle, Recording, Room, Tracer, attached_recording, process_recording
from orchestrator.trace import TraceSummary
from orchestrator.trace_files import read_ftrace, read_perf

KINDS = ("perfetto", "atrace", "simpleperf")

PERFETTO_FOLDER = "/data/misc/perfetto-traces"
"""The one place where SELinux lets Perfetto write and adb read."""
_TEXT_CONFIG_API = 29
_QUESTIONS = {
    "perfetto": "command -v perfetto",
    "service": "getprop init.svc.traced",
    "atrace": "command -v atrace",
    "categories": "atrace --list_categories",
    "simpleperf": "command -v simpleperf",
    "size_limit": "simpleperf record --help | grep -e --size-limit",
}
_CATEGORIES = ("sched", "freq", "idle", "load", "power", "thermal", "nnapi", "gfx")
_ATRACE_KB_MAX = 16_384
_HERTZ = 1000


@dataclass(frozen=True)
class _Found:
    """What a phone said about its tools, and how to change something on it."""

    said: Mapping[str, Answer]
    phone: Phone
    ask: Ask
    cores: int

    def has(self, tool: str) -> bool:
        return self.said[tool].exit == 0 and bool(self.said[tool].text)

    def lend(self, values: Mapping[Change, str]) -> AbstractContextManager[None]:
        return lent(values, self.phone, self.ask)


def phone_tracers(phone: Phone, facts: Facts, ask: Ask) -> Sequence[Tracer]:
    """One round trip; the better one first."""
    said = answers(ask(["sh", "-c", batch(_QUESTIONS)]).stdout)
    found = _Found({name: said.get(name, NOT_ASKED) for name in _QUESTIONS}, phone, ask, facts.cores)
    return (Perfetto(found), Atrace(found), Simpleperf(found))


@dataclass(frozen=True)
class Perfetto:
    """Scheduling, clocks, heat, GPU and memory, and the slices of every program, TFLite's among them."""

    found: _Found
    kind = "perfetto"
    suffix = ".perfetto-trace"
    is_asked_for = False

    @property
    def obstacle(self) -> Obstacle | None:
        api, service = self.found.phone.api, self.found.said["service"].text
        if api is not None and api < _TEXT_CONFIG_API:
            level = f"API {_TEXT_CONFIG_API} (Android 10)"
            fact = f"Perfetto takes text configurations from {level} on, and this is API {api}"
            return Obstacle(fact, "use atrace")
        if not self.found.has("perfetto"):
            return Obstacle("the phone has no perfetto", "use atrace")
        if service and service != "running":
            return Obstacle(
                f"Perfetto's service is {service}", "run `adb shell setprop persist.traced.enable 1`, or use atrace"
            )
        return None

    def recording(self, room: Room) -> Recording:
        """The configuration goes through a pipe, and its words to standard error: SELinux lets Perfetto neither read
        nor write our files."""
        output = f"{PERFETTO_FOLDER}/devbench-{room.name}{self.suffix}"
        return process_recording(
            'cat "$c" | perfetto --txt -c - -o "$o"',
            output,
            says=">/dev/null",
            config=perfetto_config(bytes_max=room.bytes_max, seconds_max=room.seconds_max),
            leftovers=f"{PERFETTO_FOLDER}/devbench-*",
        )

    def held(self) -> AbstractContextManager[None]:
        return self.found.lend({TRACE: "1"})

    def read(self, path: Path) -> TraceSummary:
        return read_perfetto(path)


@dataclass(frozen=True)
class Atrace:
    """The kernel's scheduling and clocks, and the slices of programs, as older releases give them."""

    found: _Found
    kind = "atrace"
    suffix = ".atrace"
    is_asked_for = False

    @property
    def _categories(self) -> list[str]:
        lines = (line.split() for line in self.found.said["categories"].text.splitlines())
        listed = {words[0] for words in lines if words}
        return [name for name in _CATEGORIES if name in listed]

    @property
    def obstacle(self) -> Obstacle | None:
        if not self.found.has("atrace"):
            return Obstacle("the phone has no atrace", "none: it has come with Android since 4.3")
        if not self._categories:
            said = self.found.said["categories"].trouble or "it lists none that we want"
            return Obstacle(f"atrace has no category for us ({said})", "use a phone whose shell may trace")
        return None

    def recording(self, room: Room) -> Recording:
        """A ring buffer in the kernel, dumped and packed at the end. One that an earlier session left on is ended."""
        kilobytes = max(256, min(_ATRACE_KB_MAX, room.bytes_max // (1000 * max(1, self.found.cores))))
        mark, dump = f"{room.folder}/../../atrace-on", "atrace --async_stop"
        start = f"""[ -f "{mark}" ] && {dump} >/dev/null 2>&1
true >"{mark}"; atrace --async_start -c -b {kilobytes} -a "*" {" ".join(self._categories)} >"$l" 2>&1 || dead"""
        stop = f'{dump} -z >"$o" 2>>"$l"; s=$?; rm -f "{mark}"'
        undo = f'{dump} >/dev/null 2>&1; rm -f "{mark}"'
        return Recording(f"{room.folder}/trace{self.suffix}", start, stop, undo)

    def held(self) -> AbstractContextManager[None]:
        return self.found.lend({TRACE: "1"})

    def read(self, path: Path) -> TraceSummary:
        return read_ftrace(path)


@dataclass(frozen=True)
class Simpleperf:
    """Samples of where the time goes: of our own process, or of the whole phone where adb is root."""

    found: _Found
    kind = "simpleperf"
    suffix = ".simpleperf.data"
    is_asked_for = True

    @property
    def obstacle(self) -> Obstacle | None:
        if self.found.has("simpleperf"):
            return None
        return Obstacle("the phone has no simpleperf", "push the NDK's simpleperf into a folder of the phone's PATH")

    def recording(self, room: Room) -> Recording:
        cap = f" --size-limit {max(1, room.bytes_max // 1_000_000)}M" if self.found.has("size_limit") else ""
        common = f'simpleperf record -g -f {_HERTZ} -e cpu-clock --duration {room.seconds_max}{cap} -o "$o"'
        output = f"{room.folder}/trace{self.suffix}"
        if self.found.phone.root_prefix == "sh -c":
            return process_recording(f"{common} -a", output)
        return attached_recording(f"{common} -p $t", output)

    def held(self) -> AbstractContextManager[None]:
        return self.found.lend({PERF_HARDEN: "0"})

    def read(self, path: Path) -> TraceSummary:
        return read_perf(path)
