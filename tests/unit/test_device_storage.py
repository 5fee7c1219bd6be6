"""The room devbench takes on a device."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator import device_storage
from orchestrator.clock import SYSTEM
from orchestrator.device_storage import Storage, _free_bytes
from orchestrator.errors import DeviceFull
from orchestrator.transports.local import LocalTransport

DAY_S = 86_400


def a_blob(workdir: Path, letter: str, *, age_days: float, size: int = 1000) -> str:
    """A file as devbench keeps them, last used so long ago; gives its hash."""
    folder = workdir / "blobs" / (letter * 64)
    folder.mkdir(parents=True)
    (folder / "model.tflite").write_bytes(b"x" * size)
    then = SYSTEM.now().timestamp() - age_days * DAY_S
    os.utime(folder, (then, then))
    return letter * 64


def kept(workdir: Path) -> set[str]:
    return {folder.name[0] for folder in (workdir / "blobs").iterdir()}


def test_what_was_not_used_for_long_is_removed(tmp_path: Path) -> None:
    """What is in use stays, however old, and counts as fresh from then on."""
    for letter, age_days in (("a", 1), ("b", 40), ("c", 50)):
        a_blob(tmp_path, letter, age_days=age_days)
    storage = Storage(LocalTransport(), str(tmp_path))
    assert storage.prune(["c" * 64]) == 1
    assert kept(tmp_path) == {"a", "c"}
    assert storage.prune([]) == 0


def test_the_oldest_beyond_the_total_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device never fills up with old models."""
    monkeypatch.setattr(device_storage, "MAX_TOTAL_BYTES", 700_000)
    for letter, age_days in (("a", 1), ("b", 2), ("c", 3), ("d", 4)):
        a_blob(tmp_path, letter, age_days=age_days, size=300_000)
    assert Storage(LocalTransport(), str(tmp_path)).prune(["d" * 64]) == 2
    assert kept(tmp_path) == {"a", "d"}


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    """Only folders named by a hash are blobs."""
    (tmp_path / "blobs" / "holiday photos").mkdir(parents=True)
    then = SYSTEM.now().timestamp() - 100 * DAY_S
    os.utime(tmp_path / "blobs" / "holiday photos", (then, then))
    assert Storage(LocalTransport(), str(tmp_path)).prune([]) == 0
    assert (tmp_path / "blobs" / "holiday photos").is_dir()


def test_a_device_without_files_of_ours_is_no_error(tmp_path: Path) -> None:
    """Nothing to remove is nothing to do."""
    assert Storage(LocalTransport(), str(tmp_path / "nowhere")).prune([]) == 0


def test_cleaning_leaves_what_is_not_ours(tmp_path: Path) -> None:
    """Our folders go; the folder itself only when nothing else is in it."""
    a_blob(tmp_path / "device", "a", age_days=1)
    Storage(LocalTransport(), str(tmp_path / "device")).clean()
    assert not (tmp_path / "device").exists()
    a_blob(tmp_path / "shared", "a", age_days=1)
    (tmp_path / "shared" / "other").write_text("x")
    Storage(LocalTransport(), str(tmp_path / "shared")).clean()
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["other"]


def a_leftover(path: Path, *, age_days: float) -> Path:
    """What a link that was cut in the middle of a push leaves behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"torn")
    then = SYSTEM.now().timestamp() - age_days * DAY_S
    os.utime(path, (then, then))
    return path


def test_old_leftovers_of_cut_links_are_removed(tmp_path: Path) -> None:
    """Also from the folder of a file in use, and from beside the workdir; a push under way is left alone."""
    workdir = tmp_path / "devbench"
    blob = workdir / "blobs" / a_blob(workdir, "a", age_days=1)
    old = [a_leftover(place / ".devbench-push-1", age_days=3) for place in (blob, tmp_path)]
    new = [a_leftover(place / ".devbench-push-2", age_days=0.5) for place in (blob, tmp_path)]
    assert Storage(LocalTransport(), str(workdir)).prune(["a" * 64]) == 0
    assert [path.exists() for path in (*old, *new)] == [False, False, True, True]
    assert (blob / "model.tflite").exists()


def test_cleaning_removes_every_leftover(tmp_path: Path) -> None:
    """However young; files of others that begin with a dot stay."""
    workdir = tmp_path / "devbench"
    for place in (workdir / "blobs" / "x", workdir, tmp_path):
        a_leftover(place / ".devbench-push-1", age_days=0)
    (tmp_path / ".other").touch()
    Storage(LocalTransport(), str(workdir)).clean()
    assert [path.name for path in tmp_path.iterdir()] == [".other"]


def test_a_file_larger_than_the_room_is_refused_beforehand(tmp_path: Path) -> None:
    """With what is needed and what there is."""
    with pytest.raises(DeviceFull, match=r"big\.tflite needs \d+ MB in .*, and \d+ MB are free"):
        Storage(LocalTransport(), str(tmp_path)).require_room("big.tflite", 10**15)
    Storage(LocalTransport(), str(tmp_path)).require_room("small.tflite", 1000)


@pytest.mark.parametrize(
    ("answer", "free"),
    [
        ("Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/block/dm-5 100 40 60 40% /data\n", 60 * 1024),
        ("Filesystem     1K-blocks      Used Available Use% Mounted on\n/a long\n name 9 1 8 12% /data\n", 8 * 1024),
        ("Filesystem               Size     Used     Free   Blksize\n/data  12.1G  3.0G  9.1G  4096\n", None),
        ("df: /data: Permission denied\n", None),
        ("", None),
    ],
)
def test_free_room_is_read_from_df(answer: str, free: int | None) -> None:
    """GNU and toybox print alike; an old phone's table says nothing, and that is no number."""
    assert _free_bytes(answer) == free
