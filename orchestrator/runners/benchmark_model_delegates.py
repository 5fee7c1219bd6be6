"""What `benchmark_model` is told for each delegate: a table by program, and by release where flags changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.delegates import Delegate


class Program(StrEnum):
    """Two programs share the name; a flag of the one is silently ignored by the other."""

    INTERPRETER = "interpreter"
    COMPILED_MODEL = "compiled-model"


@dataclass(frozen=True)
class Choice:
    """A flag whose value is a setting of the delegate's, in the program's own words."""

    setting: str
    words: Mapping[str, str] | None = None
    """The program's word for each of ours; None where they are the same."""
    default: str | None = None
    """What is given where the user chose nothing; None leaves the flag out."""

    def value(self, delegate: Delegate) -> str | None:
        chosen = delegate.settings.get(self.setting)
        if chosen is None:
            return self.default
        return chosen if self.words is None else self.words.get(chosen)

    def is_impossible(self, delegate: Delegate) -> bool:
        """Whether the program has no word for what was chosen."""
        return delegate.settings.get(self.setting) is not None and self.value(delegate) is None


Value = str | Choice
"""A text may name a place: {library}, {folder}, {options}, {cache}, {token}. A flag of an empty place is left out."""


@dataclass(frozen=True)
class Row:
    """What a delegate needs of one program. `asked` is always given, so that a build without it says so
    (`Unconsumed cmdline flags`) and the trial is rejected; `stated` only where the build knows it, unless the user
    chose it; `needs` are flags by which the release is known."""

    asked: Mapping[str, Value]
    stated: Mapping[str, Value] = field(default_factory=dict)
    cache: Mapping[str, Value] = field(default_factory=dict)
    """What makes it keep what it compiles."""
    needs: tuple[str, ...] = ()


_SERIALIZED = {"delegate_serialize_dir": "{cache}", "delegate_serialize_token": "{token}"}
_WEIGHTS = {"xnnpack_weight_cache_file_path": "{cache}/weights"}

ROWS: Mapping[Program, Mapping[str, tuple[Row, ...]]] = {
    # Operators that an accelerator leaves go to plain kernels, in every build alike: without the flag, to XNNPACK.
    # Other accelerators are not switched off: they are off in every release, and a build may carry the word `use_gpu`
    # without knowing the flag, which would leave it unconsumed.
    Program.INTERPRETER: {
        "xnnpack": (
            Row(
                {"use_xnnpack": "true"},
                {"xnnpack_force_fp16": Choice("precision", {"fp16": "true", "fp32": "false"}, "false")},
                _WEIGHTS,
            ),
        ),
        "cpu": (Row({"use_xnnpack": "false"}),),
        # With any other backend than `cl` a missing OpenCL silently becomes OpenGL.
        "gpu": (
            Row(
                {"use_gpu": "true", "use_xnnpack": "false"},
                {
                    "gpu_backend": Choice("backend", {"cl": "cl", "gl": "gl"}, "cl"),
                    "gpu_precision_loss_allowed": Choice("precision", {"fp16": "true", "fp32": "false"}, "true"),
                    "gpu_experimental_enable_quant": "true",
                    "gpu_inference_for_sustained_speed": "false",
                },
                _SERIALIZED,
            ),
        ),
        "nnapi": (
            Row(
                {"use_nnapi": "true", "use_xnnpack": "false"},
                {
                    "nnapi_accelerator_name": Choice("accelerator"),
                    "disable_nnapi_cpu": "true",
                    "nnapi_allow_fp16": "false",
                    "nnapi_allow_dynamic_dimensions": "false",
                    "nnapi_use_burst_mode": "false",
                },
                _SERIALIZED,
            ),
        ),
        "hexagon": (
            Row(
                {"use_hexagon": "true", "use_xnnpack": "false"},
                {"hexagon_profiling": "false", "hexagon_lib_path": "{folder}"},
            ),
        ),
        "coreml": (
            Row(
                {"use_coreml": "true", "use_xnnpack": "false"},
                {"coreml_version": Choice("coreml_version", None, "0")},
            ),
        ),
        "external": (
            Row(
                {
                    "external_delegate_path": "{library}",
                    "external_delegate_options": "{options}",
                    "use_xnnpack": "false",
                }
            ),
        ),
        "stable": (Row({"stable_delegate_settings_file": "{library}", "use_xnnpack": "false"}),),
    },
    # It has no plain kernels to choose. An accelerator is asked for strictly where nothing says how many operators were
    # taken: a build that falls back to the CPU cannot be told from one that does not.
    Program.COMPILED_MODEL: {
        "xnnpack": (
            Row(
                {"use_cpu": "true", "use_gpu": "false", "use_npu": "false"},
                {"require_full_delegation": "false"},
                _WEIGHTS,
            ),
        ),
        "gpu": (
            Row(
                {"use_gpu": "true", "use_cpu": "false", "use_npu": "false", "require_full_delegation": "true"},
                {
                    "gpu_backend": Choice("backend", {"gl": "opengl", "webgpu": "webgpu"}),
                    "gpu-precision": Choice("precision", None, "auto"),
                    "gpu_low_priority": "false",
                },
                {"gpu_serialization_dir": "{cache}", "gpu_model_cache_key": "{token}"},
                needs=("gpu-precision",),
            ),
            Row(  # before 2.1.5
                {"use_gpu": "true", "use_cpu": "false", "use_npu": "false", "require_full_delegation": "true"},
                {
                    "gpu_backend": Choice("backend", {"gl": "opengl", "webgpu": "webgpu"}),
                    "allow_fp16": Choice("precision", {"fp16": "true", "fp32": "false"}),
                    "gpu_low_priority": "false",
                },
            ),
        ),
        "npu": (
            Row(
                {"use_npu": "true", "use_gpu": "false", "use_cpu": "true", "dispatch_library_path": "{folder}"},
                {"require_full_delegation": "false", "compiler_plugin_library_path": "{folder}"},
                {"compiler_cache_path": "{cache}"},
                needs=("model_runtime_info_output_file",),
            ),
            Row(
                {
                    "use_npu": "true",
                    "use_gpu": "false",
                    "use_cpu": "false",
                    "require_full_delegation": "true",
                    "dispatch_library_path": "{folder}",
                },
                {"compiler_plugin_library_path": "{folder}"},
                {"compiler_cache_path": "{cache}"},
            ),
        ),
    },
}
"""For each base the newest release's row first."""

