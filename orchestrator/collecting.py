"""What a run collects beside latencies: the cells of one device once more, in passes of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.anomaly import odd_cells
from orchestrator.cell_passes import PassWork
from orchestrator.observing import DeviceResult, Observer
from orchestrator.op_profile import ProfilePass
from orchestrator.plan import Plan
from orchestrator.profile_pass import profile_cells
from orchestrator.trace import ANOMALY, TracePass
from orchestrator.trace_pass import Wanted, trace_cells
from orchestrator.trial import Cell, Outcome

Tell = Callable[[Callable[[Observer], None]], None]


def collect_passes(work: PassWork, cells: Sequence[Cell], plan: Plan, result: DeviceResult, tell: Tell) -> None:
    """Profiles, then traces, as far as the plan wants them."""

    def profiled(passed: ProfilePass) -> None:
        result.profiled += passed.outcome == Outcome.MEASURED
        tell(lambda observer: observer.profiled(passed))

    def traced(passed: TracePass) -> None:
        result.traced += passed.outcome == Outcome.MEASURED
        tell(lambda observer: observer.traced(passed))

    collect = plan.collect
    if collect.profile:
        result.unprofiled = profile_cells(work, cells, profiled)
    if collect.trace:
        why = None
        if collect.trace == ANOMALY:
            odd = odd_cells(work.store, work.run, cells, collect.baseline)
            why = odd.why
            tell(lambda observer: observer.noted(result.device, odd.text))
        wanted = Wanted(collect.trace_with, collect.trace_bytes_max, plan.measure.trial_timeout_s, why)
        chosen = [cell for cell in cells if why is None or cell.id in why]
        result.untraced = trace_cells(work, chosen, wanted, traced)
