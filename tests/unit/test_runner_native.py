"""The runner litert_native, host side: its command lines, the check in a shell, and the reading of real output."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from device_agents.build_agents import BIN, build_runners
from orchestrator.delegates import delegate_of
from orchestrator.errors import HostError, error_text
from orchestrator.litert_runtimes import LITERT_NATIVE
from orchestrator.plan import Measure
from orchestrator.registry import runner
from orchestrator.runners.base import Places, RunnerError
from orchestrator.runners.litert_native import LitertNative
from orchestrator.trial import Cell
from tests.unit.trial_factory import make_cell

RECORDINGS = Path(__file__).parents[1] / "data" / "litert_native"
PLACES = Places(
    python="/usr/bin/python3", files={"runner": "/w/devbench-litert", "runtime": "/w/lib.so"}, model="/w/-n"
)
MEASURE = Measure(warmup_runs=3, warmup_min_ms=200, runs=40, min_ms=250, max_ms=9000, input_seed=6)
CELL = make_cell(runner="litert_native", threads=4, delegate="xnnpack", model_sha256="ab" * 32)
SHARED = (
    "/w/devbench-litert --runtime=/w/lib.so --model=/w/-n --threads {threads} --delegate xnnpack --copy {copy} "
    "--seed 6 --warmup-runs 3 --warmup-min-ms 200 --max-ms 9000"
)
MEASURED = SHARED.format(threads=4, copy="copy") + f" --runs 40 --min-ms 250 --expect-sha256 {'ab' * 32}"


def unsupported(cell: Cell) -> str | None:
    return LITERT_NATIVE.unsupported(cell, delegate_of(cell.delegate), {})


class OneRuntime:
    """A host whose only runtime is this file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, machine: str) -> Path:
        return self._path


def lines(name: str) -> list[bytes]:
    return (RECORDINGS / f"{name}.jsonl").read_bytes().splitlines()


class TestCommands:
    def test_the_measured_command_gives_every_flag(self) -> None:
        """Those of litert_runner, and the runtime; no Python."""
        assert " ".join(LITERT_NATIVE.command(CELL, PLACES, MEASURE).argv) == MEASURED

    def test_inputs_are_added_where_there_are_some(self) -> None:
        """With an equals sign, whatever the name starts with."""
        assert LITERT_NATIVE.takes_inputs
        assert "--inputs=-in.npz" in LITERT_NATIVE.command(CELL, replace(PLACES, inputs="-in.npz"), MEASURE).argv

    def test_variant_load_and_profile(self) -> None:
        """zero-copy is a variant; a load runs on one thread; the profile is the measured command and a word."""
        in_place = LITERT_NATIVE.command(replace(CELL, runner="litert_native:zero-copy"), PLACES, MEASURE)
        assert " ".join(in_place.argv).startswith(SHARED.format(threads=4, copy="zero-copy"))
        beside = LITERT_NATIVE.beside_command(CELL, PLACES, MEASURE)
        assert " ".join(beside.argv) == SHARED.format(threads=1, copy="copy") + " --beside"
        assert " ".join(LITERT_NATIVE.profile_command(CELL, PLACES, MEASURE).argv) == f"{MEASURED} --profile"

    def test_plain_kernels_on_several_threads_are_skipped_by_name(self) -> None:
        """The interface would run them on one, whatever is asked."""
        assert unsupported(CELL) is None
        assert unsupported(replace(CELL, delegate="cpu", threads=1)) is None
        assert unsupported(replace(CELL, delegate="cpu", threads=2)) == (
            "litert_native runs plain kernels on one thread only (litert_runner can use more)"
        )

    def test_it_is_registered(self) -> None:
        """By entry point, variants included."""
        assert runner("litert_native:zero-copy") is LITERT_NATIVE


class TestFiles:
    def test_the_runner_and_its_runtime(self, tmp_path: Path) -> None:
        """One binary for each kind of machine, and the library that the host has for it."""
        build_runners(BIN)
        native = LitertNative(OneRuntime(tmp_path / "libLiteRt.so"))
        for machine, name in (("aarch64", "aarch64"), ("armv7l", "armv7"), ("amd64", "x86_64")):
            files = native.files("", machine)
            assert (files["runner"].name, files["runtime"].name) == (f"devbench-litert-{name}", "libLiteRt.so")

    def test_an_unknown_machine_is_told(self) -> None:
        """There is no guessing."""
        with pytest.raises(HostError) as caught:
            LITERT_NATIVE.files("", "riscv64")
        assert error_text(caught.value) == (
            'error: no native runner for machine "riscv64" in this installation\n'
            "  try:   build it with `make agents`, or install devbench from a wheel"
        )


def check(runner_file: Path, loaders: Path) -> tuple[int, RunnerError | None]:
    """The check of a device whose loaders are in this folder."""
    argv = LITERT_NATIVE.check_command("python3", {"runner": str(runner_file), "runtime": "/nowhere/libLiteRt.so"}).argv
    assert argv[-1] == "/lib"
    done = subprocess.run([*argv[:-1], str(loaders)], capture_output=True, timeout=30, check=False)
    return done.returncode, LITERT_NATIVE.read_check(done.stdout.splitlines())[1]


