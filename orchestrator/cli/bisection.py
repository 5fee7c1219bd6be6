"""The command that finds which build or model brought a regression: bisect."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.compare import metric_named
from orchestrator.cli.measure import closed_output_forgiven, observing, planned, stopping
from orchestrator.cli.options import (
    DEFAULT_STORE,
    AffinityOption,
    BudgetOption,
    DelegateOption,
    DuelBlocksOption,
    JsonOption,
    LoadOption,
    MetricOption,
    PlanOption,
    QuietOption,
    RunnerOption,
    SeedOption,
    StoreOption,
    ThreadsOption,
    ThresholdOption,
    WhereFleetOption,
    WhereOption,
    chosen_devices,
    opened_store,
    print_json,
    share,
)
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.bisect_duels import Conduct, Setting
    from orchestrator.bisect_items import Source
    from orchestrator.bisect_log import BisectLog
    from orchestrator.bisection import Ended
    from orchestrator.contest import Side
    from orchestrator.fleet import Device
    from orchestrator.overrides import Overrides
    from orchestrator.prepare import Prepared
    from orchestrator.store import Store

_NO_DIFFERENCE = 1
_UNDECIDED = 5


FilesArgument = Annotated[
    list[str] | None, typer.Argument(help="The files in order: a good one first, a bad one last.", metavar="[FILE]...")
]
ModelsFlag = Annotated[bool, typer.Option("--models", help="They are models.")]
BinariesFlag = Annotated[bool, typer.Option("--binaries", help="They are builds of the runner.")]
RoleOption = Annotated[
    str | None, typer.Option("--role", help="With --binaries: which of the runner's files; `runner` if unsaid.")
]
CommandOption = Annotated[
    str | None, typer.Option("--command", help="Instead of files: makes the one of a revision, written {}.")
]
ProducesOption = Annotated[str | None, typer.Option("--produces", help="With --command: where it leaves the file.")]
RevisionsOption = Annotated[
    str | None, typer.Option("--revisions", help="With --command: a file with one a line, or a list with commas.")
]
BuildTimeoutOption = Annotated[
    str | None, typer.Option("--build-timeout", help="With --command: how long it may take; 1h if unsaid.")
]
RunOption = Annotated[str | None, typer.Option("--run", help="What to measure: a cell of this run, …")]
CellOption = Annotated[str | None, typer.Option("--cell", help="… by its id, or words that fit only one.")]
OneModelOption = Annotated[str | None, typer.Option("--model", help="What to measure, without --run.")]
LogOption = Annotated[Path | None, typer.Option("--log", help="Where decisions go; in the store if unsaid.")]
ResumeOption = Annotated[Path | None, typer.Option("--resume", metavar="LOG", help="Go on with this log.")]


@dataclass(frozen=True)
class _Wanted:
    """What the command line says is searched."""

    files: tuple[str, ...] = ()
    models: bool = False
    binaries: bool = False
    of_role: str | None = None
    command: str | None = None
    produces: str | None = None
    revisions: str | None = None
    build_timeout: str | None = None

    @property
    def role(self) -> str:
        """What differs from item to item."""
        from orchestrator.bisect_items import MODEL

        if self.models == self.binaries:
            raise UsageError("what is searched?", remedy="say either --models or --binaries, with files or --command")
        if self.models and self.of_role:
            raise UsageError("--role is about --binaries", remedy="leave it out")
        return MODEL if self.models else self.of_role or "runner"


def bisect(
    files: FilesArgument = None,
    models: ModelsFlag = False,
    binaries: BinariesFlag = False,
    role: RoleOption = None,
    command: CommandOption = None,
    produces: ProducesOption = None,
    revisions: RevisionsOption = None,
    build_timeout: BuildTimeoutOption = None,
    run: RunOption = None,
    cell: CellOption = None,
    plan: PlanOption = None,
    model: OneModelOption = None,
    runner: RunnerOption = None,
    delegate: DelegateOption = None,
    threads: ThreadsOption = None,
    affinity: AffinityOption = None,
    load: LoadOption = None,
    device: WhereOption = None,
    fleet: WhereFleetOption = None,
    blocks: DuelBlocksOption = None,
    threshold: ThresholdOption = None,
    metric: MetricOption = None,
    budget: BudgetOption = None,
    log: LogOption = None,
    resume: ResumeOption = None,
    seed: SeedOption = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find the first of a list of builds or models that is slower, on one phone; each step an interleaved duel."""
    from orchestrator.overrides import Overrides

    said = Overrides(
        models=(model,) if model else (),
        runner=runner,
        delegates=delegate,
        threads=threads,
        affinity=affinity,
        loads=load,
    )
    wanted = _Wanted(tuple(files or ()), models, binaries, role, command, produces, revisions, build_timeout)
    measured = _Measured(said, run, cell, plan, device, fleet)
    how = _How(blocks, threshold, metric, seed, log)
    if resume is not None and (wanted, measured, how) != (_Wanted(), _Measured(Overrides()), _How()):
        raise UsageError(
            "--resume goes on with what was begun", remedy="only --budget may be said with it, for a new total"
        )
    with opened_store(store, create=resume is None) as opened:
        found = _resumed(opened, resume, budget) if resume else _begun(opened, wanted, measured, how, budget)
        _search(opened, *found, as_json=as_json, quiet=quiet)


