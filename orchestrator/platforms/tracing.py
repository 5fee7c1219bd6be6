"""The tracer protocol: how a platform records what a device does while a command runs there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from orchestrator.trace import TraceSummary

_PAUSE = "{ sleep 0.2 2>/dev/null || sleep 1; }"
"""Old shells know whole seconds only."""


@dataclass(frozen=True)
class Obstacle:
    """Why a tracer cannot be had on a device, and what to do about it."""

    fact: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.fact} (try: {self.remedy})"


@dataclass(frozen=True)
class Room:
    """Where a tracer may write, how much and for how long."""

    folder: str
    """A folder of this pass alone; it goes with everything in it."""
    name: str
    """A word that no other trace has, for tracers that must write elsewhere."""
    bytes_max: int
    seconds_max: int


@dataclass(frozen=True)
class Recording:
    """How one trace is recorded: scripts for a POSIX shell, in which `$o` is the trace, `$c` the configuration, `$l` a
    log of what the tracer says, and `$p` the tracer's process where it has one.

    `start` returns when recording is under way, or calls `dead`. `stop` sets `$s` to how the tracer ended. `undo` ends
    what runs, when the host went away. All are run by one shell that lives as long as the trace.
    """

    output: str
    start: str
    stop: str
    undo: str = ":"
    config: str = ""
    prefix: tuple[str, ...] = ()
    """What stands before the measured command where the tracer can see only that."""
    env: Mapping[str, str] = field(default_factory=dict)
    """What the measured command finds in its environment."""
    leftovers: str = ""
    """A pattern of files that an earlier session may have left elsewhere."""


def process_recording(
    command: str,
    output: str,
    *,
    signal: str = "TERM",
    ready: str = "true",
    after_stop: str = "",
    says: str = '>"$l" 2>&1',
    config: str = "",
    env: Mapping[str, str] | None = None,
    leftovers: str = "",
) -> Recording:
    """A tracer that is a process: started in the background, ended by a signal. `ready` is asked again and again.
    `says` is where its words go; those on standard error are heard too."""
    start = f"""{command} {says} & p=$!
n=0; while {_PAUSE}; kill -0 $p 2>/dev/null || dead; ! {{ {ready}; }}; do
n=$((n+1)); [ $n -lt 300 ] || {{ kill -KILL $p; dead; }}; done"""
    stop = f"kill -{signal} $p 2>/dev/null; wait $p; s=$?{after_stop and '; ' + after_stop}"
    return Recording(
        output, start, stop, f"kill -{signal} $p 2>/dev/null", config=config, env=env or {}, leftovers=leftovers
    )


_WAIT_TO_BE_SEEN = f"""echo $$ >"$0.pid"; n=0
while [ ! -e "$0.go" ] && [ $n -lt 100 ]; do n=$((n+1)); {_PAUSE}; done; exec "$@\""""


def attached_recording(command: str, output: str) -> Recording:
    """A tracer that may see only a process of ours, `$t` in its command. The measured program says its number before
    it begins, and waits; the tracer ends with it. It is no child of the agent's, which ends everything it started."""
    start = f"""( n=0; while [ ! -s "$o.pid" ] && [ $n -lt 1000 ]; do n=$((n+1)); {_PAUSE}; done
read -r t <"$o.pid"; {command} </dev/null >"$l" 2>&1 & p=$!
n=0; while {_PAUSE}; [ ! -s "$o" ] && kill -0 $p 2>/dev/null && [ $n -lt 50 ]; do n=$((n+1)); done
{_PAUSE}; true >"$o.go"; wait $p ) & p=$!"""
    # perf writes its header first and looks at the process then, so that it is given a moment more.
    stop = '[ -s "$o.pid" ] || kill $p; wait $p; s=$?'
    return Recording(output, start, stop, "kill $p 2>/dev/null", prefix=("sh", "-c", _WAIT_TO_BE_SEEN, output))


class Tracer(Protocol):
    """One tool that can record on one device, as it was found there."""

    @property
    def kind(self) -> str:
        """What users call it."""

    @property
    def suffix(self) -> str:
        """How its files are called, so that viewers know them."""

    @property
    def is_asked_for(self) -> bool:
        """Whether it is used only where a user names it."""

    @property
    def obstacle(self) -> Obstacle | None:
        """Why it cannot be had on this device; None when it can, as far as asking tells."""

    def recording(self, room: Room) -> Recording:
        """How to record."""

    def held(self) -> AbstractContextManager[None]:
        """What of the device is otherwise meanwhile, undone whatever happens."""

    def read(self, path: Path) -> TraceSummary:
        """What the file says. Never raises: what is wrong with it is its problem."""
