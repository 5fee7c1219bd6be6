"""The log of a bisection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.bisect_log import BisectLog
from orchestrator.errors import HostError, UsageError


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    """The newest entry with the wanted values is found."""
    log = BisectLog.begin(tmp_path / "new" / "log.jsonl", {"names": ["a", "b"]})
    log.append("item", {"index": 1, "sha256": "x"})
    log.append("item", {"index": 1, "sha256": "y"})
    again = BisectLog.open(log.path)
    assert again.first["names"] == ["a", "b"]
    assert (again.find("item", index=1) or {})["sha256"] == "y"
    assert again.find("item", index=2) is None


def test_a_line_that_was_being_written_is_taken_off(tmp_path: Path) -> None:
    """Whatever the moment of a crash, the log goes on from the last whole line."""
    log = BisectLog.begin(tmp_path / "log.jsonl", {})
    whole = log.path.read_bytes()
    log.append("item", {"index": 1})
    full = log.path.read_bytes()
    for length in range(len(whole), len(full)):
        log.path.write_bytes(full[:length])
        assert len(BisectLog.open(log.path).entries) == 1
        assert log.path.read_bytes() == whole


@pytest.mark.parametrize("content", ["", "{}\n", "nonsense\n", '[1]\n{"event": "begin"}\n', '{"event": "begin"}\n'])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    """And left as it is."""
    path = tmp_path / "plan.toml"
    path.write_text(content)
    with pytest.raises(UsageError):
        BisectLog.open(path)
    assert path.read_text() == content


def test_what_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    """A log that exists is not written over; a newer one is not misread."""
    with pytest.raises(UsageError, match="cannot read"):
        BisectLog.open(tmp_path / "missing")
    log = BisectLog.begin(tmp_path / "log.jsonl", {})
    with pytest.raises(UsageError, match="is there already"):
        BisectLog.begin(log.path, {})
    log.path.write_text(json.dumps(log.first | {"version": 2}) + "\n")
    with pytest.raises(UsageError, match="another version"):
        BisectLog.open(log.path)
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="cannot write"):
        BisectLog.begin(tmp_path / "file" / "log.jsonl", {})
