"""The delegates as a table: where each runs, what it needs there, and what shows that it ran."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePath
from typing import Any

CACHES = ("cold", "warm")
"""`gpu+cold`: what the delegate compiles is kept, in a cache that is empty before each trial; `gpu+warm`: one that an
earlier process filled. Without either no cache is used."""

PLATFORMS = ("android", "ios", "ios-jailbroken", "linux")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_LABEL = re.compile(rf"({_NAME.pattern})(?:@[0-9a-f]{{8}})?(?:\+(cold|warm))?")


@dataclass(frozen=True)
class Delegate:
    """One row: what a cell's delegate is. A user's own has the same fields, in the plan's `[[delegate]]`."""

    name: str
    base: str
    """What runners know it as: one of BASES."""
    platforms: tuple[str, ...] = PLATFORMS
    settings: Mapping[str, str] = field(default_factory=dict)
    """Choices that only this base has; see SETTINGS."""
    paths: tuple[str, ...] = ()
    """Where its library may be on the device; the first that can be read is used."""
    library: str | None = None
    """Its library, or settings, on the host, to be deployed."""
    libraries: tuple[str, ...] = ()
    """What the library needs beside it, on the host, to be deployed."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What an external delegate is told, by key."""
    env: Mapping[str, str] = field(default_factory=dict)
    """`{folder}` stands for the folder of what was deployed."""
    cache_env: Mapping[str, str] = field(default_factory=dict)
    """The environment that makes it keep what it compiles; `{cache}` stands for the place."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Flags of benchmark_model beyond those of the base."""
    evidence: tuple[str, ...] = ()
    """Patterns each of which must be found in the output."""
    failures: tuple[str, ...] = ()
    """Patterns none of which may be."""
    deprecated: str | None = None
    cache: str | None = None
    is_own: bool = False
    """Whether a user defined it: then its content is part of its label."""
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of what is deployed, by its path on the host; filled when a run is prepared."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """Where the store keeps them, by the same path; a copy may have another name, as content is kept once."""

    @property
    def label(self) -> str:
        """What cells carry: `gpu`, `gpu+warm`, `my-npu@1f2e3d4c`: content names it, not the user's word alone."""
        cache = f"+{self.cache}" if self.cache else ""
        return f"{self.name}@{self._digest}{cache}" if self.is_own else f"{self.name}{cache}"

    @property
    def _digest(self) -> str:
        files = sorted(f"{PurePath(path).name} {digest}" for path, digest in self.files.items())
        content = self.as_json() | {"files": files, "cache": None, "name": None}
        for path_key in ("library", "libraries", "copies"):
            content.pop(path_key)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def host_files(self) -> tuple[str, ...]:
        return (*((self.library,) if self.library else ()), *self.libraries)

    @property
    def deployed(self) -> dict[str, str]:
        """What goes to the device: its file by the name it has there, the library first."""
        return {PurePath(path).name: self.copies.get(path, path) for path in self.host_files}

    @property
    def option_text(self) -> str:
        """As the tool takes them; its own help, which says commas, is wrong."""
        return ";".join(f"{key}:{value}" for key, value in self.options.items())

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Delegate:
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in content.items()
        }
        return cls(**fields)


BASES = ("cpu", "xnnpack", "gpu", "nnapi", "hexagon", "coreml", "external", "stable", "npu")
"""What runners know; `cpu` is the runtime's own kernels. A runner says which of them it can run."""

SETTINGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "xnnpack": {"precision": ("fp16", "fp32")},
    "gpu": {"backend": ("cl", "gl", "webgpu", "metal"), "precision": ("fp16", "fp32")},
    "nnapi": {"accelerator": ()},
    "coreml": {"coreml_version": ("2", "3")},
}
"""The choices of a base and their words; none listed means any."""

LOADED = ("external", "stable")
"""Bases that are nothing without a library."""

