"""The word for what is measured on a device: a model file, under the name its cells carry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Model:
    """A model file on the host."""

    name: str
    path: Path
    sha256: str
