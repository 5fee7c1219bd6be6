"""`devbench run` on a phone with the real adbd: what is measured, and what happens when the daemon or the link dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.clock import SYSTEM, Deadline
from tests.cli.conftest import Workplace, workplace
from tests.cli.test_phones import lab
from tests.devices.adb_server import AdbServer

from .conftest import connect
from .real_phone import RealPhone

__all__ = ["lab", "workplace"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def fleet(lab: Workplace, adb_server: AdbServer, real_phone: RealPhone) -> Workplace:
    """A workplace whose fleet is the real phone."""
    keys = {"name": "real", "transport": "adb", "serial": real_phone.address}
    keys["adb_server"] = f"127.0.0.1:{adb_server.port}"
    lab.write("devices.toml", "[[device]]\n" + "".join(f'{key} = "{value}"\n' for key, value in keys.items()))
    return lab


def start_run(fleet: Workplace, plan: Path) -> subprocess.Popen[str]:
    """A run of which one trial is in the store."""
    process = fleet.start("run", "--fleet", "devices.toml", "--plan", plan, "--json")
    deadline = Deadline.after(60)
    while not list(fleet.folder.glob("devbench-results/artifacts/*/*.log")):
        assert not deadline.passed and process.poll() is None, process.communicate()
        SYSTEM.sleep(0.02)
    return process


def wait_for_agent(phone: RealPhone, run: subprocess.Popen[str]) -> None:
    """Until a trial is under way on the phone."""
    deadline = Deadline.after(60)
    while not any("run" in process.argv for process in phone.processes()):
        assert not deadline.passed
        assert run.poll() is None, run.communicate()
        SYSTEM.sleep(0.005)


def wait_until_quiet(phone: RealPhone, seconds: float) -> None:
    """Until nothing runs on the phone but its daemon."""
    deadline = Deadline.after(seconds)
    while left := phone.processes():
        assert not deadline.passed, left
        SYSTEM.sleep(0.02)


def assert_each_slot_once(fleet: Workplace, count: int) -> None:
    """No slot was run twice; a trial that this busy machine spoiled may have been made up for."""
    trials = fleet.exported()
    assert len({(trial["cell"], trial["block"]) for trial in trials}) == len(trials)
    assert [trial["outcome"] for trial in trials].count("measured") >= count


def test_a_sweep_of_threads_and_loads(fleet: Workplace, real_phone: RealPhone) -> None:
    """Every trial is measured, and the evidence says that what was asked is what ran."""
    plan = fleet.quick_plan(blocks="2:2", threads="[1, 2]", loads='["idle", "cpu:1@30"]')
    done = fleet.devbench("run", "--fleet", "devices.toml", "--plan", plan, "--json")
    assert done.status == 0, done.stderr
    assert_each_slot_once(fleet, 8)
    for trial in fleet.exported():
        evidence = trial["evidence"]
        assert trial["runner"] == "benchmark_model"
        assert trial["summary_us"]["median"] > 0
        assert evidence["observed"]["threads_echo"] == trial["threads"]
        assert evidence["closing"]["reason"] == "exit"
        assert [load["phase"] for load in evidence["loads"]][-1:] == ([] if trial["load"] == "idle" else ["run"])
    wait_until_quiet(real_phone, 5)


def test_what_the_phone_is(fleet: Workplace) -> None:
    """The facts are those of its profile; what its shell user may not read is absent with the reason."""
    done = fleet.devbench("devices", "--fleet", "devices.toml", "--json")
    assert done.status == 0, done.stderr
    facts = done.json["devices"][0]["facts"]
    assert facts["cpu_model"] == "Google Pixel 8, Tensor G3"
    assert [cluster["name"] for cluster in facts["clusters"]] == ["big", "mid", "little"]
    assert facts["absent"]["thermal.TPU"] == "EACCES"


def test_a_daemon_that_is_killed_costs_nothing_but_time(fleet: Workplace, real_phone: RealPhone) -> None:
    """The phone's init restarts it; what ran ends by itself, the slot is run again, no trial is lost or doubled."""
    process = start_run(fleet, fleet.quick_plan(blocks="4:4", threads="[1, 2]", loads='["cpu:1@30"]'))
    wait_for_agent(real_phone, process)
    real_phone.signal_adbd(signal.SIGKILL)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert "real: " in stderr and "; try: " in stderr
    assert_each_slot_once(fleet, 8)
    wait_until_quiet(real_phone, 5)


