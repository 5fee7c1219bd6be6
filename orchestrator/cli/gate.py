"""The command that judges a night: gate."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.measure import observing, say, stopping
from orchestrator.cli.options import (
    DEFAULT_STORE,
    FleetOption,
    JsonOption,
    QuietOption,
    StoreOption,
    opened_store,
    print_json,
    read_fleet_devices,
    seconds,
    share,
)
from orchestrator.errors import DeviceError, UsageError
from orchestrator.settings import suggestion

if TYPE_CHECKING:
    from orchestrator.analysis.gate_words import GateResult
    from orchestrator.store import RunRecord, Store

REGRESSION, PARTLY_MEASURED = 1, 5
FAIL_ON = ("confirmed", "suspected")

BaselineOption = Annotated[
    str, typer.Option("--baseline", metavar="REF", help="A run, `last`, `last-good`, a tag or a date.")
]
FailOnOption = Annotated[str, typer.Option("--fail-on", help="confirmed, or suspected to fail without stage two.")]
ThresholdOption = Annotated[str, typer.Option(help="Changes below this do not matter.")]
JunitOption = Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML to this file.")]
MarkdownOption = Annotated[Path | None, typer.Option("--markdown", help="Write a short Markdown report to this file.")]
GithubOption = Annotated[bool, typer.Option("--github", help="Annotations and step summary of GitHub Actions.")]


def gate(
    run: Annotated[str, typer.Argument(help="A run, the start of its id, a tag, a date, or `last`.")] = "last",
    baseline: BaselineOption = "last-good",
    confirm: Annotated[
        bool | None,
        typer.Option("--confirm/--no-confirm", help="Run suspects again, interleaved; if unsaid, where possible."),
    ] = None,
    fail_on: FailOnOption = "confirmed",
    threshold: ThresholdOption = "3%",
    budget: Annotated[str | None, typer.Option("--budget", help="Device time for stage two: 30m")] = None,
    fleet: FleetOption = None,
    junit: JunitOption = None,
    markdown: MarkdownOption = None,
    github: GithubOption = False,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Is this night slower than BASELINE? Suspects are run again, interleaved; exit 1 if a regression is confirmed."""
    from orchestrator.gating import concluded, judge, keep

    margin, budget_s = share(threshold, "--threshold"), seconds(budget, "--budget")
    check_fail_on(fail_on)
    if confirm is False and budget:
        raise UsageError("--budget is for stage two, and --no-confirm leaves it out", remedy="say one of them")
    with opened_store(store, create=False) as opened:
        record = opened.find_run(run)
        result = judge(opened, record, baseline, threshold=margin, fail_on=fail_on)
        if confirm is not False:
            result = confirmed(opened, result, fleet, budget_s=budget_s, quiet=quiet)
        result, standing = concluded(opened, result)
        keep(opened, result, standing)
        write_reports(result, record, junit=junit, markdown=markdown)
    show(result, as_json=as_json)
    if github:
        tell_github(result, sys.stderr if as_json else sys.stdout)
    sys.stdout.flush()
    raise typer.Exit(status_of(result, must_confirm=confirm is True))


def check_fail_on(fail_on: str) -> None:
    if fail_on not in FAIL_ON:
        raise UsageError(f'--fail-on: "{fail_on}" is unknown', remedy=suggestion(fail_on, FAIL_ON))


def confirmed(
    store: Store, result: GateResult, fleet: Path | None, *, budget_s: float | None, quiet: bool
) -> GateResult:
    """Stage two, with progress; Ctrl-C ends it cleanly."""
    from orchestrator.analysis.gate_words import Verdict
    from orchestrator.confirming import confirm

    suspects = result.of(Verdict.SUSPECTED)
    if not suspects:
        return result
    devices = {device.name: device for device in read_fleet_devices(fleet)} if fleet else {}
    say(f"stage two: suspects are run again ({len(suspects)}), interleaved with the baseline's bytes")
    stop = threading.Event()
    with stopping(stop), observing(quiet) as observer:
        return confirm(store, result, devices, observer, stop, budget_s=budget_s)


def write_reports(result: GateResult, record: RunRecord, *, junit: Path | None, markdown: Path | None) -> None:
    """The files that were asked for, each whole or not at all."""
    if junit:
        from orchestrator.reports.junit import junit_xml

        host = str(record.host.get("system") or "localhost")
        write_file(junit, junit_xml(result, created_at=record.created_at, host=host))
    if markdown:
        from orchestrator.reports.gate_markdown import gate_markdown

        write_file(markdown, gate_markdown(result))


def write_file(path: Path, text: str) -> None:
    from orchestrator.errors import HostError
    from orchestrator.whole_files import write_whole

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}", remedy="name a file that can be written") from error


def show(result: GateResult, *, as_json: bool) -> None:
    if as_json:
        print_json("devbench.gate", result.as_json())
        return
    from orchestrator.reports.gate_table import show_gate
    from orchestrator.reports.terminal import console_for

    show_gate(console_for(sys.stdout), result)


def tell_github(result: GateResult, stream: object) -> None:
    """Annotations to the stream, the summary to the file that GitHub names."""
    from orchestrator.reports.github import step_summary, workflow_commands

    for line in workflow_commands(result):
        print(line, file=stream)  # type: ignore[call-overload]  # one of the two standard streams
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        say("--github: GITHUB_STEP_SUMMARY is not set, so that there is no step summary")
        return
    try:
        with Path(place).open("a", encoding="utf-8") as summary:
            summary.write(step_summary(result))
    except OSError as error:
        say(f"--github: cannot write the step summary to {place}: {error.strerror}")


def status_of(result: GateResult, *, must_confirm: bool = False) -> int:
    """The exit code of a judged night."""
    if result.failing:
        return REGRESSION
    if must_confirm and result.unconfirmed:
        say(f"{len(result.unconfirmed)} suspects could not be run again")
        return DeviceError.exit_code
    return PARTLY_MEASURED if result.is_partial else 0
