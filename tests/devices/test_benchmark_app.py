"""The benchmark app on a virtual phone, through the driver that runs there and the real adb server."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

import device_agents
from android_harness.benchmark_app import BENCHMARK_APP
from android_harness.benchmark_app_output import facts_in
from orchestrator.runners.base import Reading
from tests.agents.agent_host import wait_until

from .adb_server import AdbServer
from .fixtures import StartPhone
from .virtual_phone import FLAGSHIP, OLD, Profile, VirtualPhone

TMP = "/data/local/tmp"
DRIVER = Path(device_agents.__file__).with_name("benchmark_app.sh")
MODEL = Path(__file__).parents[1] / "data" / "models" / "tiny_add.tflite"
PACKAGE = "org.tensorflow.lite.benchmark"
FLAGS = (
    f"--graph={TMP}/model.tflite --num_threads=2 --num_runs=50 --min_secs=0 --max_secs=5 --warmup_runs=2"
    " --warmup_min_secs=0 --use_xnnpack=true"
)
UNSIGNED_LIKE_IT = "INSTALL_FAILED_UPDATE_INCOMPATIBLE: Package org.tensorflow.lite.benchmark signatures do not match"


@dataclass
class App:
    """The app on one phone."""

    server: AdbServer
    phone: VirtualPhone

    def adb(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return self.server.run("-s", self.phone.address, *words)

    def fault(self, text: str) -> None:
        self.phone.set_state("app/fault", text)

    def said(self, *, wait_s: int = 30, results: str = "yes", flags: str = FLAGS) -> list[bytes]:
        """One run of the driver."""
        done = self.adb("shell", f"sh {TMP}/driver.sh run {TMP}/app.apk {wait_s} {results} {flags}")
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def run(self, *, wait_s: int = 30, results: str = "yes", flags: str = FLAGS) -> Reading:
        return BENCHMARK_APP.read(self.said(wait_s=wait_s, results=results, flags=flags), [])

    @property
    def is_running(self) -> bool:
        return any(process.argv[0] == PACKAGE for process in self.phone.processes())

    @property
    def installs(self) -> int:
        path = self.phone.path("/dev/.phone/app/installs")
        return len(path.read_text().splitlines()) if path.exists() else 0


def put(app: App, apk: Path) -> None:
    for source, target in ((apk, "app.apk"), (DRIVER, "driver.sh"), (MODEL, "model.tflite")):
        assert app.adb("push", str(source), f"{TMP}/{target}").returncode == 0


@pytest.fixture
def app(adb_server: AdbServer, phone: StartPhone, benchmark_apk: Path) -> App:
    """A phone with everything pushed, on which simulated time takes none."""
    return ready(adb_server, phone, benchmark_apk, FLAGSHIP)


def ready(server: AdbServer, phone: StartPhone, apk: Path, profile: Profile) -> App:
    one = phone(profile)
    one.set_benchmark(time_scale=0, seed=1)
    fresh = App(server, one)
    put(fresh, apk)
    # As if it had been installed by an earlier run: the driver waits a second after an installation of its own.
    assert fresh.adb("shell", f"pm install {TMP}/app.apk").stdout == b"Success\n"
    return fresh


def assert_measured(reading: Reading) -> None:
    assert reading.error is None
    assert reading.summary is not None and reading.summary.count == 50
    observed = reading.observed
    assert (observed["threads_echo"], observed["delegates_applied"], observed["count"]) == (2, ["xnnpack"], 50)
    assert observed["process"]["threads_max"] >= 2


class TestRuns:
    def test_the_result_of_this_very_run_is_read(self, app: App) -> None:
        """From log and result file, which agree; the app is stopped and its file removed; nothing is left running."""
        reading = app.run()
        assert_measured(reading)
        assert reading.observed["result_file"]["count"] == 50
        assert reading.observed["app"]["ended"] == "reported"
        assert not app.is_running
        assert app.adb("shell", f"run-as {PACKAGE} ls /data/data/{PACKAGE}/cache").stdout == b""

    def test_an_old_phone_and_an_old_build(self, adb_server: AdbServer, phone: StartPhone, benchmark_apk: Path) -> None:
        """No shell_v2, no sha256sum, no result file: the log alone is enough."""
        app = ready(adb_server, phone, benchmark_apk, OLD)
        reading = app.run(results="no")
        assert_measured(reading)
        assert "result_file" not in reading.observed

    @pytest.mark.parametrize("fault", ["noise 1", "interleave 1", "prefix 1"])
    def test_what_else_is_in_the_log_changes_nothing(self, app: App, fault: str) -> None:
        """Other apps' lines, also such as look like the result; a release that repeats the level in the text."""
        first = app.run()
        app.fault(fault)
        second = app.run()
        assert_measured(second)
        assert second.summary == first.summary
        assert second.observed["app"]["name"] != first.observed["app"]["name"]

    def test_flags_and_models_the_tool_refuses_are_told(self, app: App) -> None:
        """An unknown flag is in the evidence; a model that is none ends the app without a result, for the tool's
        own reason."""
        assert app.run(flags=f"{FLAGS} --no_such=1").observed["unconsumed_flags"] == ["--no_such=1"]
        reading = app.run(flags=FLAGS.replace("model.tflite", "driver.sh"))
        assert reading.error is not None and reading.error.kind == "model"
        assert reading.summary is None


