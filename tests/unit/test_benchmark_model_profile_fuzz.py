"""What is left of profiles, files and logcat after cuts and noise: never an exception, never a new number."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.op_profile import OpProfile
from orchestrator.runners.benchmark_model_output import read_output
from orchestrator.runners.benchmark_model_profile import read_profile
from orchestrator.runners.benchmark_model_protos import decode, decode_text, read_result, read_runtime
from tests.unit.test_benchmark_model_fuzz import MEASURED, is_sound, noise
from tests.unit.test_benchmark_model_output import ALL, RECORDINGS, Recording
from tests.unit.test_benchmark_model_profile import NATIVE, PROFILED, recorded

EXAMPLES = 300
TEXTS = [b"\n".join(ALL[name].stdout) for name in PROFILED if 5_000 < len(b"".join(ALL[name].stdout)) < 60_000]
TEXTS += [(NATIVE / f"summary_{name}.txt").read_bytes() for name in ("mobilenet", "partial")]
FILES = [file.read_bytes() for file in sorted(RECORDINGS.glob("prof*.outfile.*"))]
PROTOS = [file.read_bytes() for file in sorted([*RECORDINGS.glob("*.outfile.pb"), *RECORDINGS.glob("*.result.pb")])]


def is_sound_profile(profile: OpProfile | None) -> bool:
    """Finite times, none below zero."""
    if profile is None:
        return True
    rows = (*profile.ops, *profile.inner, *profile.init)
    numbers = [value for op in rows for value in (op.time_us, op.calls, op.memory_kb or 0.0)]
    return all(math.isfinite(value) and value >= 0 for value in (*numbers, profile.total_us or 0.0))


@st.composite
def broken(draw: st.DrawFn, contents: list[bytes]) -> bytes:
    """One of them with bytes changed, pieces put in, and its end cut off."""
    content = bytearray(draw(st.sampled_from(contents)))
    for place in draw(st.lists(st.integers(0, max(0, len(content) - 1)), max_size=5)):
        content[place] = draw(st.integers(0, 255))
    for place, piece in draw(st.lists(st.tuples(st.integers(0, len(content)), noise), max_size=3)):
        content[place:place] = piece
    return bytes(content[: draw(st.integers(0, len(content)))]) if draw(st.booleans()) else bytes(content)


@settings(max_examples=EXAMPLES, deadline=None)
@given(broken(TEXTS))
def test_printed_profiles(content: bytes) -> None:
    """All forms of tables."""
    assert is_sound_profile(read_profile(content.split(b"\n"), [], {}))


@settings(max_examples=EXAMPLES, deadline=None)
@given(broken(FILES), broken(PROTOS))
def test_profiles_in_files(profile: bytes, runtime: bytes) -> None:
    """CSV, tables and protos."""
    assert is_sound_profile(read_profile([], [], {"profile": profile, "runtime": runtime}))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(TEXTS), st.data())
def test_a_cut_profile_has_rows_of_the_whole_one(content: bytes, data: st.DataObject) -> None:
    """All but the last, whose name may be cut."""
    whole = read_profile(content.split(b"\n"), [], {})
    assert whole is not None
    at = data.draw(st.integers(0, len(content)))
    profile = read_profile(content[:at].split(b"\n"), [], {})
    if profile is not None and profile.runs == whole.runs:
        rows = {(op.name, op.time_us) for op in whole.ops}
        assert {(op.name, op.time_us) for op in profile.ops[:-1]} <= rows
        assert profile.problem is not None or len(profile.ops) == len(whole.ops)


@settings(max_examples=EXAMPLES, deadline=None)
@given(broken(PROTOS), st.sampled_from(MEASURED))
def test_protos(content: bytes, recording: Recording) -> None:
    """In the place of any file, beside any output."""
    read_runtime(content)
    result = read_result(content)
    assert result is None or all(
        math.isfinite(value) for value in (*result.latency_us.values(), *result.memory.values())
    )
    reading = read_output(recording.stdout, recording.stderr, {"result": content, "runtime": content})
    assert is_sound(reading)
    assert reading.summary is None or reading.summary.count == recording.reading.summary.count  # type: ignore[union-attr]  # all of them have one


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(["Result", "Runtime", "Profile"]))
def test_anything_at_all_as_a_proto(content: bytes, name: str) -> None:
    """Binary, and as text."""
    decode(name, content)
    decode_text(name, content.decode("latin-1"))


def logged(line: bytes, *, is_brief: bool) -> bytes:
    level, _, text = line.partition(b": ")
    letter = {b"INFO": b"I", b"WARN": b"W", b"ERROR": b"E"}.get(level)
    text, letter = (text, letter) if letter else (line, b"I")
    if is_brief:
        return letter + b"/tflite  ( 4711): " + text
    return b"11-18 12:00:00.123  4711  4711 " + letter + b" tflite  : " + text


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(MEASURED), st.booleans(), st.data())
def test_logcat(recording: Recording, is_brief: bool, data: st.DataObject) -> None:
    """An app's output is in logcat only: the same numbers with its prefixes, and whatever else is logged between."""
    lines = [logged(line, is_brief=is_brief) for line in (*recording.stdout, *recording.stderr)]
    reading = read_output(lines, [])
    assert reading.summary == recording.reading.summary
    others = [b"11-18 12:00:00.200  1  2 I ActivityManager: count=5 first=1 curr=2", b"--------- beginning of main"]
    for place in data.draw(st.lists(st.integers(0, len(lines)), max_size=5)):
        lines.insert(place, data.draw(st.sampled_from(others)))
    assert read_output(lines, []).summary == recording.reading.summary
    cut = lines[: data.draw(st.integers(0, len(lines)))]
    assert read_output(cut, []).summary in (None, recording.reading.summary)


def test_profiles_of_the_recordings_are_sound() -> None:
    """The measure that the tests above use."""
    assert all(is_sound_profile(recorded(name)) for name in PROFILED)
