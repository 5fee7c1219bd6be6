"""What an APK is, told from its bytes alone: whose, for which CPUs, and which build of the tool it carries."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from orchestrator.runners.benchmark_model_delegates import Program
from orchestrator.runners.benchmark_model_fingerprint import Elf, machine_name, read_elf, read_fingerprint
from orchestrator.runners.benchmark_model_flags import Fingerprint

PACKAGE = "org.tensorflow.lite.benchmark"
_MANIFEST = "AndroidManifest.xml"
_LIBRARY = re.compile(r"lib/([A-Za-z0-9_.-]{1,40})/lib[^/]{1,200}\.so")
_ENTRIES_MAX = 100_000
_MANIFEST_MAX = 4 << 20
_LIBRARY_MAX = 512 << 20

_STRING_POOL, _START_ELEMENT = 0x0001, 0x0102
_UTF8 = 0x100
_NO_STRING = 0xFFFFFFFF


@dataclass(frozen=True)
class Apk:
    """An APK of the benchmark app."""

    elf: Elf
    """`machine` has every CPU that it is for, with commas between."""
    fingerprint: Fingerprint


def read_apk(path: Path) -> Apk:
    """What the APK is; ValueError says what it is instead."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        # zipfile's RuntimeError is an encrypted entry, its NotImplementedError a compression it does not know.
        raise ValueError("a damaged archive") from error


def _read(archive: zipfile.ZipFile) -> Apk:
    entries = archive.infolist()
    if len(entries) > _ENTRIES_MAX:
        raise ValueError(f"an archive of {len(entries)} files, which no APK has")
    manifest = next((entry for entry in entries if entry.filename == _MANIFEST), None)
    if manifest is None:
        raise ValueError("an archive, not an APK")
    package = package_in(_content(archive, manifest, _MANIFEST_MAX))
    if package != PACKAGE:
        raise ValueError(f"the APK of {package}, not of TFLite's benchmark app ({PACKAGE})")
    found: dict[str, Fingerprint] = {}
    for entry in entries:
        named = _LIBRARY.fullmatch(entry.filename)
        fingerprint = _tool_in(archive, entry, named[1]) if named else None
        if named and fingerprint:
            found[machine_name(named[1])] = fingerprint
    if not found:
        raise ValueError("the benchmark app without its native library")
    shared = frozenset.intersection(*(fingerprint.flags for fingerprint in found.values()))
    return Apk(Elf(",".join(sorted(found)), "android"), Fingerprint(Program.INTERPRETER, shared))


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> bytes:
    """An entry whole. What an archive says of its own sizes is not believed."""
    with archive.open(entry) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"an archive whose {entry.filename} is larger than {most} bytes")
    return content


def _tool_in(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, abi: str) -> Fingerprint | None:
    """The tool in a native library; None where it is another library."""
    content = _content(archive, entry, _LIBRARY_MAX)
    try:
        fingerprint, elf = read_fingerprint(content), read_elf(content)
    except ValueError:
        return None
    if elf.machine != machine_name(abi):
        raise ValueError(f"an APK whose {entry.filename} is for {elf.machine}")
    return fingerprint if fingerprint.program == Program.INTERPRETER else None


# The manifest: Android's binary XML, of which one attribute is wanted


def package_in(content: bytes) -> str:
    """The attribute `package` of the element `manifest`; ValueError where there is none."""
    try:
        strings: list[str] = []
        place = struct.unpack_from("<H", content, 2)[0]
        while place < len(content):
            kind, _, size = struct.unpack_from("<HHI", content, place)
            if size < 8:
                break
            if kind == _STRING_POOL and not strings:
                strings = _strings(content[place : place + size])
            if kind == _START_ELEMENT:
                return _package(content[place : place + size], strings)
            place += size
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError("an APK whose manifest is damaged") from error
    raise ValueError("an APK whose manifest is damaged")


def _strings(pool: bytes) -> list[str]:
    header, count, flags, start = struct.unpack_from("<2xH4xI4xII", pool, 0)
    offsets = struct.unpack_from(f"<{count}I", pool, header)
    return [_string(pool, start + offset, is_utf8=bool(flags & _UTF8)) for offset in offsets]


def _string(pool: bytes, place: int, *, is_utf8: bool) -> str:
    if is_utf8:
        place += 2 if pool[place] & 0x80 else 1  # the length in characters
        length = pool[place]
        place += 1
        if length & 0x80:
            length, place = (length & 0x7F) << 8 | pool[place], place + 1
        return str(pool[place : place + length], "utf-8")
    length = struct.unpack_from("<H", pool, place)[0]
    place += 2
    if length & 0x8000:
        length, place = (length & 0x7FFF) << 16 | struct.unpack_from("<H", pool, place)[0], place + 2
    return str(pool[place : place + 2 * length], "utf-16-le")


def _package(element: bytes, strings: list[str]) -> str:
    start, size, count = struct.unpack_from("<HHH", element, 24)
    for index in range(count):
        _, name, raw = struct.unpack_from("<III", element, 16 + start + index * size)
        if strings[name] == "package" and raw != _NO_STRING:
            return str(strings[raw])
    raise ValueError("an APK whose manifest names no package")
