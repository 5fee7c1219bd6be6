"""`devbench` on iPhones, as a user types it: a real ssh server on loopback plays the Mac or the freed phone, with
stand-ins for `xcrun` and for what a jailbreak brings. No Mac and no iPhone was involved."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import DATA, Done, Workplace
from tests.devices.fixtures import StartBoard
from tests.devices.mac import OTHER_UDID, UDID, Mac
from tests.devices.ssh_board import BoardOptions, SshBoard
from tests.unit.mach_o_factory import make_mach_o
from tests.unit.test_ios_jailbroken import TOOLS

TINY = DATA / "tiny_add.tflite"
ME = pwd.getpwuid(os.geteuid()).pw_name


def with_path(*folders: Path) -> BoardOptions:
    """A server whose sessions find our stand-ins first."""
    path = ":".join([*map(str, folders), "/usr/local/bin:/usr/bin:/bin"])
    return BoardOptions(user=ME, config=(f"SetEnv PATH={path}",))


@pytest.fixture
def mac(tmp_path: Path) -> Mac:
    return Mac(tmp_path / "mac")


@pytest.fixture
def gateway(mac: Mac, board: StartBoard) -> SshBoard:
    return board(with_path(mac.bin))


def entry(name: str, address: dict[str, str | int], **keys: str) -> str:
    words = {"name": name, "transport": "ssh", "platform": "ios", **address, **keys}
    lines = [f"{key} = {value}" if isinstance(value, int) else f'{key} = "{value}"' for key, value in words.items()]
    return "\n".join(["[[device]]", *lines, ""])


def write_fleet(workplace: Workplace, mac: Mac, gateway: SshBoard, **phones: str) -> None:
    """Phones by name, each with its udid."""
    address = dict(gateway.address_keys)
    address["gateway"] = address.pop("host")
    parts = [entry(name, address, udid=udid, workdir=str(mac.workdir)) for name, udid in phones.items()]
    workplace.write("devices.toml", "\n".join(parts))


def run(workplace: Workplace, *arguments: str | Path, threads: str = "[1, 2]", loads: str = '["idle"]') -> Done:
    plan = workplace.quick_plan(blocks="2:2", threads=threads, loads=loads)
    return workplace.devbench("run", "--plan", plan, "--json", *arguments)


def test_one_command_measures_two_phones_on_one_mac(workplace: Workplace, mac: Mac, gateway: SshBoard) -> None:
    """Side by side, each by its udid; every trial with its samples, its evidence and what nobody verified."""
    write_fleet(workplace, mac, gateway, one=UDID, two=OTHER_UDID)
    done = run(workplace)
    assert done.status == 0, done.stderr
    assert done.json["trials"]["measured"] == 8
    trials = workplace.exported()
    assert {trial["device"] for trial in trials} == {"one", "two"}
    for trial in trials:
        assert (trial["runner"], len(trial["samples_us"])) == ("ios_app", 5)
        assert trial["evidence"]["observed"]["threads_echo"] == trial["threads"]
        assert trial["telemetry"] == {}
    assert gateway.wait_until_idle()


def test_what_an_iphone_is_can_be_asked(workplace: Workplace, mac: Mac, gateway: SshBoard) -> None:
    """Model, chip, iOS, and that it has the app; the same in words."""
    write_fleet(workplace, mac, gateway, one=UDID)
    done = workplace.devbench("devices", "--json")
    assert done.status == 0, done.stderr
    (device,) = done.json["devices"]
    assert device["facts"]["cpu_model"] == "iPhone 15 Pro (iPhone16,1) A17 Pro"
    assert device["runners"]["ios_app"]["runtime"] == "TensorFlowLiteC"
    words = workplace.devbench("devices")
    assert "iPhone 15 Pro" in words.stdout
    assert workplace.devbench("devices", "--clean").status == 0
    assert not mac.documents().exists()


def test_what_ios_cannot_do_is_skipped_by_name(workplace: Workplace, mac: Mac, gateway: SshBoard) -> None:
    """Asked for and not measured anywhere: exit code 5, and the reason is stored with the cell."""
    write_fleet(workplace, mac, gateway, one=UDID)
    done = run(workplace, "--affinity", "any,big", threads="[1]", loads='["idle", "cpu:1@50"]')
    assert done.status == 5, done.stderr
    outcomes = {
        (trial["load"], trial["affinity"]): (trial["outcome"], trial["reason"]) for trial in workplace.exported()
    }
    assert outcomes["idle", "any"] == ("measured", None)
    assert outcomes["cpu:1@50", "any"] == (
        "skipped",
        "no load cpu:1@50 on iOS: no agent runs there, and iOS suspends apps in the background",
    )
    assert outcomes["idle", "big"] == ("skipped", "no affinity big on iOS: it lets no program choose its CPUs")


def test_a_governor_skips_everything(workplace: Workplace, mac: Mac, gateway: SshBoard) -> None:
    """Nothing was measured under the asked conditions, and nothing is claimed to be."""
    write_fleet(workplace, mac, gateway, one=UDID)
    plan = workplace.quick_plan()
    plan.write_text(plan.read_text() + 'governor = "performance"\n')
    assert workplace.devbench("run", "--plan", plan, "--json").status == 5
    reasons = {trial["reason"] for trial in workplace.exported()}
    assert reasons == {'governor = "performance" cannot be had: iOS lets nobody choose the CPU\'s clock'}


@pytest.mark.parametrize(
    ("fault", "fact", "remedy"),
    [
        ("locked", "one: the phone is locked (launch the app)", "unlock it"),
        ("profile-expired", "one: the app's provisioning profile has expired", "build and sign the app anew"),
        ("keychain-locked", "one: the Mac's keychain is locked for this ssh session", "unlock-keychain"),
        ("developer-mode-off", "one: Developer Mode is off on the phone", "Privacy & Security"),
        ("no-devicectl", "one: the Mac has no devicectl", "install Xcode 15 or newer"),
    ],
)
def test_a_phone_in_trouble_is_explained(
    workplace: Workplace, mac: Mac, gateway: SshBoard, fault: str, fact: str, remedy: str
) -> None:
    """The device's trouble, exit code 4, with what to do."""
    write_fleet(workplace, mac, gateway, one=UDID)
    mac.break_(fault)
    done = run(workplace)
    assert done.status == 4
    assert fact in done.stderr
    assert remedy in done.stderr


