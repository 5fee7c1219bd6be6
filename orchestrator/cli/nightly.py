"""The command for cron and systemd: nightly."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.gate import (
    BaselineOption,
    FailOnOption,
    GithubOption,
    JunitOption,
    MarkdownOption,
    ThresholdOption,
    check_fail_on,
    status_of,
    tell_github,
    write_file,
    write_reports,
)
from orchestrator.cli.keeping import retention_policy
from orchestrator.cli.measure import observing, planned, say, stopping
from orchestrator.cli.night_log import logged
from orchestrator.cli.options import (
    DEFAULT_STORE,
    DeviceOption,
    FleetOption,
    JsonOption,
    PlanOption,
    QuietOption,
    StoreOption,
    TagOption,
    chosen_devices,
    opened_store,
    print_json,
    seconds,
    share,
)
from orchestrator.errors import DevbenchError, DeviceError, error_text

if TYPE_CHECKING:
    from orchestrator.night import NightResult, Order, Report

_STANDARD_OUTPUT = Path("-")


def nightly(
    fleet: FleetOption = None,
    plan: PlanOption = None,
    device: DeviceOption = None,
    tag: TagOption = None,
    baseline: BaselineOption = "last-good",
    budget: Annotated[str | None, typer.Option("--budget", help="Wall-clock time for everything: 6h")] = None,
    confirm: Annotated[bool, typer.Option("--confirm/--no-confirm", help="Run suspects again, interleaved.")] = True,
    fail_on: FailOnOption = "confirmed",
    threshold: ThresholdOption = "3%",
    keep: Annotated[str | None, typer.Option("--keep", help="Then remove runs older than this: 90d")] = None,
    log: Annotated[Path | None, typer.Option("--log", help="Keep a log: a file, or a folder with one a night.")] = None,
    summary: Annotated[Path, typer.Option("--summary", help="Where the chat message goes; - is standard output.")] = (
        _STANDARD_OUTPUT
    ),
    junit: JunitOption = None,
    markdown: MarkdownOption = None,
    github: GithubOption = False,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """One night, unattended: doctor, run, gate, report, prune. Killed or stopped, the same command goes on with it."""
    from orchestrator.night import Order
    from orchestrator.overrides import Overrides

    check_fail_on(fail_on)
    budget_s, policy = seconds(budget, "--budget"), retention_policy(keep, None) if keep else None
    with logged(log):
        order = Order(
            plan=planned(plan, Overrides()),
            devices=chosen_devices(fleet, device, tag),
            baseline=baseline,
            threshold=share(threshold, "--threshold"),
            fail_on=fail_on,
            confirms=confirm,
            budget_s=budget_s,
            retention=policy,
        )

        def report(night: NightResult) -> None:
            write_reports(night.gate, night.record, junit=junit, markdown=markdown)
            _tell(night, summary, as_json=as_json, github=github)

        try:
            night = _held(order, store, report, quiet=quiet)
        except DevbenchError as error:
            if log:
                say(error_text(error))  # before the log is closed; said once more at the end
            raise
        status = status_of(night.gate) if night.has_measured else DeviceError.exit_code
        say(f"the night ended with exit code {status}")
    raise typer.Exit(status)


def _held(order: Order, place: str, report: Report, *, quiet: bool) -> NightResult:
    """The night, one at a time in a store."""
    from orchestrator.night import hold_night
    from orchestrator.night_lock import night_lock

    stop = threading.Event()
    with (
        opened_store(place, create=True) as store,
        night_lock(store.folder),
        stopping(stop),
        observing(quiet) as observer,
    ):
        return hold_night(order, store, observer, stop, say, report)


def _tell(night: NightResult, summary: Path, *, as_json: bool, github: bool) -> None:
    from orchestrator.reports.night_summary import night_summary

    text = night_summary(night)
    if summary != _STANDARD_OUTPUT:
        write_file(summary, text)
    elif not as_json:
        print(text, end="")
    if as_json:
        print_json("devbench.night", night.as_json())
    if github:
        tell_github(night.gate, sys.stderr if as_json else sys.stdout)
    sys.stdout.flush()
