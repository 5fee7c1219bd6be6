"""APKs for tests: a manifest in Android's binary XML, and native libraries that carry the tool's words."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

from tests.unit.elf_factory import make_elf

PACKAGE = "org.tensorflow.lite.benchmark"
LIBRARY = "lib/{}/libtensorflowlite_benchmark.so"


def make_manifest(package: str = PACKAGE, *, is_utf8: bool = True) -> bytes:
    """A manifest whose first element is `manifest` with the attributes `versionName` and `package`."""
    words = ["manifest", "versionName", "1.0", "package", package]
    body, offsets = b"", []
    for word in words:
        offsets.append(len(body))
        raw = word.encode("utf-8" if is_utf8 else "utf-16-le")
        body += bytes([len(word), len(raw)]) + raw + b"\0" if is_utf8 else struct.pack("<H", len(word)) + raw + b"\0\0"
    body += bytes(-len(body) % 4)
    start = 28 + 4 * len(words)
    header = struct.pack("<HHIIIIII", 1, 28, start + len(body), len(words), 0, 0x100 if is_utf8 else 0, start, 0)
    pool = header + struct.pack(f"<{len(words)}I", *offsets) + body
    none = 0xFFFFFFFF
    attributes = b"".join(struct.pack("<IIIHBBI", none, name, raw, 8, 0, 3, raw) for name, raw in ((1, 2), (3, 4)))
    element = struct.pack("<HHIIIIIHHHHHH", 0x0102, 16, 36 + len(attributes), 1, none, none, 0, 20, 20, 2, 0, 0, 0)
    chunks = pool + element + attributes
    return struct.pack("<HHI", 3, 8, 8 + len(chunks)) + chunks


def make_apk(
    libraries: Mapping[str, bytes] | None = None,
    *,
    manifest: bytes | None = None,
    extra: Mapping[str, bytes] | None = None,
) -> bytes:
    """An APK with these native libraries by ABI; one for arm64 phones if none are given."""
    if libraries is None:
        libraries = {"arm64-v8a": make_elf(system="any")}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("AndroidManifest.xml", make_manifest() if manifest is None else manifest)
        for abi, content in libraries.items():
            archive.writestr(LIBRARY.format(abi), content)
        for name, content in (extra or {}).items():
            archive.writestr(name, content)
    return out.getvalue()
