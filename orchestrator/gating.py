"""The gate: a run of the store held against an earlier one, and what that makes of it kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.analysis.gate import Night, lasting, stage_one
from orchestrator.analysis.gate_words import GateResult, Verdict
from orchestrator.analysis.randomisation import BLOCKS_MIN
from orchestrator.analysis.reduction import reduced
from orchestrator.analysis.trust import TrustVerdict, trust_of
from orchestrator.errors import RunNotFound, UsageError
from orchestrator.noise_book import session_noises
from orchestrator.pinned import is_reference
from orchestrator.store import Annals, RunRecord, SessionRecord, Standing, Store
from orchestrator.store.references import LAST, LAST_GOOD
from orchestrator.trial import Outcome

_LOOK_BACK = 10
"""How many earlier runs are looked through for cells that the baseline lacks."""
_TRIAL_SETTINGS = ("warmup_runs", "warmup_min_ms", "runs", "min_ms", "max_ms", "settle_ms", "sample_ms", "input_seed")
_HELD = (
    "governor",
    "screen",
    "airplane",
    "fixed_performance",
    "doze",
    "stop_background_apps",
    "load_placement",
)
_UNTRUSTED_MAX = 0.2
"""A night of which more cells are contaminated, or were measured too little, does not become good on its own word."""


def judge(
    store: Store,
    record: RunRecord,
    reference: str,
    *,
    threshold: float,
    fail_on: str,
    troubles: Mapping[str, str] | None = None,
) -> GateResult:
    """Stage one: the run against the baseline that `reference` means. Nothing is kept yet. `troubles` says what is
    known of devices that could not be begun with, beyond what the run's record does."""
    if not record.is_ordinary:
        raise UsageError(
            f"run {record.id} holds two sides against each other or calibrates, so that there is nothing to gate",
            remedy="`devbench compare` reads it; give the gate an ordinary run",
        )
    tonight = night_of(store, record)
    tonight = replace(tonight, lost={name: (troubles or {}).get(name, why) for name, why in tonight.lost.items()})
    if not tonight.trials and not tonight.lost:
        raise UsageError(f"run {record.id} has no trials", remedy="gate a run that measured something")
    notes = [] if record.status in ("finished", "imported") else [f"the run is marked {record.status}"]
    baseline = _baseline(store, record, reference)
    if baseline is None and reference == LAST_GOOD:
        baseline, reference = _newest_not_bad(store, record), LAST
        if baseline:
            notes.append("no earlier run is known to be good, so that the newest one is the baseline")
    if baseline is None:
        notes.append("there is no earlier run, and so nothing to compare with")
    bases = [night_of(store, baseline)] if baseline else []
    if baseline and reference in (LAST, LAST_GOOD):
        bases += _further_back(store, tonight, baseline, bases[0], only_good=reference == LAST_GOOD)
    rows, devices = stage_one(tonight, bases, noises=session_noises(store), threshold=threshold)
    notes += [f"{len(found)} cells are held against {run}" for run, found in _elsewhere(rows, baseline).items()]
    base_id = baseline.id if baseline else None
    return GateResult(record.id, base_id, threshold, fail_on, tuple(rows), tuple(devices), tuple(notes))


