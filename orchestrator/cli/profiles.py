"""The command that profiles and measures nothing else: profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.measure import measure_and_show, planned
from orchestrator.cli.operators import show_profiles
from orchestrator.cli.options import (
    DEFAULT_STORE,
    DeviceOption,
    FleetOption,
    JsonOption,
    StoreOption,
    TagOption,
    chosen_devices,
    opened_store,
)


def profile(
    fleet: FleetOption = None,
    plan: Annotated[Path | None, typer.Option("--plan", help="What to profile (plan.toml).")] = None,
    device: DeviceOption = None,
    tag: TagOption = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="A model or a glob; may be repeated.")] = None,
    runner: Annotated[str | None, typer.Option("--runner", help="benchmark_model, benchmark_model:NAME")] = None,
    delegate: Annotated[str | None, typer.Option("--delegate", help="xnnpack,cpu")] = None,
    threads: Annotated[str | None, typer.Option("--threads", help="1,2,4 or auto")] = None,
    affinity: Annotated[str | None, typer.Option("--affinity", help="any,big,mid,little or masks")] = None,
    load: Annotated[str | None, typer.Option("--load", help="idle unless given; see run")] = None,
    budget: Annotated[str | None, typer.Option("--budget", help="Stop cleanly after this long: 20m")] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")] = False,
) -> None:
    """Time the operators of models on every device, without measuring latency: one profile a cell."""
    from orchestrator.plan import Overrides
    from orchestrator.prepare import prepare

    said = Overrides(
        models=tuple(model or ()),
        runner=runner,
        delegates=delegate,
        threads=threads,
        affinity=affinity,
        loads=load or (None if plan else "idle"),
        budget=budget,
        profile=True,
        only_profile=True,
    )
    prepared = prepare(planned(plan, said), chosen_devices(fleet, device, tag))
    with opened_store(store, create=True) as opened:
        measure_and_show(prepared, opened, show_profiles, as_json=as_json, quiet=quiet)
