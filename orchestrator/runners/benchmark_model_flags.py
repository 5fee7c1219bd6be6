"""The flags of both programs called `benchmark_model`: which build knows which, and what a cell asks for. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.plan import Measure
from orchestrator.trial import Cell

ENDLESS_RUNS = 2_000_000_000
ENDLESS_S = 100_000_000


class Program(StrEnum):
    """Two programs share the name; a flag of the one is silently ignored by the other."""

    INTERPRETER = "interpreter"
    COMPILED_MODEL = "compiled-model"


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


@dataclass(frozen=True)
class DelegateFlags:
    """What a delegate needs of one program. `asked` is always given, so that a build without it says so
    (`Unconsumed cmdline flags`) and the trial is rejected; `stated` only where the build knows it."""

    asked: Mapping[str, str]
    stated: Mapping[str, str] = field(default_factory=dict)


DELEGATES: Mapping[Program, Mapping[str, DelegateFlags]] = {
    # Operators that an accelerator leaves go to plain kernels, in every build alike: without the flag, to XNNPACK.
    # Other accelerators are not switched off: they are off in every release, and a build may carry the word `use_gpu`
    # without knowing the flag, which would leave it unconsumed.
    Program.INTERPRETER: {
        "xnnpack": DelegateFlags({"use_xnnpack": "true"}, {"xnnpack_force_fp16": "false"}),
        "cpu": DelegateFlags({"use_xnnpack": "false"}),
        # With any other backend than `cl` a missing OpenCL silently becomes OpenGL.
        "gpu": DelegateFlags(
            {"use_gpu": "true", "use_xnnpack": "false"},
            {
                "gpu_backend": "cl",
                "gpu_precision_loss_allowed": "true",
                "gpu_experimental_enable_quant": "true",
                "gpu_inference_for_sustained_speed": "false",
            },
        ),
        "nnapi": DelegateFlags(
            {"use_nnapi": "true", "use_xnnpack": "false"},
            {
                "disable_nnapi_cpu": "true",
                "nnapi_allow_fp16": "false",
                "nnapi_allow_dynamic_dimensions": "false",
                "nnapi_use_burst_mode": "false",
            },
        ),
        "hexagon": DelegateFlags(
            {"use_hexagon": "true", "use_xnnpack": "false"},
            {"hexagon_profiling": "false"},
        ),
    },
    # It has no plain kernels to choose. Its GPU is asked for strictly: where nothing says how many operators were
    # taken, a build that falls back to the CPU cannot be told from one that does not.
    Program.COMPILED_MODEL: {
        "xnnpack": DelegateFlags(
            {"use_cpu": "true", "use_gpu": "false", "use_npu": "false"}, {"require_full_delegation": "false"}
        ),
        "gpu": DelegateFlags(
            {"use_gpu": "true", "use_cpu": "false", "use_npu": "false", "require_full_delegation": "true"},
            {"gpu-precision": "auto", "gpu_low_priority": "false"},
        ),
    },
}
"""Issue 5 adds the delegates that need files and options of their own: external, stable, npu."""

NAMES: tuple[str, ...] = tuple(dict.fromkeys(name for table in DELEGATES.values() for name in table))

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


def _all_known() -> frozenset[str]:
    found = {name for table in _STATED.values() for name in table} | set(_OTHERS)
    for rows in DELEGATES.values():
        for row in rows.values():
            found |= {*row.asked, *row.stated}
    return frozenset(found)


KNOWN = _all_known()
"""Every flag that is looked for in a build."""

ENABLING = frozenset(name for rows in DELEGATES.values() for row in rows.values() for name in row.asked)
"""The flags without which a build cannot be asked for some delegate."""


def unsupported(fingerprint: Fingerprint, delegate: str) -> str | None:
    """Why this build cannot be asked for the delegate; None when it can."""
    row = DELEGATES[fingerprint.program].get(delegate)
    if row is None:
        can = ", ".join(DELEGATES[fingerprint.program])
        return f"the {fingerprint.program} program cannot be asked for delegate {delegate} (it can: {can})"
    missing = [name for name in row.asked if name not in fingerprint.flags]
    return f"this build has no flag --{missing[0]}" if missing else None


def measured_arguments(
    fingerprint: Fingerprint, cell: Cell, *, program: str, model: str, measure: Measure
) -> tuple[str, ...]:
    """The command line of a measured cell: every flag that matters, also where it equals the default."""
    counts = {
        "num_runs": str(measure.runs),
        "min_secs": _seconds(measure.min_ms),
        "max_secs": _seconds(measure.max_ms),
        "warmup_runs": str(measure.warmup_runs),
        "warmup_min_secs": _seconds(measure.warmup_min_ms),
    }
    return _arguments(fingerprint, cell, program=program, model=model, counts=counts)


def endless_arguments(fingerprint: Fingerprint, cell: Cell, *, program: str, model: str) -> tuple[str, ...]:
    """The command line of a load: it infers for years unless it is killed."""
    counts = {
        "num_runs": str(ENDLESS_RUNS),
        "min_secs": "0",
        "max_secs": str(ENDLESS_S),
        "warmup_runs": "1",
        "warmup_min_secs": "0",
    }
    return _arguments(fingerprint, cell, program=program, model=model, counts=counts)


def _arguments(
    fingerprint: Fingerprint, cell: Cell, *, program: str, model: str, counts: Mapping[str, str]
) -> tuple[str, ...]:
    """A delegate that this program cannot be asked for gets the other program's flags: the tool says that it did not
    consume them, and evidence rejects the trial."""
    row = DELEGATES[fingerprint.program].get(cell.delegate) or DELEGATES[Program.INTERPRETER][cell.delegate]
    stated = {**_STATED[fingerprint.program], **row.stated}
    given = {"graph": model, "num_threads": str(cell.threads), **counts, **row.asked}
    given |= {name: value for name, value in stated.items() if name in fingerprint.flags and name not in given}
    return (program, *(f"--{name}={value}" for name, value in given.items()))


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
