"""Where the adb server is, which adb is used, and what its words mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from android_harness.adb_connect import is_network_serial
from android_harness.adb_link import AdbLink, no_permissions
from android_harness.adb_server import AdbServer, adb_program, server_address
from android_harness.adb_transport import ADB
from android_harness.adb_wire import ServerAddress
from orchestrator.errors import DeviceFull, DeviceLost, DeviceUnfit, SettingsError, error_text
from orchestrator.fleet import Device
from orchestrator.transports.remote_commands import file_error

LINK = AdbLink("pixel8", AdbServer(ServerAddress("127.0.0.1", 1)), "R5CT10")


@pytest.mark.parametrize(
    ("asked", "environment", "expected"),
    [
        (None, {}, "127.0.0.1:5037"),
        ("lab3:5137", {"ANDROID_ADB_SERVER_PORT": "1"}, "lab3:5137"),
        ("[fe80::1]:5037", {}, "[fe80::1]:5037"),
        (None, {"ANDROID_ADB_SERVER_PORT": "5138"}, "127.0.0.1:5138"),
        (None, {"ANDROID_ADB_SERVER_ADDRESS": "lab4", "ANDROID_ADB_SERVER_PORT": "5138"}, "lab4:5138"),
        (None, {"ADB_SERVER_SOCKET": "tcp:lab5:5139", "ANDROID_ADB_SERVER_PORT": "5138"}, "lab5:5139"),
        (None, {"ADB_SERVER_SOCKET": "tcp:5139"}, "127.0.0.1:5139"),
    ],
)
def test_where_the_server_is(asked: str | None, environment: dict[str, str], expected: str) -> None:
    """devices.toml comes first, then the environment in adb's own order."""
    assert str(server_address(asked, environment)) == expected


@pytest.mark.parametrize("asked", ["lab3", "lab3:", ":5037", "lab3:x", "lab3:70000"])
def test_a_place_that_is_none(asked: str) -> None:
    """The key and the form are named."""
    with pytest.raises(SettingsError) as caught:
        server_address(asked, {})
    assert error_text(caught.value) == (
        f'error: adb_server: "{asked}" is no place of an adb server\n  try:   write it as host:port, as in "lab3:5037"'
    )


def test_a_socket_that_is_no_tcp(tmp_path: Path) -> None:
    """Unix sockets are not supported, and that is said rather than ignored."""
    with pytest.raises(SettingsError, match="ADB_SERVER_SOCKET"):
        server_address(None, {"ADB_SERVER_SOCKET": f"localfilesystem:{tmp_path}/adb"})


def test_the_installed_adb_comes_first(tmp_path: Path) -> None:
    """Then that of the adbutils wheel."""
    assert adb_program(str(tmp_path)) != tmp_path / "adb"
    (tmp_path / "adb").touch(mode=0o755)
    assert adb_program(str(tmp_path)) == tmp_path / "adb"


def test_identity_names_server_and_serial() -> None:
    """localhost by any name is one server."""
    named = Device("a", "adb", address={"serial": "R5CT10", "adb_server": "localhost:5137"})
    numbered = Device("b", "adb", address={"serial": "R5CT10", "adb_server": "127.0.0.1:5137"})
    assert ADB.identity(named) == ADB.identity(numbered) == "adb:127.0.0.1:5137/R5CT10"


def test_a_device_without_a_serial() -> None:
    """It says where serials are listed."""
    with pytest.raises(SettingsError) as caught:
        ADB.identity(Device("pixel8", "adb"))
    assert error_text(caught.value) == (
        'error: device "pixel8" has no serial\n  try:   add serial = "…"; `adb devices -l` lists those attached'
    )


@pytest.mark.parametrize(
    ("serial", "expected"),
    [("192.168.1.7:5555", True), ("phone.lab:41235", True), ("R5CT10", False), ("emulator-5554", False), (":5", False)],
)
def test_which_serials_can_be_connected_to(serial: str, expected: bool) -> None:
    """Those that are host:port."""
    assert is_network_serial(serial) is expected


def test_no_permissions() -> None:
    """udev's fault, in adb's words."""
    state = "no permissions (user in plugdev group; are your udev rules wrong?); see [http://developer.android.com/]"
    assert error_text(no_permissions("pixel8", state)) == (
        "error: pixel8 is plugged in, but this user may not open it: "
        "no permissions (user in plugdev group; are your udev rules wrong?)\n"
        "  try:   install the package android-sdk-platform-tools-common (udev rules), plug the phone in again"
    )


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("device 'R5CT10' not found", DeviceLost),
        ("device offline", DeviceLost),
        ("closed", DeviceLost),
        ("device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set", DeviceUnfit),
        ("insufficient permissions for device: user in plugdev group; are your udev rules wrong?", DeviceUnfit),
        ("a command line of 70000 bytes is longer than adb carries (65535)", DeviceUnfit),
    ],
)
def test_what_a_refusal_means(reason: str, kind: type[Exception]) -> None:
    """What may pass is worth a retry; what needs somebody's hand is not."""
    assert type(LINK.refusal(reason)) is kind


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("remote write failed: No space left on device", DeviceFull),
        ("write failed: Disk quota exceeded", DeviceFull),
        ("couldn't create file: Read-only file system", DeviceUnfit),
        ("open failed: Permission denied", DeviceUnfit),
        ("", DeviceUnfit),
    ],
)
def test_what_a_file_error_means(reason: str, kind: type[Exception]) -> None:
    """A full phone is told from one that refuses."""
    assert type(file_error("phone", "write /data/x", reason)) is kind
