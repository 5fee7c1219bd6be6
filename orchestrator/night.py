"""One night, unattended: look at the devices, measure, judge, confirm, and tidy up, within one budget of time."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.analysis.gate_words import GateResult, Verdict
from orchestrator.campaign import measure
from orchestrator.clock import SYSTEM, Deadline, seconds_of, timestamp
from orchestrator.confirming import confirm
from orchestrator.doctor import examine, host_findings
from orchestrator.errors import Interrupted, error_text
from orchestrator.fleet import Device
from orchestrator.gating import concluded, judge, keep
from orchestrator.housekeeping import plan_pruning, remove
from orchestrator.observing import Observer
from orchestrator.pinned import Reference
from orchestrator.plan import Plan
from orchestrator.prepare import Prepared, prepare, prepare_resume
from orchestrator.retention import Policy
from orchestrator.store import Annals, RunRecord, Standing, Store
from orchestrator.trial import Finding, Severity

RESUME_WITHIN_S = 12 * 3600.0
"""A night that was begun longer ago is another night's."""
MEASURING_SHARE, MEASURING_END = 0.75, 0.8
"""The shares of the budget after which cells get no further block, and after which measuring is cut off: the rest is
for stage two."""
_DUEL_SHARE = 0.9
_WATCH_S = 0.2

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Order:
    """What a night is to do."""

    plan: Plan
    devices: tuple[Device, ...]
    baseline: str
    threshold: float
    fail_on: str
    confirms: bool = True
    budget_s: float | None = None
    retention: Policy | None = None


@dataclass(frozen=True)
class NightResult:
    """What came of a night."""

    record: RunRecord
    gate: GateResult
    standing: Standing
    seconds: float
    is_resumed: bool
    has_measured: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.record.id,
            "standing": str(self.standing),
            "seconds": round(self.seconds, 1),
            "resumed": self.is_resumed,
            "gate": self.gate.as_json(),
        }


Report = Callable[[NightResult], None]


def hold_night(
    order: Order, store: Store, observer: Observer, stop: threading.Event, tell: Tell, report: Report
) -> NightResult:
    """The whole night. Interrupted where `stop` was set: the same order goes on with it. What came of it is reported
    before the judgement is kept, so that a night that is killed meanwhile is judged and reported again."""
    began_s = SYSTEM.monotonic_s()
    deadline = Deadline.after(order.budget_s) if order.budget_s else None
    _look(order.devices, store, tell)
    _go_on_unless(stop)
    prepared, is_resumed, is_measured = _tonight(order, store, tell)
    troubles: dict[str, str] = {}
    if not is_measured:
        troubles = _measure(prepared, store, observer, stop, tell, order, deadline, is_resumed=is_resumed)
    record = store.find_run(prepared.record.id)
    result = judge(store, record, order.baseline, threshold=order.threshold, fail_on=order.fail_on, troubles=troubles)
    if order.confirms:
        result = _confirmed(order, store, result, observer, stop, tell, deadline)
    result, standing = concluded(store, result)
    has_measured = any(row.blocks[1] for row in result.rows)
    night = NightResult(record, result, standing, SYSTEM.monotonic_s() - began_s, is_resumed, has_measured)
    report(night)
    keep(store, result, standing)
    _prune(store, order.retention, tell)
    return night


def _go_on_unless(stop: threading.Event) -> None:
    if stop.is_set():
        raise Interrupted("the night was stopped", remedy="the same command goes on with it within 12 hours")


def _look(devices: Sequence[Device], store: Store, tell: Tell) -> None:
    """What is wrong with this host and the devices is told beforehand; what can be measured is, all the same."""
    for finding in host_findings(store.folder):
        tell(f"this host: {_finding_text(finding)}")
    for found in examine(devices):
        for finding in (one for one in found.findings if one.severity is not Severity.NOTE):
            tell(f"{found.device.name}: {_finding_text(finding)}")


def _finding_text(finding: Finding) -> str:
    return f"{finding.severity}: {finding.reason} ({finding.remedy})"


# Which run


def _tonight(order: Order, store: Store, tell: Tell) -> tuple[Prepared, bool, bool]:
    """Tonight's run: a new one, or the one that was begun and not judged; whether it is that, and measured already."""
    prepared = prepare(_nightly(order, tell), order.devices)
    record = replace(prepared.record, fleet={**prepared.record.fleet, "night": True})
    prepared = replace(prepared, record=record)
    for note in prepared.notes:
        tell(note)
    begun = _begun(store, prepared)
    if begun is None:
        return prepared, False, False
    if begun.status == "finished":
        tell(f"run {begun.id} is measured, and not judged yet")
        return prepare_resume(store, begun.id), True, True
    tell(f"going on with run {begun.id}, which was interrupted")
    return prepare_resume(store, begun.id), True, False


