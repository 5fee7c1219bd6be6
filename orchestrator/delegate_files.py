"""A delegate's libraries on a device: deployed together, found, and seen to suit its CPU before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.delegates import LOADED, Delegate
from orchestrator.runners.benchmark_model_fingerprint import elf_machine, machine_name
from orchestrator.transports.base import Completed

_FIRST_READABLE = 'for file; do [ -r "$file" ] && echo "$file" && exit 0; done; exit 1'
_HEADER_BYTES = 20


@dataclass(frozen=True)
class Deployed:
    """Where a delegate's files are on the device."""

    library: str | None = None
    folder: str | None = None


def unsuited(delegate: Delegate, machine: str, ask: Callable[[Sequence[str]], Completed]) -> str | None:
    """Why its libraries cannot be loaded on this device; None when they can, as far as files tell. An external delegate
    that cannot be loaded says nothing at all, and the CPU does the work."""
    for name, path in delegate.deployed.items():
        with Path(path).open("rb") as file:
            trouble = _wrong_machine(file.read(_HEADER_BYTES), machine) if ".so" in name else None
        if trouble:
            return f"{name} of delegate {delegate.name} {trouble}"
    if delegate.base not in LOADED or delegate.library:
        return None
    if not delegate.paths:
        return f"delegate {delegate.name} has no library; define one of your own in the plan with [[delegate]]"
    place = library_on_device(delegate, ask)
    if place is None:
        return f"the device has no readable {' or '.join(delegate.paths)} for delegate {delegate.name}"
    if delegate.base != "external":
        return None
    header = ask(["dd", f"if={place}", f"bs={_HEADER_BYTES}", "count=1"]).stdout
    trouble = _wrong_machine(header, machine)
    return f"{place} of delegate {delegate.name} {trouble}" if trouble else None


def library_on_device(delegate: Delegate, ask: Callable[[Sequence[str]], Completed]) -> str | None:
    """The first of its places that can be read."""
    if not delegate.paths:
        return None
    answer = ask(["sh", "-c", _FIRST_READABLE, "sh", *delegate.paths])
    found = answer.stdout.decode("utf-8", "replace").strip().splitlines()
    return found[-1] if answer.exit == 0 and found else None


def _wrong_machine(header: bytes, machine: str) -> str | None:
    found = elf_machine(header)
    if found is None:
        return "is no library for Linux or Android"
    return None if found == machine_name(machine) else f"is for {found}, and the device is {machine}"
