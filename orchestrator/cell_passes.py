"""What all passes over the cells of one device have in common: done once, within the budget, committed one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.analysis.estimate import trial_latency_us
from orchestrator.cell_pass import CellPass
from orchestrator.clock import SYSTEM, Deadline, timestamp
from orchestrator.conductor import Conductor, Execution, Kept
from orchestrator.lineup import Lineup
from orchestrator.store import Store
from orchestrator.store.files import keep_file
from orchestrator.trial import Cell, Outcome, Slot, Trial

T = TypeVar("T")
P = TypeVar("P", bound=CellPass)


class Attempt:
    """Does something with the device, again where a broken connection gives hope."""

    def __init__(self, persist: Callable[[Callable[[], Any]], Any], conductor: Callable[[], Conductor]) -> None:
        self._persist = persist
        self._conductor = conductor

    def __call__(self, action: Callable[[Conductor], T]) -> T:
        done: T = self._persist(lambda: action(self._conductor()))
        return done


@dataclass(frozen=True)
class PassWork:
    """What passes over the cells of one device take."""

    run: str
    session: str
    store: Store
    lineup: Lineup
    attempt: Attempt
    stopped: Callable[[], bool]
    budget: Deadline | None = None

    def on_device(self, cell: Cell, action: Callable[[Conductor], T]) -> T:
        """Do it with the device, the build that the cell was measured with in place."""

        def act(conductor: Conductor) -> T:
            self.lineup.use(conductor, cell, None)
            return action(conductor)

        return self.attempt(act)

    def undone(self, kind: type[P], cell: Cell) -> P | None:
        """The pass that is not made because the time is up; None where it is not."""
        if self.budget and self.budget.passed:
            return self.blank(kind, cell, Outcome.NOT_RUN, "budget spent")
        return None

    def blank(self, kind: type[P], cell: Cell, outcome: Outcome, reason: str) -> P:
        return kind(self.run, cell, self.session, outcome, reason, timestamp(SYSTEM.now()))

    def made(self, kind: type[P], cell: Cell, done: Execution) -> P:
        """The pass of an execution, but for what it was made for."""
        latency = Trial(self.run, Slot(cell, 0, 0), self.session, done.outcome, done.reason, done.started_at)
        latency = replace(latency, samples_us=done.reading.samples_us, summary=done.reading.summary)
        return kind(
            self.run,
            cell,
            self.session,
            done.outcome,
            done.reason,
            done.started_at,
            duration_s=done.duration_s,
            latency_us=trial_latency_us(latency, "p50"),
            evidence=done.evidence,
            findings=done.findings,
        )

    def kept(self, passed: P, kept: Kept, name: str, files: Mapping[str, Path] | None = None) -> P:
        """The pass with what belongs to it in the store; `files` are moved there."""
        log = self.store.keep_log(name, self.run, kept.transcript)
        artifacts = {
            role: self.store.keep_artifact(f"{name}-{role}", self.run, content)
            for role, content in kept.outputs.items()
        }
        artifacts |= {role: keep_file(self.store.folder, name, self.run, path) for role, path in (files or {}).items()}
        return replace(passed, log=log, artifacts=artifacts)
