"""The runner `benchmark_app`: its command line, what it refuses, and how it reads log and result file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from android_harness.benchmark_app import BenchmarkApp
from android_harness.benchmark_app_output import read_app_output
from android_harness.benchmark_result import read_result
from orchestrator.delegates import delegate_of
from orchestrator.errors import HostError, UsageError, error_text
from orchestrator.plan import Measure
from orchestrator.runners.base import Places, Reading
from orchestrator.runners.benchmark_model_flags import Fingerprint, Program
from orchestrator.trial import Cell
from tests.unit.trial_factory import make_cell

DATA = Path(__file__).parents[1] / "data"
REPORTED = (DATA / "benchmark_app" / "reported.txt").read_bytes()
PLACES = Places("", {"runner": "/d/app.apk", "driver": "/d/app.sh"}, "/d/model.tflite")
NAME = re.search(rb"app name (\S+)", REPORTED)[1]  # type: ignore[index]  # the recording has one


class Cache:
    """One build."""

    def __init__(self, *flags: str) -> None:
        self._flags = frozenset(flags or ("use_xnnpack", "result_file_path"))

    def names(self) -> Sequence[str]:
        return ["nightly"]

    def find(self, name: str, machine: str) -> Path:
        if machine != "aarch64":
            raise HostError("wrong", remedy="none")
        return Path("/host/app.apk")

    def fingerprint(self, digest: str | None) -> Fingerprint:
        return Fingerprint(Program.INTERPRETER, self._flags)


RUNNER = BenchmarkApp(Cache())
CELL = make_cell(runner="benchmark_app", threads=4)


def read(content: bytes) -> Reading:
    return read_app_output(content.splitlines())


def unsupported(cell: Cell) -> str | None:
    return RUNNER.unsupported(cell, delegate_of(cell.delegate), {})


class TestCommand:
    def test_the_driver_is_given_apk_bound_and_flags(self) -> None:
        """The program's own word is left out, and the driver has time to stop the app."""
        command = RUNNER.command(CELL, PLACES, Measure())
        assert command.argv[:6] == ("sh", "/d/app.sh", "run", "/d/app.apk", "100", "yes")
        assert command.argv[6:8] == ("--graph=/d/model.tflite", "--num_threads=4")
        assert command.grace_ms == 3000

    def test_a_build_without_result_files_is_not_asked_for_one(self) -> None:
        """It would not consume the flag."""
        assert BenchmarkApp(Cache("use_xnnpack")).command(CELL, PLACES, Measure()).argv[5] == "no"

    def test_the_wait_ends_before_the_agent_does(self) -> None:
        """So that the reason is known."""
        assert RUNNER.command(CELL, PLACES, Measure(trial_timeout_s=30)).argv[4] == "25"
        assert RUNNER.command(CELL, PLACES, Measure(trial_timeout_s=2)).argv[4] == "1"

    def test_white_space_in_a_path_is_refused(self) -> None:
        """The app splits its flags there."""
        with pytest.raises(UsageError) as caught:
            RUNNER.command(CELL, Places("", PLACES.files, "/d/my model.tflite"), Measure())
        assert error_text(caught.value) == (
            "error: benchmark_app: the app would split --graph=/d/my model.tflite at its white space\n"
            "  try:   choose a workdir without spaces in devices.toml"
        )

    def test_inputs_and_a_second_app_are_refused(self) -> None:
        """By name, also where nobody asked before."""
        with pytest.raises(UsageError, match="cannot be given inputs"):
            RUNNER.command(CELL, Places("", PLACES.files, PLACES.model, "/d/in"), Measure())
        with pytest.raises(UsageError, match="cannot run beside itself"):
            RUNNER.beside_command(CELL, PLACES, Measure())

    def test_what_an_app_cannot_have_is_skipped_with_the_reason(self) -> None:
        """Known before any try."""
        reasons = [
            unsupported(make_cell(runner="benchmark_app", affinity="big")),
            unsupported(make_cell(runner="benchmark_app", load="model:x@12345678")),
            unsupported(make_cell(runner="benchmark_app", delegate="gpu")),
            unsupported(CELL),
        ]
        assert reasons == [
            "benchmark_app cannot have affinity big: Android places an app, and nobody can pin it",
            "benchmark_app cannot have load model:x@12345678: the app cannot run beside itself",
            "benchmark_app: this build has no flag --use_gpu",
            None,
        ]

    def test_its_files_are_the_apk_and_the_driver(self) -> None:
        """The APK's hash is part of the cell."""
        files = RUNNER.files("", "aarch64")
        assert files["runner"] == Path("/host/app.apk") and files["driver"].read_bytes().startswith(b"#!")

    @pytest.mark.parametrize(
        ("said", "version"), [(b"same", "installed"), (b"none", "not installed yet"), (b"other", "another build")]
    )
    def test_a_check_says_what_is_installed(self, said: bytes, version: str) -> None:
        """And installs nothing: doctor asks as well."""
        facts, error = RUNNER.read_check([b"app installed " + said])
        assert error is None and str(facts["runtime_version"]).startswith(version)

    @pytest.mark.parametrize("said", [[], [b"app installed unknown cmd: Can't find service: package"]])
    def test_a_phone_without_a_package_manager_is_told(self, said: list[bytes]) -> None:
        """It may still be booting."""
        facts, error = RUNNER.read_check(said)
        assert facts == {} and error is not None and not error.permanent


