"""A run in one file: trials, artifacts, models and runners, device facts and the plan, each with its hash.

A bundle is a zip file: `manifest.json` names every member with its size and SHA-256; `runs/N/` has what the store knows
of a run, `artifacts/N/` its files, `blobs/HASH/` models and runners. Equal runs make equal bundles.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator import __version__
from orchestrator.errors import UsageError
from orchestrator.store import Annals, RunRecord, Store
from orchestrator.store.carry import run_document, said_document, trial_lines
from orchestrator.store.removal import needed_digests
from orchestrator.store.rows import safe_name
from orchestrator.store.trouble import translated
from orchestrator.whole_files import TEMPORARY, written_whole

SCHEMA = "devbench.bundle"
VERSION = 1
MANIFEST = "manifest.json"
PARTS = ("logs", "traces")
"""What can be left out."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_AT_ONCE = 1 << 20
_SECRET_MIN = 6
"""A shorter serial number or name could be a part of any word."""
_PRIVATE = re.compile(r"serial|imei|udid|hostname|android_id|mac_?addr|bluetooth", re.I)


@dataclass(frozen=True)
class Member:
    """One file of a bundle, and where it comes from."""

    name: str
    source: Path
    size: int


@dataclass(frozen=True)
class Content:
    """What goes into a bundle, before it is written."""

    runs: tuple[str, ...]
    members: tuple[Member, ...]
    lost: tuple[str, ...]
    """Models and runners that the runs name and the store no longer has."""
    left_out: tuple[str, ...]
    is_anonymous: bool
    tags: Mapping[str, Sequence[str]]

    @property
    def size(self) -> int:
        return sum(member.size for member in self.members)

    def sizes(self) -> dict[str, int]:
        """Bytes by kind: rows, artifacts, blobs."""
        kinds = {"runs": 0, "artifacts": 0, "blobs": 0}
        for member in self.members:
            kinds[member.name.partition("/")[0]] += member.size
        return kinds


@contextmanager
def gathered(
    store: Store, record: RunRecord, *, without: Sequence[str], anonymous: bool, with_baseline: bool
) -> Iterator[Content]:
    """Everything about the run, and the run it was judged against; rows are written out beside the store meanwhile."""
    store.use.share()  # nothing of it is swept up meanwhile
    judged = Annals(store).judgements().get(record.id)
    known = {other.id: other for other in store.runs()}
    baseline = known.get(judged.baseline_id) if judged and with_baseline else None
    records = [record, *([baseline] if baseline else [])]
    with translated(store.folder):
        room = tempfile.TemporaryDirectory(dir=store.folder, prefix=TEMPORARY)
    with room as place:
        members: list[Member] = []
        for number, one in enumerate(records, 1):
            veil = _veil(store, one) if anonymous else None
            members += _rows(store, one, f"runs/{number}", Path(place) / str(number), veil)
            members += _artifacts(store, one, number, without, Path(place) / f"{number}-files", veil)
        blobs, lost = _blobs(store, [one.id for one in records])
        tagged = Annals(store).tagged()
        yield Content(
            runs=tuple(one.id for one in records),
            members=tuple(sorted([*members, *blobs], key=lambda member: member.name)),
            lost=tuple(lost),
            left_out=tuple(without),
            is_anonymous=anonymous,
            tags={one.id: sorted(tag for tag, ids in tagged.items() if one.id in ids) for one in records},
        )


def write_bundle(content: Content, path: Path) -> int:
    """Write it; the file has its name only when it is whole. Gives its size."""
    try:
        with written_whole(path) as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            listed = [_put(archive, member) for member in content.members]
            manifest = {
                "schema": SCHEMA,
                "version": VERSION,
                "devbench_version": __version__,
                "runs": list(content.runs),
                "tags": {run: list(tags) for run, tags in content.tags.items()},
                "anonymous": content.is_anonymous,
                "without": list(content.left_out),
                "lost": list(content.lost),
                "members": listed,
            }
            archive.writestr(_entry(MANIFEST), json.dumps(manifest, indent=1))
        return path.stat().st_size
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", remedy="choose another place for -o") from error


def _put(archive: zipfile.ZipFile, member: Member) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    with member.source.open("rb") as source, archive.open(_entry(member.name), "w", force_zip64=True) as out:
        while part := source.read(_AT_ONCE):
            digest.update(part)
            size += len(part)
            out.write(part)
    return {"name": member.name, "bytes": size, "sha256": digest.hexdigest()}


