"""Commands that say beforehand what can be found: calibrate and plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.measure import begin, planned
from orchestrator.cli.options import (
    DEFAULT_STORE,
    BudgetOption,
    DelegateOption,
    DeviceOption,
    DryRunOption,
    FleetOption,
    JsonOption,
    LoadOption,
    ModelOption,
    PlanOption,
    QuietOption,
    RunnerOption,
    SeedOption,
    StoreOption,
    TagOption,
    ThreadsOption,
    chosen_devices,
    opened_store,
    print_json,
    share,
)

if TYPE_CHECKING:
    from orchestrator.analysis.noise import Noise


def calibrate(
    fleet: FleetOption = None,
    sessions: Annotated[
        int, typer.Option("--sessions", min=1, max=100, help="How often each device is begun anew.")
    ] = 4,
    blocks: Annotated[
        int | None,
        typer.Option("--blocks", min=1, max=1000, help="Blocks in each session; the plan's least if unsaid."),
    ] = None,
    plan: PlanOption = None,
    device: DeviceOption = None,
    tag: TagOption = None,
    model: ModelOption = None,
    runner: RunnerOption = None,
    delegate: DelegateOption = None,
    threads: ThreadsOption = None,
    load: LoadOption = None,
    budget: BudgetOption = None,
    seed: SeedOption = None,
    store: StoreOption = DEFAULT_STORE,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure the same thing twice in every block: what can each device tell apart? Kept for compare and plan."""
    from orchestrator.overrides import Overrides
    from orchestrator.prepare import as_calibration, prepare

    said = Overrides(
        models=tuple(model or ()),
        runner=runner,
        delegates=delegate,
        threads=threads,
        loads=load,
        budget=budget,
        seed=seed,
    )
    wanted = as_calibration(planned(plan, said), sessions=sessions, blocks=blocks)
    prepared = prepare(wanted, chosen_devices(fleet, device, tag))
    begin(prepared, store, dry_run=dry_run, as_json=as_json, quiet=quiet)


def plan_command(
    file: Annotated[Path | None, typer.Argument(help="A plan.toml to check; the default plan if none.")] = None,
    detect: Annotated[str | None, typer.Option("--detect", help="The change that must be found: 3%")] = None,
    power: Annotated[str, typer.Option("--power", help="How often it must be found: 90%")] = "90%",
    fleet: FleetOption = None,
    device: DeviceOption = None,
    tag: TagOption = None,
    model: ModelOption = None,
    threads: ThreadsOption = None,
    load: LoadOption = None,
    blocks: Annotated[str | None, typer.Option("--blocks", help="MIN:MAX trials a cell")] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Check a plan, and say how many blocks and how much time it takes to find a change. Touches no device."""
    from orchestrator.overrides import Overrides
    from orchestrator.planning import outlook
    from orchestrator.prepare import prepare

    said = Overrides(models=tuple(model or ()), threads=threads, loads=load, blocks=blocks)
    prepared = prepare(planned(file, said), chosen_devices(fleet, device, tag))
    change = None if detect is None else share(detect, "--detect")
    seen = outlook(prepared, store, _known_noise(store), detect=change, power=share(power, "--power"))
    if as_json:
        print_json("devbench.plan", seen.as_json())
        return
    from orchestrator.reports.planning import show_outlook
    from orchestrator.reports.terminal import console_for

    show_outlook(console_for(sys.stdout), seen)


def _known_noise(place: str) -> list[Noise]:
    """What was calibrated; nothing where there is no store yet."""
    from orchestrator.store import has_store

    if not has_store(place):
        return []
    with opened_store(place, create=False) as opened:
        return opened.noise()
