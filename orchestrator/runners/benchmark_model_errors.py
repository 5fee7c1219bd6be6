"""Why `benchmark_model` failed, from its messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.runners.base import RunnerError


@dataclass(frozen=True)
class _Shape:
    pattern: re.Pattern[str]
    kind: str
    remedy: str
    permanent: bool = True


_OTHER_BUILD = "use a newer build: `devbench binaries fetch latest PLATFORM`"
_SHAPES = tuple(
    _Shape(re.compile(pattern), *rest)
    for pattern, *rest in (
        (r"Failed to parse flag|Output mode.* is not supported", "flags", "this build wants other values: use another"),
        (r"Please specify the name of your TF Lite input file", "flags", "report this: devbench always names a model"),
        (r"Didn't find op for builtin opcode", "operator", f"the build is older than the model; {_OTHER_BUILD}"),
        (r"Select TensorFlow op", "operator", "add a build with TensorFlow operators (its name ends in _plus_flex)"),
        (r"unresolved custom op", "operator", "the model needs a delegate or a build that has this operator"),
        (r"Could not find the specified NNAPI accelerator", "delegate", "choose one of the accelerators it names"),
        (r"Failed to apply .* delegate", "delegate", "this device or model does not suit the delegate: use another"),
        (r"Disallowed CPU fallback|ops are not accelerated", "delegate", "the delegate cannot take the whole model"),
        (r"Signature (?:not specified|key is specified)", "signature", "export the model with one signature only"),
        (r"bad_alloc|[Oo]ut of memory", "out-of-memory", "free memory on the device, or use a smaller model", False),
        (r"Could not open|Failed to load model|not a valid Flatbuffer|allocation is null", "model", "check the model"),
        (r"failed to invoke|^Run failed", "invoke", "try another delegate; see the trial's log"),
        (r"failed to prepare|Failed to allocate tensors", "prepare", "try another delegate; see the trial's log"),
    )
)
"""In the order of what tells most: the first shape that any message has gives the error."""
_INVOKE = re.compile(r"failed to invoke|^Run failed")


def error_in(messages: Sequence[tuple[str, str]]) -> RunnerError | None:
    """The error behind (level, text) messages. Many an ERROR is none: the GPU delegate reports the operators that it
    leaves that way. The tool failed where it says so, dies of a FATAL, or could not make an inference."""
    errors = [text for level, text in messages if level in ("ERROR", "FATAL")]
    fatal = next((text for level, text in messages if level == "FATAL"), None)
    if fatal is not None:
        return RunnerError("fatal", fatal, "see the trial's log", permanent=True)
    has_failed = any(text.startswith("Benchmarking failed") or _INVOKE.search(text) for text in errors)
    if not has_failed:
        return None
    for shape in _SHAPES:
        for text in errors:
            if shape.pattern.search(text):
                return RunnerError(shape.kind, text, shape.remedy, shape.permanent)
    first = next((text for text in errors if not text.startswith("Benchmarking failed")), "benchmarking failed")
    return RunnerError("internal", first, "see the trial's log", permanent=False)
