"""The host end of the agent protocol: bytes into a report, and a trial into arguments."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.agent import SamplesWhenRead, _arguments, _check_protocol
from orchestrator.agent_lines import LineReader
from orchestrator.errors import DeviceUnfit
from orchestrator.platforms.base import Hold
from orchestrator.runners.base import Command
from orchestrator.stage import Report, Trialling

RECORDINGS = Path(__file__).parents[1] / "data" / "agent"
IDLE = (RECORDINGS / "idle.txt").read_bytes()


def read(*chunks: bytes) -> Report:
    reader = LineReader()
    for chunk in chunks:
        reader.feed(chunk)
    return reader.finish()


def recorded(name: str) -> Report:
    return read((RECORDINGS / name).read_bytes())


class TestRecordings:
    def test_a_whole_trial(self) -> None:
        """Header, start, the child's lines, samples and the closing record all arrive."""
        report = recorded("idle.txt")
        assert report.is_whole
        assert (report.header["protocol"], report.started["affinity"]) == (1, "3")
        assert report.stdout[0][:16] == b'{"event":"start"'
        assert report.stdout[-1].startswith(b'{"event":"end"')
        assert report.stderr == [b"INFO: Created TensorFlow Lite XNNPACK delegate for CPU."]
        assert (report.closing["reason"], report.closing["exit"]) == ("exit", 0)
        assert report.lines == report.closing["lines"] == 22
        assert all("t_ns" in sample for sample in report.samples)
        assert (report.loads, report.warnings, report.unreadable) == ([], [], 0)

    def test_a_trial_beside_a_load(self) -> None:
        """Both phases of the load are told."""
        report = recorded("loaded.txt")
        assert [load["phase"] for load in report.loads] == ["settle", "run"]
        assert report.loads[0]["threads"][0]["offered"] == 0.5
        assert report.started["load"]["pid"] != report.started["pid"]

    @pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.txt")), ids=lambda path: path.stem)
    def test_every_recording_is_whole(self, path: Path) -> None:
        """However the child ended, the agent's own stream is complete and kept byte for byte."""
        report = read(path.read_bytes())
        assert report.is_whole
        assert bytes(report.transcript) == path.read_bytes()

    def test_a_line_longer_than_the_limit_is_put_together(self) -> None:
        """80,000 characters come in three parts."""
        assert recorded("long_line.txt").stdout == [b"x" * 80_000, b"short"]

    def test_a_last_line_without_a_newline_is_kept(self) -> None:
        """PROTOCOL.md: a small letter also means that the output ended without a newline."""
        assert recorded("no_newline.txt").stdout == [b"one line", b"no newline at the end"]


class TestChunks:
    @given(cuts=st.lists(st.integers(0, len(IDLE)), max_size=12))
    @settings(max_examples=40, deadline=None)
    def test_how_the_bytes_are_cut_does_not_matter(self, cuts: list[int]) -> None:
        """A transport delivers whatever arrived."""
        ends = [0, *sorted(cuts), len(IDLE)]
        assert read(*(IDLE[start:end] for start, end in itertools.pairwise(ends))) == read(IDLE)

    @given(end=st.integers(0, len(IDLE) - 1))
    @settings(max_examples=60, deadline=None)
    def test_a_stream_cut_anywhere_is_not_whole(self, end: int) -> None:
        """However much arrived, the missing rest is noticed."""
        assert not read(IDLE[:end]).is_whole

    @given(index=st.integers(0, 21))
    @settings(max_examples=22, deadline=None)
    def test_a_stream_with_one_line_lost_is_not_whole(self, index: int) -> None:
        """A line count that does not add up is noticed."""
        lines = IDLE.splitlines(keepends=True)
        assert not read(b"".join(lines[:index] + lines[index + 1 :])).is_whole

    def test_old_shells_that_end_lines_with_crlf_are_understood(self) -> None:
        """Without shell_v2 adb translates newlines."""
        report = read(IDLE.replace(b"\n", b"\r\n"))
        assert report.is_whole
        assert report.stdout == read(IDLE).stdout


