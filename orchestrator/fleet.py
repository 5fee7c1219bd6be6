"""The fleet: which devices there are, as passive facts read from devices.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.delegates import check_name
from orchestrator.errors import SettingsError, UsageError
from orchestrator.settings import Table, read_toml, suggestion

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

AddressKeys = Mapping[str, type]
"""The address keys a transport takes, each with the type of its value (`str` or `int`)."""


@dataclass(frozen=True)
class Limits:
    """What must hold for a measurement to count; None is no limit."""

    temperature_c_max: float | None = None
    battery_percent_min: float | None = None
    thermal_status_max: int | None = None
    charging: bool | None = None
    """Whether it must be charging, or must not."""
    low_power_mode: bool | None = None

    def over(self, below: Limits) -> Limits:
        """These limits, and where one is not set, that of `below`."""
        own = {key: value for key, value in vars(self).items() if value is not None}
        return Limits(**{**vars(below), **own})


@dataclass(frozen=True)
class Device:
    """One `[[device]]`: a name, a way to reach it, and what it may bear."""

    name: str
    transport: str
    platform: str | None = None
    address: Mapping[str, str | int] = field(default_factory=dict)
    workdir: str | None = None
    runner: str | None = None
    delegates: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    limits: Limits = Limits()


@dataclass(frozen=True)
class Fleet:
    """The devices of one file, in its order."""

    path: Path
    devices: tuple[Device, ...]

    def select(self, names: Sequence[str], tags: Sequence[str]) -> tuple[Device, ...]:
        """The devices with one of the names and one of the tags; an empty list asks for all."""
        known = [device.name for device in self.devices]
        for name in names:
            if name not in known:
                raise UsageError(f'{self.path} has no device "{name}"', remedy=suggestion(name, known))
        chosen = [device for device in self.devices if not names or device.name in names]
        chosen = [device for device in chosen if not tags or set(tags) & set(device.tags)]
        if not chosen and names:
            raise UsageError(
                f"none of {', '.join(names)} carries the tag {' or '.join(tags)}", remedy="leave out --device or --tag"
            )
        if not chosen:
            every_tag = sorted({tag for device in self.devices for tag in device.tags})
            raise UsageError(
                f"{self.path}: no device carries the tag {' or '.join(tags)}",
                remedy=f"the tags there are: {', '.join(every_tag) or 'none'}",
            )
        return tuple(chosen)


def read_fleet(path: Path, transports: Mapping[str, AddressKeys], platforms: Sequence[str]) -> Fleet:
    """The fleet in `path`; `transports` and `platforms` are those that are installed."""
    root = read_toml(path)
    defaults = root.table("defaults")
    _refuse_secrets(defaults)
    shared = _Shared.read(defaults)
    defaults.finish()
    devices = [_read_device(table, shared, transports, platforms) for table in root.tables("device")]
    root.finish()
    if not devices:
        raise SettingsError(f"{path}: no [[device]] in it", remedy="add one, or let `devbench init` write the file")
    _refuse_equal_names(path, devices)
    return Fleet(path, tuple(devices))


@dataclass(frozen=True)
class _Shared:
    """The keys that `[defaults]` may give to every device."""

    workdir: str | None
    runner: str | None
    delegates: tuple[str, ...]
    tags: tuple[str, ...]
    limits: Limits

    @classmethod
    def read(cls, table: Table, below: _Shared | None = None) -> _Shared:
        below = below or cls(None, None, (), (), Limits())
        return cls(
            workdir=table.optional_text("workdir") or below.workdir,
            runner=table.optional_text("runner") or below.runner,
            delegates=_read_delegates(table, below.delegates),
            tags=table.texts("tags", below.tags),
            limits=_read_limits(table.table("limits"), below.limits),
        )


def _read_delegates(table: Table, below: tuple[str, ...]) -> tuple[str, ...]:
    """A plan may define delegates of its own, so that whether there is such a one is seen when there is a plan."""
    names = table.texts("delegates", below)
    try:
        for name in names:
            check_name(name)
    except ValueError as error:
        problem, _, remedy = str(error).partition(": ")
        raise table.error("delegates", problem, remedy) from error
    return names


def _read_limits(table: Table, below: Limits) -> Limits:
    temperature = table.optional_number("temperature_c_max", 0, 150)
    battery = table.optional_number("battery_percent_min", 0, 100)
    status = table.optional_integer("thermal_status_max", 0, 6)
    charging, low_power = table.optional_boolean("charging"), table.optional_boolean("low_power_mode")
    table.finish()
    return Limits(temperature, battery, status, charging, low_power).over(below)


def _read_device(
    table: Table, defaults: _Shared, transports: Mapping[str, AddressKeys], platforms: Sequence[str]
) -> Device:
    name = table.text("name")
    if not _NAME.fullmatch(name):
        raise table.error(
            "name",
            f"{name!r} is no device name",
            "use letters, digits, dots, dashes and underscores, 64 at most",
        )
    _refuse_secrets(table)
    transport = table.choice("transport", sorted(transports))
    platform = table.choice("platform", sorted(platforms)) if table.has("platform") else None
    shared = _Shared.read(table, defaults)
    table.optional_text("platform")
    address = _read_address(table, transports[transport])
    _refuse_foreign_address_keys(table, transport, transports)
    table.finish()
    return Device(
        name=name,
        transport=transport,
        platform=platform,
        address=address,
        workdir=shared.workdir,
        runner=shared.runner,
        delegates=shared.delegates,
        tags=shared.tags,
        limits=shared.limits,
    )


def _read_address(table: Table, keys: AddressKeys) -> dict[str, str | int]:
    address: dict[str, str | int] = {}
    for key, kind in keys.items():
        value = table.optional_integer(key, 1, 65535) if kind is int else table.optional_text(key)
        if value is not None:
            address[key] = value
    return address


def _refuse_secrets(table: Table) -> None:
    """This file is shared and kept in repositories."""
    for key in ("password", "passphrase", "key_passphrase"):
        if table.has(key):
            name = "password_env" if key == "password" else "passphrase_env"
            raise table.error(
                key, "no secret belongs in this file",
                f"remove it; use a key and the ssh agent, or set {name} to the name of an environment variable",
            )  # fmt: skip


def _refuse_foreign_address_keys(table: Table, transport: str, transports: Mapping[str, AddressKeys]) -> None:
    """A key of another transport gets a better message than an unknown one."""
    for other, keys in transports.items():
        for key in keys:
            if key not in transports[transport] and table.has(key):
                raise table.error(
                    key, f'belongs to transport "{other}", and this device uses "{transport}"',
                    f'remove {key}, or set transport = "{other}"',
                )  # fmt: skip


def _refuse_equal_names(path: Path, devices: Sequence[Device]) -> None:
    seen: dict[str, str] = {}
    for device in devices:
        folded = device.name.casefold()
        if folded in seen:
            raise SettingsError(
                f'{path}: two devices are called "{device.name}"',
                remedy="give each device a name of its own (upper and lower case count as the same)",
            )
        seen[folded] = device.name
