"""The runner benchmark_model: its command lines, and what it makes of --help."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.delegates import BUILT_IN
from orchestrator.errors import UsageError, error_text
from orchestrator.plan import Measure
from orchestrator.runners.base import Places, Runner
from orchestrator.runners.benchmark_model import BenchmarkModel
from orchestrator.runners.benchmark_model_fingerprint import machine_name, read_elf, read_fingerprint
from orchestrator.runners.benchmark_model_flags import KNOWN, Fingerprint, Program
from tests.unit.elf_factory import COMPILED_MODEL_WORDS, make_elf
from tests.unit.test_benchmark_model_output import ALL
from tests.unit.trial_factory import make_cell

PLACES = Places(python="python3", files={"runner": "/d/benchmark_model"}, model="/d/m.tflite")
MEASURE = Measure(runs=50, min_ms=300, max_ms=20_000, warmup_runs=5, warmup_min_ms=1500)
HELP = ALL["help"].stdout + ALL["help"].stderr
HELP_MORE = ALL["more/help"].stdout + ALL["more/help"].stderr
PLAIN_FLAGS = frozenset({"num_threads", "use_xnnpack", "dry_run", "verbose"})


class Shelf:
    """A cache of one binary."""

    def __init__(self, fingerprint: Fingerprint) -> None:
        self._fingerprint = fingerprint

    def names(self) -> Sequence[str]:
        return ["nightly"]

    def find(self, name: str, machine: str) -> Path:
        return Path(f"/cache/{name or 'newest'}/{machine}")

    def fingerprint(self, digest: str | None) -> Fingerprint:
        return self._fingerprint


def runner(flags: frozenset[str] = KNOWN, program: Program = Program.INTERPRETER) -> BenchmarkModel:
    return BenchmarkModel(Shelf(Fingerprint(program, flags)))


def arguments(of: BenchmarkModel, *, delegate: str = "xnnpack", threads: int = 2) -> dict[str, str]:
    """The flags of the measured command; each is given once, as --name=value."""
    argv = of.command(make_cell(delegate=delegate, threads=threads), PLACES, MEASURE).argv
    assert argv[0] == "/d/benchmark_model"
    pairs = [argument.removeprefix("--").partition("=") for argument in argv[1:]]
    assert all(argument.startswith("--") and "=" in argument for argument in argv[1:])
    assert len({name for name, _, _ in pairs}) == len(pairs)
    return {name: value for name, _, value in pairs}


class TestCommand:
    def test_it_is_a_runner(self) -> None:
        """Of the protocol, variants and all."""
        typed: Runner = runner()
        assert list(typed.variants) == ["nightly"]
        assert typed.files("nightly", "aarch64") == {"runner": Path("/cache/nightly/aarch64")}
        assert typed.platforms == ("android", "linux", "ios-jailbroken")

    def test_counts_and_times_are_always_given(self) -> None:
        """In seconds, exactly, also to a build of which nothing is known."""
        expected = {
            "graph": "/d/m.tflite",
            "num_threads": "2",
            "num_runs": "50",
            "min_secs": "0.300",
            "max_secs": "20.000",
            "warmup_runs": "5",
            "warmup_min_secs": "1.500",
            "use_xnnpack": "true",
        }
        assert arguments(runner(frozenset())) == expected

    def test_flags_that_equal_the_default_are_given_where_the_build_knows_them(self) -> None:
        """Others would be unconsumed, and the trial rejected."""
        given_flags = arguments(runner(PLAIN_FLAGS))
        assert given_flags["dry_run"] == given_flags["verbose"] == "false"
        assert "enable_op_profiling" not in given_flags
        assert arguments(runner())["enable_op_profiling"] == "false"

    @pytest.mark.parametrize(
        ("delegate", "expected"),
        [
            ("xnnpack", {"use_xnnpack": "true", "xnnpack_force_fp16": "false"}),
            ("cpu", {"use_xnnpack": "false"}),
            ("gpu", {"use_xnnpack": "false", "use_gpu": "true", "gpu_backend": "cl"}),
            ("nnapi", {"use_xnnpack": "false", "use_nnapi": "true", "disable_nnapi_cpu": "true"}),
            ("hexagon", {"use_xnnpack": "false", "use_hexagon": "true"}),
        ],
    )
    def test_delegates_of_the_interpreter_program(self, delegate: str, expected: dict[str, str]) -> None:
        """XNNPACK is always said to be on or off: unset means something else in every release."""
        assert expected.items() <= arguments(runner(), delegate=delegate).items()

    @pytest.mark.parametrize("delegate", ["xnnpack", "cpu", "gpu", "nnapi", "hexagon"])
    def test_other_accelerators_are_not_mentioned(self, delegate: str) -> None:
        """A build may carry their words and not know their flags: then nothing could be measured with it."""
        others = {"use_gpu", "use_nnapi", "use_hexagon", "use_ynnpack"} - {f"use_{delegate}"}
        assert not others & arguments(runner(), delegate=delegate).keys()

    def test_delegates_of_the_compiled_model_program(self) -> None:
        """Accelerators by flags of its own; the GPU without a way back to the CPU."""
        compiled = runner(program=Program.COMPILED_MODEL)
        assert {"use_cpu": "true", "use_gpu": "false", "use_npu": "false"}.items() <= arguments(compiled).items()
        on_gpu = arguments(compiled, delegate="gpu")
        assert (on_gpu["use_cpu"], on_gpu["use_gpu"], on_gpu["require_full_delegation"]) == ("false", "true", "true")
        assert "use_xnnpack" not in on_gpu and "enable_op_profiling" not in on_gpu

    def test_a_delegate_that_the_build_lacks_is_asked_for_all_the_same(self) -> None:
        """Then the tool says that it did not consume the flag; leaving it out would measure the CPU."""
        assert arguments(runner(PLAIN_FLAGS), delegate="gpu")["use_gpu"] == "true"
        assert arguments(runner(PLAIN_FLAGS, Program.COMPILED_MODEL), delegate="cpu")["use_xnnpack"] == "false"

    def test_what_a_build_cannot_do_is_known_beforehand(self) -> None:
        """So that the cell is skipped by name."""
        cell = make_cell(delegate="gpu", runner="benchmark_model:nightly")
        gpu, cpu = BUILT_IN["gpu"], BUILT_IN["cpu"]
        assert runner().unsupported(cell, gpu, {}) is None
        reason = "benchmark_model:nightly: this build has no flag --use_gpu"
        assert runner(PLAIN_FLAGS).unsupported(cell, gpu, {}) == reason
        compiled = runner(program=Program.COMPILED_MODEL)
        assert compiled.unsupported(make_cell(delegate="cpu", runner="benchmark_model"), cpu, {}) == (
            "benchmark_model: the compiled-model program cannot be asked for delegate cpu (it can: xnnpack, gpu, npu)"
        )

    def test_a_load_has_one_thread_and_no_end(self) -> None:
        """Until it is killed."""
        argv = runner().beside_command(make_cell(threads=4), PLACES, MEASURE).argv
        assert {"--num_threads=1", "--num_runs=2000000000", "--max_secs=100000000", "--min_secs=0"} <= set(argv)
        assert 2_000_000_000 < 2**31

    def test_inputs_are_refused(self) -> None:
        """Not left out without a word."""
        places = Places("python3", PLACES.files, PLACES.model, inputs="/d/in.npz")
        with pytest.raises(UsageError) as caught:
            runner().command(make_cell(runner="benchmark_model"), places, MEASURE)
        assert error_text(caught.value) == (
            "error: benchmark_model cannot be given inputs\n"
            "  try:   leave inputs out of [measure], or measure with litert_runner alone"
        )

    @given(st.integers(0, 10**9))
    def test_seconds_are_exact(self, milliseconds: int) -> None:
        """Without exponents, which the tool would misread."""
        argv = runner(frozenset()).command(make_cell(), PLACES, Measure(min_ms=milliseconds)).argv
        text = next(argument for argument in argv if argument.startswith("--min_secs=")).partition("=")[2]
        assert round(float(text) * 1000) == milliseconds and "e" not in text


class TestCheck:
    def test_help_is_asked_for_with_both_streams_and_a_good_end(self) -> None:
        """Usage is on standard error, with status 1; the path is never part of a shell's text."""
        argv = runner().check_command("python3", {"runner": "/d/a b'c"}).argv
        assert argv == ("sh", "-c", '"$1" --help 2>&1; exit 0', "sh", "/d/a b'c")

    def test_recorded_help_tells_program_flags_and_release(self) -> None:
        """Of the build with more delegates, more flags."""
        facts, error = runner().read_check(HELP)
        assert error is None
        assert facts["runtime"] == "benchmark_model" and facts["program"] == "interpreter"
        assert facts["runtime_version"] == "LiteRT 2.1.0 or later"
        assert "use_xnnpack" in facts["flags"] and "use_gpu" not in facts["flags"]
        more, _ = runner().read_check(HELP_MORE)
        assert {"use_gpu", "use_nnapi", "nnapi_accelerator_name"} <= set(more["flags"])

    def test_every_flag_of_the_recorded_help_is_looked_for_in_builds(self) -> None:
        """A flag that is not could not be stated."""
        assert set(runner().read_check(HELP_MORE)[0]["flags"]) - KNOWN == set()

    def test_help_of_the_compiled_model_program(self) -> None:
        """Its base flags look like the other's; those of vendors do not."""
        usage = [
            b"  Flags from qualcomm_flags.cc:",
            b"    --qualcomm_log_level (log level); default: info;",
            b"INFO: usage: benchmark_model <flags>",
            b"Flags:",
            b"\t--num_runs=50\tint32\toptional\texpected number of runs",
            b"\t--use_npu=false\tbool\toptional\tWhether to use NPU accelerator.",
            b"\t--gpu-precision=auto\tstring\toptional\tprecision",
        ]
        facts, error = runner().read_check(usage)
        assert error is None and facts["program"] == "compiled-model"
        assert facts["runtime_version"] == "LiteRT 2.1.5 or later"
        assert {"qualcomm_log_level", "gpu-precision"} <= set(facts["flags"])

    def test_a_build_without_help_is_known_by_its_start(self) -> None:
        """TensorFlow before 2.6."""
        facts, error = runner().read_check([b"STARTING!", b"Unconsumed cmdline flags: --help"])
        assert error is None and facts["flags"] == [] and facts["runtime_version"] == "unknown"

    @pytest.mark.parametrize(
        ("printed", "told"),
        [
            ([b"sh: /d/benchmark_model: not executable: 64-bit ELF file"], "not executable: 64-bit ELF file"),
            ([], "it printed nothing"),
            ([b"CANNOT LINK EXECUTABLE: library libX.so not found", b""], "library libX.so not found"),
        ],
    )
    def test_a_binary_that_does_not_run_is_refused(self, printed: list[bytes], told: str) -> None:
        """In the words of whoever refused it."""
        facts, error = runner().read_check(printed)
        assert facts == {} and error is not None and error.permanent
        assert error.message.startswith("the binary does not run on this device: ") and error.message.endswith(told)

    @given(st.lists(st.binary(max_size=100), max_size=20))
    def test_any_answer_is_read_without_an_exception(self, lines: list[bytes]) -> None:
        """Facts or an error."""
        facts, error = runner().read_check(lines)
        assert bool(facts) != (error is not None)


