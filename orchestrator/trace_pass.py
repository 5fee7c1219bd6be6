"""The trace pass of one device: cells once more while a tracer records what the system does, after all latencies."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import registry
from orchestrator.cell_passes import PassWork
from orchestrator.conductor import Conductor, Execution, Kept, MakeCommand
from orchestrator.errors import DevbenchError, TracerFailed
from orchestrator.plan import Measure
from orchestrator.platforms.tracing import Recording, Room, Tracer
from orchestrator.recorder import Recorder
from orchestrator.runners.base import Command, Places
from orchestrator.store.files import workroom
from orchestrator.trace import TracePass, TraceSummary
from orchestrator.trial import Cell, Finding, Outcome, Severity

_SHOWN = ("limit", "other-cpu")
"""What rejects a latency, and is what a trace is there to show."""
_SLACK_BYTES = 4_000_000
_SLACK_S = 60
_NEAR_CAP = 0.95


@dataclass(frozen=True)
class Wanted:
    """What kind of traces, and how much of them."""

    tools: tuple[str, ...]
    """By name; empty for the best that each device has."""
    bytes_max: int
    trial_s: float
    why: Mapping[str, str] | None = None
    """What is odd about cells, by their id, where only odd ones are traced."""


@dataclass(frozen=True)
class Brought:
    """What came of recording: the file on this host where there is one, and what is wrong."""

    path: Path | None = None
    trace: TraceSummary | None = None
    problem: str | None = None


def trace_cells(
    work: PassWork, cells: Sequence[Cell], wanted: Wanted, told: Callable[[TracePass], None]
) -> list[TracePass]:
    """Trace every cell that has no trace yet; gives the passes that came to nothing."""
    known = {(passed.cell.id, passed.kind) for passed in work.store.traces(work.run) if _is_final(passed)}
    missed = []
    for cell in cells:
        for tool in wanted.tools or (None,):
            if (cell.id, tool) in known or (tool is None and cell.id in {seen for seen, _ in known}):
                continue
            passed = _traced(work, cell, tool, wanted)
            work.store.add_pass(passed)
            told(passed)
            if passed.outcome != Outcome.MEASURED:
                missed.append(passed)
    return missed


def _is_final(passed: TracePass) -> bool:
    return passed.outcome != Outcome.NOT_RUN


def _traced(work: PassWork, cell: Cell, tool: str | None, wanted: Wanted) -> TracePass:
    why = (wanted.why or {}).get(cell.id)
    if undone := work.undone(TracePass, cell):
        return replace(undone, kind=tool, why=why)
    with workroom(work.store.folder) as room:
        passed, kept, brought = work.on_device(
            cell, lambda conductor: _trace(work, conductor, cell, tool, wanted, room)
        )
        passed = replace(passed, why=why)
        if kept is None:
            return passed
        files = {"trace": brought.path} if brought.path else {}
        return work.kept(passed, kept, f"{cell.device}-{passed.kind}-{cell.id}", files)


def _trace(
    work: PassWork, conductor: Conductor, cell: Cell, tool: str | None, wanted: Wanted, room: Path
) -> tuple[TracePass, Kept | None, Brought]:
    """One recorded execution. The tracer's files are gone from the device when this returns, whatever happened."""
    tracer, why_not = _chosen(conductor.tracers(), tool, conductor.platform.name)
    if tracer is None:
        return replace(work.blank(TracePass, cell, Outcome.SKIPPED, why_not), kind=tool), None, Brought()
    folder = conductor.new_folder()
    seconds = int(wanted.trial_s) + _SLACK_S
    recording = tracer.recording(Room(folder, secrets.token_hex(6), wanted.bytes_max, seconds))
    recorder = conductor.recorder(recording, folder)
    try:
        done = conductor.execute(cell, _command(recording), work.stopped, within=lambda: _recording(tracer, recorder))
        brought = bring(recorder, tracer, wanted.bytes_max, room)
    except TracerFailed as error:
        reason = f"{tracer.kind}: {error.fact}"
        return replace(work.blank(TracePass, cell, Outcome.FAILED, reason), kind=tracer.kind), None, Brought()
    finally:
        with suppress(DevbenchError):  # a device that went away is swept when the next session traces there
            recorder.remove()
    passed = replace(work.made(TracePass, cell, done), kind=tracer.kind, trace=brought.trace)
    asked = {"start": recording.start, "config": recording.config, "bytes_max": wanted.bytes_max}
    passed = replace(passed, evidence={**passed.evidence, "tracer": asked})
    if why_not:
        finding = Finding("tracer", Severity.NOTE, f"a better tracer cannot be had: {why_not}", "see there")
        passed = replace(passed, findings=(*passed.findings, finding))
    return _judged(passed, brought, recording, done), done.kept, brought


