"""Two sides of a cell measured interleaved in the blocks of one run, with the very bytes that the store keeps."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from orchestrator.analysis.comparison import THRESHOLD, Comparison
from orchestrator.analysis.duels import PAIR_ARMS, pair_rows
from orchestrator.analysis.randomisation import BLOCKS_MIN
from orchestrator.analysis.reduction import reduced
from orchestrator.analysis.sides import HASH_FIELDS
from orchestrator.campaign import measure as measured
from orchestrator.content_hash import sha256
from orchestrator.contest import Contest, Duel, Pair, Seat, Side
from orchestrator.errors import Interrupted, RunNotFound, UsageError
from orchestrator.fleet import Device
from orchestrator.kept_sides import side_of as side_of
from orchestrator.observing import DeviceResult, Observer
from orchestrator.plan import Collect, Measure, Plan, plan_from_json
from orchestrator.prepare import (
    Inventory,
    Prepared,
    device_from_json,
    kept_blob,
    kept_inventory,
    new_record,
)
from orchestrator.schedule import look_level
from orchestrator.store import RunRecord, Store
from orchestrator.trial import Cell, Outcome, Trial

BLOCKS = 8, 40
"""From the first planned look to the last."""
RESUME = "devbench reproduce --resume {run}"


@dataclass(frozen=True)
class DuelResult:
    """What came of a duel. `missing` says, by the id of the candidate's cell, why a pair has no verdict at all."""

    run_id: str
    rows: tuple[Comparison, ...]
    missing: Mapping[str, str]
    devices: tuple[DeviceResult, ...]


def duel_measure(plan: Plan, *, blocks: tuple[int, int] = BLOCKS, budget_s: float | None = None) -> Measure:
    """Single trials as the plan has them; blocks until the answer is clear at a look, or the budget is spent."""
    return replace(
        plan.measure, blocks_min=blocks[0], blocks_max=blocks[1], budget_s=budget_s, sustain_s=None, sessions=1
    )


def enough_blocks(blocks: tuple[int, int]) -> tuple[int, int]:
    """The same, if so many blocks can decide anything."""
    if blocks[1] < BLOCKS_MIN:
        raise UsageError(f"{blocks[1]} blocks decide nothing", remedy=f"allow at least {BLOCKS_MIN}")
    return blocks


# Before the first trial


def prepare_duel(
    store: Store,
    pairs: Sequence[Pair],
    *,
    measure: Measure,
    seed: int | None = None,
    origin: Mapping[str, Any],
    threshold: float = THRESHOLD,
    profile: bool = False,
) -> Prepared:
    """A run that holds each pair's candidate against its baseline. `origin` is kept with it and says what it is for;
    its `resume`, where it has one, is the command that goes on with it (`{run}` is the run)."""
    contests = [(pair.device, pair.sides, pair.metric) for pair in pairs]
    seated = [Contest(seats_of(device, sides), metric) for device, sides, metric in contests]
    every = [side for _, sides, _ in contests for side in sides.values()]
    plan = duel_plan(every, replace(measure, arms=PAIR_ARMS, seed=seed), profile=profile)
    return prepared_contests(
        store, [pair.device for pair in pairs], Duel(tuple(seated), threshold), every, plan, origin
    )


def prepared_contests(
    store: Store, devices: Iterable[Device], duel: Duel, sides: Sequence[Side], plan: Plan, origin: Mapping[str, Any]
) -> Prepared:
    """The run of a duel whose seats are taken."""
    _refuse_doubles(duel)
    inventory = _inventory(sides)
    unique = tuple({device.name: device for device in devices}.values())
    record = new_record(plan, unique)
    resume = str(origin.get("resume") or RESUME).replace("{run}", record.id)
    held = [
        {"metric": contest.metric, "seats": {arm: seat.as_json() for arm, seat in contest.seats.items()}}
        for contest in duel.contests
    ]
    described = {"origin": dict(origin), "resume": resume, "threshold": duel.threshold, "contests": held}
    record = replace(record, fleet={**record.fleet, "files": _files_json(inventory), "duel": described})
    return Prepared(record, plan, unique, inventory, duel=duel)


