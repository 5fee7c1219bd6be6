"""Commands about the devices themselves: init, devices, doctor, agent."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.options import (
    DEFAULT_STORE,
    DeviceOption,
    FleetOption,
    JsonOption,
    StoreOption,
    TagOption,
    chosen_devices,
    let_readers_leave,
    print_json,
)
from orchestrator.errors import HostError, error_text

if TYPE_CHECKING:
    from orchestrator.fleet import Device


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Write a devices.toml of what is attached and a commented plan.toml to start from."""
    from orchestrator import registry
    from orchestrator.starter_files import write_starter_files

    for path in write_starter_files(folder, overwrite=force, attached=registry.attached()):
        print(path)
    print("next: devbench doctor, then devbench run --plan plan.toml", file=sys.stderr)


def devices(
    fleet: FleetOption = None,
    device: DeviceOption = None,
    tag: TagOption = None,
    as_json: JsonOption = False,
    clean: Annotated[bool, typer.Option("--clean", help="Remove devbench's files from the devices instead.")] = False,
) -> None:
    """Say what each device is: CPU, clusters, memory, sensors, runtimes, and what cannot be read."""
    from orchestrator.doctor import examine

    let_readers_leave()
    if clean:
        _clean(chosen_devices(fleet, device, tag), as_json=as_json)
        return
    examined = examine(chosen_devices(fleet, device, tag))
    if as_json:
        print_json("devbench.devices", {"devices": [found.as_json() for found in examined]})
    else:
        from orchestrator.reports.terminal import console_for, show_devices

        show_devices(console_for(sys.stdout), examined)
    if not all(found.facts for found in examined):
        raise typer.Exit(4)


def _clean(chosen: Sequence[Device], *, as_json: bool) -> None:
    from orchestrator.doctor import clean

    results = clean(chosen)
    if as_json:
        rows = [{"name": name, "error": error and error.fact} for name, error in results]
        print_json("devbench.clean", {"devices": rows})
    for name, error in results:
        if error:
            print(error_text(error), file=sys.stderr)
        elif not as_json:
            print(f"{name}: clean")
    if any(error for _, error in results):
        raise typer.Exit(4)


def doctor(
    fleet: FleetOption = None,
    device: DeviceOption = None,
    tag: TagOption = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Check this host and every device, and say what to do about what is wrong."""
    from orchestrator.doctor import examine, host_findings

    let_readers_leave()
    found_here = host_findings(Path(store))
    examined = examine(chosen_devices(fleet, device, tag))
    if as_json:
        content = {"host": [finding.as_json() for finding in found_here]}
        print_json("devbench.doctor", content | {"devices": [found.as_json() for found in examined]})
    else:
        from orchestrator.reports.terminal import console_for, show_devices, show_findings

        console = console_for(sys.stdout)
        console.print("this host" + ("" if found_here else ": nothing to mend"))
        show_findings(console, found_here)
        show_devices(console, examined)
    lacking = [found for found in examined if not found.is_fit]
    if lacking:
        raise typer.Exit(3 if all(found.is_host_to_blame for found in lacking) else 4)


agent_app = typer.Typer(help="The programs that run on devices.", rich_markup_mode=None, no_args_is_help=True)


@agent_app.command(name="show")
def agent_show(as_json: JsonOption = False) -> None:
    """List the device agents and native runners of this installation."""
    from device_agents import agent_binary, native_runner_binary
    from orchestrator.content_hash import sha256

    agents, runners = (
        [
            {"machine": machine, "path": str(path), "bytes": path.stat().st_size, "sha256": sha256(path)}
            for machine in ("x86_64", "aarch64", "armv7l")
            if (path := find(machine))
        ]
        for find in (agent_binary, native_runner_binary)
    )
    if as_json:
        print_json("devbench.agents", {"agents": agents, "native_runners": runners})
        return
    rows = agents + runners
    for row in rows:
        print(f"{row['machine']:8} {row['bytes']:>7} bytes  {str(row['sha256'])[:12]}  {row['path']}")
    if not rows:
        print("none is built; `devbench agent build` builds them", file=sys.stderr)


@agent_app.command(name="build")
def agent_build() -> None:
    """Build the device agents and native runners from their source (needs the ziglang package)."""
    from device_agents.build_agents import BIN, AgentBuildError, build_all

    try:
        built = build_all(BIN)
    except AgentBuildError as error:
        raise HostError(error.fact, remedy=error.remedy) from error
    for target, path in built.items():
        print(f"{target:20} {path}")
