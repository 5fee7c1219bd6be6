"""From a plan and a fleet to a run that can start: files found and hashed, grids checked, no device touched."""

from __future__ import annotations

import platform as host_platform
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orchestrator import __version__, registry
from orchestrator.analysis.noise import ARMS
from orchestrator.bundled import bundled_models
from orchestrator.clock import SYSTEM
from orchestrator.conductor import Files, platform_of
from orchestrator.content_hash import sha256
from orchestrator.contest import Duel
from orchestrator.delegates import Delegate
from orchestrator.errors import ModelError, StoreError, UsageError
from orchestrator.fleet import Device, Limits
from orchestrator.grid import Grid, expand, load_label
from orchestrator.load import parse_load
from orchestrator.model import Model
from orchestrator.model_files import find_models
from orchestrator.pinned import Pinned, described, is_reference
from orchestrator.plan import Plan, plan_from_json
from orchestrator.runners.base import inputs_refused
from orchestrator.settings import suggestion
from orchestrator.store import RunRecord, Store
from orchestrator.trial import Cell
from orchestrator.untraced import refuse_untraced


@dataclass(frozen=True)
class Inventory:
    """The files of a run on the host, under the names its cells carry."""

    models: tuple[Model, ...]
    load_models: Mapping[str, Model]
    """By the load as the plan has it, such as `model:detector.tflite`."""
    inputs: Path | None
    delegates: tuple[Delegate, ...] = ()
    """What the plan sweeps over, its files on the host found and hashed."""
    pinned: Pinned | None = None

    def files(self) -> Files:
        """What a conductor needs of it."""
        models, delegates = self.all_models, self.all_delegates
        return Files(
            models={model.sha256: model.path for model in models},
            load_models={load_label(load, self.load_models): model.path for load, model in self.load_models.items()},
            inputs=self.inputs,
            delegates={delegate.label: delegate for delegate in delegates},
        )

    @property
    def all_models(self) -> tuple[Model, ...]:
        """Those of the sweep, and that of the reference."""
        return (*self.models, *((self.pinned.model,) if self.pinned else ()))

    @property
    def all_delegates(self) -> tuple[Delegate, ...]:
        return (*((self.pinned.delegate,) if self.pinned else ()), *self.delegates)


@dataclass(frozen=True)
class Prepared:
    """A run before its first trial, or before its next one."""

    record: RunRecord
    plan: Plan
    devices: tuple[Device, ...]
    inventory: Inventory
    stored_cells: Mapping[str, tuple[Cell, ...]] = field(default_factory=dict)
    """The cells of devices that an earlier session of this run has begun with."""
    duel: Duel | None = None
    """What is held against each other, where that is what the run is for."""
    notes: tuple[str, ...] = ()
    """What the user should know before it starts."""
    tags: tuple[str, ...] = ()
    """What the run is tagged with from its start."""

    def grid(self, device: Device, cores: int | None, runners: Mapping[str, str | None]) -> Grid:
        """The cells of a device, given its cores (None: not known) and the hashes of its runners."""
        if device.name in self.stored_cells:
            return Grid(device, self.stored_cells[device.name])
        swept = expand(
            self.plan,
            device,
            models=self.inventory.models,
            load_models=self.inventory.load_models,
            cores=cores,
            runners={name: runners[name] for name in self._swept_runners(device)},
            has_loads=platform_of(device).has_loads,
            delegates=[delegate.label for delegate in self.inventory.delegates],
        )
        pinned = self._reference(device, runners)
        return replace(swept, cells=tuple(dict.fromkeys((*swept.cells, *((pinned,) if pinned else ())))))

    def runner_names(self, device: Device) -> tuple[str, ...]:
        """What runs on the device: what the plan says, or the device, or its platform; and the reference's."""
        swept, pinned = self._swept_runners(device), self.inventory.pinned
        return tuple(dict.fromkeys((*swept, *((pinned.runner,) if pinned and pinned.runner else ()))))

    def _swept_runners(self, device: Device) -> tuple[str, ...]:
        return self.plan.sweep.runners or (device.runner or platform_of(device).default_runner,)

    def _reference(self, device: Device, runners: Mapping[str, str | None]) -> Cell | None:
        pinned = self.inventory.pinned
        name = (pinned and pinned.runner) or self._swept_runners(device)[0]
        return pinned.cell(device.name, name, runners.get(name)) if pinned else None

    def references(self) -> dict[str, Cell]:
        """The reference of each device, if the run has one; its runner's hash is not known yet."""
        found = {device.name: self._reference(device, {}) for device in self.devices}
        return {name: cell for name, cell in found.items() if cell}

    def pinned_among(self, cells: Sequence[Cell]) -> list[Cell]:
        """Which of the cells are the run's reference."""
        return [cell for cell in cells if is_reference(self.record.fleet, cell)]


