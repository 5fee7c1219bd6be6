"""Takes a bundle in: everything is checked before the store is touched, and then all of it is there, or nothing."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from orchestrator.bundle import MANIFEST, SCHEMA, VERSION
from orchestrator.clock import SYSTEM, timestamp
from orchestrator.content_hash import sha256
from orchestrator.errors import DevbenchError, ImportRefused, StoreError
from orchestrator.fleet import Device, Limits
from orchestrator.plan import plan_from_json
from orchestrator.store import Annals, Store, open_store
from orchestrator.store.carry import add_carried, read_trials, run_document, trial_lines
from orchestrator.store.ledger import run_ids
from orchestrator.store.rows import safe_name
from orchestrator.store.trouble import translated
from orchestrator.trial import Trial
from orchestrator.whole_files import TEMPORARY, copy_whole

_FILE = r"[^/.\x00-\x1f][^/\x00-\x1f]{0,254}"
_MEMBER = re.compile(
    rf"runs/[1-9]/(run\.json|said\.json|trials\.jsonl)|artifacts/[1-9]/{_FILE}|blobs/[0-9a-f]{{64}}/{_FILE}"
)
_MEMBERS_MAX = 1_000_000
_MANIFEST_MAX = 256 << 20
_DENSE_MAX, _SMALL = 200, 64 << 20
"""How many times larger than packed content may become, beyond what is small anyway."""
_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class _Run:
    """One run of a bundle, read and sound."""

    number: int
    document: Mapping[str, Any]
    said: Mapping[str, Any]
    trials: list[Trial]
    digests: tuple[str, str]

    @property
    def id(self) -> str:
        return str(self.document["run"]["id"])


@dataclass(frozen=True)
class Unbundled:
    """What came of it: runs that were new, and runs that were there already, just so."""

    added: tuple[str, ...]
    present: tuple[str, ...]
    lost: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {"added": list(self.added), "present": list(self.present), "lost": list(self.lost)}


def unbundle(path: Path, store: Store) -> Unbundled:
    """Take the runs of a bundle into the store. ImportRefused says what is wrong with it."""
    store.use.share()  # what is put there stays until its run is named
    with translated(store.folder):
        room = tempfile.TemporaryDirectory(dir=store.folder, prefix=TEMPORARY)
    with room as place:
        manifest = _unpack(path, Path(place))
        count = len(manifest["runs"])
        runs = [_read_run(path, Path(place), number) for number in range(1, count + 1)]
        if [run.id for run in runs] != manifest["runs"]:
            raise _refused(path, "its manifest names other runs than it has")
        _try(path, runs, Path(place) / "trial-store")
        known = set(run_ids(store))
        present = [run for run in runs if run.id in known]
        for run in present:
            _refuse_another(path, store, run)
        fresh = [run for run in runs if run.id not in known]
        with translated(store.folder):
            _move_files(Path(place), store, fresh)
        origin = {"at": timestamp(SYSTEM.now()), "from": path.name, "anonymous": bool(manifest.get("anonymous"))}
        for run in reversed(fresh):  # the baseline first, so that a run that is there has it
            add_carried(store, run.document, run.said, run.trials, origin=origin)
    lost = tuple(str(digest) for digest in manifest.get("lost") or ())
    return Unbundled(tuple(run.id for run in fresh), tuple(run.id for run in present), lost)


def _refused(path: Path, problem: str, remedy: str = "have it made and sent again") -> ImportRefused:
    return ImportRefused(f"{path}: {problem}", remedy=remedy)


# The file


def _unpack(path: Path, place: Path) -> dict[str, Any]:
    """Every member in a folder, checked against the manifest, which is given."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = _checked_entries(path, archive)
            manifest = _manifest(path, archive, entries)
            _check_room(path, entries, place)
            for member in manifest["members"]:
                _unpack_one(path, archive, entries[member["name"]], member, place)
            return manifest
    except FileNotFoundError as error:
        raise _refused(path, "no such file", "check the path") from error
    except zipfile.BadZipFile as error:
        raise _refused(path, f"no bundle, or a damaged one: {error}") from error
    except (zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _refused(path, f"it is damaged: {error}") from error
    except OSError as error:
        raise _refused(path, error.strerror or str(error), "check the file and the space on the disk") from error


def _checked_entries(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """What is in it by name; nothing with a name, kind or size that a bundle has no use for."""
    listed = archive.infolist()
    if len(listed) > _MEMBERS_MAX:
        raise _refused(path, f"it has {len(listed)} members", "no bundle has as many")
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in listed:
        name = entry.orig_filename  # as it is written: zipfile cuts names at a zero byte
        if name != MANIFEST and not _MEMBER.fullmatch(name):
            raise _refused(path, f"it has a member {name!r:.120}", "no bundle has such a member: do not trust it")
        if name in found:
            raise _refused(path, f"it has two members {name}", "no bundle has that: do not trust it")
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG) or entry.is_dir():
            raise _refused(path, f"its member {name} is no plain file", "no bundle has links: do not trust it")
        if entry.flag_bits & 0x1:
            raise _refused(path, f"its member {name} is encrypted", "bundles are not encrypted: do not trust it")
        if entry.file_size > _SMALL and entry.file_size > _DENSE_MAX * max(1, entry.compress_size):
            raise _refused(path, f"its member {name} would grow to {entry.file_size} bytes", "do not trust it")
        found[name] = entry
    total, packed = sum(entry.file_size for entry in listed), path.stat().st_size
    if total > _SMALL and total > _DENSE_MAX * packed:
        raise _refused(path, f"{packed} bytes would grow to {total}", "do not trust it")
    return found


def _manifest(path: Path, archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo]) -> dict[str, Any]:
    if MANIFEST not in entries or entries[MANIFEST].file_size > _MANIFEST_MAX:
        raise _refused(path, "no bundle: it has no manifest", "give a file that `devbench bundle` wrote")
    content = _json(path, MANIFEST, archive.read(entries[MANIFEST]))
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise _refused(path, "no bundle: its manifest is another thing's", "give a file that `devbench bundle` wrote")
    version = content.get("version")
    if type(version) is not int or version > VERSION:
        raise _refused(
            path, f"written by a newer devbench (version {version!r}, this one reads {VERSION})", "upgrade it"
        )
    members, runs = content.get("members"), content.get("runs")
    sound = isinstance(members, list) and all(isinstance(item, dict) for item in members) and isinstance(runs, list)
    if not sound or not 1 <= len(runs or ()) <= 9:
        raise _refused(path, "its manifest is damaged")
    names = [item.get("name") for item in members or ()]
    if sorted(map(str, names)) != sorted(set(entries) - {MANIFEST}):
        raise _refused(path, "its manifest names other members than it has")
    return content


