"""The tracer of iPhones behind a Mac: Instruments, by its command line."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from orchestrator.platforms.base import Ask
from orchestrator.platforms.tracing import Obstacle, Recording, Room, Tracer, process_recording
from orchestrator.trace import TraceSummary
from orchestrator.trace_files import read_bundle

KINDS = ("xctrace",)
_BUNDLE = "devbench.trace"
_SIGNPOSTS = {"debug.tflite.trace": "1"}
"""Makes TFLite tell Instruments about every operator (os_signpost)."""


def mac_tracers(udid: str, ask: Ask) -> Sequence[Tracer]:
    """One round trip to the Mac."""
    done = ask(["xcrun", "xctrace", "version"])
    said = " ".join(done.stderr.decode("utf-8", "replace").split())[-200:]
    missing = Obstacle(
        f"xctrace does not run on the Mac ({said})", "install Xcode there: its tools alone have no xctrace"
    )
    return (Xctrace(udid, missing if done.exit != 0 else None),)


@dataclass(frozen=True)
class Xctrace:
    """Samples of every process of the phone, and TFLite's own intervals."""

    udid: str
    obstacle: Obstacle | None = None
    kind = "xctrace"
    suffix = ".trace.tar.gz"
    is_asked_for = False

    def recording(self, room: Room) -> Recording:
        """Instruments writes a folder, which is packed; it knows no limit of size, only one of time."""
        command = (
            'xcrun xctrace record --template "Time Profiler" --instrument os_signpost --all-processes --no-prompt'
            f' --device {self.udid} --time-limit {room.seconds_max}s --output "{room.folder}/{_BUNDLE}"'
        )
        return process_recording(
            command,
            f"{room.folder}/trace{self.suffix}",
            signal="INT",
            ready='grep -q "Ctrl-C to stop" "$l"',
            after_stop=f's=0; tar -C "{room.folder}" -czf "$o" {_BUNDLE} 2>>"$l" || s=$?',
            env=_SIGNPOSTS,
        )

    def held(self) -> AbstractContextManager[None]:
        return nullcontext()

    def read(self, path: Path) -> TraceSummary:
        return read_bundle(path)
