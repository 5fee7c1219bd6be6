"""Programs for tests: the head of an ELF file, and the words that a build of benchmark_model carries."""

from __future__ import annotations

import struct

NUMBERS = {"aarch64": 183, "armv7l": 40, "x86_64": 62, "riscv64": 243}
LOADERS = {"android": b"/system/bin/linker64\0", "linux": b"/lib/ld-linux-aarch64.so.1\0", "any": None}
INTERPRETER_WORDS = (
    "Explicitly applied ",
    "num_threads",
    "num_runs",
    "use_xnnpack",
    "use_gpu",
    "gpu_backend",
    "dry_run",
    "enable_op_profiling",
    "result_file_path",
)
COMPILED_MODEL_WORDS = (
    "========== BENCHMARK RESULTS ==========",
    "num_threads",
    "use_cpu",
    "use_gpu",
    "use_npu",
    "require_full_delegation",
    "gpu-precision",
    "dispatch_library_path",
)


def make_elf(
    *, machine: str = "aarch64", system: str = "android", words: tuple[str, ...] = INTERPRETER_WORDS, salt: str = ""
) -> bytes:
    """The bytes of a program that says these words."""
    is_wide = machine != "armv7l"
    loader = LOADERS[system]
    header = 64 if is_wide else 52
    entry = 56 if is_wide else 32
    start = header + entry
    ident = b"\x7fELF" + bytes([2 if is_wide else 1, 1, 1]) + bytes(9)
    kind = struct.pack("<HHI", 3, NUMBERS[machine], 1)
    count = 1 if loader else 0
    if is_wide:
        rest = struct.pack("<QQQIHHHHHH", 0, header, 0, 0, header, entry, count, 0, 0, 0)
        program = struct.pack("<IIQQQQQQ", 3, 4, start, 0, 0, len(loader or b""), 0, 1)
    else:
        rest = struct.pack("<IIIIHHHHHH", 0, header, 0, 0, header, entry, count, 0, 0, 0)
        program = struct.pack("<IIIIIIII", 3, start, 0, 0, len(loader or b""), 0, 4, 1)
    strings = b"\0".join(word.encode() for word in (*words, f"salt {salt}"))
    return ident + kind + rest + program + (loader or b"") + b"\0" + strings + b"\0"