class TestFingerprint:
    @pytest.mark.parametrize("system", ["android", "linux", "any"])
    @pytest.mark.parametrize("machine", ["aarch64", "armv7l", "x86_64"])
    def test_machine_and_system_are_in_the_head(self, machine: str, system: str) -> None:
        """A static program runs on either system."""
        elf = read_elf(make_elf(machine=machine, system=system))
        assert (elf.machine, elf.system) == (machine, system)

    def test_android_calls_machines_otherwise(self) -> None:
        """The ABI is what a phone lists."""
        assert read_elf(make_elf(machine="aarch64", system="android")).abi == "arm64-v8a"
        assert read_elf(make_elf(machine="armv7l", system="android")).abi == "armeabi-v7a"
        assert read_elf(make_elf(machine="aarch64", system="linux")).abi == "aarch64"
        assert [machine_name(name) for name in ("arm64-v8a", "armv8l", "AMD64", "aarch64")] == [
            "aarch64",
            "armv7l",
            "x86_64",
            "aarch64",
        ]

    def test_a_flag_kept_only_as_the_tail_of_another_word_is_found(self) -> None:
        """Linkers merge them; without it the delegate would be skipped for nothing."""
        assert "use_gpu" in read_fingerprint(make_elf(words=("Explicitly applied ", "do_not_use_gpu"))).flags

    def test_words_tell_the_program(self) -> None:
        """The CompiledModel program carries most of the other's words as well: its own decide."""
        assert read_fingerprint(make_elf()).program == Program.INTERPRETER
        both = make_elf(words=(*COMPILED_MODEL_WORDS, "Explicitly applied "))
        assert read_fingerprint(both).program == Program.COMPILED_MODEL
        assert "gpu-precision" in read_fingerprint(both).flags

    @given(st.binary(max_size=300))
    def test_bytes_that_are_no_program_are_refused_in_words(self, content: bytes) -> None:
        """ValueError, and nothing else."""
        for start in (b"", b"\x7fELF", b"\x7fELF\x02\x01\x01", make_elf()[:40]):
            with suppress(ValueError):
                read_elf(start + content)

    def test_a_header_that_points_past_everything_is_cut_short(self) -> None:
        """No offset is trusted."""
        content = bytearray(make_elf())
        content[32:40] = b"\xff" * 8
        with pytest.raises(ValueError, match="cut short"):
            read_elf(bytes(content))
