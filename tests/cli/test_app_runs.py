"""`devbench run` with the benchmark app on virtual phones, beside the same tool at a shell."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from orchestrator.binaries import Binaries
from orchestrator.clock import SYSTEM, Deadline
from tests.cli.conftest import TINY, Workplace
from tests.cli.test_phones import write_fleet
from tests.devices.adb_server import AdbServer
from tests.devices.fixtures import StartPhone
from tests.devices.virtual_phone import VirtualPhone

PACKAGE = "org.tensorflow.lite.benchmark"


@pytest.fixture
def lab(workplace: Workplace, benchmark_model: Path, benchmark_apk: Path) -> Workplace:
    """A workplace whose cache has program and APK."""
    folder = workplace.folder / "binaries"
    workplace.env["DEVBENCH_BINARIES"] = str(folder)
    for file in (benchmark_model, benchmark_apk):
        Binaries(folder, workplace.folder).add(file, "stand-in")
    return workplace


def installs(one: VirtualPhone) -> int:
    path = one.path("/dev/.phone/app/installs")
    return len(path.read_text().splitlines()) if path.exists() else 0


def is_running(one: VirtualPhone) -> bool:
    return any(process.argv[0] == PACKAGE for process in one.processes())


def test_shell_against_foreground_app_in_one_run(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """Both are measured side by side, each in cells of its own; nothing pairs the one with the other; the APK is
    installed once, and a second run does not install it again."""
    one = phone()
    one.set_benchmark(time_scale=0, seed=3)
    write_fleet(lab, adb_server, one=one)
    plan = lab.quick_plan(blocks="2:2", threads="[1, 2]", loads='["idle", "cpu:1@20"]')
    done = lab.devbench("run", "--plan", plan, "--runner", "benchmark_model,benchmark_app", "--json")
    assert done.status == 0, done.stderr
    assert done.json["trials"]["measured"] >= 16  # more where a busy host had a load rejected and made up for
    trials = lab.exported()
    assert {trial["runner"] for trial in trials} == {"benchmark_model", "benchmark_app"}
    assert len({trial["cell"] for trial in trials}) == 8
    for trial in (trial for trial in trials if trial["runner"] == "benchmark_app"):
        observed = trial["evidence"]["observed"]
        assert observed["threads_echo"] == trial["threads"]
        assert observed["process"]["threads_max"] >= trial["threads"]
        assert trial["summary_us"]["count"] == 5
    shown = lab.devbench("show", "--json").json
    assert {cell["runner"] for cell in shown["cells"]} == {"benchmark_model", "benchmark_app"}
    for part in ("speedups", "load_sensitivity", "crossover"):
        assert sorted({row["runner"] for row in shown[part]}) == ["benchmark_app", "benchmark_model"], part
    assert installs(one) == 1 and not is_running(one)
    assert lab.devbench("run", "--plan", plan, "--runner", "benchmark_app", "--blocks", "1", "--quiet").status == 0
    assert installs(one) == 1


def test_what_an_app_cannot_do_is_skipped_by_name(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """Affinity: the tool at the shell is pinned, the app is skipped with the reason."""
    one = phone()
    one.set_benchmark(time_scale=0)
    write_fleet(lab, adb_server, one=one)
    words = ("--runner", "benchmark_model,benchmark_app", "--affinity", "any,big", "--blocks", "1", "--json")
    done = lab.devbench("run", "--plan", lab.quick_plan(), *words)
    assert done.json["trials"]["measured"] == 3 and done.json["trials"]["skipped"] == 1
    (skipped,) = (trial for trial in lab.exported() if trial["outcome"] == "skipped")
    assert skipped["reason"] == "benchmark_app cannot have affinity big: Android places an app, and nobody can pin it"


def test_inputs_are_refused_before_the_phone_is_touched(
    lab: Workplace, adb_server: AdbServer, phone: StartPhone
) -> None:
    """Exit 2, and nothing was opened on the phone."""
    one = phone()
    write_fleet(lab, adb_server, one=one)
    before = len(one.opened)
    lab.write("in.npz", "")
    lab.write("plan.toml", f'[sweep]\nmodels = ["{TINY}"]\nrunners = ["benchmark_app"]\n[measure]\ninputs = "in.npz"\n')
    done = lab.devbench("run", "--plan", "plan.toml")
    assert (done.status, "benchmark_app cannot be given inputs" in done.stderr) == (2, True)
    assert len(one.opened) == before


def test_a_refused_installation_fails_the_apps_trials_alone(
    lab: Workplace, adb_server: AdbServer, phone: StartPhone
) -> None:
    """With reason and remedy, once; the tool at the shell is measured."""
    one = phone()
    one.set_benchmark(time_scale=0)
    one.set_state("app/install_failure", "INSTALL_FAILED_UPDATE_INCOMPATIBLE: signatures do not match")
    write_fleet(lab, adb_server, one=one)
    words = ("--runner", "benchmark_model,benchmark_app", "--json")
    done = lab.devbench("run", "--plan", lab.quick_plan(), *words)
    assert done.status == 5, done.stderr
    trials = lab.exported()
    assert [trial["outcome"] for trial in trials if trial["runner"] == "benchmark_model"] == ["measured"] * 2
    failed = [trial for trial in trials if trial["outcome"] == "failed"]
    assert len(failed) == 1 and "INSTALL_FAILED_UPDATE_INCOMPATIBLE" in failed[0]["reason"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_app_is_stopped_when_the_host_goes_away(
    lab: Workplace, adb_server: AdbServer, phone: StartPhone, number: signal.Signals
) -> None:
    """Ctrl-C or sudden death of devbench: the phone does not go on inferring for nobody."""
    one = phone()
    one.set_state("app/fault", "hang 1")
    write_fleet(lab, adb_server, one=one)
    process = lab.start("run", "--plan", lab.quick_plan(), "--runner", "benchmark_app", "--quiet")
    deadline = Deadline.after(60)
    while not is_running(one):
        assert not deadline.passed and process.poll() is None
        SYSTEM.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=30)
    deadline = Deadline.after(20)
    while is_running(one):
        assert not deadline.passed, one.processes()
        SYSTEM.sleep(0.05)


def test_doctor_and_devices_name_the_app_and_install_nothing(
    lab: Workplace, adb_server: AdbServer, phone: StartPhone
) -> None:
    """To look is not to change."""
    one = phone()
    write_fleet(lab, adb_server, one=one)
    done = lab.devbench("devices", "--json")
    (device,) = done.json["devices"]
    assert device["runners"]["benchmark_app"]["runtime_version"] == "not installed yet"
    assert installs(one) == 0
