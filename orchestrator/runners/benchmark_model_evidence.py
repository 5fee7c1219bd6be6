"""Which delegate took what, from the lines of `benchmark_model` and of the runtimes below it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_KEPT_MAX = 20
_N = r"(\d{1,9})"
_CREATED = re.compile(r"(\S{1,60}) delegate created\.")
_APPLIED = re.compile(
    r"Explicitly applied (?P<name>\S{1,60}) delegate, and the model graph will be (?P<share>completely|partially) "
    r"executed by the delegate(?: w/ (?P<kernels>\d{1,9}) delegate kernels)?\."
)
_UNUSED = re.compile(
    r"Though (\S{1,60}) delegate is explicitly applied, the model graph will not be executed by the delegate\."
)
_REPLACING = re.compile(
    rf"Replacing {_N}(?: out of {_N})? node\(s\) with delegate \((.{{1,80}}?)\) node, yielding {_N} partitions"
    rf"(?: for subgraph {_N}(?: \(.*\))?)?\."
)
_COUNTED = re.compile(rf"(\S{{1,60}}) delegate: {_N} nodes delegated out of {_N} nodes,? with {_N} partitions\.")
_GPU_SHARE = re.compile(
    rf"{_N} operations will run on the GPU, and the remaining {_N} operations will run on the CPU\.?"
)
_GPU_API = re.compile(r"Initialized (OpenCL|OpenGL)-based API(?: from serialized data)?\.")
_ACCELERATOR = re.compile(r"(?:Dynamically loaded|Statically linked) (\w{1,30}) accelerator ?(?:\(.*\) )?registered\.")
_PLUGINS = re.compile(rf"{_N} compiler plugins were applied successfully: .*")
_XNNPACK_CREATED = "Created TensorFlow Lite XNNPACK delegate for CPU."
_FALLBACKS = (
    "acceleration is unsupported on this platform",
    "Could not create Hexagon delegate",
    "Falling back to OpenGL",
    "Attempting to use a delegate that only supports static-sized tensors",
    "Failed to load stable ABI delegate",
    "Invalid TFLiteSettings",
)

_WORDS = {"stable_delegate": "stable"}
_KERNELS = {
    "TfLiteXNNPackDelegate": "xnnpack",
    "TfLiteGpuDelegateV2": "gpu",
    "TfLiteMetalDelegate": "gpu",
    "TfLiteNnapiDelegate": "nnapi",
    "TfLiteHexagonDelegate": "hexagon",
    "TfLiteCoreMlDelegate": "coreml",
    "CoreML": "coreml",
    "DispatchDelegate": "npu",
}


def kernel_base(kernel: str) -> str:
    """The delegate that a kernel of this name belongs to; a vendor's kernel is its own name."""
    return _KERNELS.get(kernel, kernel)


def _word(name: str) -> str:
    """The tool's name of a delegate as cells have it."""
    return _WORDS.get(name.lower(), name.lower())


@dataclass
class Delegation:
    """Collects what the lines say of delegates."""

    created: list[str] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    share: str | None = None
    partitions: int | None = None
    replaced: list[dict[str, Any]] = field(default_factory=list)
    """Nodes taken, a row for each delegate and subgraph. Only Android prints them, or the delegate itself."""
    gpu_backend: str | None = None
    accelerators: list[str] = field(default_factory=list)
    fallbacks: list[str] = field(default_factory=list)
    has_xnnpack: bool = False

    def take(self, text: str) -> None:
        """Look at one line, stripped of its prefix."""
        if text == _XNNPACK_CREATED:
            self.has_xnnpack = True
        elif "delegate" in text:
            self._take_delegate(text)
        elif found := _GPU_SHARE.fullmatch(text):
            on_gpu, on_cpu = int(found[1]), int(found[2])
            self._add("gpu", on_gpu, on_gpu + on_cpu)
        elif found := _GPU_API.fullmatch(text):
            self.gpu_backend = found[1].lower()
        elif found := _ACCELERATOR.fullmatch(text):
            self.accelerators.append(found[1].lower())
        elif _PLUGINS.fullmatch(text):
            self.accelerators.append("npu")
        if any(mark in text for mark in _FALLBACKS) and len(self.fallbacks) < _KEPT_MAX:
            self.fallbacks.append(text[:300])

    def _take_delegate(self, text: str) -> None:
        if found := _CREATED.fullmatch(text):
            self.created.append(_word(found[1]))
        elif found := _APPLIED.fullmatch(text):
            self.applied.append(_word(found["name"]))
            self.share = "full" if found["share"] == "completely" else "partial"
            self.partitions = 1 if self.share == "full" else int(found["kernels"]) if found["kernels"] else None
        elif found := _UNUSED.fullmatch(text):
            self.unused.append(_word(found[1]))
            self.share, self.partitions = "none", 0
        elif found := _REPLACING.fullmatch(text):
            total = int(found[2]) if found[2] else None
            self._add(kernel_base(found[3]), int(found[1]), total)
        elif found := _COUNTED.fullmatch(text):
            self._add(kernel_base(found[1]), int(found[2]), int(found[3]))

    def _add(self, delegate: str, nodes: int, total: int | None) -> None:
        if len(self.replaced) < _KEPT_MAX and (total is None or nodes <= total):
            self.replaced.append({"delegate": delegate, "nodes_delegated": nodes, "nodes_total": total})

    def observed(self, *, is_interpreter: bool) -> dict[str, Any]:
        """By the names that evidence.py knows. A list of what was applied is given, empty or not, where the program
        is the one that prints it."""
        nodes, total = self._nodes()
        return {
            "nodes_delegated": nodes,
            "nodes_total": total,
            "partitions": self.partitions,
            "delegation": self.share,
            "delegates_created": self.created or None,
            "delegates_applied": self.applied if is_interpreter or self.applied else None,
            "delegates_unused": self.unused or None,
            "nodes_replaced": self.replaced or None,
            "xnnpack_created": self.has_xnnpack or None,
            "gpu_backend": self.gpu_backend,
            "accelerators": self.accelerators or None,
            "fallbacks": self.fallbacks or None,
        }

    def _nodes(self) -> tuple[int | None, int | None]:
        """Nodes that the applied delegate took, over its subgraphs, and how many there were. A vendor's delegate
        counts under a name of its own, so a row of no delegate that we know is taken to be its."""
        if self.unused and not self.applied:
            totals = [row["nodes_total"] for row in self.replaced if row["nodes_delegated"] == 0]
            return 0, totals[0] if totals else None
        names = set(self.applied)
        rows = [row for row in self.replaced if row["delegate"] in names]
        if not rows and len({row["delegate"] for row in self.replaced}) == 1:
            rows = [row for row in self.replaced if not names or row["delegate"] not in _KERNELS.values()]
        if not rows or len(names) > 1:
            return None, None
        totals = [row["nodes_total"] for row in rows]
        return sum(row["nodes_delegated"] for row in rows), None if None in totals else sum(totals)
