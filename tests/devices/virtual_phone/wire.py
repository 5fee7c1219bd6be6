"""The messages of the adb transport protocol as they go over the wire."""

from __future__ import annotations

import struct
from dataclasses import dataclass

HEADER = struct.Struct("<6I")
#: From this version on nobody checks the sum of the payload.
VERSION_SKIP_CHECKSUM = 0x01000001
VERSION_CHECKSUM = 0x01000000

CNXN, AUTH, OPEN, OKAY, CLSE, WRTE = (
    int.from_bytes(name, "little") for name in (b"CNXN", b"AUTH", b"OPEN", b"OKAY", b"CLSE", b"WRTE")
)
AUTH_TOKEN, AUTH_SIGNATURE, AUTH_PUBLIC_KEY = 1, 2, 3


@dataclass(frozen=True)
class Message:
    """One message: a command, two arguments, a payload."""

    command: int
    arg0: int
    arg1: int
    payload: bytes = b""

    def packed(self) -> bytes:
        """The bytes on the wire, with a checksum for those who want one."""
        # Summing a megabyte in Python would be most of the cost of a pull; only old hosts look at it.
        checksum = sum(self.payload) & 0xFFFFFFFF if len(self.payload) < 4096 else 0
        header = HEADER.pack(self.command, self.arg0, self.arg1, len(self.payload), checksum, self.command ^ 0xFFFFFFFF)
        return header + self.payload


class NotAdb(Exception):
    """What came is not a message of this protocol."""


def unpack_header(header: bytes) -> tuple[int, int, int, int]:
    """Command, both arguments and the payload's length."""
    command, arg0, arg1, length, _checksum, magic = HEADER.unpack(header)
    if magic != command ^ 0xFFFFFFFF:
        raise NotAdb(f"bad magic {magic:#x} for command {command:#x}")
    return command, arg0, arg1, length
