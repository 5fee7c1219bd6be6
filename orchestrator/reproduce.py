"""The same regression again on one device: which two sides are meant, how the device is now, and what came of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator import registry, telemetry
from orchestrator.analysis.comparison import Change, Comparison, percent
from orchestrator.analysis.estimate import Metric, trial_latency_us
from orchestrator.analysis.operators import OpsComparison, cell_ops, compare_ops
from orchestrator.cell_words import cell_meant, same_setting
from orchestrator.conductor import Conductor
from orchestrator.contest import Side
from orchestrator.duel import DuelResult, side_of
from orchestrator.errors import RunNotFound, UsageError
from orchestrator.fleet import Device
from orchestrator.prepare import device_from_json
from orchestrator.seeing import seen
from orchestrator.store import RunRecord, Store
from orchestrator.store.annals import Annals
from orchestrator.then_and_now import Difference, Moment, differences, moment_of, moment_of_trials
from orchestrator.trial import Cell, Outcome

_DEVICE_RUNTIMES = ("litert_runner", "ios_app")
"""Runners whose runtime is installed on the device and is none of their files: no store can bring it back."""


class Answer(StrEnum):
    """What became of the attempt."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    UNKNOWN = "unknown"


_ANSWERS = {
    Change.SLOWER: Answer.REPRODUCED,
    Change.UNSTABLE_SLOWER: Answer.REPRODUCED,
    Change.SAME: Answer.NOT_REPRODUCED,
    Change.FASTER: Answer.NOT_REPRODUCED,
}