def as_calibration(plan: Plan, *, sessions: int, blocks: int | None) -> Plan:
    """The plan with every cell run twice in each block, over several sessions of so many blocks."""
    if plan.measure.sustain_s:
        raise UsageError("a sustained plan cannot calibrate", remedy="leave sustain out of the plan")
    total = sessions * (blocks or plan.measure.blocks_min)
    measure = replace(plan.measure, arms=ARMS, sessions=sessions, blocks_min=total, blocks_max=total)
    return replace(plan, measure=measure)


def prepare(plan: Plan, devices: Sequence[Device]) -> Prepared:
    """Check everything that can be checked on the host. Raises on the first thing that is wrong."""
    _refuse_one_device_twice(devices)
    _refuse_unknown_delegates(plan, devices)
    models, notes = find_models(plan.sweep.models or [str(path) for path in bundled_models()], plan.folder)
    inventory = Inventory(
        models=models,
        load_models=_load_models(plan),
        inputs=_inputs(plan),
        delegates=tuple(_found_delegate(plan, word) for word in dict.fromkeys(plan.sweep.delegates)),
        pinned=_pinned(plan),
    )
    prepared = Prepared(new_record(plan, devices), plan, tuple(devices), inventory, notes=notes)
    if references := prepared.references():
        record = replace(prepared.record, fleet={**prepared.record.fleet, "reference": described(references)})
        prepared = replace(prepared, record=record)
    for device in devices:
        platform_of(device)
        for name in prepared.runner_names(device):
            if not registry.runner(name).takes_inputs and plan.measure.inputs is not None:
                raise inputs_refused(name)
        cores = registry.transport(device.transport).cores(device)
        prepared.grid(device, cores, dict.fromkeys(prepared.runner_names(device)))
    _refuse_unprofiled(prepared)
    refuse_untraced(plan.collect, [platform_of(device) for device in devices])
    return prepared


def runner_files(store: Store, name: str, machine: str, earlier: Mapping[str, Any] | None) -> dict[str, Path]:
    """The files of a runner for such a machine, by role, from the store: those an earlier session of the run used,
    or those that are installed now, kept from then on."""
    if earlier:
        return {role: kept_blob(store, digest) for role, digest in earlier.items()}
    installed = registry.runner(name).files(name.partition(":")[2], machine)
    for path in installed.values():
        store.keep_blob(path)
    return {role: kept_blob(store, sha256(path)) for role, path in installed.items()}


def _refuse_unprofiled(prepared: Prepared) -> None:
    """When no runner of the run can give a profile, nobody waits for it; one among several is skipped by name."""
    names = dict.fromkeys(name for device in prepared.devices for name in prepared.runner_names(device))
    refusals = {name: registry.runner(name).no_profiles for name in names}
    if prepared.plan.collect.profile and all(refusals.values()):
        listed = "; ".join(f"{name} gives no operator profiles: {why}" for name, why in refusals.items())
        raise UsageError(f"--profile: {listed}", remedy="use --runner benchmark_model, or leave profile out")


def _refuse_one_device_twice(devices: Sequence[Device]) -> None:
    seen: dict[str, str] = {}
    for device in devices:
        identity = registry.transport(device.transport).identity(device)
        if identity in seen:
            raise UsageError(
                f'"{seen[identity]}" and "{device.name}" are one and the same device',
                remedy="remove one of them, or choose one with --device",
            )
        seen[identity] = device.name


