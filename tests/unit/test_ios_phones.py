"""The phones that a Mac sees, from shapes of devicectl's JSON; no Mac was involved."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ios_harness.phones import Phone, chosen, phone_in, phones_of
from orchestrator.errors import DeviceUnfit
from tests.devices.mac import DATA, OTHER_UDID, UDID


def listed() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "devices.json").read_text())
    return found


def one(udid: str = UDID, **changes: dict[str, Any]) -> Phone:
    """The phone of that udid, with some of its properties changed."""
    document = listed()
    for phone in document["result"]["devices"]:
        if phone["hardwareProperties"].get("udid") == udid:
            for part, properties in changes.items():
                phone[part] |= properties
    return chosen(phones_of(document), udid, "iphone")


def test_phones_are_told_from_watches() -> None:
    """Two phones and no watch, each with model, chip, iOS and the way it is attached."""
    first, second = phones_of(listed())
    assert str(first) == f"Lab phone 1 (iPhone 15 Pro, udid {UDID})"
    assert (first.product, first.chip, first.os_version, first.os_build) == ("iPhone16,1", "A17 Pro", "18.2", "22C152")
    assert (first.wired, second.wired, second.chip) == (True, False, "A14")


def test_the_udid_chooses() -> None:
    """In any case of letters, and CoreDevice's own identifier does as well."""
    phones = phones_of(listed())
    assert chosen(phones, OTHER_UDID.lower(), "iphone").name == "Lab phone 2"
    assert chosen(phones, "5B4C4E0B-0000-4000-8000-00000000A001", "iphone").udid == UDID


def test_a_wrong_udid_gets_those_that_are_there() -> None:
    """The remedy lists them."""
    with pytest.raises(DeviceUnfit) as caught:
        chosen(phones_of(listed()), "1234", "iphone")
    assert caught.value.fact == "iphone: the Mac sees no phone with udid 1234"
    assert caught.value.remedy == (
        f"it sees: Lab phone 1 (iPhone 15 Pro, udid {UDID}); Lab phone 2 (iPhone 12 mini, udid {OTHER_UDID})"
    )
    with pytest.raises(DeviceUnfit) as nobody:
        chosen((), "1234", "iphone")
    assert nobody.value.remedy.startswith("it sees no phone at all")


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"connectionProperties": {"pairingState": "unpaired"}}, "iphone: the Mac and the phone are not paired"),
        (
            {"connectionProperties": {"tunnelState": "unavailable"}},
            "iphone: the phone is offline, or its tunnel to the Mac is down",
        ),
        (
            {"deviceProperties": {"developerModeStatus": "disabled"}},
            "iphone: Developer Mode is off on the phone",
        ),
    ],
)
def test_the_list_tells_what_is_in_the_way(changes: dict[str, dict[str, Any]], fact: str) -> None:
    """Before anything is tried."""
    error = one(**changes).obstacle("iphone")
    assert error is not None
    assert error.fact == fact


def test_a_tunnel_at_rest_is_no_obstacle() -> None:
    """It is made when it is needed."""
    assert one().tunnel == "disconnected"
    assert one().obstacle("iphone") is None


@pytest.mark.parametrize(
    "document",
    [{}, {"result": None}, {"result": {"devices": None}}, {"result": {"devices": [1, None, {}, {"identifier": {}}]}}],
)
def test_other_shapes_give_no_phones(document: dict[str, Any]) -> None:
    """Whatever a newer Xcode writes."""
    assert phones_of(document) == ()
    assert phone_in(document) is None


def test_an_unknown_model_has_no_chip_we_know_of() -> None:
    """It is not guessed."""
    assert one(hardwareProperties={"productType": "iPhone99,1"}).chip is None
