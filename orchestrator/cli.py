"""The command line: parse, call, render, exit code. What a command does lives elsewhere and is imported when used."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from orchestrator.errors import DevbenchError, HostError, Interrupted, UsageError, error_text

if TYPE_CHECKING:
    from orchestrator.campaign import DeviceResult, Observer
    from orchestrator.fleet import Device, Fleet
    from orchestrator.plan import Plan
    from orchestrator.prepare import Prepared
    from orchestrator.store import RunRecord, Store

DEFAULT_STORE = "devbench-results"
DEFAULT_FLEET = Path("devices.toml")
_PARTLY_MEASURED = 5
_BUG = 70

app = typer.Typer(
    name="devbench",
    help="Measures TFLite models on phones, boards and this machine, under controlled load, and says how far to trust "
    "each number.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
)

FleetOption = Annotated[
    Path | None, typer.Option("--fleet", help="The devices; devices.toml if it exists, otherwise this machine.")
]
StoreOption = Annotated[
    str, typer.Option("--store", envvar="DEVBENCH_STORE", help="The folder that keeps runs.", show_default=True)
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
DeviceOption = Annotated[list[str] | None, typer.Option("--device", help="Only this device; may be repeated.")]
TagOption = Annotated[list[str] | None, typer.Option("--tag", help="Only devices with this tag; may be repeated.")]


def main() -> NoReturn:
    """The entry point: every way out has an exit code of the contract."""
    sys.argv[1:] = _with_resume_default(sys.argv[1:])
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app()
    except DevbenchError as error:
        print(error_text(error), file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception:  # noqa: BLE001 - the last handler: a bug must not look like a verdict (exit 1)
        traceback.print_exc()
        print("error: this is a bug in devbench\n  try:   report it with the lines above", file=sys.stderr)
        sys.exit(_BUG)
    sys.exit(0)


def _interrupt(_signal: int, _frame: object) -> None:
    raise Interrupted("interrupted", remedy="run the command again")


def _with_resume_default(arguments: list[str]) -> list[str]:
    """`--resume` alone means the last run."""
    completed = []
    for index, argument in enumerate(arguments):
        completed.append(argument)
        following = arguments[index + 1 : index + 2]
        if argument == "--resume" and (not following or following[0].startswith("-")):
            completed.append("last")
    return completed


def _print_json(schema: str, content: dict[str, Any]) -> None:
    document = {"schema": schema, "version": 1, **content}
    print(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1))


def _version(wanted: bool) -> None:
    if wanted:
        from orchestrator import __version__

        print(f"devbench {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version.")
    ] = False,
) -> None:
    pass


# Reading what the user wrote


def _fleet(path: Path | None) -> Fleet:
    from orchestrator import registry
    from orchestrator.fleet import Device, Fleet, read_fleet

    if path is None and not DEFAULT_FLEET.exists():
        return Fleet(Path("(this machine)"), (Device("this-machine", "local"),))
    keys = {name: registry.transport(name).address_keys for name in registry.transport_names()}
    return read_fleet(path or DEFAULT_FLEET, keys, registry.platform_names())


def _devices(fleet: Path | None, names: list[str] | None, tags: list[str] | None) -> tuple[Device, ...]:
    return _fleet(fleet).select(names or [], tags or [])


@contextmanager
def _store(place: str, *, create: bool) -> Iterator[Store]:
    from orchestrator.store import open_store

    store = open_store(place, create=create)
    try:
        yield store
    finally:
        store.close()


# Commands


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to write.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Write a devices.toml and a commented plan.toml to start from."""
    from orchestrator.starter_files import write_starter_files

    for path in write_starter_files(folder, overwrite=force):
        print(path)
    print("next: devbench doctor, then devbench run --plan plan.toml", file=sys.stderr)


@app.command()
def devices(
    fleet: FleetOption = None, device: DeviceOption = None, tag: TagOption = None, as_json: JsonOption = False
) -> None:
    """Say what each device is: CPU, clusters, memory, sensors, runtimes, and what cannot be read."""
    from orchestrator.doctor import examine

    examined = examine(_devices(fleet, device, tag))
    if as_json:
        _print_json("devbench.devices", {"devices": [found.as_json() for found in examined]})
    else:
        from orchestrator.reports.terminal import console_for, show_devices

        show_devices(console_for(sys.stdout), examined)
    if not all(found.facts for found in examined):
        raise typer.Exit(4)