def _check_room(path: Path, entries: Mapping[str, zipfile.ZipInfo], place: Path) -> None:
    needed, free = sum(entry.file_size for entry in entries.values()), shutil.disk_usage(place).free
    if 2 * needed > free:
        raise StoreError(
            f"{path} takes {needed // 1_000_000} MB, and again as much for a moment; {free // 1_000_000} MB are free",
            remedy="free space, or point --store to another disk",
        )


def _unpack_one(
    path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, member: Mapping[str, Any], place: Path
) -> None:
    target = place / entry.filename
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with archive.open(entry) as source, target.open("xb") as out:
        while part := source.read(_AT_ONCE):
            size += len(part)
            digest.update(part)
            out.write(part)
    if size != member.get("bytes") or digest.hexdigest() != member.get("sha256"):
        raise _refused(path, f"{entry.filename} is not what the manifest says")
    kind, _, rest = entry.filename.partition("/")
    if kind == "blobs" and digest.hexdigest() != rest.partition("/")[0]:
        raise _refused(path, f"{entry.filename} is not what its name says", "do not trust it")


# The runs in it


def _json(path: Path, name: str, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _refused(path, f"{name} is no JSON") from error


def _read_run(path: Path, place: Path, number: int) -> _Run:
    folder = place / "runs" / str(number)
    try:
        contents = {name: (folder / name).read_bytes() for name in ("run.json", "said.json", "trials.jsonl")}
    except FileNotFoundError as error:
        raise _refused(path, f"its run {number} is not whole") from error
    document, said = (_json(path, name, contents[name]) for name in ("run.json", "said.json"))
    run_id = _sound(path, number, lambda: str(document["run"]["id"]))
    if not re.fullmatch(_FILE, run_id):
        raise _refused(path, f"no run is called {run_id!r:.120}", "do not trust it")
    lines = _sound(path, number, lambda: contents["trials.jsonl"].decode("utf-8").split("\n"))
    trials = _sound(path, number, lambda: read_trials(lines, f"{path}: run {number}"))
    if any(trial.run != run_id for trial in trials):
        raise _refused(path, f"run {run_id} has trials of another run")
    digests = tuple(hashlib.sha256(contents[name]).hexdigest() for name in ("run.json", "trials.jsonl"))
    return _Run(number, document, said, trials, (digests[0], digests[1]))


def _sound(path: Path, number: int, read: Callable[[], Any]) -> Any:
    """What reading gives; content that is not as we write it is refused, whatever is wrong with it."""
    try:
        return read()
    except DevbenchError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, IndexError) as error:
        raise _refused(path, f"run {number} in it cannot be read: {type(error).__name__}: {error}") from error


