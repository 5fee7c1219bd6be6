"""Commands about what was measured: show, export, import."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.options import (
    DEFAULT_STORE,
    JsonOption,
    RequireTrustOption,
    StoreOption,
    let_readers_leave,
    opened_store,
    print_json,
    takes_every_letter,
)
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.analysis.summary import RunSummary
    from orchestrator.store import RunRecord, Store

JUDGED_NO = 1


def show_stored(store: Store, record: RunRecord, *, as_json: bool) -> RunSummary:
    """Shows a run of the store, and gives what it says."""
    from orchestrator.analysis.estimate import LEVEL
    from orchestrator.analysis.summary import summarise
    from orchestrator.plan import measure_from_json
    from orchestrator.schedule import look_level

    stated = record.plan.get("measure")
    level = look_level(measure_from_json(stated)) if stated else LEVEL
    summary = summarise(store.trials(record.id), level=level)
    sessions, stops = store.sessions(record.id), store.stops(record.id)
    if as_json:
        from orchestrator.reports.document import run_document

        print_json("devbench.run", run_document(record, sessions, summary, stops))
        return summary
    from orchestrator.reports.terminal import console_for, show_run

    show_run(console_for(sys.stdout), record, sessions, summary, stops)
    return summary


def refuse_untrusted(summary: RunSummary) -> None:
    """Ends with 1 where a cell is not trusted; what to do about it was shown."""
    untrusted = summary.untrusted
    if untrusted:
        plural = "1 cell is" if len(untrusted) == 1 else f"{len(untrusted)} cells are"
        print(f"{plural} not trusted, of {len(summary.cells)}; the reasons are in `devbench show`", file=sys.stderr)
        sys.exit(JUDGED_NO)
    if not summary.cells:
        print("nothing was measured, so nothing can be trusted", file=sys.stderr)
        sys.exit(JUDGED_NO)


def show(
    run: Annotated[str, typer.Argument(help="A run, the start of its id, `last`, or a file of trials.")] = "last",
    store: StoreOption = DEFAULT_STORE,
    require_trust: RequireTrustOption = False,
    as_json: JsonOption = False,
    ops: Annotated[bool, typer.Option("--ops", help="Its operator profiles instead.")] = False,
    cell: Annotated[
        str | None, typer.Option("--cell", metavar="CELL", help="With --ops: only cells of this id, or like this word.")
    ] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="RUN", help="With --ops: where this earlier run's differ.")
    ] = None,
) -> None:
    """Show a run: latencies with intervals, variability, speed-up, load sensitivity, and the verdict."""
    let_readers_leave()
    if not ops and (cell or against):
        raise UsageError("--cell and --against are about operator profiles", remedy="say --ops with them")
    if ops:
        from orchestrator.cli.operators import show_ops

        with opened_store(store, create=False) as opened:
            show_ops(opened, opened.find_run(run), cell=cell, against=against, as_json=as_json)
        return
    if Path(run).is_file():
        summary = _show_file(Path(run), as_json=as_json)
    else:
        with opened_store(store, create=False) as opened:
            summary = show_stored(opened, opened.find_run(run), as_json=as_json)
    if require_trust:
        refuse_untrusted(summary)


def _show_file(path: Path, *, as_json: bool) -> RunSummary:
    from orchestrator.analysis.summary import summarise
    from orchestrator.exchange import read_file

    summary = summarise(list(read_file(path)))
    if as_json:
        print_json("devbench.run", {"run": None, "file": str(path), **summary.as_json()})
        return summary
    from orchestrator.reports.terminal import console_for, show_run

    show_run(console_for(sys.stdout), None, [], summary, {})
    return summary


def export_trials(
    run: Annotated[str, typer.Argument(help="A run, the start of its id, or `last`.")] = "last",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; standard output if none.")] = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Write a run's trials as JSON lines, every sample included."""
    from orchestrator.exchange import as_line, write_file

    let_readers_leave()
    with opened_store(store, create=False) as opened:
        trials = opened.trials(opened.find_run(run).id)
    if output is None:
        for trial in trials:
            print(as_line(trial, ascii_only=not takes_every_letter()))
    else:
        write_file(output, trials)
        print(f"{len(trials)} trials in {output}", file=sys.stderr)


def import_trials(
    file: Annotated[Path, typer.Argument(help="JSON lines, as export writes them.")],
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Take trials from a file into the store; those that are there already are passed over."""
    from orchestrator.clock import SYSTEM, timestamp
    from orchestrator.exchange import read_file

    trials = list(read_file(file))
    with opened_store(store, create=True) as opened:
        added = opened.take_in(trials, timestamp(SYSTEM.now()))
    if as_json:
        print_json("devbench.import", {"read": len(trials), "added": added})
    else:
        runs = ", ".join(sorted({trial.run for trial in trials})) or "no run"
        print(f"{added} of {len(trials)} trials added ({runs})")
