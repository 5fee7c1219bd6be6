"""The command that measures: run."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from orchestrator.cli.health import say_decaying
from orchestrator.cli.keeping import check_tag
from orchestrator.cli.noise_results import keep_and_show_noise
from orchestrator.cli.options import (
    DEFAULT_STORE,
    AffinityOption,
    BaselineOption,
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
    ReferenceOption,
    RequireTrustOption,
    ResumeOption,
    RunnerOption,
    RunTagsOption,
    SeedOption,
    StoreOption,
    SustainOption,
    TagOption,
    ThreadsOption,
    TraceMaxSizeOption,
    TraceOption,
    TraceWithOption,
    chosen_devices,
    opened_store,
    print_json,
)
from orchestrator.cli.report import ReportOption, refuse_report, write_report
from orchestrator.cli.results import refuse_untrusted, show_stored
from orchestrator.cli.trace_list import show_passes
from orchestrator.errors import Interrupted, UsageError, error_text

if TYPE_CHECKING:
    from orchestrator.campaign import DeviceResult, Observer
    from orchestrator.cell_pass import CellPass
    from orchestrator.fleet import Device
    from orchestrator.overrides import Overrides
    from orchestrator.plan import Plan
    from orchestrator.prepare import Prepared
    from orchestrator.store import RunRecord, Store

_PARTLY_MEASURED = 5


def run(
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
    blocks: Annotated[str | None, typer.Option("--blocks", help="MIN:MAX trials a cell")] = None,
    precision: Annotated[str | None, typer.Option("--precision", help="Stop a cell when this precise: 2%")] = None,
    budget: BudgetOption = None,
    sustain: SustainOption = None,
    seed: SeedOption = None,
    reference: ReferenceOption = None,
    profile: Annotated[bool, typer.Option("--profile", help="Operator profiles, in a pass of their own.")] = False,
    trace: TraceOption = None,
    trace_with: TraceWithOption = None,
    trace_max_size: TraceMaxSizeOption = None,
    baseline: BaselineOption = None,
    store: StoreOption = DEFAULT_STORE,
    resume: ResumeOption = None,
    run_tag: RunTagsOption = None,
    dry_run: DryRunOption = False,
    require_trust: RequireTrustOption = False,
    report: ReportOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure models on every device of the fleet."""
    from orchestrator.overrides import Overrides

    said = Overrides(
        models=tuple(model or ()),
        runner=runner,
        delegates=delegate,
        threads=threads,
        affinity=affinity,
        loads=load,
        blocks=blocks,
        precision=precision,
        budget=budget,
        sustain=sustain,
        seed=seed,
        profile=profile,
        reference=reference,
        trace=trace or False,
        trace_with=trace_with,
        trace_max_size=trace_max_size,
        baseline=baseline,
    )
    if resume is not None:
        other = any((said != Overrides(), plan, fleet, device, tag, run_tag, dry_run))
        _go_on(resume, store, other, as_json=as_json, quiet=quiet, require_trust=require_trust, report=report)
    prepared = _tagged(planned(plan, said), chosen_devices(fleet, device, tag), run_tag or [])
    begin(prepared, store, dry_run=dry_run, as_json=as_json, quiet=quiet, require_trust=require_trust, report=report)


def begin(
    prepared: Prepared,
    store: str,
    *,
    as_json: bool,
    quiet: bool,
    dry_run: bool = False,
    require_trust: bool = False,
    report: Path | None = None,
) -> None:
    """Do the run, or say what it would do."""
    if dry_run:
        preview_run(prepared, store, as_json=as_json, report=report)
        return
    with opened_store(store, create=True) as opened:
        conduct(prepared, opened, as_json=as_json, quiet=quiet, require_trust=require_trust, report=report)


def _tagged(plan: Plan, devices: Sequence[Device], tags: list[str]) -> Prepared:
    """The run made ready, with its tags."""
    from orchestrator.prepare import prepare

    prepared = prepare(plan, devices)
    for tag in tags:
        check_tag(tag)
    return replace(prepared, tags=tuple(tags))


def _go_on(
    run: str, store: str, other: object, *, as_json: bool, quiet: bool, require_trust: bool, report: Path | None
) -> NoReturn:
    """Go on with a run; `other` is what the command line says besides, which is refused."""
    from orchestrator.prepare import prepare_resume

    _refuse_with_resume(other)
    with opened_store(store, create=False) as opened:
        prepared = prepare_resume(opened, run)
        conduct(
            prepared, opened, as_json=as_json, quiet=quiet, resumed=True, require_trust=require_trust, report=report
        )


def planned(path: Path | None, said: Overrides) -> Plan:
    """The plan of a file, or an empty one, with what the command line says."""
    from orchestrator.overrides import apply_overrides
    from orchestrator.plan import Plan, read_plan

    return apply_overrides(read_plan(path) if path else Plan(folder=Path.cwd()), said, Path.cwd())


def _refuse_with_resume(other: object) -> None:
    if other:
        raise UsageError(
            "--resume goes on with the plan and the devices the run began with and takes no other",
            remedy="leave out the options that say what to measure, or start a new run",
        )


