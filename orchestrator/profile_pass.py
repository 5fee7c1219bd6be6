"""The profile pass of one device: every cell once more with its operators timed, after all latencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from orchestrator import registry
from orchestrator.cell_passes import PassWork
from orchestrator.conductor import Conductor, Kept
from orchestrator.op_profile import OpProfile, ProfilePass
from orchestrator.trial import Cell, Outcome

_PROFILED_RUNS_MAX = 1000
"""A profiler's memory is small, and a thousand inferences say what an operator costs."""


def profile_cells(work: PassWork, cells: Sequence[Cell], told: Callable[[ProfilePass], None]) -> list[ProfilePass]:
    """Profile every cell that has no profile yet; gives the passes that came to nothing."""
    known = {passed.cell.id for passed in work.store.profiles(work.run) if passed.outcome != Outcome.NOT_RUN}
    missed = []
    for cell in cells:
        if cell.id in known:
            continue
        passed = _profiled(work, cell)
        work.store.add_pass(passed)
        told(passed)
        if passed.outcome != Outcome.MEASURED:
            missed.append(passed)
    return missed


def _profiled(work: PassWork, cell: Cell) -> ProfilePass:
    why_not = registry.runner(cell.runner).unprofiled(cell, work.lineup.facts_of(cell))
    if why_not is not None:
        return work.blank(ProfilePass, cell, Outcome.SKIPPED, why_not)
    if undone := work.undone(ProfilePass, cell):
        return undone
    passed, kept = work.on_device(cell, lambda conductor: _profile(work, conductor, cell))
    return work.kept(passed, kept, f"{cell.device}-profile-{cell.id}")


def _profile(work: PassWork, conductor: Conductor, cell: Cell) -> tuple[ProfilePass, Kept]:
    """The cell's operators timed, in a pass of its own: profiling distorts, so that this is never a trial."""
    runner = registry.runner(cell.runner)
    done = conductor.execute(cell, runner.profile_command, work.stopped, runs_max=_PROFILED_RUNS_MAX)
    profile = runner.read_profile(done.report.stdout, done.report.stderr, done.kept.outputs)
    passed = replace(work.made(ProfilePass, cell, done), profile=profile)
    return _judged(passed, profile), done.kept


def _judged(passed: ProfilePass, profile: OpProfile | None) -> ProfilePass:
    """What becomes of a profile: what was read of it is stored in any case."""
    if passed.outcome != Outcome.MEASURED:
        return passed
    if profile is None:
        return replace(passed, outcome=Outcome.FAILED, reason="the runner gave no operator profile")
    if profile.problem:
        reason = f"the operator profile is not whole: {profile.problem}"
        return replace(passed, outcome=Outcome.REJECTED, reason=reason)
    return passed
