"""`devbench` on phones, as a user types it: virtual phones behind the real adb server, and a stand-in benchmark_model
whose latencies are known."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from orchestrator.clock import SYSTEM, Deadline
from tests.cli.conftest import Workplace
from tests.devices.adb_server import AdbServer
from tests.devices.fixtures import StartPhone
from tests.devices.virtual_phone import FLAGSHIP, MID, OLD, Profile, VirtualPhone


@pytest.fixture
def lab(workplace: Workplace, benchmark_model: Path) -> Workplace:
    """A workplace whose cache of binaries has the stand-in."""
    workplace.env["DEVBENCH_BINARIES"] = str(workplace.folder / "binaries")
    added = workplace.devbench("binaries", "add", benchmark_model, "--name", "stand-in")
    assert added.status == 0, added.stderr
    return workplace


def write_fleet(lab: Workplace, server: AdbServer, **phones: VirtualPhone) -> None:
    entry = '[[device]]\nname = "{}"\ntransport = "adb"\nserial = "{}"\nadb_server = "127.0.0.1:{}"\n'
    lab.write("devices.toml", "\n".join(entry.format(name, one.address, server.port) for name, one in phones.items()))


def write_plan(lab: Workplace, *, blocks: str = "2:2", loads: str = '["idle"]') -> Path:
    return lab.quick_plan(blocks=blocks, threads="[1, 2]", loads=loads)


def test_one_command_measures_a_fleet(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """Two phones at once, one of them old; every trial verified, and the numbers are those the stand-in states."""
    write_fleet(lab, adb_server, new=phone(), old=phone(OLD))
    done = lab.devbench("run", "--plan", write_plan(lab), "--json")
    assert done.status == 0, done.stderr
    assert done.json["trials"]["measured"] == 8
    assert {device["name"] for device in done.json["devices"]} == {"new", "old"}
    for trial in lab.exported():
        assert trial["runner"] == "benchmark_model"
        assert trial["summary_us"]["median"] > 0
        assert trial["evidence"]["observed"]["threads_echo"] == trial["threads"]
        assert trial["evidence"]["closing"]["reason"] == "exit"


def test_what_a_phone_is_can_be_asked(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """Model, release, clusters and runner of a phone, in words and as JSON."""
    write_fleet(lab, adb_server, mid=phone(MID))
    done = lab.devbench("devices", "--json")
    assert done.status == 0, done.stderr
    (device,) = done.json["devices"]
    assert device["facts"]["os"].startswith("Android ")
    assert [cluster["name"] for cluster in device["facts"]["clusters"]] == ["big", "little"]
    assert "benchmark_model" in device["runners"]


def test_a_load_runs_beside_the_model_on_the_phone(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """The agent holds the load there, and what it achieved is in the evidence."""
    write_fleet(lab, adb_server, one=phone())
    done = lab.devbench("run", "--plan", write_plan(lab, blocks="1:1", loads='["cpu:1@20"]'), "--quiet")
    assert done.status == 0, done.stderr
    assert all(trial["evidence"]["loads"][-1]["phase"] == "run" for trial in lab.exported())


def test_a_phone_that_is_not_there_delays_no_other(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """The others are measured; the missing one is named with what to do, and the exit code is 5."""
    here, gone = phone(), phone()
    write_fleet(lab, adb_server, here=here, gone=gone)
    lab.write("devices.toml", (lab.folder / "devices.toml").read_text().replace(gone.address, "no-such-serial"))
    done = lab.devbench("run", "--plan", write_plan(lab), "--json")
    assert done.status == 5, done.stderr
    assert done.json["trials"]["measured"] == 4
    assert "error: " in done.stderr
    endings = {device["name"]: device["ending"] for device in done.json["devices"]}
    assert endings["here"] == "done"
    assert endings["gone"].startswith("lost: ")


def test_a_hot_phone_is_waited_for(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """Without a word in devices.toml: throttling is a gate; how long the phone was waited for is told and stored."""
    now_s = [0.0]
    one = phone(FLAGSHIP, clock=lambda: now_s[0])
    one.set_load(dict.fromkeys(range(8), 1.0))
    now_s[0] = 900.0
    assert one.condition().status >= 2
    one.set_load({})
    write_fleet(lab, adb_server, hot=one)
    process = lab.start("run", "--plan", write_plan(lab, blocks="1:1"))
    assert process.stderr is not None
    assert any("hot: waiting: thermal status" in line for line in iter(process.stderr.readline, ""))
    now_s[0] = 4000.0
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert "in all before" in stdout
    waited = [trial["metrics"]["cool_down_s"] for trial in lab.exported()]
    assert max(waited) > 0 and all(trial["evidence"]["cool_down"]["canary_ns"] for trial in lab.exported())


def test_a_phone_that_saves_its_battery_is_not_measured(
    lab: Workplace, adb_server: AdbServer, phone: StartPhone
) -> None:
    """Rejected with the reason, after one wait and not one for each trial."""
    one = phone()
    one.set_state("settings/global/low_power", "1")
    write_fleet(lab, adb_server, one=one)
    plan = write_plan(lab)
    plan.write_text(plan.read_text().replace("[conditions]", '[conditions]\ncool_down_max = "1s"'))
    done = lab.devbench("run", "--plan", plan, "--json")
    assert done.status == 5, done.stderr
    reasons = {trial["reason"] for trial in lab.exported() if trial["outcome"] == "rejected"}
    assert reasons == {"battery saver is on, and limits.low_power_mode says false"}
    assert [trial["metrics"].get("cool_down_s", 0) > 0 for trial in lab.exported()].count(True) == 1


def test_one_phone_under_two_serials_is_measured_once(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """The second name for the same hardware is refused while the first is measured."""
    one = phone()
    adb_server.run("connect", one.address.replace("127.0.0.1", "localhost"))
    try:
        entry = '[[device]]\nname = "{}"\ntransport = "adb"\nserial = "{}"\nadb_server = "127.0.0.1:{}"\n'
        serials = {"first": one.address, "second": one.address.replace("127.0.0.1", "localhost")}
        fleet = [entry.format(name, serial, adb_server.port) for name, serial in serials.items()]
        lab.write("devices.toml", "\n".join(fleet))
        done = lab.devbench("run", "--plan", write_plan(lab, blocks="3:3"), "--json")
    finally:
        adb_server.run("disconnect", one.address.replace("127.0.0.1", "localhost"))
    assert done.status == 5
    assert "is busy: run" in done.stderr
    assert done.json["trials"]["measured"] == 6


def test_an_interrupted_run_leaves_nothing_on_the_phone(
    lab: Workplace, adb_server: AdbServer, phone: StartPhone
) -> None:
    """Ctrl-C during a trial: exit 130, and neither agent nor load runs on."""
    one = phone()
    write_fleet(lab, adb_server, one=one)
    process = lab.start("run", "--plan", write_plan(lab, blocks="50:50", loads='["cpu:2@30"]'), "--quiet")
    deadline = Deadline.after(60)
    while not list(lab.folder.glob("devbench-results/artifacts/*/*.log")):
        assert not deadline.passed and process.poll() is None
        SYSTEM.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    process.communicate()
    listed = adb_server.run("-s", one.address, "shell", "cat /proc/[0-9]*/cmdline")
    assert b"devbench-agent" not in listed.stdout
    assert lab.devbench("show", "--json").json["status"] == "interrupted"


def test_init_writes_the_phones_that_are_attached(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """The file can be used as it is: the phone is in it under a name of its own."""
    one = phone()
    lab.env["ANDROID_ADB_SERVER_PORT"] = str(adb_server.port)
    assert lab.devbench("init").status == 0
    assert f'serial = "{one.address}"' in (lab.folder / "devices.toml").read_text()
    done = lab.devbench("devices", "--json")
    names = [device["name"] for device in done.json["devices"]]
    assert names[0] == "this-machine"
    assert any(name.startswith("adb-127.0.0.1-") for name in names[1:])


def test_init_starts_no_adb_server(lab: Workplace) -> None:
    """Looking for phones changes nothing on the host."""
    lab.env["ANDROID_ADB_SERVER_PORT"] = "1"
    done = lab.devbench("init")
    assert done.status == 0, done.stderr
    assert "adb" not in (lab.folder / "devices.toml").read_text()


@pytest.mark.parametrize("profile", [FLAGSHIP, OLD], ids=lambda profile: str(profile.name))
def test_clean_leaves_no_trace_on_the_phone(
    lab: Workplace, adb_server: AdbServer, phone: StartPhone, profile: Profile
) -> None:
    """`devbench devices --clean` removes what devbench pushed, and what a cut link left behind."""
    one = phone(profile)
    write_fleet(lab, adb_server, one=one)
    assert lab.devbench("run", "--plan", write_plan(lab, blocks="1:1"), "--quiet").status == 0
    blobs = one.path("/data/local/tmp/devbench/blobs")
    for folder in (next(blobs.iterdir()), one.path("/data/local/tmp")):
        (folder / ".devbench-push-0123").write_bytes(b"torn")
    done = lab.devbench("devices", "--clean")
    assert (done.status, done.stdout) == (0, "one: clean\n")
    assert list(one.path("/data/local/tmp").iterdir()) == []


def test_a_link_that_breaks_during_a_trial_costs_nothing_but_time(
    lab: Workplace, adb_server: AdbServer, phone: StartPhone
) -> None:
    """The phone is reached again, the slot is run again, and no trial is lost or doubled."""
    one = phone()
    write_fleet(lab, adb_server, one=one)
    process = lab.start("run", "--plan", write_plan(lab, blocks="6:6"))
    deadline = Deadline.after(60)
    while not list(lab.folder.glob("devbench-results/artifacts/*/*.log")):
        assert not deadline.passed and process.poll() is None
        SYSTEM.sleep(0.02)
    one.faults.drop_run_after = 2000
    _, stderr = process.communicate(timeout=90)
    assert one.faults.struck.get("drop_run_after") == 1
    assert process.returncode == 0, stderr
    trials = lab.exported()
    assert len({(trial["cell"], trial["block"]) for trial in trials}) == len(trials) == 12
    assert "one: " in stderr and "; try: " in stderr
    (record,) = lab.devbench("health", "--json").json["devices"]
    assert record["drops"] >= 1, "it stays in the phone's record"
    assert record["battery_health"] == "good"


def test_a_phone_without_its_runner_is_told_so_and_the_run_has_failed(
    workplace: Workplace, adb_server: AdbServer, phone: StartPhone
) -> None:
    """No build of benchmark_model was added: the remedy says how, and nothing looks finished."""
    workplace.env["DEVBENCH_BINARIES"] = str(workplace.folder / "binaries")
    write_fleet(workplace, adb_server, one=phone())
    done = workplace.devbench("run", "--plan", write_plan(workplace), "--quiet")
    assert done.status == 3, done.stderr
    assert "devbench binaries add" in done.stderr
    assert workplace.devbench("show", "--json").json["status"] == "failed"
