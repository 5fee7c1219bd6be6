"""What benchmark_model is told: delegates with their settings, caches, files, and profiles, by what a build knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.delegates import BUILT_IN, Delegate
from orchestrator.plan import Measure
from orchestrator.runners.base import Command, Places
from orchestrator.runners.benchmark_model import BenchmarkModel
from orchestrator.runners.benchmark_model_delegates import Program
from orchestrator.runners.benchmark_model_flags import KNOWN, flags_in_usage
from tests.unit.test_benchmark_model_output import ALL
from tests.unit.test_benchmark_model_runner import PLACES, runner
from tests.unit.trial_factory import make_cell

MEASURE = Measure()
INTERPRETER, COMPILED = Program.INTERPRETER, Program.COMPILED_MODEL


def given(command: Command) -> dict[str, str]:
    pairs = [argument.removeprefix("--").partition("=") for argument in command.argv[1:]]
    return {name: value for name, _, value in pairs}


def told(
    delegate: Delegate, program: Program = INTERPRETER, flags: frozenset[str] = KNOWN, **places: str
) -> dict[str, str]:
    where = replace(PLACES, delegate=delegate, **places)  # type: ignore[arg-type]  # texts, all of them
    return given(runner(flags, program).command(make_cell(delegate=delegate.label), where, MEASURE))


class TestSettings:
    def test_gpu_backend_and_precision(self) -> None:
        """In each program's own words."""
        gpu = replace(BUILT_IN["gpu"], settings={"backend": "gl", "precision": "fp32"})
        wanted = {"use_gpu": "true", "gpu_backend": "gl", "gpu_precision_loss_allowed": "false", "use_xnnpack": "false"}
        assert wanted.items() <= told(gpu).items()
        assert {"gpu_backend": "opengl", "gpu-precision": "fp32"}.items() <= told(gpu, COMPILED).items()
        assert told(gpu, COMPILED, KNOWN - {"gpu-precision"})["allow_fp16"] == "false"

    def test_what_a_program_has_no_word_for_is_not_expressible(self) -> None:
        """The cell is skipped."""
        gpu, cell = replace(BUILT_IN["gpu"], settings={"backend": "webgpu"}), make_cell(runner="benchmark_model")
        assert runner().unsupported(cell, gpu, {}) == "benchmark_model: it has no backend webgpu (it has: cl, gl)"
        older = runner(KNOWN - {"gpu_backend"})
        chosen = replace(gpu, settings={"backend": "cl"})
        assert older.unsupported(cell, chosen, {}) == "benchmark_model: this build has no flag --gpu_backend"
        assert older.unsupported(cell, BUILT_IN["gpu"], {}) is None

    def test_nnapi_accelerator(self) -> None:
        """Given where the user named one."""
        named = replace(BUILT_IN["nnapi"], settings={"accelerator": "qti-dsp"})
        assert told(named)["nnapi_accelerator_name"] == "qti-dsp"
        assert "nnapi_accelerator_name" not in told(BUILT_IN["nnapi"])

    def test_external_and_stable_delegates_name_their_library(self) -> None:
        """With options only where there are some."""
        qnn = told(BUILT_IN["qnn"], library="/usr/lib/libQnnTFLiteDelegate.so")
        assert qnn["external_delegate_path"] == "/usr/lib/libQnnTFLiteDelegate.so"
        assert qnn["external_delegate_options"] == "backend_type:htp"
        assert "external_delegate_options" not in told(BUILT_IN["vx"], library="/usr/lib/libvx_delegate.so")
        assert told(BUILT_IN["stable"], library="/d/s.json")["stable_delegate_settings_file"] == "/d/s.json"

    def test_npu_libraries_are_found_by_their_folder(self) -> None:
        """Fallback to the CPU is forbidden only where nothing else would show it."""
        npu = replace(BUILT_IN["npu"], libraries=("libLiteRtDispatch_Qualcomm.so",))
        new = told(npu, COMPILED, library_folder="/d/npu")
        assert new["dispatch_library_path"] == new["compiler_plugin_library_path"] == "/d/npu"
        assert (new["use_npu"], new["use_cpu"], new["require_full_delegation"]) == ("true", "true", "false")
        old = told(npu, COMPILED, KNOWN - {"model_runtime_info_output_file"}, library_folder="/d/npu")
        assert (old["use_cpu"], old["require_full_delegation"]) == ("false", "true")

    def test_a_users_flags_are_given(self) -> None:
        """They win over what is stated."""
        mine = replace(BUILT_IN["gpu"], name="mine", flags={"gpu_inference_for_sustained_speed": "true"})
        assert told(mine)["gpu_inference_for_sustained_speed"] == "true"


