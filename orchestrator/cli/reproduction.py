"""The command that brings a regression back on one phone: reproduce."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.compare import metric_named
from orchestrator.cli.measure import closed_output_forgiven, observing, stopping
from orchestrator.cli.options import (
    DEFAULT_STORE,
    DuelBlocksOption,
    JsonOption,
    MetricOption,
    QuietOption,
    SeedOption,
    StoreOption,
    ThresholdOption,
    WhereFleetOption,
    WhereOption,
    chosen_devices,
    opened_store,
    print_json,
    share,
)
from orchestrator.errors import UsageError, error_text

if TYPE_CHECKING:
    from orchestrator.prepare import Prepared
    from orchestrator.reproduce import Attempt, Case
    from orchestrator.store import Store
    from orchestrator.then_and_now import Difference

COMMAND = "reproduce"
_RESUME = "devbench reproduce --resume {run}"
_NOT_REPRODUCED = 1
_UNKNOWN = 5


def reproduce(
    run: Annotated[
        str | None, typer.Argument(help="The run that looked slower: its id, a tag, a date, `last`.")
    ] = None,
    cell: Annotated[
        list[str] | None, typer.Argument(help="Its cell: the start of the id, or words that fit only one.")
    ] = None,
    device: WhereOption = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="RUN", help="Against what; as the gate did, or the newest run before it."),
    ] = None,
    budget: Annotated[str, typer.Option("--budget", help="Device time at the most.")] = "30m",
    threshold: ThresholdOption = "3%",
    blocks: DuelBlocksOption = "8:40",
    metric: MetricOption = "p50",
    profile: Annotated[bool, typer.Option("--profile", help="Say which operators moved, too.")] = False,
    fleet: WhereFleetOption = None,
    seed: SeedOption = None,
    store: StoreOption = DEFAULT_STORE,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="[RUN]", help="Go on with one that was interrupted.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a cell's two builds again, interleaved on one phone, until it is clear whether the new one is slower."""
    from orchestrator.overrides import blocks_said, budget_said

    limits = (blocks_said(blocks), budget_said(budget), share(threshold, "--threshold"))
    decisive = metric_named(metric)
    with opened_store(store, create=False) as opened:
        if resume is not None:
            if run or cell or device or baseline or fleet:
                raise UsageError(
                    "--resume goes on with what was begun and takes no other", remedy="leave out run, cell and device"
                )
            prepared, case = _resumed(opened, resume)
        else:
            prepared, case = _begun(
                opened, run, cell, device, baseline, fleet, limits, metric=decisive, profile=profile, seed=seed
            )
        found = _differences(opened, case, prepared, quiet=quiet)
        attempt = _attempt(opened, prepared, quiet=quiet, resumed=resume is not None)
        with closed_output_forgiven():
            _show(case, attempt, found, as_json=as_json)
            sys.stdout.flush()
    sys.exit(_status(attempt))


def _begun(
    store: Store,
    run: str | None,
    cell: list[str] | None,
    device: str | None,
    baseline: str | None,
    fleet: Path | None,
    limits: tuple[tuple[int, int], float, float],
    *,
    metric: Any,
    profile: bool,
    seed: int | None,
) -> tuple[Prepared, Case]:
    from orchestrator.contest import Pair
    from orchestrator.duel import duel_measure, prepare_duel
    from orchestrator.reproduce import device_of, find_case, refuse_unprofiled

    if run is None or not cell:
        raise UsageError("which cell of which run?", remedy="devbench reproduce RUN CELL --device NAME")
    listed = chosen_devices(fleet, None, None) if fleet else None
    case = find_case(store, run, " ".join(cell), device=device, baseline=baseline)
    if profile:
        refuse_unprofiled(case)
    where = device_of(case.run, device, case.suspect.cell, listed)
    origin = {
        "command": COMMAND,
        "resume": _RESUME,
        "run": case.run.id,
        "cell": case.suspect.cell.id,
        "baseline": case.baseline.id,
    }
    blocks, budget_s, threshold = limits
    prepared = prepare_duel(
        store,
        [Pair(where, case.base, case.suspect, metric)],
        measure=duel_measure(case.suspect.plan, blocks=blocks, budget_s=budget_s),
        seed=seed,
        origin=origin,
        threshold=threshold,
        profile=profile,
    )
    return prepared, case


def _resumed(store: Store, reference: str) -> tuple[Prepared, Case]:
    from orchestrator.duel import resume_duel
    from orchestrator.reproduce import find_case

    prepared = resume_duel(store, reference, COMMAND)
    assert prepared.record.duel is not None
    origin = prepared.record.duel["origin"]
    return prepared, find_case(store, origin["run"], origin["cell"], device=None, baseline=origin["baseline"])


def _differences(store: Store, case: Case, prepared: Prepared, *, quiet: bool) -> list[Difference]:
    """What differs about the phone, said before anything is measured."""
    from orchestrator.reports.reproduction import case_lines
    from orchestrator.reproduce import device_changes

    found = device_changes(store, case, prepared.devices[0])
    if not quiet:
        for line in case_lines(case, prepared.devices[0].name, found):
            print(line, file=sys.stderr)
    return found


def _attempt(store: Store, prepared: Prepared, *, quiet: bool, resumed: bool) -> Attempt:
    from orchestrator.duel import hold
    from orchestrator.reproduce import attempt_of

    stop = threading.Event()
    with stopping(stop), observing(quiet) as observer:
        print(f"run {prepared.record.id} in {store.folder}", file=sys.stderr)
        result = hold(prepared, store, observer, stop, resumed=resumed)
    errors = [device.error for device in result.devices if device.error]
    if errors and not result.rows:
        raise errors[0]
    for error in errors:
        print(error_text(error), file=sys.stderr)
    assert prepared.duel is not None
    return attempt_of(store, result, prepared.duel.contests[0].metric, profile=prepared.plan.collect.profile)


def _show(case: Case, attempt: Attempt, found: list[Difference], *, as_json: bool) -> None:
    if as_json:
        print_json("devbench.reproduce", attempt.as_json(case) | {"device_now": [one.as_json() for one in found]})
        return
    from orchestrator.reports.reproduction import show_attempt
    from orchestrator.reports.terminal import console_for

    show_attempt(console_for(sys.stdout), case, attempt)


def _status(attempt: Attempt) -> int:
    from orchestrator.reproduce import Answer

    return {Answer.REPRODUCED: 0, Answer.NOT_REPRODUCED: _NOT_REPRODUCED}.get(attempt.answer, _UNKNOWN)