class TestCheck:
    @pytest.fixture
    def without_loader(self, tmp_path: Path) -> Path:
        """The real runner, but that its loader is one that no system has: as glibc's is to a musl system."""
        target, name = next(
            (target, path)
            for target, path in build_runners(BIN).items()
            if target.startswith(platform.machine().replace("armv7l", "arm"))
        )
        content = name.read_bytes()
        start = content.index(b"/ld-linux")
        assert target.endswith("gnu.2.17") or "gnueabihf" in target
        file = tmp_path / "devbench-litert"
        file.write_bytes(content[:start] + b"/ld-nolib" + content[start + 9 :])
        file.chmod(0o755)
        return file

    def test_musl_is_named(self, without_loader: Path, tmp_path: Path) -> None:
        """The program cannot start, so the shell says what the system has instead of glibc."""
        loader = tmp_path / "ld-musl-aarch64.so.1"
        loader.touch()
        status, error = check(without_loader, tmp_path)
        assert status == 69 and error is not None and error.permanent
        assert (error.kind, error.message) == (
            "libc-unsupported",
            f"the native runner does not start on the device: its libc is musl ({loader}), and LiteRT needs glibc",
        )

    def test_another_userland_is_named(self, without_loader: Path, tmp_path: Path) -> None:
        """A 32-bit userland on a 64-bit kernel has no loader for what the kernel's name promises."""
        status, error = check(without_loader, tmp_path)
        assert status == 69 and error is not None
        assert error.message == "the native runner does not start on the device: there is no glibc for its CPU"
        assert error.remedy == "measure with a static benchmark_model: its userland may be 32-bit"

    def test_a_folder_that_forbids_execution_is_named(self, without_loader: Path, tmp_path: Path) -> None:
        """Such as one mounted noexec; here a file without the permission."""
        without_loader.chmod(0o644)
        status, error = check(without_loader, tmp_path)
        assert status == 69 and error is not None
        assert error.message == "the native runner does not start on the device: it cannot be executed there"

    def test_what_the_runner_says_itself_is_passed_on(self, tmp_path: Path) -> None:
        """Here that there is no runtime."""
        binary = LitertNative(OneRuntime(tmp_path)).files("", os.uname().machine)["runner"]
        status, error = check(binary, tmp_path)
        assert status == 69 and error is not None
        assert (error.kind, error.message) == (
            "runtime-missing",
            "cannot open /nowhere/libLiteRt.so: No such file or directory",
        )

    def test_an_old_libc_is_permanent(self) -> None:
        """Another try cannot help."""
        _, error = LITERT_NATIVE.read_check(lines("libc_too_old"))
        assert error is not None and (error.kind, error.permanent) == ("libc-too-old", True)


class TestReading:
    def test_a_measurement(self) -> None:
        """Samples, threads and delegation are evidence by the names that every runner uses."""
        found = LITERT_NATIVE.read(lines("xnnpack_2_threads"), [])
        assert (len(found.samples_us), len(found.warmup_us), found.error) == (5, 2, None)
        seen = found.observed
        assert (seen["nodes_total"], seen["nodes_delegated"], seen["partitions"]) == (64, 64, 1)
        assert seen["threads_allocated"] - seen["threads_before"] == 1
        assert (seen["count"], seen["stopped_by"]) == (5, "runs")
        assert found.metrics["copy_in_us"] > 0 and found.metrics["init_us"] > 0

    def test_a_graph_in_parts(self) -> None:
        """Delegation is said in a line of its own."""
        found = LITERT_NATIVE.read(lines("partial"), [])
        assert (found.observed["nodes_delegated"], found.observed["partitions"]) == (3, 2)
        assert found.observed["inputs_intact"] is True
        assert "copy_in_us" not in found.metrics

    def test_a_profile(self) -> None:
        """Its samples are read like others: their median over the unprofiled one is the distortion."""
        found = LITERT_NATIVE.read(lines("profile"), [])
        assert (len(found.samples_us), found.observed["nodes_delegated"], found.error) == (5, 64, None)

    def test_an_error(self) -> None:
        """Kind, message and remedy; another try cannot help."""
        error = LITERT_NATIVE.read(lines("custom_op"), []).error
        assert error is not None and (error.kind, error.permanent) == ("op-unsupported", True)

    @pytest.mark.parametrize("length", range(0, 2600, 97))
    def test_output_cut_anywhere_is_read_as_far_as_it_goes(self, length: int) -> None:
        """Never an exception, never a sample that was not there."""
        whole = (RECORDINGS / "xnnpack_2_threads.jsonl").read_bytes()
        found = LITERT_NATIVE.read(whole[:length].splitlines(), [])
        assert len(found.samples_us) in (0, 5)
