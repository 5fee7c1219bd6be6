"""Model files on the host: found, checked and hashed before any device is touched."""

from __future__ import annotations

import glob
import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.content_hash import sha256
from orchestrator.errors import ModelError

_IDENTIFIER = b"TFL3"


@dataclass(frozen=True)
class Model:
    """A model file under the name its cells carry."""

    name: str
    path: Path
    sha256: str


def find_models(patterns: Sequence[str], folder: Path) -> tuple[Model, ...]:
    """The models that paths and globs name, checked, each once, under names that tell them apart."""
    paths: dict[Path, None] = {}
    for pattern in patterns:
        for path in _expand(pattern, folder):
            check_model(path)
            paths[path.resolve()] = None
    unique: dict[str, Path] = {}
    for path in paths:
        unique.setdefault(sha256(path), path)
    return tuple(
        Model(name, path, digest)
        for (digest, path), name in zip(unique.items(), _names(list(unique.values())), strict=True)
    )


def _expand(pattern: str, folder: Path) -> list[Path]:
    """A file of exactly this name wins over reading the name as a glob."""
    exact = folder / pattern
    if exact.is_file() or not glob.has_magic(pattern):
        return [exact]
    found = sorted(Path(name) for name in glob.glob(str(folder / pattern), recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
    if not found:
        raise ModelError(
            f"no model matches {pattern}",
            remedy=f"check the pattern; it was looked for in {folder.resolve()}",
        )
    return [path for path in found if path.is_file()]


def _names(paths: Sequence[Path]) -> list[str]:
    """Each path's stem, with as many folders before it as are needed to tell equal stems apart."""
    names = [path.stem for path in paths]
    depth = 2
    while len(set(names)) < len(names) and depth < 30:
        repeated = {name for name in names if names.count(name) > 1}
        names = [
            "/".join([*path.parts[-depth:-1], path.stem]) if name in repeated else name
            for name, path in zip(names, paths, strict=True)
        ]
        depth += 1
    return names


def check_model(path: Path) -> None:
    """ModelError when the file is missing, empty, no TFLite model, or cut short."""
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise ModelError(f"{path}: the file is empty", remedy="export or copy the model again")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                _check_content(path, content)
    except FileNotFoundError as error:
        raise ModelError(
            f"{path}: no such model file", remedy="check the path given by --model or in the plan"
        ) from error
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