def test_one_phone_in_trouble_delays_no_other(workplace: Workplace, mac: Mac, gateway: SshBoard) -> None:
    """The other on the same Mac is measured."""
    write_fleet(workplace, mac, gateway, one=UDID, two=OTHER_UDID)
    mac.break_("locked", udid=UDID)
    done = run(workplace, threads="[1]")
    assert done.status == 5
    assert "one: the phone is locked" in done.stderr
    assert {trial["device"]: trial["outcome"] for trial in workplace.exported()}["two"] == "measured"


def test_a_wrong_udid_is_told_with_those_there_are(workplace: Workplace, mac: Mac, gateway: SshBoard) -> None:
    """So that it can be copied from the message."""
    write_fleet(workplace, mac, gateway, one="00001111-2222")
    done = workplace.devbench("doctor")
    assert done.status == 4
    assert "the Mac sees no phone with udid 00001111-2222" in done.stdout
    assert UDID in done.stdout.replace("\n", "")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"gateway": "mac"}, "gateway is set, and udid is not"),
        ({"host": "phone", "udid": UDID}, "udid is set, and gateway is not"),
        ({"gateway": "mac", "host": "mac", "udid": UDID}, "has a host and a gateway"),
        ({"gateway": "mac", "udid": UDID, "platform": "linux"}, "gateway belongs to platform ios"),
        ({"udid": UDID}, "has no host"),
        ({"gateway": "mac", "udid": "../../etc"}, 'udid = "../../etc" is none'),
        ({"gateway": "mac", "udid": UDID, "app": "--help"}, 'app = "--help" is none'),
        ({"host": "phone", "app": "com.example.x"}, "app is set, and gateway is not"),
        ({"gateway": "me@mac", "udid": UDID}, 'gateway = "me@mac" is no host name'),
    ],
)
def test_addresses_that_make_no_sense(workplace: Workplace, keys: dict[str, str], message: str) -> None:
    """The file's fault: exit code 2, before anything is touched."""
    workplace.write("devices.toml", entry("one", {}, **keys))
    done = run(workplace)
    assert done.status == 2, done.stderr
    assert message in done.stderr


# Jailbroken


@pytest.fixture
def freed(tmp_path: Path, board: StartBoard, workplace: Workplace, benchmark_model: Path) -> SshBoard:
    """A phone that runs programs: `benchmark_model` in the cache is Mach-O by its bytes, and where it is run there is a
    program of that name for this machine."""
    tools = tmp_path / "phone-bin"
    tools.mkdir()
    for name, script in TOOLS.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    workplace.env["DEVBENCH_BINARIES"] = str(workplace.folder / "binaries")
    program = workplace.folder / "benchmark_model_ios"
    program.write_bytes(make_mach_o())
    added = workplace.devbench("binaries", "add", program, "--name", "freed")
    assert added.status == 0, added.stderr
    assert "ios-arm64 (ios)" in added.stdout
    env = tools / "env"
    env.write_text(_RUNS_MACH_O.format(native=shutil.copy(benchmark_model, tools / "native")))
    env.chmod(0o755)
    return board(with_path(tools))


_RUNS_MACH_O = """\
#!/bin/sh
# This machine cannot run a program for iOS: the stand-in built for it runs in its place.
export LC_ALL=C; shift
case $1 in
    sh) "{native}" --help 2>&1; exit 0 ;;
    *) shift; exec "{native}" "$@" ;;
esac
"""


def test_a_jailbroken_phone_runs_what_the_user_brings(workplace: Workplace, freed: SshBoard, tmp_path: Path) -> None:
    """Plainly over ssh; what needs an agent is skipped, and what nobody watched is told."""
    workplace.write("devices.toml", entry("freed", freed.address_keys, workdir=str(tmp_path / "phone")))
    done = run(workplace, loads='["idle", "app"]', threads="[1]")
    assert done.status == 5, done.stderr
    trials = workplace.exported()
    outcomes = {trial["load"]: trial["outcome"] for trial in trials}
    assert outcomes == {"idle": "measured", "app": "skipped"}
    measured = next(trial for trial in trials if trial["outcome"] == "measured")
    assert measured["runner"] == "benchmark_model"
    assert measured["summary_us"]["count"] >= 5


def test_the_app_needs_a_mac(workplace: Workplace, freed: SshBoard, tmp_path: Path) -> None:
    """Skipped by name on a freed phone."""
    workplace.write("devices.toml", entry("freed", freed.address_keys, workdir=str(tmp_path / "phone")))
    assert run(workplace, "--runner", "ios_app", threads="[1]").status == 5
    assert {trial["reason"] for trial in workplace.exported()} == {
        "ios_app does not run on ios-jailbroken (it runs on ios)"
    }