NAMES: tuple[str, ...] = tuple(dict.fromkeys(name for rows in ROWS.values() for name in rows))


def all_rows() -> Iterator[Row]:
    for table in ROWS.values():
        for rows in table.values():
            yield from rows


def row_for(program: Program, flags: frozenset[str], base: str) -> Row | None:
    """The row of the release that these flags show; None where the program has no such delegate."""
    rows = ROWS[program].get(base)
    return next((row for row in rows if flags.issuperset(row.needs)), rows[-1]) if rows else None


def delegate_flags(
    row: Row, delegate: Delegate, known: frozenset[str], places: Mapping[str, str | None]
) -> dict[str, str]:
    """The flags of a row for a delegate: what is asked, what the build knows, and what the user chose or added."""
    wanted: dict[str, Value] = dict(row.asked)
    wanted |= {name: value for name, value in row.stated.items() if name in known or _is_chosen(value, delegate)}
    wanted |= row.cache if delegate.cache else {}
    wanted |= delegate.flags
    given = {name: _text(value, delegate, places) for name, value in wanted.items()}
    return {name: text for name, text in given.items() if text is not None}


def inexpressible(row: Row, delegate: Delegate, known: frozenset[str]) -> str | None:
    """Why a build that knows these flags cannot be asked for it; None when it can."""
    for name, value in row.stated.items():
        if isinstance(value, Choice) and value.is_impossible(delegate):
            can = ", ".join(value.words or ())
            return f"it has no {value.setting} {delegate.settings[value.setting]} (it has: {can})"
        if _is_chosen(value, delegate) and name not in known:
            return f"this build has no flag --{name}"
    # A long list of words may have lost one flag; that the delegate itself is unknown tells most.
    missing = [name for name in (*row.asked, *delegate.flags) if name not in known]
    if missing:
        return f"this build has no flag --{missing[0]}"
    if delegate.cache and not row.cache and not delegate.cache_env:
        return f"delegate {delegate.name} keeps no cache that could be {delegate.cache}"
    lost = [name for name in row.cache if name not in known] if delegate.cache else []
    return f"this build has no flag --{lost[0]} for a {delegate.cache} cache" if lost else None


def _is_chosen(value: Value, delegate: Delegate) -> bool:
    return isinstance(value, Choice) and delegate.settings.get(value.setting) is not None


def _text(value: Value, delegate: Delegate, places: Mapping[str, str | None]) -> str | None:
    if isinstance(value, Choice):
        return value.value(delegate)
    for name, place in places.items():
        mark = "{" + name + "}"
        if mark in value:
            if not place:
                return None
            value = value.replace(mark, place)
    return value