_ROWS = (
    Delegate("cpu", "cpu"),
    Delegate("xnnpack", "xnnpack"),
    Delegate("gpu", "gpu", failures=("Falling back to OpenGL", r"GPU acceleration is unsupported on this platform")),
    Delegate(
        "nnapi",
        "nnapi",
        platforms=("android",),
        failures=(r"NNAPI acceleration is unsupported on this platform", r"NN API returned error"),
        deprecated="NNAPI is deprecated from Android 15 on; what it takes may run on its CPU reference device",
    ),
    Delegate(
        "hexagon",
        "hexagon",
        platforms=("android", "linux"),
        failures=("Could not create Hexagon delegate", r"Hexagon acceleration is unsupported on this platform"),
        deprecated="the Hexagon delegate is for Snapdragon 820 to 855 and is no longer developed",
    ),
    Delegate("coreml", "coreml", platforms=("ios", "ios-jailbroken"), failures=("CoreML acceleration is unsupported",)),
    Delegate("external", "external", platforms=("android", "linux")),
    Delegate(
        "stable",
        "stable",
        platforms=("android", "linux"),
        failures=("Failed to load stable ABI delegate", "Invalid TFLiteSettings"),
    ),
    Delegate("npu", "npu", platforms=("android", "linux"), env={"ADSP_LIBRARY_PATH": "{folder}"}),
    # Vendors' delegates behind the external one, where their boards have them.
    Delegate(
        "edgetpu",
        "external",
        platforms=("linux",),
        paths=(
            "/usr/lib/aarch64-linux-gnu/libedgetpu.so.1",
            "/usr/lib/arm-linux-gnueabihf/libedgetpu.so.1",
            "/usr/lib/x86_64-linux-gnu/libedgetpu.so.1",
            "/usr/lib/libedgetpu.so.1",
        ),
        failures=("EdgeTpuDelegateForCustomOp failed to prepare",),
    ),
    Delegate(
        "vx",
        "external",
        platforms=("linux",),
        paths=("/usr/lib/libvx_delegate.so",),
        cache_env={"VIV_VX_ENABLE_CACHE_GRAPH_BINARY": "1", "VIV_VX_CACHE_BINARY_GRAPH_DIR": "{cache}"},
    ),
    Delegate("ethosu", "external", platforms=("linux",), paths=("/usr/lib/libethosu_delegate.so",)),
    Delegate(
        "qnn",
        "external",
        platforms=("android", "linux"),
        paths=("/usr/lib/libQnnTFLiteDelegate.so", "/usr/lib/aarch64-linux-gnu/libQnnTFLiteDelegate.so"),
        options={"backend_type": "htp"},
        env={"ADSP_LIBRARY_PATH": "{folder}"},
    ),
    Delegate(
        "armnn",
        "external",
        platforms=("android", "linux"),
        paths=("/usr/lib/libarmnnDelegate.so", "/usr/lib/aarch64-linux-gnu/libarmnnDelegate.so"),
        options={"backends": "CpuAcc", "logging-severity": "info"},
    ),
)
BUILT_IN: Mapping[str, Delegate] = {row.name: row for row in _ROWS}


def check_name(name: str) -> str:
    """ValueError where a delegate cannot be called so."""
    if not _NAME.fullmatch(name):
        raise ValueError(f'"{name}" is no name for a delegate: use small letters, digits, _ and -, 32 at most')
    return name


def parts_of(word: str) -> tuple[str, str | None]:
    """Name and cache of `gpu+warm` or of a cell's label; ValueError where it is neither."""
    match = _LABEL.fullmatch(word)
    if match is None:
        name, mark, _ = word.partition("+")
        if mark and _NAME.fullmatch(name):
            raise ValueError(f'"{word}" is no delegate: write {name}, {name}+cold or {name}+warm')
        raise ValueError(f'"{word}" is no delegate: write it like xnnpack, gpu or gpu+warm')
    return match[1], match[2]


def name_of(label: str) -> str:
    """The name behind a cell's label, also where an import brought a label of no shape that we know."""
    return re.split(r"[@+]", label, maxsplit=1)[0]


def with_cache(delegate: Delegate, cache: str | None) -> Delegate:
    return replace(delegate, cache=cache)


def delegate_of(label: str) -> Delegate:
    """The built-in row behind a cell's label; one that is not built in is taken for its own base."""
    name, cache = name_of(label), label.rpartition("+")[2]
    row = BUILT_IN.get(name, Delegate(name, name))
    return replace(row, cache=cache if cache in CACHES else None)
