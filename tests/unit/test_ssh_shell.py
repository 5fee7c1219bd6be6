"""Lines for login shells, tried in the real ones that are installed."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.transports.ssh_shell import Dialect, Opening, kill, program

SHELLS = [path for name in ("dash", "bash", "csh", "fish", "mksh") if (path := shutil.which(name))]
ARGUMENT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("setsid", [False, True])
@given(arguments=st.lists(ARGUMENT, max_size=3))
@settings(max_examples=12, deadline=None)
def test_arguments_arrive_untouched_through_any_login_shell(shell: str, setsid: bool, arguments: list[str]) -> None:
    """Whatever they hold: every shell reads the line alike."""
    opening = Opening()
    line = Dialect(setsid=setsid).line(program(["printf", "%s\\n", "x", *arguments], opening, leads=True))
    done = subprocess.run([shell, "-c", line.encode()], capture_output=True, check=False)
    output = bytearray(done.stdout)
    opening.feed(output)
    assert opening.group
    assert bytes(output) == "".join(f"{argument}\n" for argument in ("x", *arguments)).encode()


def test_noise_before_the_nonce_is_told_apart() -> None:
    """It may come in any pieces, and may hold a part of the nonce."""
    opening = Opening(nonce="0123")
    buffer = bytearray(b"Welcome 012\n01")
    opening.feed(buffer)
    assert opening.group is None
    buffer += b"23 4711\nout"
    opening.feed(buffer)
    assert (opening.group, bytes(opening.noise), bytes(buffer)) == (4711, b"Welcome 012\n", b"out")


def test_without_a_nonce_the_first_words_are_for_the_error() -> None:
    assert Opening().noise_text(b"\nNot available.\nBye\n") == "Not available."
    assert Opening().noise_text(b"") == ""


def test_a_group_is_killed_where_there_is_one() -> None:
    """The server's own group must never be."""
    assert kill(42, leads=True) == "kill -9 -42"
    assert kill(42, leads=False) == "kill -9 42"