def _try(path: Path, runs: list[_Run], place: Path) -> None:
    """Take the runs into a store of its own and read them back as every command does, before ours is touched."""
    scratch = open_store(place)
    try:
        for run in runs:
            _sound(path, run.number, lambda run=run: _try_one(scratch, run))  # type: ignore[misc]  # bound per turn
    except StoreError as error:
        raise _refused(path, f"its rows cannot be kept: {error.fact}") from error
    finally:
        scratch.close()


def _try_one(scratch: Store, run: _Run) -> None:
    add_carried(scratch, run.document, run.said, run.trials, origin={})
    record = scratch.find_run(run.id)
    if record.plan:
        plan_from_json(record.plan)
    for device in record.fleet["devices"]:
        limits = Limits(**device.get("limits") or {})
        Device(**{**{field.name: device.get(field.name) for field in fields(Device)}, "limits": limits})
        if not isinstance(device["name"], str):
            raise TypeError("a device has no name")
    scratch.trials(run.id)
    scratch.sessions(run.id)
    scratch.profiles(run.id)
    scratch.traces(run.id)
    scratch.stops(run.id)
    scratch.noise()
    Annals(scratch).judgements()
    Annals(scratch).notes()


def _refuse_another(path: Path, store: Store, run: _Run) -> None:
    """A run of this id that is here must be the very same."""
    document = f"{json.dumps(run_document(store, run.id), ensure_ascii=False)}\n"
    trials = hashlib.sha256()
    for line in trial_lines(store, run.id):
        trials.update(f"{line}\n".encode("utf-8", "surrogatepass"))
    if (hashlib.sha256(document.encode()).hexdigest(), trials.hexdigest()) != run.digests:
        raise _refused(
            path, f"run {run.id} is in {store.folder} already, and differs", "unbundle it with --store elsewhere"
        )


def _move_files(place: Path, store: Store, runs: list[_Run]) -> None:
    """Blobs that are not here yet, and the artifacts of new runs; until the rows are there, they are loose files."""
    for folder in sorted((place / "blobs").glob("*")):
        if store.blob(folder.name) is None:
            source = min(folder.iterdir())
            copy_whole(source, store.folder / "blobs" / sha256(source) / source.name)
    for run in runs:
        source, target = place / "artifacts" / str(run.number), store.folder / "artifacts" / safe_name(run.id)
        if source.is_dir():
            target.parent.mkdir(exist_ok=True)
            if target.is_symlink():
                target.unlink()
            shutil.rmtree(target, ignore_errors=True)  # of a run that is no longer here, or never came to be
            source.rename(target)