@app.command()
def doctor(
    fleet: FleetOption = None,
    device: DeviceOption = None,
    tag: TagOption = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Check this host and every device, and say what to do about what is wrong."""
    from orchestrator.doctor import examine, host_findings

    found_here = host_findings(Path(store))
    examined = examine(_devices(fleet, device, tag))
    if as_json:
        content = {"host": [finding.as_json() for finding in found_here]}
        _print_json("devbench.doctor", content | {"devices": [found.as_json() for found in examined]})
    else:
        from orchestrator.reports.terminal import console_for, show_devices, show_findings

        console = console_for(sys.stdout)
        console.print("this host" + ("" if found_here else ": nothing to mend"))
        show_findings(console, found_here)
        show_devices(console, examined)
    if not all(found.is_fit for found in examined):
        raise typer.Exit(4)


@app.command()
def run(
    fleet: FleetOption = None,
    plan: Annotated[Path | None, typer.Option("--plan", help="What to measure (plan.toml).")] = None,
    device: DeviceOption = None,
    tag: TagOption = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="A model or a glob; may be repeated.")] = None,
    runner: Annotated[str | None, typer.Option("--runner", help="litert_runner, litert_runner:zero-copy")] = None,
    delegate: Annotated[str | None, typer.Option("--delegate", help="xnnpack,cpu")] = None,
    threads: Annotated[str | None, typer.Option("--threads", help="1,2,4 or auto")] = None,
    affinity: Annotated[str | None, typer.Option("--affinity", help="any,big,mid,little or masks")] = None,
    load: Annotated[str | None, typer.Option("--load", help="idle,cpu:2@50,mem:1,app,model:FILE or auto")] = None,
    blocks: Annotated[str | None, typer.Option("--blocks", help="MIN:MAX trials a cell")] = None,
    precision: Annotated[str | None, typer.Option("--precision", help="Stop a cell when this precise: 2%")] = None,
    budget: Annotated[str | None, typer.Option("--budget", help="Stop cleanly after this long: 20m")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="The order of the trials.")] = None,
    profile: Annotated[bool, typer.Option("--profile", help="Operator profiles, in a pass of their own.")] = False,
    trace: Annotated[bool, typer.Option("--trace", help="System traces, in a pass of their own.")] = False,
    store: StoreOption = DEFAULT_STORE,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="[RUN]", help="Go on with a run (the last one if none is named).")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show cells, order and time; touch no device.")] = False,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")] = False,
) -> None:
    """Measure models on every device of the fleet."""
    from orchestrator.plan import Overrides

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
        seed=seed,
        profile=profile,
        trace=trace,
    )
    if resume is not None:
        _refuse_with_resume(said, plan, dry_run)
        with _store(store, create=False) as opened:
            from orchestrator.prepare import prepare_resume

            _measure(prepare_resume(opened, resume), opened, as_json=as_json, quiet=quiet, resumed=True)
        return
    from orchestrator.prepare import prepare

    prepared = prepare(_plan(plan, said), _devices(fleet, device, tag))
    if dry_run:
        _dry_run(prepared, store, as_json=as_json)
        return
    with _store(store, create=True) as opened:
        _measure(prepared, opened, as_json=as_json, quiet=quiet, resumed=False)


def _plan(path: Path | None, said: Any) -> Plan:
    from orchestrator.plan import Plan, apply_overrides, read_plan

    return apply_overrides(read_plan(path) if path else Plan(folder=Path.cwd()), said, Path.cwd())


def _refuse_with_resume(said: Any, plan: Path | None, dry_run: bool) -> None:
    from orchestrator.plan import Overrides

    if said != Overrides() or plan is not None or dry_run:
        raise UsageError(
            "--resume goes on with the plan the run began with and takes no other",
            remedy="leave out the options that say what to measure, or start a new run",
        )


def _dry_run(prepared: Prepared, store: str, *, as_json: bool) -> None:
    from orchestrator.preview import preview

    seen = preview(prepared, store)
    if as_json:
        _print_json("devbench.dry-run", seen.as_json())
        return
    from orchestrator.reports.terminal import console_for, show_dry_run

    show_dry_run(console_for(sys.stdout), seen)


def _measure(prepared: Prepared, store: Store, *, as_json: bool, quiet: bool, resumed: bool) -> None:
    from orchestrator.campaign import measure

    stop = threading.Event()
    with _stopping(stop), _observer(quiet) as observer:
        print(f"run {prepared.record.id} in {store.folder}", file=sys.stderr)
        results = measure(prepared, store, observer, stop, resumed=resumed)
    record = store.find_run(prepared.record.id)
    _show(store, record, as_json=as_json)
    sys.exit(_verdict(record, results))


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the trial under way cleanly; a second one ends at once."""

    def ask(_signal: int, _frame: object) -> None:
        if stop.is_set():
            raise Interrupted("interrupted twice", remedy="`devbench run --resume` goes on where it was")
        stop.set()
        print("stopping: what was measured is kept", file=sys.stderr)

    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def _observer(quiet: bool) -> Iterator[Observer]:
    from orchestrator.reports.progress import LiveProgress, PlainProgress, SilentProgress
    from orchestrator.reports.terminal import console_for

    if quiet:
        yield SilentProgress()
    elif sys.stderr.isatty():
        with LiveProgress(console_for(sys.stderr)) as live:
            yield live
    else:
        yield PlainProgress(sys.stderr)


def _verdict(record: RunRecord, results: Sequence[DeviceResult]) -> int:
    """The exit code of a run; what went wrong is said on standard error."""
    errors = [result.error for result in results if result.error]
    for error in errors:
        if not isinstance(error, Interrupted):
            print(error_text(error), file=sys.stderr)
    if record.status == "interrupted":
        print(f"interrupted; `devbench run --resume {record.id}` goes on", file=sys.stderr)
        return Interrupted.exit_code
    if errors and not any(result.measured for result in results):
        return errors[0].exit_code
    if not any(result.measured for result in results):
        print("nothing was measured; the reasons are above and in `devbench show`", file=sys.stderr)
        return _PARTLY_MEASURED
    incomplete = [cell for result in results for cell in result.incomplete]
    if errors or incomplete:
        print(f"{len(incomplete)} cells were not measured as often as asked; see `devbench show`", file=sys.stderr)
        return _PARTLY_MEASURED
    return 0


def _show(store: Store, record: RunRecord, *, as_json: bool) -> None:
    from orchestrator.analysis.summary import summarise

    summary = summarise(store.trials(record.id))
    sessions = store.sessions(record.id)
    if as_json:
        from orchestrator.reports.document import run_document

        _print_json("devbench.run", run_document(record, sessions, summary))
        return
    from orchestrator.reports.terminal import console_for, show_run

    show_run(console_for(sys.stdout), record, sessions, summary)


@app.command()
def show(
    run: Annotated[str, typer.Argument(help="A run, the start of its id, `last`, or a file of trials.")] = "last",
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Show a run: latencies with intervals, variability, speed-up, load sensitivity, and the verdict."""
    if Path(run).is_file():
        _show_file(Path(run), as_json=as_json)
        return
    with _store(store, create=False) as opened:
        _show(opened, opened.find_run(run), as_json=as_json)


def _show_file(path: Path, *, as_json: bool) -> None:
    from orchestrator.analysis.summary import summarise
    from orchestrator.exchange import read_file

    summary = summarise(list(read_file(path)))
    if as_json:
        _print_json("devbench.run", {"run": None, "file": str(path), **summary.as_json()})
        return
    from orchestrator.reports.terminal import console_for, show_run

    show_run(console_for(sys.stdout), None, [], summary)


@app.command(name="export")
def export_trials(
    run: Annotated[str, typer.Argument(help="A run, the start of its id, or `last`.")] = "last",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; standard output if none.")] = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Write a run's trials as JSON lines, every sample included."""
    from orchestrator.exchange import as_line, write_file

    with _store(store, create=False) as opened:
        trials = opened.trials(opened.find_run(run).id)
    if output is None:
        for trial in trials:
            print(as_line(trial))
    else:
        write_file(output, trials)
        print(f"{len(trials)} trials in {output}", file=sys.stderr)


@app.command(name="import")
def import_trials(
    file: Annotated[Path, typer.Argument(help="JSON lines, as export writes them.")],
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Take trials from a file into the store; those that are there already are passed over."""
    from orchestrator.exchange import read_file

    trials = list(read_file(file))
    with _store(store, create=True) as opened:
        added = opened.take_in(trials)
    if as_json:
        _print_json("devbench.import", {"read": len(trials), "added": added})
    else:
        runs = ", ".join(sorted({trial.run for trial in trials})) or "no run"
        print(f"{added} of {len(trials)} trials added ({runs})")


agent_app = typer.Typer(help="The programs that run on devices.", rich_markup_mode=None, no_args_is_help=True)
app.add_typer(agent_app, name="agent")


@agent_app.command(name="show")
def agent_show(as_json: JsonOption = False) -> None:
    """List the device agents of this installation."""
    from device_agents import agent_binary
    from orchestrator.content_hash import sha256

    rows = [
        {"machine": machine, "path": str(path), "bytes": path.stat().st_size, "sha256": sha256(path)}
        for machine in ("x86_64", "aarch64", "armv7l")
        if (path := agent_binary(machine))
    ]
    if as_json:
        _print_json("devbench.agents", {"agents": rows})
        return
    for row in rows:
        print(f"{row['machine']:8} {row['bytes']:>7} bytes  {str(row['sha256'])[:12]}  {row['path']}")
    if not rows:
        print("none is built; `devbench agent build` builds them", file=sys.stderr)


@agent_app.command(name="build")
def agent_build() -> None:
    """Build the device agents from their source (needs the ziglang package)."""
    from device_agents.build_agents import BIN, AgentBuildError, build_agents

    try:
        built = build_agents(BIN)
    except AgentBuildError as error:
        raise HostError(error.fact, remedy=error.remedy) from error
    for target, path in built.items():
        print(f"{target:20} {path}")