def _nightly(order: Order, tell: Tell) -> Plan:
    """The plan with its share of the budget, and with a reference unless it says no."""
    plan, budget_s = order.plan, order.budget_s
    if budget_s is not None:
        share_s = MEASURING_SHARE * budget_s
        own_s = plan.measure.budget_s
        plan = replace(plan, measure=replace(plan.measure, budget_s=min(share_s, own_s or share_s)))
    if plan.reference is None and not plan.has_no_reference:
        if plan.measure.inputs is None and plan.measure.sustain_s is None:
            return replace(plan, reference=Reference())
        tell("no pinned reference is measured: the plan has inputs, or is a sustained one")
    return plan


def _begun(store: Store, prepared: Prepared) -> RunRecord | None:
    """The night that was begun with the same plan, devices and models, not long ago, and that nobody has judged."""
    now_s, judged = SYSTEM.now().timestamp(), Annals(store).judgements()
    for record in store.runs(limit=50):
        age_s = now_s - (seconds_of(record.created_at) or 0.0)
        if record.fleet.get("night") and record.id not in judged and 0 <= age_s < RESUME_WITHIN_S:
            is_open = record.status in ("running", "interrupted", "finished")
            if is_open and _identity(record) == _identity(prepared.record, prepared):
                return record
    return None


def _identity(record: RunRecord, prepared: Prepared | None = None) -> str:
    """What makes two nights the same work."""
    models = (
        [[model.name, model.sha256] for model in prepared.inventory.models]
        if prepared
        else (record.fleet.get("files") or {}).get("models")
    )
    return json.dumps([record.plan, record.fleet["devices"], models], sort_keys=True, default=list)


# Measuring and confirming


@contextmanager
def _until(stop: threading.Event, deadline: Deadline | None) -> Iterator[threading.Event]:
    """An event that is set as soon as `stop` is, or the deadline has passed."""
    either, over = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(_WATCH_S):
            if stop.is_set() or (deadline and deadline.passed):
                either.set()
                return

    watcher = threading.Thread(target=watch, name="night budget", daemon=True)
    watcher.start()
    try:
        yield either
    finally:
        over.set()
        watcher.join()


def _measure(
    prepared: Prepared,
    store: Store,
    observer: Observer,
    stop: threading.Event,
    tell: Tell,
    order: Order,
    deadline: Deadline | None,
    *,
    is_resumed: bool,
) -> dict[str, str]:
    """Measure until all is known, the budget's share is spent, or somebody stops it; gives the devices' troubles."""
    tell(f"run {prepared.record.id} in {store.folder}")
    end = deadline.sooner(MEASURING_END * order.budget_s) if deadline and order.budget_s else None
    with _until(stop, end) as either:
        results = measure(prepared, store, observer, either, resumed=is_resumed)
    _go_on_unless(stop)
    for result in results:
        if result.error and not isinstance(result.error, Interrupted):
            tell(error_text(result.error))
    if either.is_set():
        tell("the budget for measuring is spent: what is missing was not run")
        store.set_status(prepared.record.id, "finished", timestamp(SYSTEM.now()))
    return {result.device: result.error.fact for result in results if result.error}


def _confirmed(
    order: Order,
    store: Store,
    result: GateResult,
    observer: Observer,
    stop: threading.Event,
    tell: Tell,
    deadline: Deadline | None,
) -> GateResult:
    """Stage two with what is left of the budget."""
    suspects = result.of(Verdict.SUSPECTED)
    if not suspects:
        return result
    budget_s = _DUEL_SHARE * deadline.left_s if deadline else None
    if deadline and deadline.passed:
        return _unconfirmed(result, "the night's budget was spent")
    tell(f"stage two: suspects are run again ({len(suspects)}), interleaved with the baseline's bytes")
    fleet: Mapping[str, Device] = {device.name: device for device in order.devices}
    try:
        with _until(stop, deadline) as either:
            return confirm(store, result, fleet, observer, either, budget_s=budget_s)
    except Interrupted:
        _go_on_unless(stop)
        return _unconfirmed(result, "the night's budget was spent before it was clear")


def _unconfirmed(result: GateResult, reason: str) -> GateResult:
    return replace(result, unconfirmed={row.cell.id: reason for row in result.of(Verdict.SUSPECTED)})


def _prune(store: Store, policy: Policy | None, tell: Tell) -> None:
    going = plan_pruning(store, policy, SYSTEM).decision.going if policy else ()
    if going:
        remove(store, going)
        tell(f"{len(going)} old runs were removed")
