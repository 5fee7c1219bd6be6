"""The profile pass of one device: every cell once more with its operators timed, after all latencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from orchestrator import registry
from orchestrator.clock import SYSTEM, Deadline, timestamp
from orchestrator.conductor import Conductor, Kept
from orchestrator.lineup import Lineup
from orchestrator.op_profile import ProfilePass
from orchestrator.store import Store
from orchestrator.trial import Cell, Outcome

Attempt = Callable[[Callable[[Conductor], tuple[ProfilePass, Kept]]], tuple[ProfilePass, Kept]]
"""Does something with the device, again where a broken connection gives hope."""


@dataclass(frozen=True)
class ProfileWork:
    """What profiling the cells of one device takes."""

    run: str
    session: str
    store: Store
    lineup: Lineup
    attempt: Attempt
    stopped: Callable[[], bool]
    told: Callable[[ProfilePass], None]
    budget: Deadline | None = None

    def profile_cells(self, cells: Sequence[Cell]) -> list[ProfilePass]:
        """Profile every cell that has no profile yet; gives the passes that came to nothing."""
        known = {passed.cell.id for passed in self.store.profiles(self.run) if passed.outcome != Outcome.NOT_RUN}
        missed = []
        for cell in cells:
            if cell.id in known:
                continue
            passed = self._profile(cell)
            self.told(passed)
            if passed.outcome != Outcome.MEASURED:
                missed.append(passed)
        return missed

    def _profile(self, cell: Cell) -> ProfilePass:
        """One pass, committed."""
        why_not = registry.runner(cell.runner).unprofiled(cell, self.lineup.facts_of(cell))
        now = timestamp(SYSTEM.now())
        if why_not is not None:
            passed = ProfilePass(self.run, cell, self.session, Outcome.SKIPPED, why_not, now)
        elif self.budget and self.budget.passed:
            passed = ProfilePass(self.run, cell, self.session, Outcome.NOT_RUN, "budget spent", now)
        else:
            passed = self._kept(*self.attempt(lambda conductor: self._pass(conductor, cell)))
        self.store.add_profile(passed)
        return passed

    def _pass(self, conductor: Conductor, cell: Cell) -> tuple[ProfilePass, Kept]:
        self.lineup.use(conductor, cell, None)
        return conductor.profile(cell, run=self.run, session=self.session, stopped=self.stopped)

    def _kept(self, passed: ProfilePass, kept: Kept) -> ProfilePass:
        name = f"{passed.cell.device}-profile-{passed.cell.id}"
        log = self.store.keep_log(name, self.run, kept.transcript)
        artifacts = {
            role: self.store.keep_artifact(f"{name}-{role}", self.run, content)
            for role, content in kept.outputs.items()
        }
        return replace(passed, log=log, artifacts=artifacts)