class TestDamage:
    @pytest.mark.parametrize(
        "line", [b"", b"?", b"Q {}", b"S {", b"S [1]", b"S", b'S {"u_ns":1}', b"linker: warning", b"\xff\xfe"]
    )
    def test_a_line_that_is_no_record_is_counted(self, line: bytes) -> None:
        """The trial is then incomplete; nothing is raised."""
        report = read(line + b"\n")
        assert report.unreadable > 0
        assert not report.is_whole

    @pytest.mark.parametrize("letter", ["S", "L", "W"])
    def test_a_damaged_record_is_not_kept_as_an_empty_one(self, letter: str) -> None:
        """Who reads samples may rely on their time."""
        report = read(f'{letter} {{"t_ns":\n'.encode())
        assert report.samples + report.loads + report.warnings == []

    def test_a_mask_that_is_none_is_damage(self) -> None:
        """Who compares masks may rely on their digits."""
        report = read(b'C {"t_ns":1,"affinity":"\xff"}\nX {"t_ns":1,"lines":1,"affinity":"3z"}\n')
        assert (report.started, report.closing, report.unreadable) == ({}, {}, 2)

    def test_a_damaged_closing_record_is_none(self) -> None:
        """Half a closing record closes nothing."""
        report = read(IDLE[:-40] + b"\n")
        assert report.closing == {}
        assert not report.is_whole

    def test_an_endless_line_does_not_fill_the_memory(self) -> None:
        """Garbage without newlines is dropped in pieces of 4 MiB."""
        reader = LineReader()
        for _ in range(5):
            reader.feed(b"x" * (1024 * 1024))
        assert reader.report.unreadable == 1
        assert len(reader._rest) <= 4 * 1024 * 1024

    @given(content=st.binary(max_size=400))
    @settings(max_examples=60, deadline=None)
    def test_any_bytes_at_all_are_survived(self, content: bytes) -> None:
        """What comes over a wire may be anything."""
        assert not read(content + b"\n").is_whole


class TestOutput:
    def test_the_childs_bytes_are_its_own(self) -> None:
        """Spaces, NUL and bytes that are no UTF-8 pass."""
        report = read(b"O 12  two  spaces \nE 13 \x00\xff\nO 14 \n")
        assert (report.stdout, report.stderr) == ([b" two  spaces ", b""], [b"\x00\xff"])

    def test_parts_of_both_streams_do_not_mix(self) -> None:
        """A long line of one goes on after a line of the other."""
        report = read(b"o 1 out-\ne 2 err-\nO 3 put\nE 4 or\n")
        assert (report.stdout, report.stderr) == ([b"out-put"], [b"err-or"])
        assert report.lines == 4


TRIALLING = Trialling(
    command=Command(("python3", "runner.py", "--model=x"), {"B": "2", "A": "1"}),
    load="cpu:2@50",
    beside=None,
    placement="other-group",
    settle_ms=300,
    sample_ms=100,
    affinity=None,
    holds=(),
    deadline_s=120.0,
)


class TestArguments:
    def test_every_option_is_given(self) -> None:
        """Also where it equals the agent's default."""
        assert " ".join(_arguments(TRIALLING)) == (
            "--load cpu:2@50 --load-argc 0 --load-placement other-group --settle-ms 300 --sample-ms 100 "
            "--deadline-s 120 --heartbeat-s 20 --env A=1 --env B=2 -- python3 runner.py --model=x"
        )

    def test_affinity_and_holds_are_added(self) -> None:
        """A hold is path and value."""
        trialling = replace(TRIALLING, affinity="f0", holds=(Hold("/sys/a", "performance"), Hold("/sys/b", "1")))
        text = " ".join(_arguments(trialling))
        assert "--heartbeat-s 20 --affinity f0 --hold /sys/a=performance --hold /sys/b=1 --env" in text

    def test_a_model_as_load_is_a_command_before_the_measured_one(self) -> None:
        """The agent is told how many words are the load's."""
        trialling = replace(TRIALLING, load="model:b@12345678", beside=Command(("python3", "runner.py", "--beside")))
        arguments = _arguments(trialling)
        assert arguments[:4] == ["--load", "exec", "--load-argc", "3"]
        assert arguments[arguments.index("--") + 1 :] == [
            "python3", "runner.py", "--beside", "python3", "runner.py", "--model=x",
        ]  # fmt: skip

    def test_words_of_the_command_are_never_split_or_joined(self) -> None:
        """Spaces, quotes and dashes are the device's own."""
        words = ("a b", "$(reboot)", "--", "-x")
        arguments = _arguments(replace(TRIALLING, command=Command(words)))
        assert tuple(arguments[-4:]) == words


def test_an_agent_of_another_protocol_is_not_believed() -> None:
    """A stale build is refused with what to do; the recorded one speaks ours."""
    _check_protocol(read(IDLE))
    with pytest.raises(DeviceUnfit, match="the agent speaks protocol 2, and this devbench speaks 1"):
        _check_protocol(read(b'H {"protocol":2}\n'))


def test_samples_are_asked_for_once_when_they_are_read() -> None:
    """Not before, and not again."""
    asked: list[int] = []

    def sample() -> list[dict[str, int]]:
        asked.append(1)
        return [{"t_ns": 1}, {"t_ns": 2}]

    samples = SamplesWhenRead(sample)
    assert asked == []
    assert [one["t_ns"] for one in samples] == [1, 2]
    assert (len(samples), samples[-1], samples[:1]) == (2, {"t_ns": 2}, [{"t_ns": 1}])
    assert asked == [1]