def _refuse_unknown_delegates(plan: Plan, devices: Sequence[Device]) -> None:
    """devices.toml is read without a plan, and a plan may define delegates of its own."""
    known = tuple(plan.delegates)
    for device in devices:
        for name in device.delegates:
            if name not in known:
                raise UsageError(
                    f'devices.toml: [[device]] "{device.name}" delegates: "{name}" is no delegate',
                    remedy=suggestion(name, known),
                )


def _found_delegate(plan: Plan, word: str) -> Delegate:
    """The delegate behind a word of the plan, its files on the host found and hashed."""
    delegate = plan.delegate(word)
    paths = {file: plan.folder / file for file in delegate.host_files}
    for path in paths.values():
        if not path.is_file():
            raise UsageError(
                f"{path}: no such file for delegate {delegate.name}",
                remedy="check library and libraries of its [[delegate]]; they start where the plan is",
            )
    if len({path.name for path in paths.values()}) < len(paths):
        raise UsageError(
            f"delegate {delegate.name} has two files of one name, and all go into one folder on the device",
            remedy="rename one of them",
        )
    return replace(
        delegate,
        library=str(paths[delegate.library]) if delegate.library else None,
        libraries=tuple(str(paths[file]) for file in delegate.libraries),
        files={str(path): sha256(path) for path in paths.values()},
    )


def _pinned(plan: Plan) -> Pinned | None:
    """The plan's reference, its files found."""
    said = plan.reference
    if said is None:
        return None
    if plan.measure.sustain_s:
        raise UsageError("a sustained run has no blocks, and so no reference", remedy="leave the reference out")
    (model, *more), _ = find_models([said.model or str(bundled_models()[0])], plan.folder)
    if more:
        raise UsageError(f"the reference is one model, and {said.model} names {1 + len(more)}", remedy="name one file")
    if plan.measure.inputs is not None:
        raise UsageError(
            "[measure] inputs are for the models of the sweep, and the reference would get them too",
            remedy="leave the inputs or the reference out",
        )
    return Pinned(model, _found_delegate(plan, said.delegate or plan.sweep.delegates[0]), said.runner, said.threads)


def _load_models(plan: Plan) -> dict[str, Model]:
    found: dict[str, Model] = {}
    for load in plan.sweep.loads or ():
        path = parse_load(load).model
        if path is not None:
            (found[load],), _ = find_models([path], plan.folder)
    return found


def _inputs(plan: Plan) -> Path | None:
    if plan.measure.inputs is None:
        return None
    path = plan.folder / plan.measure.inputs
    if not path.is_file():
        raise ModelError(f"{path}: no such file of inputs", remedy="check inputs under [measure]")
    return path


def new_record(plan: Plan, devices: Sequence[Device]) -> RunRecord:
    now = SYSTEM.now()
    seed = plan.measure.seed if plan.measure.seed is not None else secrets.randbelow(2**31)
    return RunRecord(
        id=f"{now:%Y-%m-%dT%H:%M:%SZ}-{secrets.token_hex(2)}",
        created_at=f"{now:%Y-%m-%dT%H:%M:%S.%f}Z",
        status="running",
        plan=_absolute(plan).as_json(),
        fleet={"devices": [device_json(device) for device in devices]},
        host={"system": host_platform.platform(), "python": host_platform.python_version()},
        seed=seed,
        devbench_version=__version__,
    )


def _absolute(plan: Plan) -> Plan:
    return replace(plan, folder=plan.folder.resolve())


def device_json(device: Device) -> dict[str, Any]:
    return vars(device) | {"limits": vars(device.limits), "address": dict(device.address)}


def device_from_json(content: Mapping[str, Any]) -> Device:
    return Device(
        **{
            **content,
            "limits": Limits(**content["limits"]),
            "tags": tuple(content["tags"]),
            "delegates": tuple(content["delegates"]),
        }
    )


