"""The phones that a Mac sees, from devicectl's JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ios_harness.failures import FAILURES
from orchestrator.errors import DeviceError, DeviceUnfit

CHIPS: Mapping[str, str] = {
    "iPhone11,": "A12",
    "iPhone12,": "A13",
    "iPhone13,": "A14",
    "iPhone14,": "A15",
    "iPhone15,": "A16",
    "iPhone16,": "A17 Pro",
    "iPhone17,1": "A18 Pro",
    "iPhone17,2": "A18 Pro",
    "iPhone17,": "A18",
    "iPhone18,1": "A19 Pro",
    "iPhone18,2": "A19 Pro",
    "iPhone18,4": "A19 Pro",
    "iPhone18,": "A19",
}
"""By product type; the first that fits. No tool tells the chip, so a phone that is not here has none we know of."""


@dataclass(frozen=True)
class Phone:
    """One phone as devicectl describes it; None is not told."""

    udid: str
    identifier: str
    name: str | None
    product: str | None
    marketing_name: str | None
    os_version: str | None
    os_build: str | None
    cpu: str | None
    developer_mode: str | None
    pairing: str | None
    tunnel: str | None
    wired: bool | None

    @property
    def chip(self) -> str | None:
        return next((chip for start, chip in CHIPS.items() if (self.product or "").startswith(start)), None)

    def __str__(self) -> str:
        return f"{self.name or 'unnamed'} ({self.marketing_name or self.product or 'unknown model'}, udid {self.udid})"

    def obstacle(self, device: str) -> DeviceError | None:
        """Why nothing can be run on it, as far as the list tells."""
        found = None
        if self.pairing is not None and self.pairing != "paired":
            found = "not-paired"
        elif self.tunnel == "unavailable":
            found = "offline"
        elif self.developer_mode is not None and self.developer_mode != "enabled":
            found = "developer-mode-off"
        failure = next((failure for failure in FAILURES if failure.name == found), None)
        return failure.error(f"{device}: {failure.fact}", remedy=failure.remedy) if failure else None


def phones_of(document: Mapping[str, Any]) -> tuple[Phone, ...]:
    """The phones in the answer to `list devices`; watches and televisions are none."""
    devices = _part(document, "result").get("devices")
    found = [_phone(entry) for entry in devices if isinstance(entry, Mapping)] if isinstance(devices, list) else []
    return tuple(phone for phone in found if phone is not None)


def phone_in(document: Mapping[str, Any]) -> Phone | None:
    """The phone in the answer to `device info details`."""
    return _phone(_part(document, "result"))


def chosen(phones: Sequence[Phone], udid: str, device: str) -> Phone:
    """The phone of that udid; two phones on one Mac are told apart by nothing else."""
    for phone in phones:
        if udid.casefold() in (phone.udid.casefold(), phone.identifier.casefold()):
            return phone
    seen = "; ".join(str(phone) for phone in phones)
    raise DeviceUnfit(
        f"{device}: the Mac sees no phone with udid {udid}",
        remedy=f"it sees: {seen}" if phones else "it sees no phone at all: attach it by cable, unlock it, answer Trust",
    )


def _phone(entry: Mapping[str, Any]) -> Phone | None:
    connection, device, hardware = (
        _part(entry, name) for name in ("connectionProperties", "deviceProperties", "hardwareProperties")
    )
    if hardware.get("platform") not in ("iOS", "iPadOS", None):
        return None
    identifier = _text(entry.get("identifier"))
    udid = _text(hardware.get("udid")) or identifier
    if udid is None:
        return None
    transport = _text(connection.get("transportType"))
    return Phone(
        udid=udid,
        identifier=identifier or udid,
        name=_text(device.get("name")),
        product=_text(hardware.get("productType")),
        marketing_name=_text(hardware.get("marketingName")),
        os_version=_text(device.get("osVersionNumber")),
        os_build=_text(device.get("osBuildUpdate")),
        cpu=_text(_part(hardware, "cpuType").get("name")),
        developer_mode=_text(device.get("developerModeStatus")),
        pairing=_text(connection.get("pairingState")),
        tunnel=_text(connection.get("tunnelState")),
        wired=None if transport is None else transport == "wired",
    )


def _part(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = content.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int) and str(value).strip() else None
