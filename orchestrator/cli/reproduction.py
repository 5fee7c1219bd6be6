"""The command that brings a regression back on one phone: reproduce."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    budget: Annotated[str | None, typer.Option("--budget", help="Device time at the most; 30m if unsaid.")] = None,
    threshold: ThresholdOption = None,
    blocks: DuelBlocksOption = None,
    metric: MetricOption = None,
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
    asked = _Asked(run, " ".join(cell or ()), device, baseline, fleet, threshold, blocks, metric, profile, seed)
    if resume is not None and asked != _Asked():
        raise UsageError(
            "--resume goes on with what was begun", remedy="only --budget may be said with it, for a new total"
        )
    with opened_store(store, create=False) as opened:
        prepared, case = _resumed(opened, resume, budget) if resume else _begun(opened, asked, budget or "30m")
        found = _differences(opened, case, prepared, quiet=quiet)
        attempt = _attempt(opened, prepared, quiet=quiet, resumed=resume is not None)
        with closed_output_forgiven():
            _show(case, attempt, found, as_json=as_json)
            sys.stdout.flush()
    sys.exit(_status(attempt))


@dataclass(frozen=True)
class _Asked:
    """What the command line says of a new one."""

    run: str | None = None
    cell: str = ""
    device: str | None = None
    baseline: str | None = None
    fleet: Path | None = None
    threshold: str | None = None
    blocks: str | None = None
    metric: str | None = None
    profile: bool = False
    seed: int | None = None


def _begun(store: Store, asked: _Asked, budget: str) -> tuple[Prepared, Case]:
    from orchestrator.contest import Pair
    from orchestrator.duel import duel_measure, prepare_duel
    from orchestrator.overrides import blocks_said, budget_said
    from orchestrator.reproduce import device_of, find_case, refuse_unprofiled

    if asked.run is None or not asked.cell:
        raise UsageError("which cell of which run?", remedy="devbench reproduce RUN CELL --device NAME")
    blocks, budget_s = blocks_said(asked.blocks or "8:40"), budget_said(budget)
    threshold, metric = share(asked.threshold or "3%", "--threshold"), metric_named(asked.metric or "p50")
    listed = chosen_devices(asked.fleet, None, None) if asked.fleet else None
    case = find_case(store, asked.run, asked.cell, device=asked.device, baseline=asked.baseline)
    if asked.profile:
        refuse_unprofiled(case)
    where = device_of(case.run, asked.device, case.suspect.cell, listed)
    origin = {
        "command": COMMAND,
        "resume": _RESUME,
        "run": case.run.id,
        "cell": case.suspect.cell.id,
        "baseline": case.baseline.id,
    }
    prepared = prepare_duel(
        store,
        [Pair(where, case.base, case.suspect, metric)],
        measure=duel_measure(case.suspect.plan, blocks=blocks, budget_s=budget_s),
        seed=asked.seed,
        origin=origin,
        threshold=threshold,
        profile=asked.profile,
    )
    return prepared, case


def _resumed(store: Store, reference: str, budget: str | None) -> tuple[Prepared, Case]:
    from orchestrator.duel import resume_duel, with_budget
    from orchestrator.overrides import budget_said
    from orchestrator.reproduce import find_case

    prepared = resume_duel(store, reference, COMMAND)
    if budget is not None:
        prepared = with_budget(prepared, budget_said(budget))
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
