"""What operator profiles say, and where two of them differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.analysis.operators import by_type, cell_ops, compare_ops
from orchestrator.op_profile import OpCost, OpProfile, ProfilePass
from orchestrator.trial import Outcome
from tests.unit.test_benchmark_model_profile import recorded
from tests.unit.trial_factory import make_cell, make_trial


def passed(profile: OpProfile | None, latency_us: float | None = 1100.0) -> ProfilePass:
    return ProfilePass("r", make_cell(), "s", Outcome.MEASURED, None, "", 1.0, latency_us, profile=profile)


def profile_of(**times_us: float) -> OpProfile:
    return OpProfile("proto", ops=tuple(OpCost(f"[{name}]:0", name.upper(), us) for name, us in times_us.items()))


def test_types_are_those_that_the_tool_sums_up() -> None:
    """Against its own table, which counts in whole microseconds."""
    types = {row.type: row for row in by_type(recorded("prof_csv_file_xnn_true"))}
    assert (types["Fully Connected (NC, F32) GEMM"].count, types["Add (ND)"].count) == (20, 16)
    assert types["Fully Connected (NC, F32) GEMM"].time_us == pytest.approx(181, abs=20)
    assert sum(row.share for row in types.values()) == pytest.approx(1.0)
    assert all(row.is_delegated for row in types.values())


def test_the_dearest_operators_come_first() -> None:
    """As many as are asked for."""
    found = cell_ops(passed(profile_of(add=1.0, conv=9.0, mul=3.0)), [])
    assert [op.type for op in found.top(2)] == ["CONV", "MUL"]


def test_distortion_is_the_profiled_median_over_the_unprofiled() -> None:
    """None where either is not known."""
    trials = [make_trial(block=block, median_us=1000.0) for block in range(3)]
    distortion = cell_ops(passed(profile_of(add=1.0)), trials).distortion
    assert distortion is not None
    assert (distortion.ratio, distortion.run) == (pytest.approx(1.1, rel=0.01), "run-1")
    assert cell_ops(passed(profile_of(add=1.0)), []).distortion is None
    assert cell_ops(passed(profile_of(add=1.0), None), trials).distortion is None


def test_where_a_regression_sits() -> None:
    """The largest difference first; what is new or gone is told."""
    base = cell_ops(passed(profile_of(add=10.0, conv=100.0, gone=5.0)), [])
    new = cell_ops(passed(profile_of(add=11.0, conv=150.0, fresh=2.0)), [])
    found = compare_ops(base, new)
    assert [(change.type, change.delta_us) for change in found.ops] == [
        ("CONV", 50.0),
        ("GONE", -5.0),
        ("FRESH", 2.0),
        ("ADD", 1.0),
    ]
    assert (found.ops[1].new_us, found.ops[2].base_us) == (None, None)
    assert found.as_json()["delta_us"] == pytest.approx(48.0)


def test_operators_of_one_name_are_compared_in_their_turn() -> None:
    """Partitions of a delegate may share names."""
    twice = OpProfile("proto", ops=(OpCost("Delegate/Add:0", "Add", 1.0), OpCost("Delegate/Add:0", "Add", 2.0)))
    slower = replace(twice, ops=(twice.ops[0], replace(twice.ops[1], time_us=5.0)))
    found = compare_ops(cell_ops(passed(twice), []), cell_ops(passed(slower), []))
    assert [change.delta_us for change in found.ops] == [3.0, 0.0]


def test_json_is_plain_also_of_a_failed_pass() -> None:
    """No profile, no number."""
    failed = replace(passed(None, None), outcome=Outcome.FAILED, reason="crash")
    content = cell_ops(failed, []).as_json()
    assert (content["ops"], content["total_us"], content["reason"]) == ([], None, "crash")
