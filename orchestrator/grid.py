"""The grid: the cells that a plan means on a device, and which of them that device cannot run. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.delegates import LOADED, Delegate, delegate_of, name_of
from orchestrator.errors import UsageError
from orchestrator.fleet import Device
from orchestrator.load import parse_load
from orchestrator.model import Model
from orchestrator.plan import Conditions, Measure, Plan
from orchestrator.platforms.base import Facts, Platform
from orchestrator.runners.base import Runner
from orchestrator.trial import Cell, Outcome, Trial

CELLS_MAX = 10_000
SLOTS_MAX = 1_000_000
_ASSUMED_CORES = 4
_OVERHEAD_S = 0.6


@dataclass(frozen=True)
class Grid:
    """The cells of one device, and the files behind the names in them."""

    device: Device
    cells: tuple[Cell, ...]
    cores_assumed: bool = False


def auto_threads(cores: int) -> tuple[int, ...]:
    """1, 2 and 4 as far as there are cores."""
    return tuple(count for count in (1, 2, 4) if count <= max(1, cores))


def auto_loads(cores: int) -> tuple[str, ...]:
    """Nothing, half of the cores kept busy, and the rhythm of a foreground app."""
    return ("idle", f"cpu:{max(1, cores // 2)}@100", "app")


def load_label(load: str, load_models: Mapping[str, Model]) -> str:
    """The load as cells carry it: `model:FILE` becomes `model:name@hash`, so that content names it."""
    parsed = parse_load(load)
    if parsed.model is None:
        return load
    model = load_models[load]
    return f"model:{model.name}@{model.sha256[:8]}"


def expand(
    plan: Plan,
    device: Device,
    *,
    models: Sequence[Model],
    load_models: Mapping[str, Model],
    cores: int | None,
    runners: Mapping[str, str | None],
    has_loads: bool = True,
    delegates: Sequence[str] | None = None,
) -> Grid:
    """Every combination the plan asks of this device; `runners` has the hash of each runner where it is known, and
    `delegates` the labels of the plan's delegates where they are not its words. Loads that nobody asked for are left
    out where the device has none."""
    counted = cores or _ASSUMED_CORES
    sweep = plan.sweep
    loads = sweep.loads or (auto_loads(counted) if has_loads else ("idle",))
    threads = sweep.threads or auto_threads(counted)
    axes = (models, list(runners), delegates or sweep.delegates, threads, sweep.affinity, loads)
    _refuse_absurd(device, [len(axis) for axis in axes], plan.measure)
    cells = [
        Cell(
            device=device.name,
            model=model.name,
            model_sha256=model.sha256,
            runner=runner,
            runner_sha256=runners[runner],
            delegate=delegate,
            threads=count,
            affinity=affinity,
            load=load_label(load, load_models),
        )
        for model, runner, delegate, count, affinity, load in itertools.product(*axes)
    ]
    return Grid(device, tuple(dict.fromkeys(cells)), cores_assumed=cores is None)


def _refuse_absurd(device: Device, lengths: Sequence[int], measure: Measure) -> None:
    count = 1
    for length in lengths:
        count *= length
    shape = " x ".join(str(length) for length in lengths)
    if count == 0:
        raise UsageError(
            "the plan's grid is empty: it names no model", remedy="add models under [sweep], or --model FILE"
        )
    if count > CELLS_MAX or count * measure.blocks_max > SLOTS_MAX:
        raise UsageError(
            f"the plan asks for {count:,} cells on {device.name} ({shape}), {count * measure.blocks_max:,} trials "
            f"at the most; the limit is {CELLS_MAX:,} cells and {SLOTS_MAX:,} trials",
            remedy="narrow [sweep], lower [measure] blocks, or split the plan into several",
        )


def unsupported(
    cell: Cell,
    *,
    device: Device,
    facts: Facts,
    platform: Platform,
    runner: Runner,
    conditions: Conditions,
    delegate: Delegate | None = None,
    runner_facts: Mapping[str, Any] | None = None,
    is_brought: bool = False,
) -> str | None:
    """Why this device cannot run the cell, known before any try; None when it can. `runner_facts` are what the runner's
    check said there; a runner that is brought along need not be installed on this host under its name."""
    variant = cell.runner.partition(":")[2]
    delegate = delegate or delegate_of(cell.delegate)
    if platform.name not in runner.platforms:
        return f"{cell.runner} does not run on {platform.name} (it runs on {', '.join(runner.platforms)})"
    if variant and variant not in runner.variants and not is_brought:
        offered = ", ".join(runner.variants) or "none"
        return f"{cell.runner.partition(':')[0]} has no variant {variant} (it has: {offered})"
    if delegate.base not in runner.delegates:
        return f"{cell.runner} cannot run delegate {cell.delegate} (it can: {', '.join(runner.delegates)})"
    if platform.name not in delegate.platforms:
        return f"delegate {delegate.name} runs on {', '.join(delegate.platforms)}, and this is {platform.name}"
    if device.delegates and name_of(cell.delegate) not in device.delegates:
        return f"devices.toml lists no delegate {name_of(cell.delegate)} for {device.name}"
    if delegate.base in LOADED and not delegate.library and not delegate.paths:
        return f"delegate {delegate.name} has no library; define one of your own in the plan with [[delegate]]"
    if cell.threads > facts.cores:
        return f"{cell.threads} threads on a device with {facts.cores} cores"
    if reason := platform.unsupported(cell, conditions):
        return reason
    try:
        platform.affinity_mask(cell.affinity, facts)
    except ValueError as error:
        return str(error)
    return runner.unsupported(cell, delegate, runner_facts or {})


def never_measured(trials: Sequence[Trial]) -> list[str]:
    """Settings that were skipped wherever they were asked for. What one phone of a mixed fleet cannot do, another
    may have done; what none did was not measured."""
    measured = {_without_device(trial.cell) for trial in trials if trial.outcome == Outcome.MEASURED}
    skipped = [trial.cell for trial in trials if trial.outcome == Outcome.SKIPPED]
    lost = [cell for cell in skipped if _without_device(cell) not in measured]
    return list(dict.fromkeys(f"{cell.model} ({cell.setting})" for cell in lost))


def _without_device(cell: Cell) -> tuple[str, ...]:
    return cell.model_sha256, cell.runner, cell.delegate, str(cell.threads), cell.affinity, cell.load


def trial_estimate_s(cell: Cell, measure: Measure) -> float:
    """About how long one trial takes, before any was made."""
    settle_ms = 0 if cell.load == "idle" else measure.settle_ms
    return _OVERHEAD_S + (settle_ms + measure.warmup_min_ms + measure.min_ms) / 1000.0
