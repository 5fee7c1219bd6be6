"""Finds transports, platforms and runners by entry point, built-ins and third parties alike."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from orchestrator.clock import Deadline
from orchestrator.errors import HostError, UsageError
from orchestrator.platforms.base import Platform
from orchestrator.runners.base import Runner
from orchestrator.settings import suggestion
from orchestrator.transports.base import TransportKind

_LOOK_S = 10.0


@cache
def _group(group: str) -> dict[str, EntryPoint]:
    found = {entry.name: entry for entry in entry_points(group=group)}
    if not found:
        raise HostError(
            f"no entry points {group} are installed",
            remedy="install devbench with pip; a bare source tree has none",
        )
    return found


def _load(kind: str, group: str, name: str) -> Any:
    found = _group(group)
    if name not in found:
        raise UsageError(f'no {kind} "{name}" is installed', remedy=suggestion(name, sorted(found)))
    try:
        return found[name].load()
    except ImportError as error:
        raise HostError(
            f'{kind} "{name}" cannot be loaded: {error}',
            remedy=f"reinstall the package that brings {found[name].value}",
        ) from error


def transport_names() -> list[str]:
    return sorted(_group("devbench.transports"))


def platform_names() -> list[str]:
    return sorted(_group("devbench.platforms"))


def runner_names() -> list[str]:
    return sorted(_group("devbench.runners"))


def transport(name: str) -> TransportKind:
    return cast(TransportKind, _load("transport", "devbench.transports", name))


def platform(name: str) -> Platform:
    return cast(Platform, _load("platform", "devbench.platforms", name))


def attached() -> list[tuple[str, Mapping[str, str | int]]]:
    """The transport and address of every device that can be seen now, but for this machine, which needs no address."""
    deadline = Deadline.after(_LOOK_S)
    return [(name, found) for name in transport_names() for found in transport(name).attached(deadline) if found]


def runner(name: str) -> Runner:
    """The runner of a name such as `litert_runner` or `litert_runner:zero-copy`."""
    return cast(Runner, _load("runner", "devbench.runners", name.partition(":")[0]))
