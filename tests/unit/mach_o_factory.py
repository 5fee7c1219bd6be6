"""Programs for tests: the head of a Mach-O file, thin or fat, and the words that a build of benchmark_model carries."""

from __future__ import annotations

import struct

from tests.unit.elf_factory import INTERPRETER_WORDS

CPUS = {"arm64": 0x0100000C, "x86_64": 0x01000007, "armv7": 12}
PLATFORMS = {"macos": 1, "ios": 2, "simulator": 7}


def make_mach_o(
    *, cpu: str = "arm64", system: str | None = "ios", kind: int = 2, old: bool = False, salt: str = ""
) -> bytes:
    """The bytes of a program that says what a benchmark_model says. `old` says its system as before Xcode 10."""
    commands = b""
    if system and old:
        commands = struct.pack("<IIII", 0x25 if system == "ios" else 0x24, 16, 0, 0)
    elif system:
        commands = struct.pack("<IIIIII", 0x32, 24, PLATFORMS[system], 0, 0, 0)
    before = struct.pack("<II", 0x19, 72) + bytes(64)  # a segment first, as in every real file
    header = struct.pack("<IIIIIIII", 0xFEEDFACF, CPUS[cpu], 0, kind, 2 if system else 1, 72 + len(commands), 0, 0)
    strings = b"\0".join(word.encode() for word in (*INTERPRETER_WORDS, f"salt {salt}"))
    return header + before + commands + b"\0" + strings + b"\0"


def make_fat(*parts: tuple[str, bytes]) -> bytes:
    """Several programs in one file, by CPU."""
    head, content, place = struct.pack(">II", 0xCAFEBABE, len(parts)), b"", 4096
    for cpu, part in parts:
        head += struct.pack(">IIIII", CPUS[cpu], 0, place + len(content), len(part), 12)
        content += part
    return head.ljust(4096, b"\0") + content
