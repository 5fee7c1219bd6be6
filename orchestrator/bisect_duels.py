"""Judges the items of a bisection by duels on a device; every one is written down before the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.analysis.bisection import Standing
from orchestrator.analysis.comparison import FAILING, Change, percent
from orchestrator.analysis.duels import CANDIDATE
from orchestrator.analysis.ends import BAD, END_ARMS, GOOD, Like, end_logs, likeness
from orchestrator.analysis.estimate import Metric
from orchestrator.analysis.reduction import reduced
from orchestrator.bisect_items import MODEL, NotBuilt, Source
from orchestrator.bisect_log import BisectLog
from orchestrator.bisection import STEP, BudgetSpent, Step
from orchestrator.content_hash import sha256
from orchestrator.contest import Contest, Duel, Pair, Side
from orchestrator.course import BUDGET_SPENT
from orchestrator.duel import (
    duel_measure,
    duel_plan,
    looks_alpha,
    prepare_duel,
    prepared_contests,
    result_of,
    resume_duel,
    seats_of,
    with_budget,
)
from orchestrator.errors import DeviceUnfit, HostError, RunNotFound
from orchestrator.fleet import Device
from orchestrator.model import Model
from orchestrator.observing import DeviceResult
from orchestrator.plan import Measure, plan_from_json
from orchestrator.prepare import Prepared, kept_blob
from orchestrator.schedule import is_look
from orchestrator.store import RunRecord, Store
from orchestrator.trial import Outcome

COMMAND = "bisect"
_CANDIDATE_TO_BLAME = DeviceUnfit, HostError
"""Errors that are about a build, where both ends ran on this device before."""

Conduct = Callable[[Prepared, bool], tuple[RunRecord, list[DeviceResult]]]
"""Does a duel; the second word says whether it goes on with one."""


@dataclass(frozen=True)
class Setting:
    """What is searched, and how carefully; none of it changes on the way."""

    device: Device
    base: Side
    names: tuple[str, ...]
    role: str
    """What differs from item to item: the model, or a role among the runner's files."""
    source: Source
    blocks: tuple[int, int]
    threshold: float
    metric: Metric
    budget_s: float | None = None
    """Device time for all of it."""
    seed: int | None = None