def seats_of(device: Device, sides: Mapping[str, Side]) -> dict[str, Seat]:
    """The sides on this device; they may differ in their bytes only."""
    seats = {
        arm: Seat(replace(side.cell, device=device.name), side.runner_files, side.run, side.name)
        for arm, side in sides.items()
    }
    first = next(iter(seats.values())).cell
    if not all(seat.files for seat in seats.values()) and len({seat.cell.runner_sha256 for seat in seats.values()}) > 1:
        raise UsageError(
            f"{first.runner} is installed on {device.name} itself, so that two builds of it cannot run there in turns",
            remedy="only models can be held against each other with it",
        )
    for seat in seats.values():
        for field in (item.name for item in fields(Cell) if item.name not in HASH_FIELDS):
            if getattr(seat.cell, field) != getattr(first, field):
                raise UsageError(
                    f"the two sides differ in {field}: {getattr(first, field)} against {getattr(seat.cell, field)}",
                    remedy="hold like against like: only the bytes of model and runner may differ",
                )
    return seats


def duel_plan(sides: Sequence[Side], measure: Measure, *, profile: bool) -> Plan:
    """Conditions and inputs are those of the candidates, which must agree on them."""
    if not sides:
        raise UsageError("there is nothing to hold against each other", remedy="name at least one pair")
    enough_blocks((measure.blocks_min, measure.blocks_max))
    plan = sides[-1].plan
    return replace(plan, measure=replace(measure, sustain_s=None), collect=Collect(profile=profile))


def _refuse_doubles(duel: Duel) -> None:
    taken: set[tuple[str, str]] = set()
    for contest in duel.contests:
        for arm, seat in contest.seats.items():
            if (seat.cell.id, arm) in taken:
                raise UsageError(f"two pairs have the same {arm}: {seat.cell}", remedy="ask about each cell once")
            taken.add((seat.cell.id, arm))


def _inventory(sides: Sequence[Side]) -> Inventory:
    inputs = {sha256(side.inputs): side.inputs for side in sides if side.inputs}
    if len(inputs) > 1:
        raise UsageError(
            "the sides were measured with different inputs", remedy="hold runs with the same inputs against each other"
        )
    return Inventory(
        models=tuple({side.model.sha256: side.model for side in sides}.values()),
        load_models=dict(side.load_model for side in sides if side.load_model),
        inputs=next(iter(inputs.values()), None),
        delegates=tuple({side.delegate.label: side.delegate for side in sides if side.delegate}.values()),
    )


def _files_json(inventory: Inventory) -> dict[str, Any]:
    return {
        "models": [[model.name, model.sha256] for model in inventory.models],
        "load_models": {load: [model.name, model.sha256] for load, model in inventory.load_models.items()},
        "inputs": sha256(inventory.inputs) if inventory.inputs else None,
        "delegates": [replace(delegate, copies={}).as_json() for delegate in inventory.delegates],
    }


def resume_duel(store: Store, reference: str, command: str = "reproduce") -> Prepared:
    """A duel as it was stored, with the very bytes it began with; `last` is the newest that this command began."""
    record = _last_duel(store, command) if reference == "last" else store.find_run(reference)
    if record.duel is None:
        raise UsageError(f"run {record.id} holds no sides against each other", remedy="`devbench run --resume` goes on")
    if record.duel["origin"].get("command") != command:
        raise UsageError(f"run {record.id} was not begun by {command}", remedy=f"go on with `{record.duel['resume']}`")
    contests = tuple(
        Contest({arm: _kept_seat(store, seat) for arm, seat in content["seats"].items()}, content["metric"])
        for content in record.duel["contests"]
    )
    return Prepared(
        record,
        plan_from_json(record.plan),
        tuple(device_from_json(content) for content in record.fleet["devices"]),
        kept_inventory(store, record.fleet["files"]),
        duel=Duel(contests, record.duel["threshold"]),
    )


