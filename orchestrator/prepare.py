"""From a plan and a fleet to a run that can start: files found and hashed, grids checked, no device touched."""

from __future__ import annotations

import platform as host_platform
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator import __version__, registry
from orchestrator.bundled import bundled_models
from orchestrator.clock import SYSTEM
from orchestrator.conductor import Files
from orchestrator.content_hash import sha256
from orchestrator.errors import ModelError, StoreError, UsageError
from orchestrator.fleet import Device, Limits
from orchestrator.grid import Grid, expand, load_label
from orchestrator.load import parse_load
from orchestrator.model import Model
from orchestrator.model_files import find_models
from orchestrator.plan import Plan, plan_from_json
from orchestrator.store import RunRecord, Store
from orchestrator.trial import Cell


@dataclass(frozen=True)
class Prepared:
    """A run before its first trial, or before its next one."""

    record: RunRecord
    plan: Plan
    devices: tuple[Device, ...]
    files: Files
    cells_for: Callable[[Device, int | None], Grid]
    """The grid of a device, given its number of cores (None: not known)."""


def prepare(plan: Plan, devices: Sequence[Device]) -> Prepared:
    """Check everything that can be checked on the host. Raises on the first thing that is wrong."""
    _refuse_unsupported_collection(plan)
    _refuse_one_device_twice(devices)
    models = find_models(plan.sweep.models or [str(path) for path in bundled_models()], plan.folder)
    load_models = _load_models(plan)
    inputs = _inputs(plan)
    runners = {name.partition(":")[0] for device in devices for name in _runner_names(plan, device)}
    runner_files = {name: registry.runner(name).files() for name in sorted(runners)}
    files = Files(
        models={model.sha256: model.path for model in models},
        load_models={load_label(load, load_models): model.path for load, model in load_models.items()},
        runners=runner_files,
        inputs=inputs,
    )
    cells_for = partial(_cells_for, plan, models, load_models, runner_files)
    for device in devices:
        cells_for(device, registry.transport(device.transport).cores(device))
    return Prepared(_new_record(plan, devices), plan, tuple(devices), files, cells_for)


def _cells_for(
    plan: Plan,
    models: Sequence[Model],
    load_models: Mapping[str, Model],
    runner_files: Mapping[str, Mapping[str, Path]],
    device: Device,
    cores: int | None,
) -> Grid:
    def runner_sha256(name: str) -> str | None:
        return sha256(next(iter(runner_files[name.partition(":")[0]].values())))

    return expand(plan, device, models=models, load_models=load_models, cores=cores, runner_sha256=runner_sha256)


def _runner_names(plan: Plan, device: Device) -> Sequence[str]:
    return plan.sweep.runners or (device.runner or "litert_runner",)


def _refuse_unsupported_collection(plan: Plan) -> None:
    if plan.collect.profile:
        raise UsageError(
            "--profile: no installed runner gives operator profiles (LiteRT's Python interface exposes none)",
            remedy="leave profile out",
        )
    if plan.collect.trace:
        raise UsageError("--trace: no installed platform can record system traces", remedy="leave trace out")


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


def _load_models(plan: Plan) -> dict[str, Model]:
    found: dict[str, Model] = {}
    for load in plan.sweep.loads or ():
        path = parse_load(load).model
        if path is not None:
            found[load] = find_models([path], plan.folder)[0]
    return found


def _inputs(plan: Plan) -> Path | None:
    if plan.measure.inputs is None:
        return None
    path = plan.folder / plan.measure.inputs
    if not path.is_file():
        raise ModelError(f"{path}: no such file of inputs", remedy="check inputs under [measure]")
    return path


def _new_record(plan: Plan, devices: Sequence[Device]) -> RunRecord:
    now = SYSTEM.now()
    seed = plan.measure.seed if plan.measure.seed is not None else secrets.randbelow(2**31)
    return RunRecord(
        id=f"{now:%Y-%m-%dT%H:%M:%SZ}-{secrets.token_hex(2)}",
        created_at=f"{now:%Y-%m-%dT%H:%M:%S.%f}Z",
        status="running",
        plan=_absolute(plan).as_json(),
        fleet={"devices": [_device_json(device) for device in devices]},
        host={"system": host_platform.platform(), "python": host_platform.python_version()},
        seed=seed,
        devbench_version=__version__,
    )


def _absolute(plan: Plan) -> Plan:
    return replace(plan, folder=plan.folder.resolve())


def _device_json(device: Device) -> dict[str, Any]:
    return vars(device) | {"limits": vars(device.limits), "address": dict(device.address)}


def _device_from_json(content: Mapping[str, Any]) -> Device:
    return Device(
        **{
            **content,
            "limits": Limits(**content["limits"]),
            "tags": tuple(content["tags"]),
            "delegates": tuple(content["delegates"]),
        }
    )


# The store's copies


def keep_files(store: Store, prepared: Prepared) -> Prepared:
    """The run with its files kept in the store, and measured from there: editing a file changes no run under way."""
    files = prepared.files
    paths = [*files.models.values(), *files.load_models.values()]
    paths += [path for roles in files.runners.values() for path in roles.values()]
    paths += [files.inputs] if files.inputs else []
    for path in paths:
        store.keep_blob(path)
    kept = {
        "models": list(files.models),
        "load_models": {label: sha256(path) for label, path in files.load_models.items()},
        "runners": {
            name: {role: sha256(path) for role, path in roles.items()} for name, roles in files.runners.items()
        },
        "inputs": sha256(files.inputs) if files.inputs else None,
    }
    record = replace(prepared.record, fleet={**prepared.record.fleet, "files": kept})
    return replace(prepared, record=record, files=_kept_files(store, kept))


def _kept_files(store: Store, kept: Mapping[str, Any]) -> Files:
    return Files(
        models={digest: _blob(store, digest) for digest in kept["models"]},
        load_models={label: _blob(store, digest) for label, digest in kept["load_models"].items()},
        runners={
            name: {role: _blob(store, digest) for role, digest in roles.items()}
            for name, roles in kept["runners"].items()
        },
        inputs=_blob(store, kept["inputs"]) if kept["inputs"] else None,
    )


def _blob(store: Store, digest: str) -> Path:
    path = store.blob(digest)
    if path is None:
        raise StoreError(
            f"the store {store.folder} has lost the file {digest[:12]} of this run",
            remedy="restore its blobs folder, or start a new run",
        )
    return path


def prepare_resume(store: Store, reference: str) -> Prepared:
    """The run as it was stored, with the very bytes it began with."""
    record = store.find_run(reference)
    if record.status == "imported":
        raise UsageError(f"run {record.id} was imported", remedy="only a run that was started here can be resumed")
    plan = plan_from_json(record.plan)
    devices = tuple(_device_from_json(content) for content in record.fleet["devices"])
    stored: dict[str, list[Cell]] = {}
    for cell in store.cells(record.id):
        stored.setdefault(cell.device, []).append(cell)

    def cells_for(device: Device, cores: int | None) -> Grid:
        if device.name in stored:
            return Grid(device, tuple(stored[device.name]))
        return prepare(plan, [device]).cells_for(device, cores)

    return Prepared(record, plan, devices, _kept_files(store, record.fleet["files"]), cells_for)
