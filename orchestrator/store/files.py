"""Files of the store that may be large: brought in beside it, checked, and then moved in whole."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.content_hash import sha256
from orchestrator.store.rows import safe_name
from orchestrator.store.trouble import translated
from orchestrator.whole_files import TEMPORARY


@contextmanager
def workroom(folder: Path) -> Iterator[Path]:
    """A folder on the disk of the store in `folder`, for files that are being brought; it goes with what is left."""
    with translated(folder):
        (folder / "artifacts").mkdir(exist_ok=True)
        room = tempfile.TemporaryDirectory(dir=folder / "artifacts", prefix=TEMPORARY)
    with room as path:
        yield Path(path)


def keep_file(folder: Path, name: str, run_id: str, source: Path) -> str:
    """Move a file into the store in `folder`; its suffixes stay. Gives its path inside the store."""
    with translated(folder):
        named = f"{safe_name(name)}-{sha256(source)[:12]}{''.join(source.suffixes)}"
        place = Path("artifacts") / safe_name(run_id) / named
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        source.replace(folder / place)
    return str(place)