def test_a_daemon_that_stays_away(fleet: Workplace, adb_server: AdbServer, real_phone: RealPhone) -> None:
    """The agent there dies without its host; the device is given up with the reason, and `--resume` finishes."""
    process = start_run(fleet, fleet.quick_plan(blocks="4:4", threads="[1, 2]", loads='["cpu:1@30"]'))
    wait_for_agent(real_phone, process)
    real_phone.turn_debugging_off()
    wait_until_quiet(real_phone, 5)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 5, stderr
    shown = fleet.devbench("show", "--json").json
    assert shown["devices"][0]["ending"].startswith("lost: "), shown["devices"]
    real_phone.turn_debugging_on()
    connect(adb_server, real_phone)
    resumed = fleet.devbench("run", "--resume", "last", "--json")
    assert resumed.status == 0, resumed.stderr
    assert_each_slot_once(fleet, 8)


def test_a_cable_that_is_out_for_a_while(fleet: Workplace, adb_server: AdbServer, real_phone: RealPhone) -> None:
    """Neither side is told, and adb still says `device`: the watchdog notices, the agent misses its host and ends
    everything there, and when the cable is back the slot is run again."""
    plan = fleet.quick_plan(blocks="2:2", loads='["cpu:1@30"]')
    longer = 'min_ms = 60000\nmax_ms = 60000\ntrial_timeout = "100s"'
    plan.write_text(plan.read_text().replace("\nmin_ms = 0", f"\n{longer}"))
    process = fleet.start("run", "--fleet", "devices.toml", "--plan", plan)
    wait_for_agent(real_phone, process)
    real_phone.unplug()
    assert process.stderr
    told = next(line for line in process.stderr if "; try: " in line)
    assert "no longer answers" in told
    assert adb_server.state(real_phone.address) == "device"
    wait_until_quiet(real_phone, 30)
    real_phone.plug()
    wait_for_agent(real_phone, process)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    wait_until_quiet(real_phone, 5)


def test_a_host_that_dies_leaves_nothing_running(fleet: Workplace, real_phone: RealPhone) -> None:
    """SIGKILL of devbench in the middle of a trial: agent, load and model are gone within seconds."""
    process = start_run(fleet, fleet.quick_plan(blocks="50:50", loads='["cpu:2@50"]'))
    wait_for_agent(real_phone, process)
    process.kill()
    process.communicate()
    wait_until_quiet(real_phone, 5)


def test_the_phone_goes_with_the_process_that_made_it(adbd: Path, the_phone: RealPhone, tmp_path: Path) -> None:
    """Even after SIGKILL neither processes nor the network are left: the kernel takes them all, mounts included."""
    script = (
        "import sys, time; from pathlib import Path; from tests.system.real_phone import RealPhone\n"
        "phone = RealPhone(Path(sys.argv[1])); print(phone.pid, phone.cable.name, flush=True); time.sleep(60)"
    )
    maker = subprocess.Popen(
        [sys.executable, "-c", script, adbd],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert maker.stdout
    pid, interface = maker.stdout.readline().split()
    assert interface != the_phone.cable.name
    assert Path(f"/sys/class/net/{interface}").exists()
    maker.kill()
    maker.communicate()
    deadline = Deadline.after(10)
    while Path(f"/proc/{pid}").exists() or Path(f"/sys/class/net/{interface}").exists():
        assert not deadline.passed
        SYSTEM.sleep(0.05)