def _chosen(tracers: Sequence[Tracer], tool: str | None, platform: str) -> tuple[Tracer | None, str]:
    """The tracer of that name, or the first that can be had; and why better ones cannot."""
    named = [tracer for tracer in tracers if (tool is None and not tracer.is_asked_for) or tracer.kind == tool]
    if not named:
        have = ", ".join(tracer.kind for tracer in tracers) or "none"
        return None, f"no {tool or 'system'} traces on {platform}, which has {have}"
    obstacles: list[str] = []
    for tracer in named:
        if tracer.obstacle is None:
            return tracer, "; ".join(obstacles)
        obstacles.append(f"{tracer.kind}: {tracer.obstacle}")
    return None, "; ".join(obstacles)


def _command(recording: Recording) -> MakeCommand:
    """The runner's plain command, as the tracer needs it."""

    def make(cell: Cell, places: Places, measure: Measure) -> Command:
        command = registry.runner(cell.runner).command(cell, places, measure)
        return replace(command, argv=(*recording.prefix, *command.argv), env={**command.env, **recording.env})

    return make


@contextmanager
def _recording(tracer: Tracer, recorder: Recorder) -> Iterator[None]:
    with tracer.held(), recorder:
        yield


def bring(recorder: Recorder, tracer: Tracer, bytes_max: int, room: Path) -> Brought:
    """Pull the trace and look into it. What came of it is kept, whole or not."""
    written = recorder.written()
    if written.size_bytes is None:
        return Brought(problem=recorder.problem or "the tracer wrote no file")
    if written.size_bytes > 1.25 * bytes_max + _SLACK_BYTES:
        too_much = f"it has {written.size_bytes / 1e6:.0f} MB on the device, and {bytes_max / 1e6:.0f} MB is the most"
        return Brought(problem=f"{too_much}: it was not pulled")
    path = room / f"trace{tracer.suffix}"
    recorder.pull(path)
    trace = _with_cap_noted(tracer.read(path), bytes_max)
    problem = recorder.problem
    if problem is None and written.is_full:
        problem = "the device filled up while it was traced"
    if problem is None and trace.size_bytes != written.size_bytes:
        problem = f"{trace.size_bytes} of {written.size_bytes} bytes arrived"
    problem = "; ".join(dict.fromkeys(part for part in (problem, trace.problem) if part)) or None
    return Brought(path if trace.size_bytes else None, trace, problem)


def _with_cap_noted(trace: TraceSummary, bytes_max: int) -> TraceSummary:
    if trace.size_bytes < _NEAR_CAP * bytes_max:
        return trace
    note = f"it is as large as it may be ({bytes_max / 1e6:g} MB), so that a part may be missing: raise --max-size"
    return replace(trace, notes=(*trace.notes, note))


def _judged(passed: TracePass, brought: Brought, recording: Recording, done: Execution) -> TracePass:
    """A trace that is not whole is no good one; what there is of it is kept all the same."""
    passed = _despite_conditions(passed)
    if passed.outcome != Outcome.MEASURED:
        return passed
    if brought.problem:
        outcome = Outcome.REJECTED if brought.path else Outcome.FAILED
        return replace(passed, outcome=outcome, reason=f"{passed.kind}: {brought.problem}")
    if recording.prefix and done.reading.observed.get("process") is not None:
        reason = f"{passed.kind}: it saw only the command, which drives another process"
        return replace(passed, outcome=Outcome.REJECTED, reason=reason)
    return passed


def _despite_conditions(passed: TracePass) -> TracePass:
    """A pass that was rejected for nothing but what went on beside it; the findings stay."""
    rules = {finding.rule for finding in passed.findings if finding.severity in (Severity.REJECT, Severity.FAIL)}
    if passed.outcome == Outcome.REJECTED and rules <= set(_SHOWN):
        return replace(passed, outcome=Outcome.MEASURED, reason=None)
    return passed
