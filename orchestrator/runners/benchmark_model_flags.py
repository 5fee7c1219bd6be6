"""The flags of both programs called `benchmark_model`: which build knows which, and what a cell asks for. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.delegates import Delegate
from orchestrator.plan import Measure
from orchestrator.runners.benchmark_model_delegates import (
    ROWS,
    Program,
    all_rows,
    delegate_flags,
    inexpressible,
    row_for,
)

ENDLESS_RUNS = 2_000_000_000
ENDLESS_S = 100_000_000


@dataclass(frozen=True)
class Fingerprint:
    """What is known of a build without running it."""

    program: Program
    flags: frozenset[str]

    @property
    def release(self) -> str:
        """Roughly which release: no build says its version, so the newest flag that it has must do."""
        return next((words for flag, words in _RELEASES[self.program] if flag in self.flags), _OLDEST[self.program])


_RELEASES: Mapping[Program, tuple[tuple[str, str], ...]] = {
    Program.INTERPRETER: (
        ("use_ynnpack", "LiteRT 2.1.6 or later"),
        ("result_file_path", "LiteRT 2.1.0 or later"),
        ("xnnpack_slinky", "LiteRT 1.1 to 1.4, or TensorFlow 2.19"),
        ("xnnpack_runtime_flags", "LiteRT 1.3 or later"),
        ("export_model_runtime_info", "TensorFlow 2.18 or later"),
        ("op_profiling_output_mode", "TensorFlow 2.17 or later"),
        ("xnnpack_force_fp16", "TensorFlow 2.16 or later"),
        ("tensor_name_display_length", "TensorFlow 2.14 or later"),
        ("disable_delegate_clustering", "TensorFlow 2.11 or later"),
        ("report_peak_memory_footprint", "TensorFlow 2.7 or later"),
    ),
    Program.COMPILED_MODEL: (
        ("xnnpack_weight_cache_file_path", "LiteRT 2.2.0 or later"),
        ("gpu-precision", "LiteRT 2.1.5 or later"),
        ("compiler_cache_path", "LiteRT 2.1.0 or later"),
        ("result_file_path", "LiteRT 2.0.2 or later"),
        ("use_profiler", "LiteRT 1.4 or later"),
    ),
}
_OLDEST = {Program.INTERPRETER: "before TensorFlow 2.7", Program.COMPILED_MODEL: "LiteRT 1.3 or later"}


_STATED: Mapping[Program, Mapping[str, str]] = {
    Program.INTERPRETER: {
        "run_delay": "-1",
        "run_frequency": "-1",
        "use_caching": "false",
        "verbose": "false",
        "dry_run": "false",
        "report_peak_memory_footprint": "false",
        "allow_fp16": "false",
        "require_full_delegation": "false",
        "enable_op_profiling": "false",
        "max_delegated_partitions": "0",
        "min_nodes_per_partition": "0",
        "disable_delegate_clustering": "false",
        "release_dynamic_tensors": "false",
    },
    Program.COMPILED_MODEL: {
        "run_delay": "-1",
        "run_frequency": "-1",
        "verbose": "false",
        "dry_run": "false",
        "report_peak_memory_footprint": "false",
        "use_profiler": "false",
    },
}

_OTHERS = (
    "alloc_type_display_length",
    "allow_dynamic_profiling_buffer_increase",
    "benchmark_name",
    "compiler_cache_path",
    "compiler_plugin_library_path",
    "convert_weights_on_gpu",
    "coreml_version",
    "delegate_serialize_dir",
    "delegate_serialize_token",
    "dispatch_library_path",
    "enable_builtin_cast_constant_cache",
    "enable_perfetto",
    "enable_weight_sharing",
    "export_model_runtime_info",
    "external_delegate_options",
    "external_delegate_path",
    "first_delegate_node_index",
    "gpu_invoke_loop_times",
    "gpu_wait_type",
    "graph",
    "help",
    "hexagon_lib_path",
    "input_layer",
    "input_layer_shape",
    "input_layer_value_files",
    "input_layer_value_range",
    "last_delegate_node_index",
    "list_signatures",
    "max_profiling_buffer_entries",
    "max_secs",
    "mediatek_nerun_pilot_version",
    "memory_footprint_check_interval_ms",
    "min_secs",
    "model_runtime_info_output_file",
    "nnapi_accelerator_name",
    "nnapi_execution_preference",
    "nnapi_execution_priority",
    "nnapi_support_library_path",
    "num_runs",
    "num_threads",
    "op_profiling_output_file",
    "op_profiling_output_mode",
    "optimize_memory_for_large_tensors",
    "output_filepath",
    "output_prefix",
    "output_proto_filepath",
    "print_postinvoke_state",
    "print_preinvoke_state",
    "profiling_output_csv_file",
    "result_file_path",
    "signature_to_run_for",
    "stable_delegate_settings_file",
    "tensor_name_display_length",
    "tensor_type_display_length",
    "use_coreml",
    "use_npu",
    "warmup_min_secs",
    "warmup_runs",
    "xnnpack_runtime_flags",
    "use_ynnpack",
    "xnnpack_slinky",
    "xnnpack_weight_cache_file_path",
)


KNOWN = frozenset(
    {name for table in _STATED.values() for name in table}
    | set(_OTHERS)
    | {name for row in all_rows() for name in (*row.asked, *row.stated, *row.cache, *row.needs)}
)
"""Every flag that is looked for in a build."""

ENABLING = frozenset(name for row in all_rows() for name in row.asked)
"""The flags without which a build cannot be asked for some delegate."""


@dataclass(frozen=True)
class Invocation:
    """What one command line is about, beyond how often and how long."""

    program: str
    model: str
    threads: int
    delegate: Delegate
    places: Mapping[str, str | None]
    """By the names that the table of delegates uses."""
    outputs: Mapping[str, str]
    """Where it shall write what: `result`, the summary; `runtime`, what was delegated; `profile`, the operators."""


def unsupported(fingerprint: Fingerprint, delegate: Delegate) -> str | None:
    """Why this build cannot be asked for the delegate; None when it can."""
    row = row_for(fingerprint.program, fingerprint.flags, delegate.base)
    if row is None:
        can = ", ".join(ROWS[fingerprint.program])
        return f"the {fingerprint.program} program cannot be asked for delegate {delegate.name} (it can: {can})"
    return inexpressible(row, delegate, fingerprint.flags)


def written_files(fingerprint: Fingerprint, folder: str, *, profiled: bool) -> dict[str, str]:
    """Which files this build can be told to write, by role, in a folder of the device."""
    known, is_compiled = fingerprint.flags, fingerprint.program == Program.COMPILED_MODEL
    runtime = {"model_runtime_info_output_file"} | (set() if is_compiled else {"export_model_runtime_info"})
    found = {}
    if "result_file_path" in known:
        found["result"] = f"{folder}/result.pb"
    if runtime <= known:
        found["runtime"] = f"{folder}/runtime.pb"
    if profiled and not is_compiled and {"op_profiling_output_mode", "op_profiling_output_file"} <= known:
        found["profile"] = f"{folder}/profile.pb"
    elif profiled and not is_compiled and "profiling_output_csv_file" in known:
        found["profile"] = f"{folder}/profile.csv"
    return found


def measured_arguments(fingerprint: Fingerprint, invocation: Invocation, measure: Measure) -> tuple[str, ...]:
    """The command line of a measured cell: every flag that matters, also where it equals the default."""
    return _arguments(fingerprint, invocation, _counts(measure))


def profiled_arguments(fingerprint: Fingerprint, invocation: Invocation, measure: Measure) -> tuple[str, ...]:
    """The same with the operators timed, in the best form that the build has."""
    if fingerprint.program == Program.COMPILED_MODEL:
        return _arguments(fingerprint, invocation, _counts(measure) | {"use_profiler": "true"})
    given = _counts(measure) | {"enable_op_profiling": "true"}
    place = invocation.outputs.get("profile", "")
    if place.endswith(".pb"):
        given |= {"op_profiling_output_mode": "proto", "op_profiling_output_file": place}
    elif place:
        given["profiling_output_csv_file"] = place
    if "allow_dynamic_profiling_buffer_increase" in fingerprint.flags:
        given["allow_dynamic_profiling_buffer_increase"] = "true"
    return _arguments(fingerprint, invocation, given)


def unprofiled(fingerprint: Fingerprint) -> str | None:
    """Why this build gives no operator profile; None when it does."""
    needed = "use_profiler" if fingerprint.program == Program.COMPILED_MODEL else "enable_op_profiling"
    return None if needed in fingerprint.flags else f"this build has no flag --{needed}"


def endless_arguments(fingerprint: Fingerprint, invocation: Invocation) -> tuple[str, ...]:
    """The command line of a load: it infers for years unless it is killed."""
    counts = {
        "num_runs": str(ENDLESS_RUNS),
        "min_secs": "0",
        "max_secs": str(ENDLESS_S),
        "warmup_runs": "1",
        "warmup_min_secs": "0",
    }
    return _arguments(fingerprint, invocation, counts)


def _counts(measure: Measure) -> dict[str, str]:
    return {
        "num_runs": str(measure.runs),
        "min_secs": _seconds(measure.min_ms),
        "max_secs": _seconds(measure.max_ms),
        "warmup_runs": str(measure.warmup_runs),
        "warmup_min_secs": _seconds(measure.warmup_min_ms),
    }


def _arguments(fingerprint: Fingerprint, invocation: Invocation, more: Mapping[str, str]) -> tuple[str, ...]:
    """A delegate that this program cannot be asked for gets the other program's flags: the tool says that it did not
    consume them, and evidence rejects the trial."""
    base, known = invocation.delegate.base, fingerprint.flags
    programs = (fingerprint.program, *Program)
    row = next(found for program in programs if (found := row_for(program, known, base)) is not None)
    given = {"graph": invocation.model, "num_threads": str(invocation.threads), **more}
    given |= delegate_flags(row, invocation.delegate, known, invocation.places)
    if "result" in invocation.outputs:
        given["result_file_path"] = invocation.outputs["result"]
    if "runtime" in invocation.outputs:
        given["model_runtime_info_output_file"] = invocation.outputs["runtime"]
        if fingerprint.program == Program.INTERPRETER:
            given["export_model_runtime_info"] = "true"
    stated = _STATED[fingerprint.program]
    given |= {name: value for name, value in stated.items() if name in known and name not in given}
    return (invocation.program, *(f"--{name}={value}" for name, value in given.items()))


def _seconds(milliseconds: int) -> str:
    """Exact, without an exponent, whatever the number."""
    return f"{milliseconds // 1000}.{milliseconds % 1000:03d}"


_FLAG_LINE = re.compile(r"\s+--([A-Za-z][A-Za-z0-9_-]{0,100})(?:=|\s)")


def flags_in_usage(lines: Iterable[str]) -> frozenset[str]:
    """The flags that `--help` lists, in the shapes of both programs."""
    return frozenset(found[1] for line in lines if (found := _FLAG_LINE.match(line)))


def program_of(flags: Iterable[str]) -> Program | None:
    """Which program lists these flags."""
    known = set(flags)
    if known & {"use_npu", "dispatch_library_path"}:
        return Program.COMPILED_MODEL
    return Program.INTERPRETER if known & {"use_xnnpack", "input_layer", "allow_fp16"} else None
