"""Command lines for a phone's shell, and how their output is read, in both dialects."""

from __future__ import annotations

import struct
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from android_harness.adb_shell import ExecV1, ShellV2
from orchestrator.transports.posix_shell import exit_of, quoted

ARGUMENTS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1)


@settings(max_examples=60, deadline=None)
@given(ARGUMENTS)
def test_a_shell_takes_a_quoted_line_apart_into_the_same_arguments(arguments: list[str]) -> None:
    """Whatever is in them."""
    script = f"for word in {quoted(arguments)}; do printf '%s\\0' \"$word\"; done"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode() == "".join(f"{word}\0" for word in arguments)


@pytest.mark.parametrize(
    ("status", "expected"), [(0, 0), (1, 1), (128, 128), (137, -9), (143, -15), (192, -64), (255, 255)]
)
def test_a_shell_says_128_more_than_the_signal(status: int, expected: int) -> None:
    """255 is what programs give for -1, and no signal."""
    assert exit_of(status) == expected


def packet(kind: int, payload: bytes) -> bytes:
    return struct.pack("<BI", kind, len(payload)) + payload


class TestShellV2:
    def test_streams_and_status_come_apart(self) -> None:
        """Standard output, standard error and the exit status, with the group's number taken off the front."""
        dialect = ShellV2(["true"])
        stream = packet(1, b"4711\nou") + packet(2, b"err") + packet(1, b"t") + packet(3, b"\x07")
        dialect.feed(stream)
        assert (dialect.pid, dialect.stdout, dialect.stderr, dialect.status) == (4711, b"out", b"err", 7)

    def test_bytes_may_come_one_by_one(self) -> None:
        """Where packets are cut on the way makes no difference."""
        dialect = ShellV2(["true"])
        for byte in packet(1, b"4711\nout") + packet(2, b"err") + packet(3, b"\0"):
            assert dialect.status is None
            dialect.feed(bytes([byte]))
        assert (dialect.pid, dialect.stdout, dialect.stderr, dialect.status) == (4711, b"out", b"err", 0)

    def test_input_is_cut_into_packets(self) -> None:
        """Old daemons take no large ones."""
        sent = ShellV2(["cat"]).input(b"x" * 100_000)
        sizes = []
        while sent:
            kind, length = struct.unpack_from("<BI", sent)
            assert kind == 0
            sizes.append(length)
            sent = sent[5 + length :]
        assert sum(sizes) == 100_000
        assert max(sizes) <= 32 * 1024


def conversation(dialect: ExecV1, content: bytes = b"") -> bytes:
    """What a shell says to the script of the old dialect."""
    script = dialect.service.removeprefix(b"exec:").replace(b"/data/local/tmp/", b"/tmp/")
    sent = dialect.input(content) + dialect.end_of_input()
    return subprocess.run(["dash", "-c", script], input=sent, capture_output=True, check=True).stdout


class TestExecV1:
    def test_streams_and_status_come_apart(self) -> None:
        """On phones that carry one stream only."""
        dialect = ExecV1(["sh", "-c", "printf out; printf err >&2; exit 7"])
        dialect.feed(conversation(dialect))
        assert (dialect.stdout, dialect.stderr, dialect.status, dialect.has_started) == (b"out", b"err", 7, True)

    def test_bytes_may_come_one_by_one(self) -> None:
        """The nonce is recognised wherever it is cut."""
        dialect = ExecV1(["sh", "-c", "printf out; printf err >&2; exit 7"])
        for byte in conversation(dialect):
            assert dialect.status is None
            dialect.feed(bytes([byte]))
        assert (dialect.stdout, dialect.stderr, dialect.status) == (b"out", b"err", 7)

    def test_output_is_given_as_it_comes(self) -> None:
        """Only what may be the beginning of the nonce is held back."""
        dialect = ExecV1(["cat"])
        dialect.feed(b"4711\nping\n")
        assert dialect.stdout == b"ping\n"

    def test_output_that_is_cut_off_has_no_status(self) -> None:
        """Whatever is missing at the end."""
        whole = None
        for missing in range(1, 60):
            dialect = ExecV1(["sh", "-c", "printf out; printf err >&2; exit 7"])
            whole = conversation(dialect)
            dialect.feed(whole[:-missing])
            assert dialect.status is None
        assert whole

    def test_input_is_carried_byte_for_byte(self) -> None:
        """Through lines of text, which is all that the way takes."""
        content = bytes(range(256)) * 20 + b"\n.\n\\c no newline"
        dialect = ExecV1(["cat"])
        dialect.feed(conversation(dialect, content))
        assert dialect.stdout == content

    def test_a_program_that_is_missing_is_told_from_a_status(self) -> None:
        """127 of a program and 127 of the shell."""
        missing, own = ExecV1(["/nowhere/prog"]), ExecV1(["sh", "-c", "exit 127"])
        missing.feed(conversation(missing))
        own.feed(conversation(own))
        assert (missing.status, missing.has_started) == (127, False)
        assert (own.status, own.has_started) == (127, True)