@dataclass(frozen=True)
class Case:
    """What is to be reproduced: a cell of a run, against the same cell of an earlier one."""

    run: RunRecord
    baseline: RunRecord
    suspect: Side
    base: Side
    then_effect: float | None
    """The change between the two runs as they were measured, on the log scale; they were not interleaved."""

    @property
    def differs(self) -> tuple[str, ...]:
        """Which bytes of the two sides differ."""
        roles = dict.fromkeys((*self.base.runner_files, *self.suspect.runner_files))
        found = ["model"] if self.base.cell.model_sha256 != self.suspect.cell.model_sha256 else []
        # The store's copies lie under their hash.
        found += [role for role in roles if self.base.runner_files.get(role) != self.suspect.runner_files.get(role)]
        return tuple(found)

    @property
    def has_device_runtime(self) -> bool:
        return self.suspect.cell.runner.partition(":")[0] in _DEVICE_RUNTIMES

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the kept bytes cannot bring back."""
        versions = [str(side.runner_facts.get("runtime_version")) for side in (self.base, self.suspect)]
        found = [] if self.differs else ["both sides are the very same bytes"]
        if self.has_device_runtime and len(set(versions)) > 1:
            changed = f"{versions[0]} in the baseline and {versions[1]} in the suspect run"
            found.append(f"the runtime was {changed}; it is the device's own, and both sides run on what is there now")
        return tuple(found)


# Which one is meant


def find_case(store: Store, run: str, cell_text: str, *, device: str | None, baseline: str | None) -> Case:
    """The cell of a run, and what it is held against: as named, as the gate did, or the newest run before it."""
    record, cell = measured_cell(store, run, cell_text, device)
    against = _baseline(store, record, cell, baseline)
    (base_cell,) = same_setting(store.cells(against.id), cell)[:1]
    effect = _effect_then(store, (against, base_cell), (record, cell))
    return Case(record, against, side_of(store, record.id, cell), side_of(store, against.id, base_cell), effect)


def measured_cell(store: Store, run: str, text: str, device: str | None) -> tuple[RunRecord, Cell]:
    """A run and a cell that it measured; on the device that is asked for, where the run had it."""
    record = store.find_run(run)
    if record.duel is not None:
        raise UsageError(f"run {record.id} is itself a duel", remedy="name the run that it was made for")
    cells = store.cells(record.id)
    of_device = [cell for cell in cells if cell.device == device]
    cell = cell_meant(of_device or cells, text, f"run {record.id}")
    trials = [trial for trial in store.trials(record.id) if trial.cell.id == cell.id]
    if not any(trial.outcome is Outcome.MEASURED for trial in trials):
        why = next((trial.reason for trial in reversed(trials) if trial.reason), "no trial was made")
        raise UsageError(f"run {record.id} never measured {cell}: {why}", remedy="choose a cell that it measured")
    return record, cell


def _baseline(store: Store, record: RunRecord, cell: Cell, reference: str | None) -> RunRecord:
    if reference is not None:
        named = store.find_baseline(reference, record)
        if not _has_measured(store, named, cell):
            raise UsageError(f"run {named.id} never measured {cell}", remedy="name another run with --baseline")
        return named
    judged = Annals(store).judgements().get(record.id)
    known = {other.id: other for other in store.runs()}
    candidates = [judged.baseline_id] if judged else []
    candidates += [run for run, other in known.items() if other.is_ordinary and other.created_at < record.created_at]
    for run_id in candidates:
        if run_id in known and _has_measured(store, known[run_id], cell):
            return known[run_id]
    raise RunNotFound(
        f"no run before {record.id} in {store.folder} measured {cell}",
        remedy="name the run to hold it against with --baseline",
    )


def _has_measured(store: Store, record: RunRecord, cell: Cell) -> bool:
    """Whether the run measured this setting, with whatever bytes; trials are read only where it had the cell."""
    alike = {found.id for found in same_setting(store.cells(record.id), cell)}
    if not alike:
        return False
    return any(trial.cell.id in alike and trial.outcome is Outcome.MEASURED for trial in store.trials(record.id))


def _effect_then(store: Store, base: tuple[RunRecord, Cell], new: tuple[RunRecord, Cell]) -> float | None:
    """From the medians of both runs."""
    medians = []
    for record, cell in (base, new):
        own = [trial for trial in store.trials(record.id) if trial.cell.id == cell.id]
        found = [value for trial in own if (value := trial_latency_us(trial, "p50")) is not None]
        if not found:
            return None
        medians.append(statistics.median(found))
    return math.log(medians[1] / medians[0])


def device_of(record: RunRecord, name: str | None, cell: Cell, listed: Sequence[Device] | None) -> Device:
    """The device to measure on: from `listed` where a fleet was given, otherwise as the run knew it."""
    wanted = name or cell.device
    known = [device_from_json(content) for content in record.fleet["devices"]] if listed is None else list(listed)
    for device in known:
        if device.name == wanted:
            return device
    names = ", ".join(device.name for device in known) or "none"
    if listed is None:
        remedy = f"it was measured on: {names}; --fleet FILE takes any other device from that file"
        raise UsageError(f"run {record.id} was not measured on {wanted}", remedy=remedy)
    raise UsageError(f'the fleet has no device "{wanted}"', remedy=f"choose one with --device: {names}")


def refuse_unprofiled(case: Case) -> None:
    """Nobody waits for a profile that cannot be had."""
    name = case.suspect.cell.runner
    why = registry.runner(name).no_profiles
    if why:
        raise UsageError(f"--profile: {name} gives no operator profiles: {why}", remedy="leave --profile out")


# How it is now


def device_changes(store: Store, case: Case, device: Device) -> list[Difference]:
    """What differs about the device now against the suspect run; it is reached and looked at, and left as it is."""
    with seen(device) as conductor:
        return differences(_then(store, case), _now(conductor, case))


def _then(store: Store, case: Case) -> Moment:
    cell = case.suspect.cell
    sessions = [one for one in store.sessions(case.run.id) if one.device == cell.device and one.facts]
    trials = [trial for trial in store.trials(case.run.id) if trial.cell.id == cell.id]
    return moment_of_trials(sessions[0].facts if sessions else {}, trials, _runtime(case.suspect.runner_facts, case))


def _now(conductor: Conductor, case: Case) -> Moment:
    name = case.suspect.cell.runner
    facts: Mapping[str, Any] = {}
    if conductor.platform.name in registry.runner(name).platforms:
        conductor.use_runner(name, case.suspect.runner_files)
        facts, _ = conductor.runner_facts(name)  # where it cannot run, the duel says so with its remedy
    samples, state, _ = conductor.look()
    free = [sample["mem_available_kb"] for sample in samples if sample.get("mem_available_kb")]
    return moment_of(
        conductor.facts.as_json(),
        state,
        runner=_runtime(facts, case),
        other_cpus=telemetry.busy_cpus(samples),
        free_memory_kb=free[0] if free else None,
    )


def _runtime(facts: Mapping[str, Any], case: Case) -> Mapping[str, Any] | None:
    """Only a runtime that is the device's own can have changed there."""
    return facts if case.has_device_runtime else None


