"""The operator lines of the native runner: recordings of it, and what is left of broken ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.runners.litert_profile import read_op_lines
from tests.unit.test_benchmark_model_profile import NATIVE

LINES = (NATIVE / "profile_mobilenet.jsonl").read_bytes().split(b"\n")
PARTIAL = (NATIVE / "profile_partial.jsonl").read_bytes().split(b"\n")


def test_every_operator_of_an_inference() -> None:
    """65 of XNNPACK's over 20 runs, whose sum is what the lines add up to."""
    profile = read_op_lines(LINES)
    assert profile is not None and profile.problem is None
    events = [json.loads(line) for line in LINES if line.startswith(b'{"event":"op"')]
    assert (len(profile.ops), profile.runs) == (len(events), 20)
    assert profile.time_us == pytest.approx(sum(event["total_us"] for event in events) / 20)
    assert all(op.is_delegated for op in profile.ops)
    assert len({(op.subgraph, op.name) for op in profile.ops}) == len(profile.ops)


def test_nodes_of_the_cpu_are_told_apart() -> None:
    """And operators of two partitions."""
    profile = read_op_lines(PARTIAL)
    assert profile is not None
    assert [(op.name, op.is_delegated) for op in profile.ops] == [
        ("Delegate/Add (ND):0", True),
        ("CUMSUM:1", False),
        ("Delegate/Add (ND) (1):0", True),
        ("Delegate/Multiply (ND) (1):1", True),
    ]


def test_what_is_missing_is_told() -> None:
    """A cut, a lost row, a buffer that was too small."""
    assert read_op_lines(LINES[:3]) is None
    cut = read_op_lines([line for line in LINES if not line.startswith(b'{"event":"profile"')])
    assert cut is not None and cut.problem == "it breaks off before its end"
    first = next(place for place, line in enumerate(LINES) if line.startswith(b'{"event":"op"'))
    lost = read_op_lines([*LINES[:first], *LINES[first + 1 :]])
    assert lost is not None and lost.problem == "1 of 65 rows are missing"
    truncated = read_op_lines([line.replace(b'"truncated":false', b'"truncated":true') for line in LINES])
    assert truncated is not None and truncated.problem is not None and "too few events" in truncated.problem


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_broken_lines_raise_nothing_and_invent_nothing(data: st.DataObject) -> None:
    """Changed bytes, lost lines and noise: what is read are finite times, or nothing."""
    content = bytearray(b"\n".join(data.draw(st.sampled_from([LINES, PARTIAL]))))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=6)):
        content[place] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    profile = read_op_lines(bytes(content).split(b"\n"))
    if profile is not None:
        assert all(0 <= op.time_us < 2**53 and op.calls > 0 for op in profile.ops)