class DuelReferee:
    """Judges from the log what was judged, and the rest by duels."""

    def __init__(self, store: Store, log: BisectLog, setting: Setting, conduct: Conduct) -> None:
        self._store = store
        self._log = log
        self._setting = setting
        self._conduct = conduct

    # Items

    def digest(self, index: int) -> str | None:
        """The hash of an item, whose bytes are in the store from then on."""
        digest: str | None = self._item(index)["sha256"]
        return digest

    def trouble(self, index: int) -> str:
        return str(self._item(index)["reason"])

    def _item(self, index: int) -> Mapping[str, Any]:
        known = self._log.find("item", index=index)
        if known is not None:
            return known
        content: dict[str, Any] = {"index": index, "name": self._setting.names[index], "sha256": None, "reason": None}
        try:
            path = self._setting.source.obtain(self._setting.names[index])
            self._store.keep_blob(path)
            content["sha256"] = sha256(path)
        except NotBuilt as error:
            content["reason"] = str(error)
        self._log.append("item", content)
        return content

    def _side(self, index: int) -> Side:
        """The base with this item in its place."""
        base, role, digest = self._setting.base, self._setting.role, self.digest(index)
        assert digest is not None
        blob, name = kept_blob(self._store, digest), self._setting.names[index]
        if role == MODEL:
            cell = replace(base.cell, model_sha256=digest)
            return replace(base, cell=cell, model=Model(cell.model, blob, digest), run=None, name=name)
        cell = replace(base.cell, runner_sha256=digest) if role == "runner" else base.cell
        return replace(base, cell=cell, runner_files={**base.runner_files, role: blob}, run=None, name=name)

    # Decisions

    def pair(self, purpose: str, good: int, bad: int, attempt: int) -> Step:
        def prepare() -> Prepared:
            return prepare_duel(
                self._store,
                [Pair(self._setting.device, self._side(good), self._side(bad), self._setting.metric)],
                measure=self._measure(attempt),
                seed=self._setting.seed,
                origin=self._origin(purpose),
                threshold=self._setting.threshold,
            )

        blank = Step(purpose, bad, attempt, Standing.UNCLEAR, good)
        return self._decided(blank, prepare, lambda record: self._judged_pair(blank, record))

    def between(self, index: int, attempt: int) -> Step:
        blank = Step(STEP, index, attempt, Standing.UNCLEAR, 0)
        return self._decided(
            blank, lambda: self._prepared_ends(index, attempt), lambda record: self._judged_ends(blank, record)
        )

    def _prepared_ends(self, index: int, attempt: int) -> Prepared:
        setting, last = self._setting, len(self._setting.names) - 1
        sides = {GOOD: self._side(0), BAD: self._side(last), CANDIDATE: self._side(index)}
        measure = replace(self._measure(attempt), arms=END_ARMS, seed=setting.seed)
        plan = duel_plan(list(sides.values()), measure, profile=False)
        duel = Duel((Contest(seats_of(setting.device, sides), setting.metric),), setting.threshold)
        return prepared_contests(self._store, [setting.device], duel, list(sides.values()), plan, self._origin(STEP))

    def _judged_pair(self, blank: Step, record: RunRecord) -> Step:
        result = result_of(self._store, record)
        row = next((row for row in result.rows if row.metric == self._setting.metric), None)
        if row is None:
            names = f"{self._setting.names[blank.against]} and {self._setting.names[blank.index]}"
            reason = next(iter(result.missing.values()), "nothing was measured on both sides")
            raise DeviceUnfit(f"{names} cannot be told apart: {reason}", remedy=f"see `devbench show {record.id}`")
        standing = Standing.BAD if row.verdict in FAILING else Standing.GOOD
        return replace(
            blank,
            standing=Standing.UNCLEAR if row.verdict is Change.UNKNOWN else standing,
            blocks=row.n_new,
            effect=percent(row.effect),
            low=percent(row.low),
            high=percent(row.high),
            p=row.p if row.verdict in FAILING else None,
            is_faster=row.verdict is Change.FASTER,
        )

    def _judged_ends(self, blank: Step, record: RunRecord) -> Step:
        trials = self._store.trials(record.id)
        found = likeness(end_logs(list(reduced(trials)), self._setting.metric), alpha=looks_alpha(record))
        standing, note = Standing.UNCLEAR if found.like is Like.UNCLEAR else Standing(str(found.like)), None
        own = [trial for trial in trials if trial.slot.arm in (CANDIDATE, None)]
        if not any(trial.outcome is Outcome.MEASURED for trial in own) and any(trial.reason for trial in own):
            standing, note = Standing.SKIPPED, [trial.reason for trial in own if trial.reason][-1]
        return replace(
            blank,
            standing=standing,
            blocks=found.blocks,
            effect=percent(found.effect),
            low=percent(found.low),
            high=percent(found.high),
            p=found.p,
            is_beyond=found.is_beyond,
            note=note,
        )

    # Duels

    def _decided(self, blank: Step, prepare: Callable[[], Prepared], judged: Callable[[RunRecord], Step]) -> Step:
        which = {"purpose": blank.purpose, "index": blank.index, "attempt": blank.attempt}
        known = self._log.find("verdict", **which)
        if known is not None:
            return Step.from_json(known)
        record, result = self._measured(which, prepare)
        if isinstance(result.error, _CANDIDATE_TO_BLAME) and blank.purpose == STEP:
            step = replace(blank, standing=Standing.SKIPPED, run=record.id, note=result.error.fact)
            self._log.append("verdict", step.as_json())
            return step
        if result.error:
            raise result.error
        trials = self._store.trials(record.id)
        used_s = round(sum(trial.duration_s + trial.waited_s for trial in trials), 3)
        found = judged(record)
        step = replace(found, run=record.id, used_s=used_s, looks=_looks(record, found.blocks))
        if result.ending == BUDGET_SPENT and step.standing not in (Standing.GOOD, Standing.BAD):
            raise BudgetSpent
        self._log.append("verdict", step.as_json())
        return step

    def _measured(self, which: Mapping[str, Any], prepare: Callable[[], Prepared]) -> tuple[RunRecord, DeviceResult]:
        begun = self._log.find("duel", **which)
        prepared = self._resumed(begun["run"]) if begun else None
        if prepared is None:
            prepared = prepare()
            self._log.append("duel", {**which, "run": prepared.record.id})
            record, results = self._conduct(prepared, False)
        else:
            record, results = self._conduct(prepared, True)
        return record, results[0]

    def _resumed(self, run_id: str) -> Prepared | None:
        """A duel that was begun, with what is left of the budget now; None where its first trial never was."""
        try:
            return with_budget(resume_duel(self._store, run_id, COMMAND), self._left_s())
        except RunNotFound:
            return None

    def _measure(self, attempt: int) -> Measure:
        low, high = self._setting.blocks
        plan = self._setting.base.plan
        return duel_measure(plan, blocks=(low, high * (attempt + 1)), budget_s=self._left_s())

    def _left_s(self) -> float | None:
        if self._setting.budget_s is None:
            return None
        used_s = sum(float(entry["used_s"]) for entry in self._log.entries if entry["event"] == "verdict")
        if used_s >= self._setting.budget_s:
            raise BudgetSpent
        return self._setting.budget_s - used_s

    def _origin(self, purpose: str) -> dict[str, Any]:
        path = str(self._log.path)
        return {"command": COMMAND, "resume": f"devbench bisect --resume {path}", "log": path, "purpose": purpose}


def _looks(record: RunRecord, blocks: int) -> int:
    """How often the trials were looked at before the duel stopped."""
    measure = plan_from_json(record.plan).measure
    return max(1, sum(is_look(count, measure) or count == measure.blocks_max for count in range(1, blocks + 1)))
