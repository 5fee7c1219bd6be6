"""Every failure of devicectl through the real ssh transport and a real sshd; no Mac and no iPhone was involved."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path

import pytest

from ios_harness.gateway import GatewayStage
from orchestrator.clock import Deadline
from orchestrator.errors import DeviceError
from orchestrator.fleet import Device
from orchestrator.transports.ssh import SSH
from tests.devices.fixtures import StartBoard
from tests.devices.mac import FAILURES, OTHER_UDID, UDID, Mac
from tests.devices.ssh_board import BoardOptions

ME = pwd.getpwuid(os.geteuid()).pw_name


def test_failures_are_explained_through_ssh(tmp_path: Path, board: StartBoard) -> None:
    """On one connection, one after another, each by its own words; and when all is mended, the phone answers."""
    mac = Mac(tmp_path / "mac")
    server = board(BoardOptions(user=ME, config=(f"SetEnv PATH={mac.bin}:/usr/local/bin:/usr/bin:/bin",)))
    address = {("gateway" if key == "host" else key): value for key, value in server.address_keys.items()}
    device = Device("iphone", "ssh", "ios", {**address, "udid": UDID}, workdir=str(mac.workdir))
    assert SSH.platform_name(device) == "ios"
    transport = SSH.open(device, deadline=Deadline.after(30))
    assert transport.hardware_id == f"udid {UDID}"
    facts = {}
    for name in FAILURES:
        shutil.rmtree(mac.documents().parent, ignore_errors=True)  # a phone without the app, so that it is installed
        mac.break_(name)
        with pytest.raises(DeviceError) as caught:
            GatewayStage(transport, device, str(mac.workdir)).probe(Deadline.after(60))
        facts[name] = caught.value.fact
        assert caught.value.remedy
    mac.mend()
    probed = GatewayStage(transport, device, str(mac.workdir)).probe(Deadline.after(60))
    transport.close()
    assert [fact for fact in facts.values() if "devicectl could not" in fact] == []
    assert len(set(facts.values())) == len(FAILURES)
    assert probed["phone"]["name"] == "Lab phone 1"


def test_two_phones_on_one_mac_are_two_devices() -> None:
    """For locks and for the check that no device is named twice."""
    one, other = (
        Device("iphone", "ssh", "ios", {"gateway": "mac.invalid", "user": "lab", "udid": udid})
        for udid in (UDID, OTHER_UDID)
    )
    assert SSH.identity(one) != SSH.identity(other)
    assert SSH.identity(one).endswith(f"/{UDID}")
