"""The command that profiles and measures nothing else: profile."""

from __future__ import annotations

from orchestrator.cli.measure import begin, planned
from orchestrator.cli.options import (
    DEFAULT_STORE,
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
)


def profile(
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
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Time the operators of models on every device, idle unless told otherwise, without measuring latency."""
    from orchestrator.overrides import Overrides
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
        only="profile",
    )
    prepared = prepare(planned(plan, said), chosen_devices(fleet, device, tag))
    begin(prepared, store, as_json=as_json, quiet=quiet)