class TestInstalling:
    def test_only_another_apk_is_installed(self, app: App, tmp_path: Path, benchmark_apk: Path) -> None:
        """Byte for byte the same one costs nothing; a different one replaces it."""
        assert app.run().observed["app"]["installed"] == "same"
        assert app.installs == 1
        other = tmp_path / "other.apk"
        other.write_bytes(benchmark_apk.read_bytes() + b"\0")
        put(app, other)
        checked = app.adb("shell", f"sh {TMP}/driver.sh check {TMP}/app.apk").stdout.splitlines()
        assert facts_in(checked) == {"installed": "other"}
        assert app.run().observed["app"]["installed"] == "anew"
        assert app.installs == 2

    @pytest.mark.parametrize(
        ("failure", "remedy"),
        [
            (UNSIGNED_LIKE_IT, "adb uninstall org.tensorflow.lite.benchmark"),
            ("INSTALL_FAILED_INSUFFICIENT_STORAGE", "free space on the device"),
            ("INSTALL_FAILED_USER_RESTRICTED: Install canceled by user", "developer options"),
        ],
    )
    def test_a_refused_installation_says_why_and_what_to_do(self, app: App, failure: str, remedy: str) -> None:
        """And is not tried again: another try cannot help."""
        app.adb("shell", f"pm uninstall {PACKAGE}")
        app.phone.set_state("app/install_failure", failure)
        error = app.run().error
        assert error is not None and error.kind == "install" and error.permanent
        assert failure in error.message and remedy in error.remedy

    def test_a_full_phone_says_so(self, app: App) -> None:
        """The package manager's own words."""
        app.adb("shell", f"pm uninstall {PACKAGE}")
        app.phone.leave_free(8192)
        error = app.run().error
        assert error is not None and "INSTALL_FAILED_INSUFFICIENT_STORAGE" in error.message


class TestFailing:
    def test_a_crash_mid_run_is_a_death_with_its_signal(self, app: App) -> None:
        """There is no exit status: the log has the story, and the process is gone."""
        app.phone.set_benchmark(time_scale=0, seed=1, crash_after=20)
        error = app.run().error
        assert error is not None and error.kind == "app-crash"
        assert "Fatal signal 11 (SIGSEGV)" in error.message

    def test_a_crash_before_its_first_line_is_one_too(self, app: App) -> None:
        """The pid is known from Android's own line."""
        app.fault("die_early 1")
        reading = app.run()
        assert reading.error is not None and reading.error.kind == "app-crash"
        assert reading.summary is None

    def test_an_app_that_never_reports_is_stopped(self, app: App) -> None:
        """After the time it had; the wait is bounded."""
        app.fault("hang 1")
        error = app.run(wait_s=2).error
        assert error is not None and error.kind == "timeout"
        assert not app.is_running

    def test_lines_lost_from_the_log_are_made_up_for_by_the_file(self, app: App) -> None:
        """Where the build writes one; the summary says where it is from."""
        app.fault("drop Inference timings")
        reading = app.run()
        assert reading.error is None and reading.summary is not None
        assert reading.observed["summary_from"] == "file"
        assert reading.summary.count == reading.observed["count"] == 50

    def test_lines_lost_without_a_file_are_no_result(self, app: App) -> None:
        """The activity has left the stack, and nothing is in the log."""
        app.fault("drop Inference timings")
        reading = app.run(results="no")
        assert reading.summary is None
        assert reading.error is not None and (reading.error.kind, reading.observed["app"]["ended"]) == (
            "log",
            "finished",
        )

    def test_a_result_without_this_trials_name_is_none(self, app: App) -> None:
        """Neither the activity's line nor the tool's echo arrived: the numbers may be anybody's."""
        app.fault("drop devbench-")
        reading = app.run(results="no")
        assert reading.summary is None
        assert reading.error is not None and "this trial's name" in reading.error.message

    def test_a_log_that_is_switched_off_is_told(self, app: App) -> None:
        """Before the app is even started."""
        app.phone.set_state("app/no_log", "1")
        reading = app.run()
        assert reading.error is not None and "developer options" in reading.error.remedy
        assert "start" not in reading.observed["app"]

    def test_an_app_that_android_does_not_start_is_told(self, app: App) -> None:
        """`am start` says so and may still end with 0."""
        app.phone.set_state("app/start_failure", "Activity not started, unknown error code 102")
        error = app.run().error
        assert error is not None and error.kind == "start" and "error code 102" in error.message


class TestStopping:
    def test_the_app_is_stopped_when_the_host_goes_away(self, app: App) -> None:
        """The app is no child of anybody's: the agent asks the driver, and the driver asks Android."""
        binary = device_agents.agent_binary("x86_64")
        assert app.adb("push", str(binary), f"{TMP}/agent").returncode == 0
        app.fault("hang 1")
        command = f"{TMP}/agent run --grace-ms 9000 -- sh {TMP}/driver.sh run {TMP}/app.apk 60 no {FLAGS}"
        words = [str(app.server.adb), "-s", app.phone.address, "shell", command]
        pipe = subprocess.PIPE
        host = subprocess.Popen(words, env=app.server.environment, stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            wait_until(lambda: app.is_running, within_s=20, what="the app runs")
        finally:
            host.kill()
            host.communicate()
        wait_until(lambda: not app.phone.processes(), within_s=20, what="neither app nor driver nor agent runs")