@dataclass(frozen=True)
class _Measured:
    """What the command line says is measured, and where."""

    said: Overrides
    run: str | None = None
    cell: str | None = None
    plan: Path | None = None
    device: str | None = None
    fleet: Path | None = None


@dataclass(frozen=True)
class _How:
    """How carefully."""

    blocks: str | None = None
    threshold: str | None = None
    metric: str | None = None
    seed: int | None = None
    log: Path | None = None


def _begun(
    store: Store, wanted: _Wanted, measured: _Measured, how: _How, budget: str | None
) -> tuple[BisectLog, Setting]:
    from orchestrator.bisect_duels import Setting
    from orchestrator.bisect_items import MODEL
    from orchestrator.bisect_log import BisectLog
    from orchestrator.bisect_start import begin_json, default_log
    from orchestrator.duel import enough_blocks
    from orchestrator.overrides import blocks_said, budget_said

    role, names = wanted.role, _names(wanted)
    blocks = enough_blocks(blocks_said(how.blocks or "8:40"))
    base, where = _base(store, wanted, measured, names)
    if role not in (MODEL, "runner", *base.runner_files):
        roles = ", ".join(base.runner_files)
        raise UsageError(f"--role: {base.cell.runner} has no file {role}", remedy=f"it has: {roles}")
    setting = Setting(
        device=where,
        base=base,
        names=names,
        role=role,
        source=_source(wanted, base),
        blocks=blocks,
        threshold=share(how.threshold or "3%", "--threshold"),
        metric=metric_named(how.metric or "p50"),
        budget_s=budget_said(budget) if budget else None,
        seed=how.seed,
    )
    return BisectLog.begin(how.log or default_log(store), begin_json(setting)), setting


def _names(wanted: _Wanted) -> tuple[str, ...]:
    from orchestrator.bisect_items import read_revisions

    if wanted.command is None:
        if wanted.produces or wanted.revisions or wanted.build_timeout:
            belong = "--produces, --revisions and --build-timeout belong to --command"
            raise UsageError(belong, remedy="give --command, too")
        if len(wanted.files) < 2:
            raise UsageError(f"{len(wanted.files)} files to search", remedy="list a good one, others, and a bad one")
        return tuple(str(Path(name).absolute()) for name in wanted.files)
    if wanted.files or not wanted.revisions or not wanted.produces:
        raise UsageError(
            "--command takes --revisions and --produces, and no files",
            remedy="--command 'make build REV={}' --produces out/benchmark_model --revisions revisions.txt",
        )
    if "{}" not in wanted.command:
        raise UsageError("--command has no {} for the revision", remedy="write it like 'make build REV={}'")
    return read_revisions(wanted.revisions)


def _source(wanted: _Wanted, base: Side) -> Source:
    from orchestrator.bisect_items import GivenFiles, MadeByCommand, check_of
    from orchestrator.overrides import duration_said

    check = check_of(wanted.role, base.cell.runner)
    if wanted.command is not None and wanted.produces is not None:
        timeout_s = duration_said(wanted.build_timeout or "1h", "--build-timeout")
        return MadeByCommand(wanted.command, wanted.produces, timeout_s, check)
    for name in wanted.files:
        if not Path(name).is_file():
            raise UsageError(f"{name}: no such file", remedy="check the list")
        check(Path(name))
    return GivenFiles()


