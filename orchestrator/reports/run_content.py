"""Everything a report says about a run, gathered from the store once and handed to whichever form it takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.analysis.compare import compare
from orchestrator.analysis.comparison import THRESHOLD, Comparison
from orchestrator.analysis.estimate import LEVEL
from orchestrator.analysis.history import History, histories
from orchestrator.analysis.operators import CellOps, cell_ops
from orchestrator.analysis.pareto import Sized, sized_models
from orchestrator.analysis.recommendation import Recommendation, recommend
from orchestrator.analysis.reduction import Reduced, reduced
from orchestrator.analysis.sides import ARMS_MAY_DIFFER, arms_of, matched
from orchestrator.analysis.summary import RunSummary, summarise
from orchestrator.analysis.traces import CellTrace
from orchestrator.errors import ComparisonRefused
from orchestrator.noise_book import session_noises
from orchestrator.pinned import is_reference
from orchestrator.plan import measure_from_json
from orchestrator.schedule import look_level
from orchestrator.store import Annals, RunRecord, SessionRecord, Store
from orchestrator.store.levels import levels
from orchestrator.trial import Cell, Trial


@dataclass(frozen=True)
class Compared:
    """Every cell against a baseline. `names` are those of the sides, the baseline first; `arm` is the new side's, where
    there are arms."""

    names: tuple[str, str]
    arm: str | None
    rows: tuple[Comparison, ...]
    only_base: tuple[Cell, ...]
    only_new: tuple[Cell, ...]


@dataclass(frozen=True)
class RunContent:
    """A run with all that is known of it. `folder` is the store's, for the files that trials refer to."""

    record: RunRecord
    sessions: tuple[SessionRecord, ...]
    trials: tuple[Trial, ...]
    summary: RunSummary
    stops: Mapping[str, str]
    references: frozenset[str]
    """The ids of cells that are pinned references."""
    recommendations: tuple[Recommendation, ...]
    model_bytes: Mapping[str, int]
    sized: tuple[Sized, ...]
    ops: tuple[CellOps, ...]
    traces: tuple[CellTrace, ...]
    compared: Compared | None
    past: tuple[History, ...]
    folder: Path
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def gather(
    store: Store, record: RunRecord, *, baseline: RunRecord | None = None, ignored: Sequence[str] = ()
) -> RunContent:
    """A run of the store; with a baseline, or two arms of its own, its cells are compared."""
    trials = store.trials(record.id)
    stated = record.plan.get("measure")
    summary = summarise(trials, level=look_level(measure_from_json(stated)) if stated else LEVEL)
    sizes = _model_bytes(store, {found.cell.model_sha256 for found in summary.cells})
    references = frozenset(found.cell.id for found in summary.cells if is_reference(record.fleet, found.cell))
    measured, annals = _measured_by_cell(trials), Annals(store)
    return RunContent(
        record=record,
        sessions=tuple(store.sessions(record.id)),
        trials=tuple(trials),
        summary=summary,
        stops=store.stops(record.id),
        references=references,
        recommendations=recommend(summary, references),
        model_bytes=sizes,
        sized=sized_models(summary.cells, sizes),
        ops=tuple(
            cell_ops(passed, measured.get(passed.cell.id) or store.unprofiled_trials(passed.run, passed.cell.id))
            for passed in store.profiles(record.id)
        ),
        traces=tuple(CellTrace(passed, None) for passed in store.traces(record.id)),
        compared=_compared(store, record, trials, baseline, ignored),
        past=_past(store, record, {trial.cell for trial in trials}),
        folder=store.folder,
        tags=tuple(tag for tag, runs in annals.tagged().items() if record.id in runs),
        notes=tuple(note.text for note in annals.notes().get(record.id, ())),
    )


def _measured_by_cell(trials: Sequence[Trial]) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.outcome == "measured":
            found.setdefault(trial.cell.id, []).append(trial)
    return found


def _model_bytes(store: Store, digests: set[str]) -> dict[str, int]:
    kept = {digest: store.blob(digest) for digest in digests if digest}
    return {digest: path.stat().st_size for digest, path in kept.items() if path is not None}


def _compared(
    store: Store, record: RunRecord, trials: Sequence[Trial], baseline: RunRecord | None, ignored: Sequence[str]
) -> Compared | None:
    if baseline is None and len({trial.slot.arm for trial in trials if trial.slot.arm}) != 2:
        return None
    noises, new = session_noises(store), list(reduced(trials))
    if baseline is not None:
        sides = [_one_sided(list(reduced(store.trials(baseline.id))), baseline.id), _one_sided(new, record.id)]
        matching = matched(*sides, ignored=ignored)
        rows = compare(matching, is_one_run=False, noises=noises, threshold=THRESHOLD)
        names = baseline.id, record.id
        return Compared(names, sides[1][0].arm, tuple(rows), matching.only_base, matching.only_new)
    arms = arms_of(new, base=None, new=None, source=record.id)
    sides = [[trial for trial in new if trial.arm == arm] for arm in arms]
    matching = matched(*sides, ignored=ignored, may_differ=ARMS_MAY_DIFFER)
    rows = compare(matching, is_one_run=True, noises=noises, threshold=THRESHOLD)
    return Compared(arms, arms[1], tuple(rows), matching.only_base, matching.only_new)


def _one_sided(trials: Sequence[Reduced], run: str) -> Sequence[Reduced]:
    """The trials of a run that has one side; which of two is meant nobody could tell."""
    if len({trial.arm for trial in trials if trial.arm}) > 1:
        raise ComparisonRefused(
            f"run {run} has two sides of its own", remedy="leave out --baseline: a report of it compares them"
        )
    return trials


def _past(store: Store, record: RunRecord, cells: Collection[Cell]) -> tuple[History, ...]:
    """The cells of this run over it and the runs before it; nothing where it is the first, or no ordinary run."""
    if not record.is_ordinary:
        return ()
    earlier = {found.id for found in store.runs() if (found.created_at, found.id) <= (record.created_at, record.id)}
    names = {_lasting(cell) for cell in cells}
    found = levels(store, devices={cell.device for cell in cells})
    trials = [trial for trial in found.trials if trial.run in earlier and _lasting(trial.cell) in names]
    told = histories(trials, metric="p50", threshold=THRESHOLD, circumstances=found.circumstances)
    return tuple(item for item in told if len({point.run for point in item.points}) > 1)


def _lasting(cell: Cell) -> tuple[object, ...]:
    return cell.device, cell.model, cell.runner, cell.delegate, cell.threads, cell.affinity, cell.load
