"""Where the items of a bisection come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.bisect_items import MODEL, GivenFiles, MadeByCommand, NotBuilt, check_of, read_revisions
from orchestrator.errors import UsageError

TINY = Path(__file__).parents[1] / "data" / "models" / "tiny_add.tflite"


def made(command: str, produces: Path, timeout_s: float = 30.0) -> MadeByCommand:
    return MadeByCommand(command, str(produces), timeout_s, check_of(MODEL, "litert_runner"))


def test_a_command_makes_the_file_of_a_revision(tmp_path: Path) -> None:
    """The revision is one word to the shell, whatever is in it."""
    name = "it's $HOME; a b"
    source = made(f"printf %s {{}} > {tmp_path}/said && cp {TINY} {tmp_path}/m.tflite", tmp_path / "m.tflite")
    assert source.obtain(name).read_bytes() == TINY.read_bytes()
    assert (tmp_path / "said").read_text() == name


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo no rule to make {} >&2; exit 2", "ended with 2: no rule to make v1"),
        ("echo said {}; kill -9 $$", "ended with -9: said v1"),
        ("exit 125", "ended with 125: it said nothing"),
        ("true", "there is no"),
        ("echo nonsense > {out}", "not a TFLite model"),
        ("sleep 60 & sleep 60", "took longer than 0.3 s"),
    ],
)
def test_what_cannot_be_made_is_skipped_with_the_reason(tmp_path: Path, command: str, reason: str) -> None:
    """A build that fails, leaves nothing, leaves something else, or does not end."""
    out = tmp_path / "out.tflite"
    timeout_s = 0.3 if "sleep" in command else 30.0
    with pytest.raises(NotBuilt, match=reason):
        made(command.replace("{out}", str(out)), out, timeout_s).obtain("v1")


def test_a_file_that_went_is_skipped(tmp_path: Path) -> None:
    """It was there when the list was made."""
    with pytest.raises(NotBuilt, match="the file is gone"):
        GivenFiles().obtain(str(tmp_path / "v1"))


def test_revisions_come_from_a_file_or_a_list(tmp_path: Path) -> None:
    """One a line, as `git rev-list --reverse --oneline` writes them, or with commas."""
    path = tmp_path / "revisions.txt"
    path.write_text("# oldest first\nab12 Add a thing\n\ncd34  # bad\n")
    assert read_revisions(str(path)) == ("ab12", "cd34")
    assert read_revisions("v1, v2,v3") == ("v1", "v2", "v3")


@pytest.mark.parametrize(("text", "why"), [("v1", "1 revisions"), (",", "0 revisions"), ("a,b,a", "a is there twice")])
def test_a_list_that_cannot_be_searched_is_refused(text: str, why: str) -> None:
    """Two are the least, and each stands for one place."""
    with pytest.raises(UsageError, match=why):
        read_revisions(text)