def _base(store: Store, wanted: _Wanted, measured: _Measured, names: Sequence[str]) -> tuple[Side, Device]:
    """What is measured with each item in its place, and where."""
    from dataclasses import replace

    from orchestrator.bisect_items import MODEL
    from orchestrator.kept_sides import side_of_plan
    from orchestrator.overrides import Overrides
    from orchestrator.reproduce import device_of, measured_cell

    listed = chosen_devices(measured.fleet, None, None) if measured.fleet else None
    if measured.run is not None:
        if measured.cell is None or measured.plan or measured.said != Overrides():
            raise UsageError("--run takes --cell, and no plan of its own", remedy="name the cell of that run")
        from orchestrator.kept_sides import side_of

        record, cell = measured_cell(store, measured.run, measured.cell, measured.device)
        return side_of(store, record.id, cell), device_of(record, measured.device, cell, listed)
    devices = chosen_devices(measured.fleet, [measured.device] if measured.device else None, None)
    if len(devices) != 1:
        names_of = ", ".join(device.name for device in devices)
        raise UsageError(f"the fleet has {len(devices)} devices: {names_of}", remedy="choose one with --device")
    said = measured.said
    if wanted.role == MODEL:
        if said.models or wanted.command:
            raise UsageError(
                "--models are what is measured, and with --command a run has to say how",
                remedy="leave --model out; with --command give --run and --cell",
            )
        said = replace(said, models=(str(Path(names[0]).resolve()),))
    plan = planned(measured.plan, said)
    return side_of_plan(store, plan, devices[0], has_runner=wanted.role == "runner"), devices[0]


def _resumed(store: Store, path: Path, budget: str | None) -> tuple[BisectLog, Setting]:
    from orchestrator.bisect_log import BisectLog
    from orchestrator.bisect_start import setting_from_json
    from orchestrator.overrides import budget_said

    log = BisectLog.open(path)
    return log, setting_from_json(store, log.first, budget_s=budget_said(budget) if budget else None)


def _search(store: Store, log: BisectLog, setting: Setting, *, as_json: bool, quiet: bool) -> None:
    from orchestrator.bisect_duels import DuelReferee
    from orchestrator.bisection import Bisection

    print(f"{len(setting.names)} items on {setting.device.name}; log {log.path}", file=sys.stderr)
    ended = Bisection(setting.names, DuelReferee(store, log, setting, _conduct(store, quiet))).run()
    with closed_output_forgiven():
        _show(ended, log, setting, as_json=as_json)
        sys.stdout.flush()
    if ended.is_spent:
        print(f"`devbench bisect --resume {log.path} --budget MORE` goes on", file=sys.stderr)
    sys.exit(_status(ended))


def _conduct(store: Store, quiet: bool) -> Conduct:
    from orchestrator.duel import conducted

    def conduct(prepared: Prepared, resumed: bool) -> Any:
        stop = threading.Event()
        with stopping(stop), observing(quiet) as observer:
            if not quiet:
                print(f"{_against(prepared)}: run {prepared.record.id}", file=sys.stderr)
            return conducted(prepared, store, observer, stop, resumed=resumed)

    return conduct


def _against(prepared: Prepared) -> str:
    assert prepared.duel is not None
    seats = prepared.duel.contests[0].seats
    return " against ".join(f"{Path(seat.name).name} ({arm})" for arm, seat in reversed(list(seats.items())))


def _show(ended: Ended, log: BisectLog, setting: Setting, *, as_json: bool) -> None:
    from orchestrator.reports.bisection import bisection_document, show_bisection

    if as_json:
        print_json("devbench.bisect", bisection_document(ended, setting.names) | {"log": str(log.path)})
        return
    from orchestrator.reports.terminal import console_for

    show_bisection(console_for(sys.stdout), ended, setting.names)


def _status(ended: Ended) -> int:
    from orchestrator.bisection import Result

    return {Result.FOUND: 0, Result.NO_DIFFERENCE: _NO_DIFFERENCE}.get(ended.result, _UNDECIDED)