class TestReading:
    def test_a_run_that_reported(self) -> None:
        """Summary, echoes, delegates, the app's process, and a file that agrees."""
        reading = read(REPORTED)
        assert reading.error is None
        assert reading.summary is not None and (reading.summary.count, reading.summary.median) == (50, 164.0)
        assert reading.observed["delegates_applied"] == ["xnnpack"]
        assert reading.observed["process"]["threads_max"] == 5
        assert reading.metrics["process_maxrss_kb"] > 0
        assert reading.observed["result_file"]["median"] == pytest.approx(164.0, rel=1e-6)

    @pytest.mark.parametrize("name", ["crash", "no_model"])
    def test_a_run_that_failed(self, name: str) -> None:
        """For the reason that Android or the tool gave."""
        reading = read((DATA / "benchmark_app" / f"{name}.txt").read_bytes())
        assert reading.summary is None and reading.error is not None
        assert reading.error.kind == {"crash": "app-crash", "no_model": "model"}[name]

    @pytest.mark.parametrize(
        ("change", "kind"),
        [
            (lambda text: text.replace(b"=" + NAME, b"=devbench-another").replace(b"[" + NAME, b"[other"), "log"),
            (lambda text: text.replace(b"args: --benchmark_name", b"args: --dry_run=1 --benchmark_name"), "args"),
            (lambda text: re.sub(rb"(Inference \(avg\): |avg=)164\.1\b", rb"\g<1>165.1", text), "result"),
            (lambda text: text.replace(b"app ended reported", b"app ended timeout").split(b"log ")[0], None),
        ],
    )
    def test_a_result_that_is_not_this_trials_is_none(self, change: Callable[[bytes], bytes], kind: str | None) -> None:
        """Another's name, other flags, a file that disagrees, or nothing at all."""
        changed = change(REPORTED)
        assert changed != REPORTED
        reading = read(changed)
        assert reading.summary is None or (reading.error is not None and reading.error.kind == kind)

    @pytest.mark.parametrize(
        ("ended", "kind"),
        [
            ("timeout", "timeout"),
            ("finished", "log"),
            ("no-log", "log"),
            ("log-ended", "log"),
            ("start-refused", "start"),
            ("died", "app-died"),
            ("install-refused", "install"),
        ],
    )
    def test_every_end_without_a_result_has_its_reason(self, ended: str, kind: str) -> None:
        """The app gives no exit status: this is all there is."""
        error = read(f"app ended {ended}\n".encode()).error
        assert error is not None and error.kind == kind and error.remedy

    def test_a_driver_that_was_cut_off_leaves_the_word_to_the_agent(self) -> None:
        """Which knows whether it was the deadline or the host."""
        reading = read(b"app name devbench-x\n")
        assert reading.error is None and reading.summary is None

    @pytest.mark.parametrize(
        ("line", "kind"),
        [
            ("I lowmemorykiller: Kill 'org.tensorflow.lite.benchmark' (42), uid 10123, oom_adj 0", "app-out-of-memory"),
            ("I lmkd    : Kill 'org.tensorflow.lite.benchmark' (42), uid 10123", "app-out-of-memory"),
            ("E ActivityManager: ANR in org.tensorflow.lite.benchmark", "app-not-responding"),
            ("E AndroidRuntime: java.lang.UnsatisfiedLinkError: dlopen failed", "app-crash"),
            ("I ActivityManager: Killing 42:org.tensorflow.lite.benchmark/u0a1 (adj 0): stop", "app-killed"),
        ],
    )
    def test_who_killed_it(self, line: str, kind: str) -> None:
        """In Android's words."""
        error = read(f"log 11-18 12:00:00.000  1500  1533 {line}\napp ended died\n".encode()).error
        assert error is not None and error.kind == kind

    @settings(max_examples=150, deadline=None)
    @given(st.integers(0, len(REPORTED)), st.binary(max_size=60), st.integers(0, 400))
    def test_damaged_output_is_read_without_a_crash(self, at: int, patch: bytes, lost: int) -> None:
        """Bytes put in or taken out anywhere; what is left of a number is held against the file."""
        summary = read(REPORTED[:at] + patch + REPORTED[at + lost :]).summary
        assert summary is None or summary.count > 0


class TestResultFile:
    def test_a_recorded_file(self) -> None:
        """Of the real tool."""
        content = (DATA / "benchmark_model" / "result_file.result.pb").read_bytes()
        summary = read_result(content.hex(" "))
        assert summary is not None and summary.count == 1719
        assert summary.avg == pytest.approx(578.66, abs=0.01)

    def test_a_file_cut_anywhere_gives_nothing(self) -> None:
        """Not a part of its numbers."""
        content = (DATA / "benchmark_model" / "result_file.result.pb").read_bytes()
        assert all(read_result(content[:length].hex()) is None for length in range(len(content) - 5))
        assert read_result("") is None and read_result("zz") is None

    @settings(max_examples=200, deadline=None)
    @given(st.binary(max_size=120))
    def test_any_bytes_are_read_without_a_crash(self, content: bytes) -> None:
        """The app's file is the app's."""
        read_result(content.hex())