def _entry(name: str) -> zipfile.ZipInfo:
    """The same for the same content, whenever and wherever it is written."""
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3
    entry.external_attr = 0o100644 << 16
    return entry


# What goes in


def _rows(store: Store, record: RunRecord, name: str, place: Path, veil: Veil | None) -> list[Member]:
    place.mkdir()
    document = run_document(store, record.id)
    if veil:
        for device in document["run"]["fleet"].get("devices") or ():
            device["address"] = {}
    texts: dict[str, Iterable[str]] = {
        "run.json": [json.dumps(document, ensure_ascii=False)],
        "said.json": [json.dumps(said_document(store, record.id), ensure_ascii=False)],
        "trials.jsonl": trial_lines(store, record.id),
    }
    members = []
    for file, lines in texts.items():
        with (place / file).open("w", encoding="utf-8") as out:
            out.writelines(f"{veil.over_json(line) if veil else line}\n" for line in lines)
        members.append(Member(f"{name}/{file}", place / file, (place / file).stat().st_size))
    return members


def _artifacts(
    store: Store, record: RunRecord, number: int, without: Sequence[str], room: Path, veil: Veil | None
) -> Iterator[Member]:
    """The files of a run, never through a link. Nobody can look for names in what is no text, so that an anonymous
    bundle has logs only."""
    folder = store.folder / "artifacts" / safe_name(record.id)
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        kind = artifact_kind(path.name)
        if path.is_symlink() or not path.is_file() or kind in without or path.name.startswith(TEMPORARY):
            continue
        if veil:
            if kind != "logs":
                continue
            room.mkdir(exist_ok=True)
            (room / path.name).write_bytes(veil.over_bytes(path.read_bytes()))
            path = room / path.name
        yield Member(f"artifacts/{number}/{path.name}", path, path.stat().st_size)


def artifact_kind(name: str) -> str:
    """`logs`, `traces` or `other`, by the file's name."""
    if name.endswith(".log"):
        return "logs"
    return "traces" if "trace" in name else "other"


def _blobs(store: Store, ids: Sequence[str]) -> tuple[list[Member], list[str]]:
    """The models and runners that the runs name. Some hashes that they name never were a file of the store, such as
    that of an agent; a cell's model or runner that is not there is lost."""
    with store.reading() as connection:
        named = sorted(needed_digests(connection, ids))
    cells = [cell for run_id in ids for cell in store.cells(run_id)]
    wanted = {cell.model_sha256 for cell in cells} | {cell.runner_sha256 for cell in cells}
    members, lost = [], []
    for digest in named:
        path = store.blob(digest)
        if path:
            members.append(Member(f"blobs/{digest}/{path.name.lstrip('.') or digest}", path, path.stat().st_size))
        elif digest in wanted:
            lost.append(digest)
    return members, lost


# Names that do not go out


@dataclass(frozen=True)
class Veil:
    """Puts other words in place of addresses, serial numbers and paths of this host."""

    secrets: tuple[str, ...]

    def over_json(self, text: str) -> str:
        """Texts only: a serial number may be a part of any number."""
        return json.dumps(self._over(json.loads(text)), ensure_ascii=False)

    def _over(self, content: Any) -> Any:
        if isinstance(content, str):
            return self.over_bytes(content.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        if isinstance(content, Mapping):
            return {self._over(key): self._over(value) for key, value in content.items()}
        return [self._over(item) for item in content] if isinstance(content, list) else content

    def over_bytes(self, content: bytes) -> bytes:
        for number, secret in enumerate(self.secrets, 1):
            if secret.encode() in content:
                word = rb"(?<![0-9A-Za-z])" + re.escape(secret.encode()) + rb"(?![0-9A-Za-z])"
                content = re.sub(word, b"anonymous-%d" % number, content)
        return content


def _veil(store: Store, record: RunRecord) -> Veil:
    found = {str(Path.home()), str(record.plan.get("folder") or "")}
    for device in record.fleet.get("devices") or ():
        found |= {str(value) for value in (device.get("address") or {}).values()}
    for session in store.sessions(record.id):
        found |= set(_private(session.facts))
    return Veil(
        tuple(sorted((text for text in found if len(text) >= _SECRET_MIN), key=lambda text: (-len(text), text)))
    )


def _private(content: Any) -> Iterator[str]:
    """The texts that stand under names such as `ro.serialno`, at any depth."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            if isinstance(value, str) and _PRIVATE.search(str(key)):
                yield value
            yield from _private(value)
    elif isinstance(content, list):
        for item in content:
            yield from _private(item)