class TestCachesAndEnvironment:
    @pytest.mark.parametrize(
        ("name", "program", "expected"),
        [
            ("xnnpack", INTERPRETER, {"xnnpack_weight_cache_file_path": "/d/cache/weights"}),
            ("gpu", INTERPRETER, {"delegate_serialize_dir": "/d/cache"}),
            ("xnnpack", COMPILED, {"xnnpack_weight_cache_file_path": "/d/cache/weights"}),
            ("gpu", COMPILED, {"gpu_serialization_dir": "/d/cache"}),
            ("npu", COMPILED, {"compiler_cache_path": "/d/cache"}),
        ],
    )
    def test_a_cache_is_given_where_the_cell_states_one(
        self, name: str, program: Program, expected: dict[str, str]
    ) -> None:
        """And only there."""
        warm = replace(BUILT_IN[name], cache="warm")
        assert expected.items() <= told(warm, program, cache="/d/cache", library_folder="/d").items()
        assert not expected.keys() & told(BUILT_IN[name], program, library_folder="/d").keys()

    def test_a_build_without_the_flag_keeps_no_cache(self) -> None:
        """By the flag's name."""
        warm, cell = replace(BUILT_IN["xnnpack"], cache="warm"), make_cell(runner="benchmark_model")
        reason = runner(KNOWN - {"xnnpack_weight_cache_file_path"}).unsupported(cell, warm, {})
        assert reason == "benchmark_model: this build has no flag --xnnpack_weight_cache_file_path for a warm cache"

    def test_the_environment_of_a_delegate(self) -> None:
        """Its libraries are found by the loader; a graph cache is the environment's."""
        vx = replace(BUILT_IN["vx"], cache="cold")
        places = replace(PLACES, delegate=vx, library="/l.so", library_folder="/d/vx", cache="/d/cache")
        env = runner().command(make_cell(delegate="vx+cold"), places, MEASURE).env
        assert env["LD_LIBRARY_PATH"] == "/d/vx"
        assert env["VIV_VX_CACHE_BINARY_GRAPH_DIR"] == "/d/cache"
        plain = replace(places, delegate=BUILT_IN["vx"], cache=None, library_folder=None)
        assert set(runner().command(make_cell(delegate="vx"), plain, MEASURE).env) == {"LC_ALL"}


class TestFiles:
    def test_files_are_asked_for_where_the_build_writes_them(self) -> None:
        """Their places are the command's outputs."""
        command = runner().command(make_cell(), replace(PLACES, outputs="/d/out"), MEASURE)
        assert command.outputs == {"result": "/d/out/result.pb", "runtime": "/d/out/runtime.pb"}
        flags = given(command)
        assert flags["result_file_path"] == "/d/out/result.pb"
        assert (flags["export_model_runtime_info"], flags["enable_op_profiling"]) == ("true", "false")
        older = runner(KNOWN - {"result_file_path", "export_model_runtime_info"})
        assert older.command(make_cell(), replace(PLACES, outputs="/d/out"), MEASURE).outputs == {}

    def test_the_device_says_what_the_binary_is(self) -> None:
        """Its own --help there wins over what its bytes look like here."""
        usage = flags_in_usage(line.decode() for line in ALL["help"].stderr)
        places = Places(
            "python3",
            PLACES.files,
            PLACES.model,
            outputs="/d/out",
            facts={"program": "interpreter", "flags": sorted(usage)},
        )
        asked = given(runner(frozenset({"use_xnnpack"}), COMPILED).command(make_cell(), places, MEASURE))
        assert asked["use_xnnpack"] == "true"
        assert "result_file_path" in asked


class TestProfiles:
    @pytest.mark.parametrize(
        ("missing", "expected", "role"),
        [
            ((), {"op_profiling_output_mode": "proto", "op_profiling_output_file": "/d/out/profile.pb"}, "profile.pb"),
            (("op_profiling_output_mode",), {"profiling_output_csv_file": "/d/out/profile.csv"}, "profile.csv"),
            (("op_profiling_output_mode", "profiling_output_csv_file"), {}, None),
        ],
    )
    def test_the_best_form_that_the_build_has(
        self, missing: tuple[str, ...], expected: dict[str, str], role: str | None
    ) -> None:
        """Proto, then CSV, then what it prints."""
        build: BenchmarkModel = runner(KNOWN - set(missing))
        command = build.profile_command(make_cell(), replace(PLACES, outputs="/d/out"), MEASURE)
        assert {"enable_op_profiling": "true", **expected}.items() <= given(command).items()
        assert command.outputs.get("profile") == (f"/d/out/{role}" if role else None)

    def test_the_other_program_prints_it(self) -> None:
        """It has no file for it."""
        command = runner(program=COMPILED).profile_command(make_cell(), replace(PLACES, outputs="/d/out"), MEASURE)
        assert given(command)["use_profiler"] == "true"
        assert "profile" not in command.outputs

    def test_a_build_without_a_profiler_is_known(self) -> None:
        """By the flag's name."""
        cell = make_cell(runner="benchmark_model")
        assert runner().unprofiled(cell, {}) is None
        assert runner(KNOWN - {"enable_op_profiling"}).unprofiled(cell, {}) == (
            "benchmark_model: this build has no flag --enable_op_profiling"
        )
