"""What `devbench trace --open` prints: a run's traces, and how to look at each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from orchestrator.cli.operators import show_profiles
from orchestrator.cli.options import print_json
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.plan import Collect
    from orchestrator.store import RunRecord, Store


def show_passes(store: Store, record: RunRecord, collect: Collect, *, as_json: bool) -> None:
    """What a run without latencies brought."""
    if collect.profile:
        show_profiles(store, record, as_json=as_json)
    else:
        show_traces(store, record, as_json=as_json)


def show_traces(store: Store, record: RunRecord, *, as_json: bool) -> None:
    """All trace passes of a run, those that came to nothing among them."""
    from orchestrator.analysis.traces import cell_trace

    passes = store.traces(record.id)
    if not passes:
        raise UsageError(
            f"run {record.id} has no system traces",
            remedy="make them with `devbench run --trace`, or `devbench trace`; every trial has a `devbench timeline`",
        )
    found = [cell_trace(passed, store.unprofiled_trials(passed.run, passed.cell.id)) for passed in passes]
    if as_json:
        content = [one.as_json(str(store.folder)) for one in found]
        print_json("devbench.traces", {"run": record.id, "store": str(store.folder), "traces": content})
        return
    from orchestrator.reports.terminal import console_for
    from orchestrator.reports.traces import show_traces as print_traces

    print_traces(console_for(sys.stdout), found, store.folder)
