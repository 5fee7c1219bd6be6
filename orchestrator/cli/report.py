"""The command that writes a run down for others: report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.options import DEFAULT_STORE, StoreOption, let_readers_leave, opened_store
from orchestrator.errors import HostError, UsageError

if TYPE_CHECKING:
    from orchestrator.store import RunRecord, Store

FORMATS = ("html", "markdown", "csv")
_ENDINGS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".csv": "csv"}
_STANDARD_OUTPUT = "-"


def report(
    run: Annotated[str, typer.Argument(help="A run, the start of its id, a tag, or `last`.")] = "last",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file, or - for standard output; html goes to a file of the run's name."),
    ] = None,
    format_name: Annotated[
        str | None, typer.Option("--format", help="html, markdown or csv; by the file's ending if not said.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="RUN",
            help="A run, a tag, `last` or `last-good` before it, to compare every cell with.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", help="Compare although this field differs; may be repeated.")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Write a run as one self-contained HTML file, as Markdown for a pull request, or as CSV."""
    if ignore and baseline is None:
        raise UsageError("--ignore is about a comparison", remedy="say --baseline RUN with it")
    chosen = _format(format_name, output)
    if Path(run).is_file():
        raise UsageError(
            f"{run} is a file, and a report is of a run in the store", remedy=f"`devbench import {run}` first"
        )
    from orchestrator.analysis.sides import checked_ignored

    with opened_store(store, create=False) as opened:
        record = opened.find_run(run)
        base = opened.find_baseline(baseline, record) if baseline is not None else None
        text = _written(opened, record, base, checked_ignored(ignore or []), chosen)
    if output is None and chosen == "html":
        output = Path(f"devbench-{_file_name(record.id)}.html")
    if output is None or str(output) == _STANDARD_OUTPUT:
        let_readers_leave()
        sys.stdout.write(text)
    else:
        _keep(output, text)


def write_report(store: Store, record: RunRecord, path: Path) -> None:
    """What `run --report FILE` does at its end."""
    _keep(path, _written(store, record, None, (), _format(None, path)))


def _format(said: str | None, output: Path | None) -> str:
    from orchestrator.settings import suggestion

    if said is not None:
        if said not in FORMATS:
            raise UsageError(f'--format: "{said}" is unknown', remedy=suggestion(said, FORMATS))
        return said
    if output is None or str(output) == _STANDARD_OUTPUT:
        return "html"
    found = _ENDINGS.get(output.suffix.lower())
    if found is None:
        raise UsageError(f"{output}: its ending does not say what to write", remedy="end it in .html, .md or .csv")
    return found


def _written(store: Store, record: RunRecord, base: RunRecord | None, ignored: tuple[str, ...], chosen: str) -> str:
    from orchestrator.reports.run_content import gather

    content = gather(store, record, baseline=base, ignored=ignored)
    if chosen == "csv":
        from orchestrator.reports.run_csv import run_csv

        return run_csv(content)
    if chosen == "markdown":
        from orchestrator.reports.run_markdown import run_markdown

        return run_markdown(content)
    from orchestrator.reports.page.page import page

    return page(content)


def _keep(path: Path, text: str) -> None:
    from orchestrator.whole_files import write_whole

    content = text.encode("utf-8", "backslashreplace")
    try:
        write_whole(path, content)
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}", remedy="name another file with -o") from error
    print(f"report: {path} ({len(content) / 1e6:.1f} MB)", file=sys.stderr)


def _file_name(run_id: str) -> str:
    """A name that every file system and mail program takes."""
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "" for letter in run_id)


def _checked(path: Path | None) -> Path | None:
    """The same file, once it is known that a report can go there: nobody wants to hear that after the run."""
    if path is None:
        return None
    _format(None, path)
    if path.is_dir():
        raise UsageError(f"--report: {path} is a folder", remedy="name a file in it")
    return path


ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        callback=_checked,
        help="Write a report at the end: .html, .md or .csv, by its ending.",
    ),
]
