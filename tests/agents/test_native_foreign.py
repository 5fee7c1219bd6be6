"""The native runner for other processors: real aarch64 code and the real aarch64 runtime under user-mode emulation.

It needs qemu-user, an aarch64 glibc and libstdc++, and the runtime's wheel from the package registry; where one cannot
be had, the test is skipped and says so. What is measured there means nothing; that it runs, and as asked, does.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orchestrator.binary_lock import read_lock
from orchestrator.clock import Deadline
from orchestrator.errors import HostError
from orchestrator.litert_runtimes import Runtimes
from orchestrator.litert_wheels import fetch_runtime
from tests.runner_process import INT8, MODELS, Runner, run_program

USERLAND = Path("/usr/aarch64-linux-gnu/lib")
CPUINFO = """\
processor\t: 0
BogoMIPS\t: 100.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1

"""
"""A Neoverse N1: the runtime reads /proc/cpuinfo, and qemu would show it this machine's."""


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words that start an aarch64 program in a userland of its own."""
    emulator = shutil.which("qemu-aarch64-static")
    if emulator is None:
        pytest.skip("qemu-aarch64-static is not installed")
    if not (USERLAND / "libstdc++.so.6").exists():
        pytest.skip(f"no aarch64 userland in {USERLAND} (Debian's libc6-arm64-cross and libstdc++6-arm64-cross)")
    root = tmp_path_factory.mktemp("board")
    (root / "lib").symlink_to(USERLAND)
    (root / "proc").mkdir()
    (root / "proc" / "cpuinfo").write_text(CPUINFO)
    return [emulator, "-L", str(root)]


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Runtimes:
    """The aarch64 runtime, fetched with pip from the registry that is set up here."""
    runtimes = Runtimes(tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("project"))
    try:
        fetch_runtime(runtimes, "linux-arm64", Deadline.after(120))
    except HostError as error:
        pytest.skip(f"the aarch64 runtime cannot be had: {error}")
    return runtimes


@pytest.fixture(scope="module")
def foreign(emulated: list[str], native_runners: dict[str, Path], fetched: Runtimes) -> Runner:
    binary = native_runners["aarch64-linux-gnu.2.17"]
    return Runner((*emulated, str(binary), f"--runtime={fetched.find('aarch64')}"))


def test_the_runtime_is_locked_when_fetched(fetched: Runtimes) -> None:
    """By the hash of the library itself; a second fetch needs no network."""
    locked = read_lock(fetched.project)["ai-edge-litert-2.3.0 linux-arm64"]
    kept = fetched.kept("aarch64")
    assert kept is not None and (locked.sha256, locked.size) == (kept.sha256, kept.size)
    assert fetch_runtime(fetched, "linux-arm64", Deadline.after(0)) == kept


def test_it_starts_and_knows_its_runtime(foreign: Runner) -> None:
    """A dynamic program in a foreign userland, linked with an old glibc."""
    ran = run_program([*foreign.program, "--check"])
    assert (ran.exit_code, ran.kinds) == (0, ["start"])


def test_it_measures_with_xnnpack(foreign: Runner) -> None:
    """The whole int8 network, delegated whole, on two threads; the emulator itself has one more."""
    ran = foreign.measured(INT8, threads="2", runs="2", warmup_runs="0", max_ms="50000")
    init, delegation = ran.one("init"), ran.one("delegation")
    assert init["threads_allocated"] - init["threads_before"] == 1
    assert (delegation["nodes_delegated"], delegation["partitions"], delegation["remaining"]) == (64, 1, {})
    assert ran.one("end")["count"] == 2


def test_its_results_are_those_of_this_machine(foreign: Runner, native: Runner) -> None:
    """Inputs from the seed and outputs of simple operators do not depend on the processor."""
    for name in ("partial", "int8_add", "two_inputs"):
        model = MODELS / f"{name}.tflite"
        there, here = foreign.measured(model).one("end"), native.measured(model).one("end")
        assert there["output_sha256"] == here["output_sha256"]


def test_its_profile(foreign: Runner) -> None:
    """The profiler's structures are read alike there."""
    ran = foreign.measured(MODELS / "partial.tflite", profile="", runs="2")
    assert [op["name"] for op in ran.all("op")] == ["Add (ND)", "CUMSUM", "Add (ND)", "Multiply (ND)"]


def test_a_runtime_for_another_cpu_is_named(foreign: Runner, runtime: Path) -> None:
    """Here this machine's, given to the aarch64 runner."""
    ran = run_program([*foreign.program[:-1], "--check", f"--runtime={runtime}"])
    assert ran.error == (69, "runtime-missing", f"{runtime} is built for another CPU")


def test_a_userland_without_cxx_is_named(
    native_runners: dict[str, Path], emulated: list[str], fetched: Runtimes, tmp_path: Path
) -> None:
    """A board with glibc alone lacks libstdc++, and is told so."""
    (tmp_path / "lib").mkdir()
    for name in ("ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"):
        (tmp_path / "lib" / name).symlink_to(USERLAND / name)
    argv = [emulated[0], "-L", str(tmp_path), str(native_runners["aarch64-linux-gnu.2.17"]), "--check"]
    told = "libLiteRt.so needs libstdc++.so.6, which this system does not have"
    assert run_program([*argv, f"--runtime={fetched.find('aarch64')}"]).error == (69, "library-missing", told)


def test_every_runner_asks_for_an_old_glibc_only(native_runners: dict[str, Path]) -> None:
    """So that it starts on a board whose libc is too old for the runtime, and can say so."""
    for path in native_runners.values():
        words = {word for word in path.read_bytes().split(b"\0") if word.startswith(b"GLIBC_2.")}
        assert words and all(int(word.split(b".")[1]) <= 17 for word in words), path
