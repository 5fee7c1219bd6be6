"""Sides of duels from what the store keeps: a cell of an earlier run, the one cell of a plan, one written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator import registry
from orchestrator.content_hash import sha256
from orchestrator.contest import Side
from orchestrator.delegates import Delegate
from orchestrator.errors import StoreError, UsageError
from orchestrator.fleet import Device
from orchestrator.model import Model
from orchestrator.plan import Plan, plan_from_json
from orchestrator.prepare import keep_files, kept_blob, kept_delegate, prepare, runner_files
from orchestrator.seeing import seen
from orchestrator.store import RunRecord, Store
from orchestrator.trial import Cell


def side_of(store: Store, run_id: str, cell: Cell) -> Side:
    """The cell as a stored run measured it; what the store has lost of its bytes is named."""
    record = store.find_run(run_id)
    kept = _kept_files(record)
    built = store.runner_hashes(record.id, cell.device).get(cell.runner) or {}
    facts = _runner_facts(store, record, cell)
    if not built and not facts:
        raise StoreError(
            f"run {record.id} never got {cell.runner} ready on {cell.device}, so that its bytes are not known",
            remedy="choose another run: `devbench runs` lists them",
        )
    pinned = [kept["reference"]["model"]] if kept.get("reference") else []
    model = next((item for item in (*kept["models"], *pinned) if item[1] == cell.model_sha256), None)
    if model is None:
        raise StoreError(f"run {record.id} has no model {cell.model_sha256[:12]}", remedy="choose another run")
    plan = plan_from_json(record.plan)
    return Side(
        cell=cell,
        model=Model(model[0], kept_blob(store, model[1]), model[1]),
        runner_files={role: kept_blob(store, digest) for role, digest in built.items()},
        plan=plan,
        delegate=_delegate(store, kept, cell),
        load_model=_load_model(store, kept, cell),
        inputs=kept_blob(store, kept["inputs"]) if kept["inputs"] else None,
        run=record.id,
        name=record.id,
        runner_facts=facts,
    )


def _kept_files(record: RunRecord) -> Mapping[str, Any]:
    if record.duel is not None:
        against = " and ".join(str(side["name"]) for side in record.duel["contests"][0]["seats"].values())
        raise UsageError(f"run {record.id} is itself a duel, of {against}", remedy="name one of those instead")
    kept: Mapping[str, Any] | None = record.fleet.get("files")
    if kept is None:
        raise UsageError(
            f"run {record.id} was imported: its trials are here, but not the bytes that made them",
            remedy="`devbench bundle RUN` where it was measured brings them along",
        )
    return kept


def _delegate(store: Store, kept: Mapping[str, Any], cell: Cell) -> Delegate | None:
    for content in kept.get("delegates") or ():
        if Delegate.from_json(content).label == cell.delegate:
            return kept_delegate(store, content)
    return None


def _load_model(store: Store, kept: Mapping[str, Any], cell: Cell) -> tuple[str, Model] | None:
    for load, (name, digest) in kept["load_models"].items():
        if cell.load == f"model:{name}@{digest[:8]}":
            return load, Model(name, kept_blob(store, digest), digest)
    return None


def _runner_facts(store: Store, record: RunRecord, cell: Cell) -> Mapping[str, Any]:
    for session in store.sessions(record.id):
        if session.device == cell.device and session.facts.get("runners"):
            return dict(session.facts["runners"].get(cell.runner) or {})
    return {}


def side_of_plan(store: Store, plan: Plan, device: Device, *, has_runner: bool) -> Side:
    """The one cell that a plan means on a device: one thread and no load, unless it says otherwise. Its runner's files
    are left out where another brings them (`has_runner`)."""
    sweep = replace(plan.sweep, threads=plan.sweep.threads or (1,), loads=plan.sweep.loads or ("idle",))
    prepared = keep_files(store, prepare(replace(plan, sweep=sweep, folder=plan.folder.resolve()), [device]))
    cells = prepared.grid(device, None, dict.fromkeys(prepared.runner_names(device))).cells
    if len(cells) != 1:
        listed = "; ".join(str(cell) for cell in cells[:5])
        raise UsageError(f"the plan means {len(cells)} cells, and one is searched: {listed}", remedy="narrow it to one")
    files = {} if has_runner else runner_files(store, cells[0].runner, _machine(device), None)
    inventory = prepared.inventory
    return Side(
        cell=replace(cells[0], runner_sha256=sha256(files["runner"]) if "runner" in files else None),
        model=inventory.models[0],
        runner_files=files,
        plan=prepared.plan,
        delegate=inventory.delegates[0] if inventory.delegates else None,
        load_model=next(iter(inventory.load_models.items()), None),
        inputs=inventory.inputs,
    )


def _machine(device: Device) -> str:
    """What the device's machine is called; it is asked where its address does not tell."""
    known = registry.transport(device.transport).machine(device)
    if known is not None:
        return known
    with seen(device) as conductor:
        return conductor.facts.machine


def side_json(side: Side) -> dict[str, Any]:
    """A side as it is written down; its bytes are in the store."""
    return {
        "cell": side.cell.as_json(),
        "model": [side.model.name, side.model.sha256],
        "runner_files": {role: sha256(path) for role, path in side.runner_files.items()},
        "plan": side.plan.as_json(),
        "delegate": replace(side.delegate, copies={}).as_json() if side.delegate else None,
        "load_model": [side.load_model[0], side.load_model[1].name, side.load_model[1].sha256]
        if side.load_model
        else None,
        "inputs": sha256(side.inputs) if side.inputs else None,
        "run": side.run,
        "name": side.name,
    }


def side_from_json(store: Store, content: Mapping[str, Any]) -> Side:
    name, digest = content["model"]
    load = content["load_model"]
    return Side(
        cell=Cell(**content["cell"]),
        model=Model(name, kept_blob(store, digest), digest),
        runner_files={role: kept_blob(store, one) for role, one in content["runner_files"].items()},
        plan=plan_from_json(content["plan"]),
        delegate=kept_delegate(store, content["delegate"]) if content["delegate"] else None,
        load_model=(load[0], Model(load[1], kept_blob(store, load[2]), load[2])) if load else None,
        inputs=kept_blob(store, content["inputs"]) if content["inputs"] else None,
        run=content["run"],
        name=content["name"],
    )