def _elsewhere(rows: Sequence[Any], baseline: RunRecord | None) -> dict[str, list[Any]]:
    """The rows whose cell the baseline lacks, by the run that stands in."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        if baseline and row.baseline not in (None, baseline.id):
            found.setdefault(row.baseline, []).append(row)
    return found


def _baseline(store: Store, record: RunRecord, reference: str) -> RunRecord | None:
    """None on the first night, when `last` or `last-good` means nothing yet."""
    try:
        return store.find_baseline(reference, record)
    except RunNotFound:
        if reference in (LAST, LAST_GOOD):
            return None
        raise


def _newest_not_bad(store: Store, record: RunRecord) -> RunRecord | None:
    """What a night is held against where none is known to be good: a fleet that is never trusted is gated, too."""
    annals = Annals(store)
    bad = {run for run, judgement in annals.judgements().items() if judgement.standing is Standing.BAD}
    bad |= set(annals.tagged().get("bad", ()))
    earlier = [one for one in store.runs() if one.created_at < record.created_at and one.is_ordinary]
    return next((one for one in earlier if one.status in ("finished", "imported") and one.id not in bad), None)


def _further_back(store: Store, tonight: Night, baseline: RunRecord, primary: Night, *, only_good: bool) -> list[Night]:
    """Earlier runs that measured what the baseline did not: a phone that was away a night is held against the night
    before."""
    missing = {lasting(cell) for cell in tonight.cells if tonight.logs(cell)} - _measured(primary)
    good = Annals(store).good_runs() if only_good else set()
    earlier = [
        record
        for record in store.runs()
        if record.created_at < baseline.created_at
        and record.is_ordinary
        and (record.id in good if only_good else record.status in ("finished", "imported"))
    ]
    found = []
    for record in earlier[:_LOOK_BACK]:
        if not missing:
            break
        if missing & {lasting(cell) for cell in store.cells(record.id)}:
            night = night_of(store, record)
            missing -= _measured(night)
            found.append(night)
    return found


def _measured(night: Night) -> set[tuple[object, ...]]:
    return {key for key, cell in night.by_key.items() if len(night.logs(cell)) >= BLOCKS_MIN}


def night_of(store: Store, record: RunRecord) -> Night:
    """A run as stage one reads it."""
    cells, sessions = store.cells(record.id), store.sessions(record.id)
    devices = {str(device["name"]) for device in record.fleet.get("devices") or ()}
    begun = {session.device for session in sessions if session.facts} | {cell.device for cell in cells}
    endings = {session.device: session.ending for session in sessions}
    measure, conditions = record.plan.get("measure") or {}, record.plan.get("conditions") or {}
    return Night(
        run=record.id,
        cells=cells,
        trials=tuple(
            reduced(replace(trial, telemetry={}) for trial in store.trials(record.id))
        ),  # nobody reads it here
        references=frozenset(cell.id for cell in cells if is_reference(record.fleet, cell)),
        devices=frozenset(devices),
        systems=_systems(sessions),
        lost={name: endings.get(name) or "the run did not get to it" for name in sorted(devices - begun)},
        settings=_chosen(measure, _TRIAL_SETTINGS) | _inputs(record),
        held=_chosen(conditions, _HELD),
    )


def _chosen(content: Mapping[str, Any], keys: Sequence[str]) -> dict[str, object]:
    return {key: content[key] for key in keys if key in content}


def _inputs(record: RunRecord) -> dict[str, object]:
    """What the models were fed: by content, not by name."""
    files = record.fleet.get("files")
    return {"inputs": files.get("inputs")} if files else {}


def _systems(sessions: Sequence[SessionRecord]) -> dict[str, str]:
    """The operating system of each device, as its last session found it."""
    return {
        session.device: f"{session.facts.get('os') or 'an unknown system'}, kernel {session.facts.get('kernel')}"
        for session in sessions
        if session.facts
    }


# What it makes of the run


def standing_of(store: Store, result: GateResult) -> Standing:
    """Whether later nights may be held against this one."""
    if result.failing or result.of(Verdict.CONFIRMED):
        return Standing.BAD
    if result.of(Verdict.SUSPECTED):
        return Standing.UNDECIDED
    measured = [row for row in result.rows if row.blocks[1] >= BLOCKS_MIN]
    if 2 * len(measured) < len([row for row in result.rows if row.blocks[1] or row.lost]) or not measured:
        return Standing.UNDECIDED
    is_from_good = result.baseline in Annals(store).good_runs()
    if not is_from_good and _untrusted_share(store, result.run) > _UNTRUSTED_MAX:
        return Standing.UNDECIDED
    return Standing.GOOD


def _untrusted_share(store: Store, run: str) -> float:
    of_cell: dict[str, list[Any]] = {}
    for trial in reduced(store.trials(run)):
        if trial.outcome is not Outcome.SKIPPED:
            of_cell.setdefault(trial.cell.id, []).append(trial)
    doubtful = (TrustVerdict.CONTAMINATED, TrustVerdict.INSUFFICIENT)
    return sum(trust_of(trials).verdict in doubtful for trials in of_cell.values()) / max(1, len(of_cell))


def concluded(store: Store, result: GateResult) -> tuple[GateResult, Standing]:
    """The result with what it makes of the run; nothing is kept yet."""
    standing = standing_of(store, result)
    if result.baseline is None and standing is not Standing.GOOD:
        note = "it was not whole or not trusted enough to be called good: `devbench runs tag RUN good` says so"
        result = replace(result, notes=(*result.notes, note))
    return result, standing


def keep(store: Store, result: GateResult, standing: Standing) -> None:
    """Keep what the gate said, for `last-good`, for history, and against pruning."""
    Annals(store).judge(result.run, result.baseline or "", standing, result.as_json())
