"""What is left of benchmark_model's output after cuts, mixing and noise: never an exception, never a new number."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.runners.base import Reading
from orchestrator.runners.benchmark_model_output import read_output
from tests.unit.test_benchmark_model_output import ALL, Recording

SMALL = [recording for recording in ALL.values() if sum(map(len, recording.stdout + recording.stderr)) < 30_000]
MEASURED = [recording for recording in SMALL if recording.reading.summary]
EXAMPLES = 400

recordings = st.sampled_from(SMALL)
measured = st.sampled_from(MEASURED)
noise = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [
            b"INFO: count=nan",
            b"INFO: count=1e9 first=nan",
            b"INFO: count=5 first=1 curr=1 min=1 max=1 avg=nan std=-1",
            b"INFO: count=" + b"9" * 5000,
            b"INFO: Inference timings in us: Init: nan, First inference: inf, Warmup (avg): 1e999, Inference (avg): -1",
            b"INFO: Memory footprint delta from the start of the tool (MB): init=nan overall=inf",
            b"INFO: Num threads: [-]",
            b"WARN: Unconsumed cmdline flags: \xff\xfe",
            b"ERROR: \x80\x81",
            b"Replacing 9 out of 3 node(s) with delegate (X) node, yielding 1 partitions.",
            b"\x00" * 40,
        ]
    ),
)


def numbers(found: Any) -> Iterable[float]:
    """Every number in a reading's part, however deep."""
    if isinstance(found, bool) or found is None or isinstance(found, str):
        return
    if isinstance(found, int | float):
        yield float(found)
    elif isinstance(found, dict):
        for value in found.values():
            yield from numbers(value)
    else:
        for value in found:
            yield from numbers(value)


def is_sound(reading: Reading) -> bool:
    """No NaN, nothing infinite or negative; a summary is of something."""
    parts = [reading.summary.as_json() if reading.summary else {}, dict(reading.metrics)]
    summary_holds = reading.summary is None or reading.summary.count > 0
    return summary_holds and all(math.isfinite(value) and value >= 0 for value in numbers(parts))


def joined(recording: Recording) -> tuple[bytes, bytes]:
    return b"\n".join(recording.stdout), b"\n".join(recording.stderr)


@settings(max_examples=EXAMPLES, deadline=None)
@given(recordings, st.data())
def test_output_cut_anywhere_gives_the_summary_or_none(recording: Recording, data: st.DataObject) -> None:
    """A number cut in the middle is never taken for a smaller one."""
    stdout, stderr = joined(recording)
    at, at_error = (data.draw(st.integers(0, len(stream))) for stream in (stdout, stderr))
    reading = read_output(stdout[:at].split(b"\n"), stderr[:at_error].split(b"\n"))
    whole = recording.reading
    assert is_sound(reading)
    if whole.error is None:
        assert reading.summary in (None, whole.summary)
    last_line = stdout[:at].rpartition(b"\n")[2]
    for key, value in reading.metrics.items():
        # Cut inside a line a metric may look whole; the agent's count of lines tells that the stream was cut.
        assert whole.metrics.get(key, value) == value or b"footprint" in last_line or b"file size" in last_line


@settings(max_examples=EXAMPLES, deadline=None)
@given(measured, st.data())
def test_lost_lines_give_the_summary_or_none(recording: Recording, data: st.DataObject) -> None:
    """The measured line is never confused with that of the warm-up."""
    kept = data.draw(st.lists(st.booleans(), min_size=len(recording.stdout), max_size=len(recording.stdout)))
    lines = [line for line, is_kept in zip(recording.stdout, kept, strict=True) if is_kept]
    reading = read_output(lines, recording.stderr)
    assert reading.summary in (None, recording.reading.summary)
    assert is_sound(reading)


