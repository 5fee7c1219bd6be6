"""Programs for Apple's systems, told apart from their bytes: only arm64 for iOS is one that we can run. Pure."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator

_MAGIC_64, _MAGIC_32, _MAGIC_FAT, _MAGIC_FAT_64 = 0xFEEDFACF, 0xFEEDFACE, 0xCAFEBABE, 0xCAFEBABF
_ARM64, _X86_64 = 0x0100000C, 0x01000007
_EXECUTE = 2
_BUILD_VERSION, _VERSION_MIN_MACOS, _VERSION_MIN_IOS = 0x32, 0x24, 0x25
_PLATFORMS = {1: "macOS", 2: "iOS", 3: "tvOS", 4: "watchOS", 6: "Mac Catalyst", 7: "the iOS simulator", 11: "visionOS"}
_IOS = 2
_SLICES_MAX, _COMMANDS_MAX = 30, 4096
"""A Java class has the magic number of a fat program too; its version number is past the limit."""

Content = bytes | mmap.mmap


def is_mach_o(content: Content) -> bool:
    if len(content) < 8:
        return False
    little, (big, count) = struct.unpack_from("<I", content)[0], struct.unpack_from(">II", content)
    is_fat = big in (_MAGIC_FAT, _MAGIC_FAT_64) and 0 < count <= _SLICES_MAX
    return little in (_MAGIC_64, _MAGIC_32) or is_fat


def read_mach_o(content: Content) -> None:
    """ValueError says what it is when it is no program for iOS on arm64."""
    try:
        found = [_slice(content, start) for start in _starts(content)]
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError("cut short") from error
    if (_ARM64, _EXECUTE, _IOS) in found:
        return
    cpu, kind, platform = next((part for part in found if part[0] == _ARM64), found[0])
    system = _PLATFORMS.get(platform, "an unknown Apple system") if platform else "an unknown Apple system"
    if platform == _IOS and kind != _EXECUTE:
        raise ValueError("a library or an object file for iOS, not a program")
    machine = {_ARM64: "arm64", _X86_64: "x86_64"}.get(cpu, f"CPU type {cpu:#x}")
    raise ValueError(f"a program for {system} on {machine}, which no device of ours is (iOS on arm64 is)")


def _starts(content: Content) -> Iterator[int]:
    """Where the programs in it begin: a fat file holds one for each CPU."""
    magic, count = struct.unpack_from(">II", content)
    if magic not in (_MAGIC_FAT, _MAGIC_FAT_64):
        yield 0
        return
    shape, size = (">IIQQII", 32) if magic == _MAGIC_FAT_64 else (">IIIII", 20)
    for index in range(count):
        yield struct.unpack_from(shape, content, 8 + index * size)[2]


def _slice(content: Content, start: int) -> tuple[int, int, int | None]:
    """CPU type, kind of file, and platform where it is told."""
    magic, cpu, _, kind, commands = struct.unpack_from("<IIIII", content, start)
    if magic not in (_MAGIC_64, _MAGIC_32):
        raise ValueError("cut short")
    place = start + (32 if magic == _MAGIC_64 else 28)
    for _ in range(min(commands, _COMMANDS_MAX)):
        command, size = struct.unpack_from("<II", content, place)
        if command == _BUILD_VERSION:
            return cpu, kind, struct.unpack_from("<I", content, place + 8)[0]
        if command in (_VERSION_MIN_IOS, _VERSION_MIN_MACOS):
            return cpu, kind, _IOS if command == _VERSION_MIN_IOS else 1
        if size < 8:
            raise ValueError("cut short")
        place += size
    return cpu, kind, None