# The store's copies


def with_baseline(store: Store, prepared: Prepared) -> Prepared:
    """The run with its baseline found before anything is measured, and written down: `last` is another one later."""
    collect = prepared.plan.collect
    if collect.baseline is None:
        return prepared
    found = replace(collect, baseline=store.find_baseline(collect.baseline, prepared.record).id)
    plan = replace(prepared.plan, collect=found)
    return replace(prepared, plan=plan, record=replace(prepared.record, plan=_absolute(plan).as_json()))


def keep_files(store: Store, prepared: Prepared) -> Prepared:
    """The run with its files kept in the store, and measured from there: editing a file changes no run under way."""
    inventory = prepared.inventory
    if "files" in prepared.record.fleet:  # a duel is made of what is kept
        return prepared
    paths = [model.path for model in (*inventory.all_models, *inventory.load_models.values())]
    libraries = [Path(file) for delegate in inventory.all_delegates for file in delegate.host_files]
    for path in [*paths, *libraries, *([inventory.inputs] if inventory.inputs else [])]:
        store.keep_blob(path)
    kept = {
        "models": [[model.name, model.sha256] for model in inventory.models],
        "load_models": {load: [model.name, model.sha256] for load, model in inventory.load_models.items()},
        "inputs": sha256(inventory.inputs) if inventory.inputs else None,
        "delegates": [delegate.as_json() for delegate in inventory.delegates],
        "reference": inventory.pinned.as_json() if inventory.pinned else None,
    }
    record = replace(prepared.record, fleet={**prepared.record.fleet, "files": kept})
    return replace(prepared, record=record, inventory=kept_inventory(store, kept))


def _kept_pinned(store: Store, kept: Mapping[str, Any]) -> Pinned:
    name, digest = kept["model"]
    model, delegate = Model(name, kept_blob(store, digest), digest), kept_delegate(store, kept["delegate"])
    return Pinned(model, delegate, kept["runner"], kept["threads"])


def kept_inventory(store: Store, kept: Mapping[str, Any]) -> Inventory:
    return Inventory(
        models=tuple(Model(name, kept_blob(store, digest), digest) for name, digest in kept["models"]),
        load_models={
            load: Model(name, kept_blob(store, digest), digest) for load, (name, digest) in kept["load_models"].items()
        },
        inputs=kept_blob(store, kept["inputs"]) if kept["inputs"] else None,
        delegates=tuple(kept_delegate(store, item) for item in kept.get("delegates") or ()),
        pinned=_kept_pinned(store, kept["reference"]) if kept.get("reference") else None,
    )


def kept_delegate(store: Store, content: Mapping[str, Any]) -> Delegate:
    """A delegate whose files are the store's copies; its label, which content makes, stays as it was."""
    delegate = Delegate.from_json(content)
    return replace(delegate, copies={path: str(kept_blob(store, digest)) for path, digest in delegate.files.items()})


def kept_blob(store: Store, digest: str) -> Path:
    path = store.blob(digest)
    if path is None:
        raise StoreError(
            f"the store {store.folder} has lost the file {digest[:12]} of this run",
            remedy="restore its blobs folder, or start a new run",
        )
    return path


def prepare_resume(store: Store, reference: str) -> Prepared:
    """The run as it was stored, with the very bytes it began with."""
    record = store.last_resumable() if reference == "last" else store.find_run(reference)
    if not record.is_from_here:
        raise UsageError(
            f"run {record.id} was measured elsewhere", remedy="only a run that was started here can be resumed"
        )
    if record.duel is not None:
        raise UsageError(
            f"run {record.id} holds two sides against each other", remedy=f"go on with `{record.duel['resume']}`"
        )
    stored: dict[str, tuple[Cell, ...]] = {}
    for cell in store.cells(record.id):
        stored[cell.device] = (*stored.get(cell.device, ()), cell)
    return Prepared(
        record,
        plan_from_json(record.plan),
        tuple(device_from_json(content) for content in record.fleet["devices"]),
        kept_inventory(store, record.fleet["files"]),
        stored,
    )