# What came of it


@dataclass(frozen=True)
class Attempt:
    """The answer, the row it rests on, and what else is known."""

    answer: Answer
    row: Comparison | None
    rows: tuple[Comparison, ...]
    reason: str | None
    """Why there is no row."""
    run_id: str
    ops: OpsComparison | None = None
    ops_missing: str | None = None
    """Why there are no operators, where they were asked for."""

    @property
    def text(self) -> str:
        """`reproduced +7.2 % [5.9, 8.4]`."""
        row = self.row
        if row is None or row.effect is None:
            return f"{self.answer}: {self.reason or 'nothing was measured on both sides'}"
        change = change_text(row)
        if self.answer is Answer.UNKNOWN:
            more = f"about {row.blocks_needed} more blocks would decide" if row.blocks_needed else "no number of blocks"
            more = more if row.blocks_needed else f"{more} that anyone would wait for would decide"
            return f"unknown: {change} after {row.n_new} blocks; {more}"
        faster = ", it is faster instead:" if row.verdict is Change.FASTER else ""
        part = " in a part of the processes," if row.verdict is Change.UNSTABLE_SLOWER else ""
        same = " (equivalent):" if row.verdict is Change.SAME else ""
        return f"{self.answer}{faster}{part}{same} {change}"

    def as_json(self, case: Case) -> dict[str, Any]:
        return {
            "run": case.run.id,
            "baseline": case.baseline.id,
            "cell": case.suspect.cell.as_json() | {"id": case.suspect.cell.id},
            "differs": list(case.differs),
            "warnings": list(case.warnings),
            "effect_percent_then": percent(case.then_effect),
            "answer": str(self.answer).replace(" ", "_"),
            "text": self.text,
            "reason": self.reason,
            "duel": self.run_id,
            "decided_by": self.row.as_json() if self.row else None,
            "comparisons": [row.as_json() for row in self.rows],
            "operators": self.ops.as_json() if self.ops else None,
            "operators_missing": self.ops_missing,
        }


def change_text(row: Comparison) -> str:
    """`+7.2 % [5.9, 8.4]`."""
    effect, low, high = (percent(value) for value in (row.effect, row.low, row.high))
    interval = "" if low is None or high is None else f" [{low:.1f}, {high:.1f}]"
    return f"{effect:+.1f} %{interval}"


def attempt_of(store: Store, result: DuelResult, metric: Metric, *, profile: bool) -> Attempt:
    """The answer by one metric."""
    row = next((row for row in result.rows if row.metric == metric), None)
    reason = next(iter(result.missing.values()), None)
    answer = _ANSWERS.get(row.verdict, Answer.UNKNOWN) if row else Answer.UNKNOWN
    ops, missing = _moved_operators(store, result.run_id) if profile else (None, None)
    return Attempt(answer, row, result.rows, reason, result.run_id, ops, missing)


def _moved_operators(store: Store, run_id: str) -> tuple[OpsComparison | None, str | None]:
    record = store.find_run(run_id)
    assert record.duel is not None
    seats = record.duel["contests"][0]["seats"]
    base_id, new_id = (Cell(**seats[arm]["cell"]).id for arm in ("baseline", "candidate"))
    passes = {passed.cell.id: passed for passed in store.profiles(run_id)}
    if base_id == new_id:
        return None, "both sides are one cell, so that there is one profile only"
    for cell_id in (base_id, new_id):
        if cell_id not in passes or passes[cell_id].profile is None:
            why = passes[cell_id].reason if cell_id in passes else "it was not made"
            return None, f"the profile of one side is missing: {why}"
    base, new = (cell_ops(passes[key], store.unprofiled_trials(run_id, key)) for key in (base_id, new_id))
    return compare_ops(base, new), None