@settings(max_examples=EXAMPLES, deadline=None)
@given(measured, st.data())
def test_standard_error_in_the_midst_of_lines_gives_the_summary_or_none(
    recording: Recording, data: st.DataObject
) -> None:
    """Two streams written to one terminal, torn at any byte."""
    stdout, stderr = joined(recording)
    at = data.draw(st.integers(0, len(stdout)))
    reading = read_output((stdout[:at] + stderr + stdout[at:]).split(b"\n"), [])
    assert reading.summary in (None, recording.reading.summary)
    assert is_sound(reading)


@settings(max_examples=EXAMPLES, deadline=None)
@given(recordings, st.lists(st.tuples(st.integers(0, 400), noise), max_size=8))
def test_noise_between_lines_raises_nothing_and_adds_no_number(
    recording: Recording, noises: list[tuple[int, bytes]]
) -> None:
    """Whatever a vendor's library prints."""
    lines = list(recording.stdout)
    for place, text in noises:
        lines.insert(min(place, len(lines)), text)
    reading = read_output(lines, recording.stderr)
    assert reading.summary in (None, recording.reading.summary)
    assert is_sound(reading)


@settings(max_examples=EXAMPLES, deadline=None)
@given(measured, measured, st.randoms(use_true_random=False))
def test_two_runs_mixed_line_by_line_give_no_summary_of_both(one: Recording, other: Recording, random: Any) -> None:
    """Each stream keeps its order; the numbers of two runs are never put together."""
    left, right, mixed = list(one.stdout), list(other.stdout), []
    while left or right:
        source = left if left and (not right or random.random() < 0.5) else right
        mixed.append(source.pop(0))
    reading = read_output(mixed, [])
    assert reading.summary is None or reading.summary == one.reading.summary == other.reading.summary


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=30), st.lists(st.binary(max_size=200), max_size=30))
def test_anything_at_all_is_read_without_an_exception(stdout: list[bytes], stderr: list[bytes]) -> None:
    """Not that it says anything."""
    reading = read_output(stdout, stderr)
    assert reading.summary is None
    assert is_sound(reading)


@settings(max_examples=EXAMPLES, deadline=None)
@given(recordings, st.data())
def test_single_changed_bytes_raise_nothing(recording: Recording, data: st.DataObject) -> None:
    """A flipped byte may change a digit; it never gives something that is no number."""
    stdout, stderr = (bytearray(stream) for stream in joined(recording))
    for stream in (stdout, stderr):
        if stream:
            for place in data.draw(st.lists(st.integers(0, len(stream) - 1), max_size=5)):
                stream[place] = data.draw(st.integers(0, 255))
    assert is_sound(read_output(bytes(stdout).split(b"\n"), bytes(stderr).split(b"\n")))


def test_a_hundred_thousand_equal_errors_are_read_at_once() -> None:
    """A model that fails prints one for every try: 700 KB were seen, and more are possible."""
    recording = ALL["extd_err_invoke"]
    reading = read_output(recording.stdout, recording.stderr * 10)
    assert reading.error is not None and reading.error.kind == "invoke"
    assert len(reading.observed["warnings"]) <= 20


def test_a_hundred_megabytes_of_log_hide_nothing() -> None:
    """A driver that prints for every inference, before, between and after what the tool says."""
    recording = ALL["result_file"]
    noise = [b"INFO: [driver.cc:12] pool %d of 4, " % number + b"usage 0x7f12 " * 300 for number in (1, 2)] * 2200
    lines = [line for one in recording.stdout for line in (one, *noise[: 2 * 2200 // 3])]
    assert sum(map(len, lines)) > 100_000_000
    reading = read_output(lines, recording.stderr)
    assert (reading.summary, reading.metrics) == (recording.reading.summary, recording.reading.metrics)


def test_long_lines_are_cut_before_they_are_looked_at() -> None:
    """No pattern runs over megabytes."""
    reading = read_output([b"INFO: Memory footprint " + b"(MB): init=" * 2_000_000], [b"Graph: [" * 2_000_000])
    assert is_sound(reading)
