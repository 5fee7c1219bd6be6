"""The command line: parse, call, render, exit code. What a command does lives elsewhere and is imported when used."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import traceback
from typing import Annotated, NoReturn

import typer

from orchestrator.cli import (
    binaries,
    bisection,
    bundles,
    compare,
    devices,
    gate,
    health,
    keeping,
    measure,
    nightly,
    planning,
    profiles,
    report,
    reproduction,
    results,
    timelines,
    traces,
)
from orchestrator.errors import DevbenchError, HostError, Interrupted, error_text

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

app.command()(devices.init)
app.command()(devices.devices)
app.command()(devices.doctor)
app.command()(health.health)
app.command()(measure.run)
app.command()(planning.calibrate)
app.command(name="plan")(planning.plan_command)
app.command()(profiles.profile)
app.command()(traces.trace)
app.command()(results.show)
app.command()(timelines.timeline)
app.command()(report.report)
app.command()(compare.compare)
app.command()(compare.history)
app.command()(gate.gate)
app.command()(nightly.nightly)
app.command()(reproduction.reproduce)
app.command()(bisection.bisect)
app.command(name="export")(results.export_trials)
app.command(name="import")(results.import_trials)
app.add_typer(keeping.runs_app, name="runs")
app.command()(keeping.prune)
app.command()(bundles.bundle)
app.command()(bundles.unbundle)
app.add_typer(devices.agent_app, name="agent")
app.add_typer(binaries.binaries_app, name="binaries")


def main() -> NoReturn:
    """The entry point: every way out has an exit code of the contract."""
    sys.argv[1:] = _with_defaults(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a letter is no reason to fail
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app()
        sys.stdout.flush()
    except DevbenchError as error:
        print(error_text(error), file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        _refuse_output(error)
    except Exception:  # noqa: BLE001 - the last handler: a bug must not look like a verdict (exit 1)
        _report_bug()
    sys.exit(0)


def _refuse_output(error: OSError) -> NoReturn:
    """Results that cannot be written are the host's trouble; any other such error should have been translated."""
    if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG):
        _report_bug()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print(f"error: cannot write the results: {error.strerror}\n  try:   write them elsewhere", file=sys.stderr)
    sys.exit(HostError.exit_code)


def _report_bug() -> NoReturn:
    traceback.print_exc()
    print("error: this is a bug in devbench\n  try:   report it with the lines above", file=sys.stderr)
    sys.exit(_BUG)


def _interrupt(_signal: int, _frame: object) -> None:
    raise Interrupted("interrupted", remedy="run the command again")


_ALONE = {"--resume": "last", "--trace": "every", "--open": "last"}
"""What options mean that stand alone."""


def _with_defaults(arguments: list[str]) -> list[str]:
    """Options whose value may be left out get it: `--resume` alone means the last run."""
    completed = []
    for index, argument in enumerate(arguments):
        completed.append(argument)
        following = arguments[index + 1 : index + 2]
        if argument in _ALONE and (not following or following[0].startswith("-")):
            completed.append(_ALONE[argument])
    return completed


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