def preview_run(prepared: Prepared, store: str, *, as_json: bool, report: Path | None = None) -> None:
    """What a run would do; touches no device."""
    from orchestrator.preview import preview

    refuse_report(report)
    seen = preview(prepared, store)
    if as_json:
        print_json("devbench.dry-run", seen.as_json())
        return
    from orchestrator.reports.terminal import console_for, show_dry_run

    show_dry_run(console_for(sys.stdout), seen)


def conduct(
    prepared: Prepared,
    store: Store,
    *,
    as_json: bool,
    quiet: bool,
    resumed: bool = False,
    require_trust: bool = False,
    report: Path | None = None,
) -> NoReturn:
    """Do a run, show what came of it, and exit by it."""
    from orchestrator.campaign import measure
    from orchestrator.grid import never_measured

    for note in prepared.notes:
        say(note)
    say_decaying(store, [device.name for device in prepared.devices])
    stop = threading.Event()
    with stopping(stop), observing(quiet) as observer:
        print(f"run {prepared.record.id} in {store.folder}", file=sys.stderr)
        results = measure(prepared, store, observer, stop, resumed=resumed)
    record = store.find_run(prepared.record.id)
    summary = None
    with closed_output_forgiven():
        if prepared.plan.measure.arms:
            keep_and_show_noise(store, record, as_json=as_json)
        elif not prepared.plan.collect.latency:
            show_passes(store, record, prepared.plan.collect, as_json=as_json)
        else:
            summary = show_stored(store, record, as_json=as_json)
        sys.stdout.flush()
    status = _verdict(record, results, never_measured(store.trials(record.id)))
    if report:
        write_report(store, record, report)
    if require_trust and summary and status in (0, _PARTLY_MEASURED):
        refuse_untrusted(summary)
    sys.exit(status)


@contextmanager
def stopping(stop: threading.Event) -> Iterator[None]:
    """Ctrl-C, SIGTERM and a closed terminal end the trial under way cleanly; a second one ends at once."""

    def ask(_signal: int, _frame: object) -> None:
        if stop.is_set():
            raise Interrupted("interrupted twice", remedy="`devbench run --resume` goes on where it was")
        stop.set()
        with suppress(OSError):  # a terminal that was closed takes no more words
            print("stopping: what was measured is kept", file=sys.stderr)

    wanted = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup means what it says
        wanted.append(signal.SIGHUP)
    previous = {number: signal.signal(number, ask) for number in wanted}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def observing(quiet: bool) -> Iterator[Observer]:
    from orchestrator.reports.progress import LiveProgress, PlainProgress, SilentProgress
    from orchestrator.reports.terminal import console_for

    if quiet:
        yield SilentProgress()
    elif sys.stderr.isatty():
        with LiveProgress(console_for(sys.stderr)) as live:
            yield live
    else:
        yield PlainProgress(sys.stderr)


@contextmanager
def closed_output_forgiven() -> Iterator[None]:
    """A reader that left, or a terminal that was closed, does not change what the run has to say by its exit code."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    with suppress(OSError):
        print(text, file=sys.stderr)


def _verdict(record: RunRecord, results: Sequence[DeviceResult], never: Sequence[str]) -> int:
    """The exit code of a run; what went wrong is said on standard error."""
    errors = [result.error for result in results if result.error]
    for error in errors:
        if not isinstance(error, Interrupted):
            say(error_text(error))
    if any(isinstance(error, Interrupted) for error in errors):
        say(f"interrupted; `devbench run --resume {record.id}` goes on")
        return Interrupted.exit_code
    is_anything = any(result.measured or result.profiled or result.traced for result in results)
    if errors and not is_anything:
        return errors[0].exit_code
    unprofiled = _say_unprofiled(record, results)
    untraced = _say_untraced(record, results)
    if not is_anything:
        say("nothing was measured; the reasons are above and in `devbench show`")
        return _PARTLY_MEASURED
    incomplete = [cell for result in results for cell in result.incomplete]
    if errors or incomplete:
        say(f"{len(incomplete)} cells were not measured as often as asked; see `devbench show`")
        return _PARTLY_MEASURED
    for setting in never:
        say(f"asked for, but measured on no device: {setting}")
    return _PARTLY_MEASURED if never or unprofiled or untraced else 0


def _say_unprofiled(record: RunRecord, results: Sequence[DeviceResult]) -> bool:
    """Which profiles are missing, and why; whether any is."""
    if any(result.profiled for result in results):
        say(f"operator profiles: `devbench show {record.id} --ops`")
    return _say_missing("operator profile", [passed for result in results for passed in result.unprofiled])


def _say_untraced(record: RunRecord, results: Sequence[DeviceResult]) -> bool:
    """The same for traces; one that is not whole can be looked at too."""
    missing = [passed for result in results for passed in result.untraced]
    if any(result.traced for result in results) or any(passed.artifacts for passed in missing):
        say(f"system traces: `devbench trace --open {record.id}`")
    return _say_missing("system trace", missing)


def _say_missing(what: str, missing: Sequence[CellPass]) -> bool:
    for reason in dict.fromkeys(passed.reason for passed in missing):
        count = sum(passed.reason == reason for passed in missing)
        say(f"{count} cells have no whole {what}: {reason}")
    return bool(missing)
