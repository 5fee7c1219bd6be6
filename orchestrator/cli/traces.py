"""The command that traces and measures nothing else, and says how to look at traces: trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from orchestrator.cli.measure import begin, planned
from orchestrator.cli.options import (
    DEFAULT_STORE,
    TRACE_SIZE_HELP,
    TRACERS_HELP,
    AffinityOption,
    BudgetOption,
    DelegateOption,
    DeviceOption,
    FleetOption,
    JsonOption,
    LoadOption,
    ModelOption,
    PlanOption,
    QuietOption,
    RunnerOption,
    StoreOption,
    TagOption,
    ThreadsOption,
    chosen_devices,
    let_readers_leave,
    opened_store,
)
from orchestrator.errors import UsageError


def trace(
    fleet: FleetOption = None,
    plan: PlanOption = None,
    device: DeviceOption = None,
    tag: TagOption = None,
    model: ModelOption = None,
    runner: RunnerOption = None,
    delegate: DelegateOption = None,
    threads: ThreadsOption = None,
    affinity: AffinityOption = None,
    load: LoadOption = None,
    budget: BudgetOption = None,
    tracer: Annotated[str | None, typer.Option("--with", help=TRACERS_HELP)] = None,
    max_size: Annotated[str | None, typer.Option("--max-size", help=TRACE_SIZE_HELP)] = None,
    opened_run: Annotated[
        str | None,
        typer.Option("--open", metavar="[RUN]", help="Record nothing: list a run's traces, and how to look at them."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Record what every device does while it runs models, idle unless told otherwise, without measuring latency."""
    from orchestrator.overrides import Overrides
    from orchestrator.prepare import prepare

    said = Overrides(
        models=tuple(model or ()),
        runner=runner,
        delegates=delegate,
        threads=threads,
        affinity=affinity,
        loads=load,
        budget=budget,
        trace_with=tracer,
        trace_max_size=max_size,
    )
    if opened_run is not None:
        _list_traces(opened_run, store, said != Overrides() or plan or fleet or device or tag, as_json=as_json)
        return
    said = replace(said, loads=load or (None if plan else "idle"), trace=True, only="trace")
    prepared = prepare(planned(plan, said), chosen_devices(fleet, device, tag))
    begin(prepared, store, as_json=as_json, quiet=quiet)


def _list_traces(run: str, store: str, other: object, *, as_json: bool) -> None:
    if other:
        raise UsageError(
            "--open lists traces of a run and records none",
            remedy="leave out the options that say what to record, or leave out --open",
        )
    from orchestrator.cli.trace_list import show_traces

    let_readers_leave()
    with opened_store(store, create=False) as opened:
        show_traces(opened, opened.find_run(run), as_json=as_json)
