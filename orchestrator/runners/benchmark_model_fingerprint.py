"""What a build of `benchmark_model` is, told from its bytes alone: the host can seldom run it. Pure."""

from __future__ import annotations

import mmap
import re
import struct
from dataclasses import dataclass

from orchestrator.runners.benchmark_model_delegates import Program
from orchestrator.runners.benchmark_model_flags import ENABLING, KNOWN, Fingerprint
from orchestrator.runners.mach_o import is_mach_o, read_mach_o

_WORD = re.compile(rb"[a-z][a-z0-9_-]{3,45}")
_COMPILED_MODEL_MARKS = (b"BENCHMARK RESULTS", b"dispatch_library_path")
_INTERPRETER_MARKS = (b"Explicitly applied ", b"explicitly apply the XNNPACK delegate", b"input_layer_value_range")
_MULTI_OPTION_MARK = b"Summary of All Runs w/ Different Performance Options"

_MACHINES = {3: "x86", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
_ANDROID_ABIS = {"aarch64": "arm64-v8a", "armv7l": "armeabi-v7a"}
_SAME_MACHINE = {
    "arm64": "aarch64",
    "arm64-v8a": "aarch64",
    "armv8l": "armv7l",
    "arm": "armv7l",
    "armv7": "armv7l",
    "armeabi-v7a": "armv7l",
    "amd64": "x86_64",
    "x86-64": "x86_64",
    "i686": "x86",
    "i386": "x86",
}
IOS_MACHINE = "ios-arm64"
"""A machine of its own: what is built for iOS runs on no other arm64 system, and nothing of theirs on iOS."""
_PT_INTERP = 3
_INTERPRETER_PATH_MAX = 4096

Content = bytes | mmap.mmap


@dataclass(frozen=True)
class Elf:
    """Where a program runs, by its ELF or other header. `system` is `any` where it is linked statically."""

    machine: str
    system: str

    @property
    def abi(self) -> str:
        """The machine as its system calls it; an APK may be for several, with commas between."""
        if self.system != "android":
            return self.machine
        return ",".join(_ANDROID_ABIS.get(machine, machine) for machine in self.machine.split(","))


def machine_name(machine: str) -> str:
    """One name for a machine that `uname -m`, Android and publishers call differently."""
    lowered = machine.strip().lower()
    return _SAME_MACHINE.get(lowered, lowered)


def read_program(content: Content) -> Elf:
    """Where a program runs, whichever its format; ValueError says what it is instead."""
    if is_mach_o(content):
        read_mach_o(content)
        return Elf(IOS_MACHINE, "ios")
    return read_elf(content)


def elf_machine(header: bytes) -> str | None:
    """The machine that the first twenty bytes of a program or library name; None where it is neither."""
    if len(header) < 20 or header[:4] != b"\x7fELF" or header[5] != 1:
        return None
    number = struct.unpack_from("<H", header, 18)[0]
    return _MACHINES.get(number, f"ELF machine {number}")


def read_elf(content: Content) -> Elf:
    """Machine and system of a program for Linux or Android; ValueError says what it is instead."""
    if content[:4] != b"\x7fELF":
        raise ValueError(_looks_like(bytes(content[:512])))
    try:
        wide, endian, kind = content[4], content[5], struct.unpack_from("<H", content, 16)[0]
        if endian != 1 or wide not in (1, 2):
            raise ValueError("a program for a big-endian machine")
        if kind not in (2, 3):
            raise ValueError("an object file, not a program")
        number = struct.unpack_from("<H", content, 18)[0]
        loader = _loader(content, is_wide=wide == 2)
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError("cut short") from error
    machine = _MACHINES.get(number)
    if machine is None:
        raise ValueError(f"a program for ELF machine {number}, which no device of ours is")
    system = "any" if loader is None else "android" if b"/system/bin/linker" in loader else "linux"
    return Elf(machine, system)


def _loader(content: Content, *, is_wide: bool) -> bytes | None:
    """The path of the loader that a dynamic program asks for."""
    table = struct.unpack_from("<Q" if is_wide else "<I", content, 32 if is_wide else 28)[0]
    size, count = struct.unpack_from("<HH", content, 54 if is_wide else 42)
    for index in range(count):
        place = table + index * size
        if struct.unpack_from("<I", content, place)[0] == _PT_INTERP:
            shape, offset_at, size_at = ("<Q", 8, 32) if is_wide else ("<I", 4, 16)
            start = struct.unpack_from(shape, content, place + offset_at)[0]
            length = struct.unpack_from(shape, content, place + size_at)[0]
            return bytes(content[start : start + min(length, _INTERPRETER_PATH_MAX)])
    return None


def _looks_like(start: bytes) -> str:
    if not start:
        return "an empty file"
    if start.lstrip()[:1] == b"<":
        return "a web page, not a program"
    if start.startswith(b"#!"):
        return "a script, not a program"
    return "a program for Windows" if start.startswith(b"MZ") else "not a program for Linux, Android or iOS"


def read_fingerprint(content: Content) -> Fingerprint:
    """Which of the two programs, and which of the flags we know are in it; ValueError when it is neither."""
    if _has(content, _MULTI_OPTION_MARK):
        raise ValueError("benchmark_model_performance_options, whose exit status says nothing")
    if any(_has(content, mark) for mark in _COMPILED_MODEL_MARKS):
        program = Program.COMPILED_MODEL
    elif any(_has(content, mark) for mark in _INTERPRETER_MARKS):
        program = Program.INTERPRETER
    else:
        raise ValueError("a program, but no benchmark_model")
    found = {word.decode("ascii") for word in set(_WORD.findall(content))}
    # A linker keeps a word that ends another only as that one's tail.
    found |= {name for name in ENABLING if _has(content, name.encode() + b"\0")}
    return Fingerprint(program, KNOWN & found)


def _has(content: Content, mark: bytes) -> bool:
    return content.find(mark) >= 0
