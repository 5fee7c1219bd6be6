"""Model files on the host: found, checked and hashed before any device is touched."""

from __future__ import annotations

import glob
import mmap
import stat
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.content_hash import sha256
from orchestrator.errors import ModelError
from orchestrator.model import Model

_IDENTIFIER = b"TFL3"


def find_models(patterns: Sequence[str], folder: Path) -> tuple[tuple[Model, ...], tuple[str, ...]]:
    """The models that paths and globs name, checked, each content once, under names that tell them apart; and notes
    about files that are the same as another."""
    paths: dict[Path, None] = {}
    for pattern in patterns:
        for path in _expand(pattern, folder):
            check_model(path)
            paths[path.resolve()] = None
    by_content: dict[str, Path] = {}
    notes = []
    for path in paths:
        first = by_content.setdefault(sha256(path), path)
        if first != path:
            notes.append(f"note: {path.name} has the same content as {first.name}, which is measured once for both")
    models = (
        Model(name, by_content[digest], digest) for digest, name in zip(by_content, _names(by_content), strict=True)
    )
    return tuple(models), tuple(notes)


def _expand(pattern: str, folder: Path) -> list[Path]:
    """A file of exactly this name wins over reading the name as a glob."""
    exact = folder / pattern
    if "\0" in pattern or exact.is_file() or not glob.has_magic(pattern):
        return [exact]
    absolute = pattern if Path(pattern).is_absolute() else f"{glob.escape(str(folder))}/{pattern}"
    found = sorted(Path(name) for name in glob.glob(absolute, recursive=True))  # noqa: PTH207 - takes absolute patterns
    files = [path for path in found if path.is_file()]
    if not files:
        raise ModelError(
            f"no model matches {pattern}", remedy=f"check the pattern; it was looked for in {folder.resolve()}"
        )
    return files


def _names(by_content: Mapping[str, Path]) -> list[str]:
    """Each file's stem as printable text, made longer where stems are equal: by the ending in one folder, by as many
    folders as are needed otherwise, and by the hash where even that is not enough."""
    paths = list(by_content.values())
    siblings = Counter((path.parent, path.stem) for path in paths)
    lasts = [path.name if siblings[path.parent, path.stem] > 1 else path.stem for path in paths]
    names = [_printable(last) for last in lasts]
    for depth in range(2, max((len(path.parts) for path in paths), default=0)):
        counts = Counter(names)
        names = [
            _printable("/".join([*path.parts[-depth:-1], last])) if counts[name] > 1 else name
            for name, path, last in zip(names, paths, lasts, strict=True)
        ]
    counts = Counter(names)
    return [
        f"{name}@{digest[:8]}" if counts[name] > 1 else name for name, digest in zip(names, by_content, strict=True)
    ]


def _printable(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def check_model(path: Path) -> None:
    """ModelError when the file is missing, empty, no TFLite model, or cut short."""
    try:
        state = path.stat()
        if stat.S_ISDIR(state.st_mode):
            remedy = f"name the files in it: {path}/*.tflite"
            raise ModelError(f"{path}: a folder, not a model file", remedy=remedy)
        if not stat.S_ISREG(state.st_mode):
            raise ModelError(f"{path}: not a regular file", remedy="copy the model to a file")
        if state.st_size == 0:
            raise ModelError(f"{path}: the file is empty", remedy="export or copy the model again")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            _check_content(path, content)
    except (FileNotFoundError, ValueError) as error:
        remedy = "check the path given by --model or in the plan"
        raise ModelError(f"{path}: no such model file", remedy=remedy) from error
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}", remedy="make the file readable") from error


def _check_content(path: Path, content: mmap.mmap) -> None:
    if content[4:8] != _IDENTIFIER:
        raise ModelError(
            f"{path}: not a TFLite model (no {_IDENTIFIER.decode()} identifier)",
            remedy="convert the model to .tflite first",
        )
    problem = _structure_problem(content)
    if problem:
        raise ModelError(f"{path}: a damaged TFLite model: {problem}", remedy="export or copy the model again")


class _Flatbuffer:
    """Just enough of a flatbuffer to walk a model's tables; IndexError where it points outside the file."""

    def __init__(self, content: mmap.mmap) -> None:
        self.content = content

    def unsigned(self, at: int) -> int:
        if not 0 <= at <= len(self.content) - 4:
            raise IndexError
        return int(struct.unpack_from("<I", self.content, at)[0])

    def field(self, table: int, index: int) -> int | None:
        """Where field `index` of the table is; None when it is absent."""
        if not 0 <= table <= len(self.content) - 4:
            raise IndexError
        vtable = table - int(struct.unpack_from("<i", self.content, table)[0])
        if not 0 <= vtable <= len(self.content) - 4:
            raise IndexError
        size = int(struct.unpack_from("<H", self.content, vtable)[0])
        entry = 4 + 2 * index
        if entry + 2 > size or vtable + size > len(self.content):
            return None
        offset = int(struct.unpack_from("<H", self.content, vtable + entry)[0])
        return table + offset if offset else None

    def tables(self, field: int | None) -> list[int]:
        """The tables of a vector of tables."""
        if field is None:
            return []
        vector = field + self.unsigned(field)
        count = self.unsigned(vector)
        if vector + 4 + 4 * count > len(self.content):
            raise IndexError
        places = [vector + 4 + 4 * index for index in range(count)]
        return [place + self.unsigned(place) for place in places]


def _structure_problem(content: mmap.mmap) -> str | None:
    """Why the bytes cannot be a whole model; None when root, subgraphs and all weights lie inside the file."""
    walk = _Flatbuffer(content)
    try:
        root = walk.unsigned(0)
        if not walk.tables(walk.field(root, 2)):
            return "it has no subgraph"
        for buffer in walk.tables(walk.field(root, 4)):
            _check_weights(walk, buffer)
    except (IndexError, struct.error):
        return f"it points past its end at {len(content)} bytes, so it was cut short or overwritten"
    return None


def _check_weights(walk: _Flatbuffer, buffer: int) -> None:
    data = walk.field(buffer, 0)
    if data is not None:
        vector = data + walk.unsigned(data)
        if vector + 4 + walk.unsigned(vector) > len(walk.content):
            raise IndexError
    offset, size = walk.field(buffer, 1), walk.field(buffer, 2)
    if offset is not None and size is not None:
        start, length = (int(struct.unpack_from("<Q", walk.content, place)[0]) for place in (offset, size))
        if start > 1 and start + length > len(walk.content):
            raise IndexError