def with_budget(prepared: Prepared, budget_s: float | None) -> Prepared:
    """The run with another budget: device time in all, what was spent before included."""
    return replace(prepared, plan=replace(prepared.plan, measure=replace(prepared.plan.measure, budget_s=budget_s)))


def _last_duel(store: Store, command: str) -> RunRecord:
    for record in store.runs():
        if record.duel is not None and record.duel["origin"].get("command") == command:
            return record
    raise RunNotFound(f"no run of {command} in {store.folder}", remedy=f"start one with `devbench {command}`")


def _kept_seat(store: Store, content: Mapping[str, Any]) -> Seat:
    files = {role: kept_blob(store, digest) for role, digest in content["runner_files"].items()}
    return Seat(Cell(**content["cell"]), files, content["run"], content["name"])


# The duel


def hold(
    prepared: Prepared, store: Store, observer: Observer, stop: threading.Event, *, resumed: bool = False
) -> DuelResult:
    """Measure until every answer is clear, or the budget is spent. Interrupted where `stop` was set meanwhile: what was
    measured is kept, and the error says how to go on."""
    record, results = conducted(prepared, store, observer, stop, resumed=resumed)
    return result_of(store, record, results)


def conducted(
    prepared: Prepared, store: Store, observer: Observer, stop: threading.Event, *, resumed: bool
) -> tuple[RunRecord, list[DeviceResult]]:
    """The run done, as it is stored now, and how each device ended."""
    results = measured(prepared, store, observer, stop, resumed=resumed)
    record = store.find_run(prepared.record.id)
    assert record.duel is not None
    if any(isinstance(result.error, Interrupted) for result in results):
        raise Interrupted("interrupted; what was measured is kept", remedy=f"`{record.duel['resume']}` goes on")
    return record, results


def looks_alpha(record: RunRecord) -> float:
    """How often a verdict at one look of a duel may err, so that all of them together err in one case of twenty."""
    return 1 - look_level(plan_from_json(record.plan).measure)


def result_of(store: Store, record: RunRecord, devices: Sequence[DeviceResult] = ()) -> DuelResult:
    """What the trials of a duel say, whenever they were made."""
    assert record.duel is not None
    trials = store.trials(record.id)
    ran = [trial for trial in trials if trial.slot.arm]
    rows = pair_rows(list(reduced(ran)), threshold=record.duel["threshold"], alpha=looks_alpha(record))
    decided = {row.cell.id for row in rows if row.metric == "p50" and min(row.n_base, row.n_new) >= BLOCKS_MIN}
    cells = [Cell(**content["seats"][PAIR_ARMS[1]]["cell"]) for content in record.duel["contests"]]
    missing = {cell.id: _why(cell, record, trials, devices) for cell in cells if cell.id not in decided}
    return DuelResult(record.id, tuple(rows), missing, tuple(devices))


def _why(cell: Cell, record: RunRecord, trials: Sequence[Trial], devices: Sequence[DeviceResult]) -> str:
    """Why a pair was not measured often enough for any verdict."""
    assert record.duel is not None
    seats = [content["seats"] for content in record.duel["contests"]]
    ids = {
        Cell(**seat["cell"]).id
        for of_pair in seats
        if Cell(**of_pair[PAIR_ARMS[1]]["cell"]).id == cell.id
        for seat in of_pair.values()
    }
    own = [trial for trial in trials if trial.cell.id in ids and trial.outcome != Outcome.MEASURED and trial.reason]
    if own:
        return str(own[-1].reason)
    ended = [result for result in devices if result.device == cell.device]
    for result in ended:
        return result.error.fact if result.error else result.ending
    return "it was not measured"
