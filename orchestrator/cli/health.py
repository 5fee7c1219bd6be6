"""The command about devices over nights: health."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.keeping import moment_of
from orchestrator.cli.options import (
    DEFAULT_STORE,
    DeviceOption,
    FleetOption,
    JsonOption,
    StoreOption,
    chosen_devices,
    let_readers_leave,
    opened_store,
    print_json,
)

if TYPE_CHECKING:
    from orchestrator.analysis.health import DeviceHealth
    from orchestrator.store import Store

_SINCE = "30d"


def health(
    fleet: FleetOption = None,
    device: DeviceOption = None,
    since: Annotated[str, typer.Option("--since", help="Nights since: 30d, 12w, or 2026-11-18.")] = _SINCE,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """How each device fared over the nights that are kept: healthy, watch or decaying, and what to do."""
    let_readers_leave()
    moment = moment_of(since, "--since")
    names = [found.name for found in chosen_devices(fleet, None, None)] if fleet else None
    if device:
        names = [name for name in device if names is None or name in names]
    with opened_store(store, create=False) as opened:
        found = device_healths(opened, since=moment, devices=names)
    if as_json:
        print_json("devbench.health", {"since": moment, "devices": [item.as_json() for item in found]})
        return
    from orchestrator.reports.health_table import show_healths
    from orchestrator.reports.terminal import console_for

    show_healths(console_for(sys.stdout), found)


def device_healths(store: Store, *, since: str, devices: list[str] | None) -> list[DeviceHealth]:
    from orchestrator.analysis.health import healths
    from orchestrator.store.device_record import device_nights

    return healths(device_nights(store, since=since, devices=devices))


def say_decaying(store: Store, devices: list[str]) -> None:
    """Before a run: which of its devices have been decaying, so that nobody trusts their numbers unawares."""
    from orchestrator.analysis.health import Verdict
    from orchestrator.trial import Severity

    for found in device_healths(store, since=moment_of(_SINCE, "--since"), devices=devices):
        if found.verdict is Verdict.DECAYING:
            reasons = "; ".join(item.reason for item in found.findings if item.severity is Severity.FAIL)
            print(f"{found.device} is decaying: {reasons} (`devbench health`)", file=sys.stderr)
