"""What trials write on a device, on this machine's own transport."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import trial_files
from orchestrator.transports.local import LocalTransport
from orchestrator.trial_files import TrialFiles


@pytest.fixture
def written(tmp_path: Path) -> TrialFiles:
    return TrialFiles(LocalTransport(), str(tmp_path / "work"))


def test_files_are_pulled_by_role_and_what_is_not_there_is_told(
    written: TrialFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing, empty and too large: one takes no other with it."""
    monkeypatch.setattr(trial_files, "OUTPUT_BYTES_MAX", 10)
    folder = written.name()
    written.make(folder)
    contents = {"small": b"12345", "empty": b"", "large": b"x" * 11}
    for name, content in contents.items():
        Path(folder, name).write_bytes(content)
    found, lost = written.pull({name: f"{folder}/{name}" for name in ("missing", *contents)})
    assert found == {"small": b"12345"}
    assert set(lost) == {"missing", "empty", "large"}
    assert lost["missing"] == "it was not written"
    assert lost["empty"] == "it is empty"
    assert "is the most that is kept" in lost["large"]


def test_nothing_is_asked_where_nothing_is_written(written: TrialFiles) -> None:
    """A runner without files costs no command."""
    assert written.pull({}) == ({}, {})


def test_what_a_killed_session_left_goes_with_the_first_trial_of_the_next(tmp_path: Path) -> None:
    """And the folders of one session stay until they are removed."""
    left = tmp_path / "work" / "scratch" / "left"
    left.mkdir(parents=True)
    written = TrialFiles(LocalTransport(), str(tmp_path / "work"))
    first, second = written.name(), written.name()
    written.make(first)
    written.make(second)
    assert not left.exists()
    assert Path(first, "cache").is_dir() and Path(second, "cache").is_dir()
    written.remove(first)
    assert not Path(first).exists()


def test_a_warm_cache_begins_empty_and_its_files_are_counted(written: TrialFiles) -> None:
    """What an earlier session compiled may be of another driver."""
    cache = Path(written.warm_cache("abc"))
    assert written.entries(str(cache)) == 0
    (cache / "one").write_text("x")
    (cache / ".two").write_text("y")
    assert written.entries(str(cache)) == 2
    assert list(Path(written.warm_cache("abc")).iterdir()) == []
    assert written.entries(f"{cache}/missing") == 0
    written.clear()
    assert list(cache.parent.parent.iterdir()) == []
