"""What `reproduce` and `bisect` refuse before any device is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli import app
from orchestrator.errors import DevbenchError, UsageError
from orchestrator.store import open_store


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an empty store and some files."""
    open_store(tmp_path / "devbench-results").close()
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(*arguments: str) -> DevbenchError:
    error = CliRunner().invoke(app, arguments).exception
    assert isinstance(error, DevbenchError), error
    return error


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ((), "which cell of which run?"),
        (("last",), "which cell of which run?"),
        (("2026", "x"), 'no run "2026" in devbench-results'),
        (("last", "x", "--blocks", "8:4"), '--blocks: "8:4" is no number of blocks'),
        (("last", "x", "--budget", "soon"), '--budget: "soon" is no duration'),
        (("last", "x", "--threshold", "lots"), '--threshold: "lots" is no'),
        (("last", "x", "--metric", "p49"), '--metric: "p49" is unknown'),
        (("--resume", "last", "--profile"), "--resume goes on with what was begun"),
        (("--resume", "last"), "no run of reproduce in devbench-results"),
    ],
)
def test_reproduce_refuses(place: Path, arguments: tuple[str, ...], fact: str) -> None:
    """With the option's name and what was wrong with it."""
    assert refusal("reproduce", *arguments).fact.startswith(fact)


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (("a", "b"), "what is searched?"),
        (("--models", "--binaries", "a", "b"), "what is searched?"),
        (("--models", "--role", "runner", "a", "b"), "--role is about --binaries"),
        (("--binaries", "a"), "1 files to search"),
        (
            ("--binaries", "a", "b", "--produces", "x"),
            "--produces, --revisions and --build-timeout belong to --command",
        ),
        (("--binaries", "--command", "x {}"), "--command takes --revisions and --produces, and no files"),
        (("--binaries", "--command", "x", "--produces", "y", "--revisions", "a,b"), "--command has no {}"),
        (("--binaries", "--command", "x {}", "--produces", "y", "--revisions", "a,a"), "--revisions: a is there twice"),
        (("--binaries", "a", "b", "--blocks", "2:3"), "3 blocks decide nothing"),
        (("--binaries", "a", "b", "--run", "last"), "--run takes --cell"),
        (("--models", "a", "b"), "a: not a TFLite model"),
        (("--models", "a", "b", "--model", "c"), "--models are what is measured"),
        (("--binaries", "a", "gone", "--model", "a"), "a: not a TFLite model"),
        (("--resume", "gone"), "cannot read gone: No such file or directory"),
        (("--resume", "a"), "a is no log of a bisection"),
        (("--resume", "a", "--seed", "1"), "--resume goes on with what was begun"),
    ],
)
def test_bisect_refuses(place: Path, arguments: tuple[str, ...], fact: str) -> None:
    """And leaves no log behind."""
    error = refusal("bisect", *arguments)
    assert isinstance(error, UsageError)
    assert error.fact.removeprefix(f"{place.resolve()}/").startswith(fact)
    assert not (place / "devbench-results" / "bisections").exists()
