"""The app's results, good and bad, and what is believed of them; the app itself was not run: there is no Mac here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ios_harness.app_runner import IOS_APP
from orchestrator.evidence import judge
from orchestrator.evidence_terms import Asked
from orchestrator.fleet import Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.runners.base import Places, Reading, Runner
from orchestrator.stage import Report
from orchestrator.trial import Outcome
from tests.unit.trial_factory import make_cell

NONCE, MODEL, BUILD = "a" * 16, "b" * 64, "c" * 64
CELL = make_cell(
    runner="ios_app",
    runner_sha256=BUILD,
    model_sha256=MODEL,
    delegate="xnnpack",
    threads=2,
    affinity="any",
    load="idle",
)
MEASURE = Measure(runs=3)


def a_result(**changes: Any) -> dict[str, Any]:
    state = {"thermal_state": 0, "low_power_mode": False, "battery_percent": 80.0, "charging": True}
    return {
        "schema": "devbench.ios.result",
        "version": 1,
        "nonce": NONCE,
        "mode": "run",
        "app": {
            "version": "1.0",
            "executable_sha256": BUILD,
            "runtime": "TensorFlowLiteC",
            "runtime_version": "2.17.0",
        },
        "state_before": state,
        "state_after": state,
        "model_sha256": MODEL,
        "threads": 2,
        "delegate": "xnnpack",
        "samples_us": [100.0, 101.5, 99],
        "warmup_us": [200.0],
        "count": 3,
        "stopped_by": "count",
        "init_us": 50.0,
        "memory": {"before_bytes": 1, "after_bytes": 2, "peak_bytes": 3},
        **changes,
    }


def launched(ended: str = "exit") -> bytes:
    return json.dumps({"nonce": NONCE, "ended": ended, "way": "gateway"}).encode()


def read(result: object, *console: str, raw: bytes | None = None) -> Reading:
    content = raw if raw is not None else json.dumps(result).encode()
    return IOS_APP.read([launched(), content], [line.encode() for line in console])


def judged(reading: Reading, **cell: Any) -> tuple[Outcome, str | None, list[str]]:
    asked = Asked(make_cell(**{**CELL.as_json(), **cell}), MEASURE, Conditions(), Limits(), None, ())
    report = Report(closing={"reason": "exit", "exit": 0, "lines": 0}, unwatched="no agent runs on iOS")
    outcome, reason, findings = judge(asked, report, reading)
    return outcome, reason, [finding.rule for finding in findings]


def test_it_is_a_runner() -> None:
    """Of the protocol; it has no file on this host."""
    typed: Runner = IOS_APP
    assert typed.platforms == ("ios",)
    assert typed.files("", "ios-arm64") == {}


def test_a_good_result_is_read_whole() -> None:
    """Every sample, memory, and what ran."""
    reading = read(a_result())
    assert reading.samples_us == (100.0, 101.5, 99.0)
    assert reading.warmup_us == (200.0,)
    assert reading.metrics == {
        "footprint_before_bytes": 1,
        "footprint_after_bytes": 2,
        "footprint_peak_bytes": 3,
        "init_us": 50.0,
    }
    assert (reading.observed["threads_echo"], reading.observed["model_sha256"]) == (2, MODEL)
    assert reading.error is None


def test_it_counts_and_says_by_name_what_nobody_verified() -> None:
    """No agent, and no count of delegated nodes: both are told with the trial."""
    assert judged(read(a_result())) == (Outcome.MEASURED, None, ["delegate-unverified", "unwatched"])


REJECTED = {
    "another model": ({"model_sha256": "d" * 64}, (), "another model ran: dddddddddddd instead of bbbbbbbbbbbb"),
    "another app": (
        {"app": {"executable_sha256": "e" * 64}},
        (),
        "another runner ran: eeeeeeeeeeee instead of cccccccccccc",
    ),
    "one thread": ({"threads": 1}, (), "2 threads were asked for, and the tool speaks of 1"),
    "another delegate": ({"delegate": "gpu"}, (), "xnnpack was asked for, and the runner speaks of gpu"),
    "too few": ({"samples_us": [1.0, 2.0], "count": 2}, (), "2 of 3 inferences were made"),
    "lost samples": ({"count": 7}, (), "the runner counted 7 inferences, 3 arrived"),
}


@pytest.mark.parametrize(("changes", "console", "reason"), REJECTED.values(), ids=REJECTED)
def test_what_ran_otherwise_is_rejected(changes: dict[str, Any], console: tuple[str, ...], reason: str) -> None:
    """By the same rules as everywhere."""
    assert judged(read(a_result(**changes), *console))[:2] == (Outcome.REJECTED, reason)


def test_core_ml_says_how_many_nodes_it_took() -> None:
    """On the console; none of them rejects."""
    line = "INFO: CoreML delegate: {} nodes delegated out of 66 nodes, with 2 partitions."
    some, none = (read(a_result(delegate="coreml"), line.format(count)) for count in (60, 0))
    assert judged(some, delegate="coreml")[2] == ["delegate-partial", "unwatched"]
    assert judged(none, delegate="coreml")[0] == Outcome.REJECTED


def test_plain_kernels_are_not_taken_on_trust() -> None:
    """A runtime that makes XNNPACK by itself says so."""
    reading = read(a_result(delegate="cpu"), "INFO: Created TensorFlow Lite XNNPACK delegate for CPU.")
    assert judged(reading, delegate="cpu")[:2] == (
        Outcome.REJECTED,
        "plain CPU kernels were asked for, and XNNPACK was made",
    )


WHOLE = json.dumps(a_result()).encode()
BAD = {
    "empty": (b"", "the app's result is empty"),
    "cut short": (WHOLE[:-20], f"the app's result is cut short or no JSON ({len(WHOLE) - 20} bytes)"),
    "no text": (b"\xff\xfe{}", "the app's result is cut short or no JSON (4 bytes)"),
    "no object": (b"[1]", "the app's result is no devbench.ios.result"),
    "another schema": (json.dumps(a_result(schema="x")).encode(), "the app's result is no devbench.ios.result"),
    "newer": (
        json.dumps(a_result(version=2)).encode(),
        "the app speaks version 2 of its results, and this devbench 1",
    ),
    "another trial": (
        json.dumps(a_result(nonce="f" * 16)).encode(),
        f"the result is another trial's (nonce {'f' * 16} instead of {NONCE})",
    ),
    "no nonce": (
        json.dumps(a_result(nonce=None)).encode(),
        f"the result is another trial's (nonce None instead of {NONCE})",
    ),
    "NaN": (
        json.dumps(a_result(samples_us=[1.0, float("nan")])).encode(),
        "the app's result has NaN where a number belongs",
    ),
    "infinite": (
        WHOLE.replace(b"101.5", b"1e999"),
        "samples_us in the app's result holds 'inf', which is no latency",
    ),
    "negative": (
        json.dumps(a_result(samples_us=[-1.0])).encode(),
        "samples_us in the app's result holds '-1.0', which is no latency",
    ),
    "words": (
        json.dumps(a_result(samples_us=["1"])).encode(),
        "samples_us in the app's result holds '1', which is no latency",
    ),
    "truth": (
        json.dumps(a_result(warmup_us=[True])).encode(),
        "warmup_us in the app's result holds 'True', which is no latency",
    ),
    "too many": (
        json.dumps(a_result(samples_us=[1.0] * 200_001)).encode(),
        "samples_us in the app's result is no list of at most 200000 numbers",
    ),
    "huge": (WHOLE + b" " * (32 * 1024 * 1024), "the app's result is larger than 32 MiB"),
    "deep": (b"[" * 100_000, "the app's result is cut short or no JSON (100000 bytes)"),
}


@pytest.mark.parametrize(("raw", "message"), BAD.values(), ids=BAD)
def test_a_bad_result_fails_the_trial_by_name(raw: bytes, message: str) -> None:
    """Nothing of it is believed."""
    reading = read(None, raw=raw)
    assert reading.error is not None
    assert (reading.error.kind, reading.error.message) == ("result", message)
    assert reading.samples_us == ()
    assert judged(reading)[0] == Outcome.FAILED


@pytest.mark.parametrize(
    ("signal", "kind"), [(9, "killed"), (11, "crash"), (6, "crash")], ids=["jetsam", "segfault", "abort"]
)
def test_an_app_that_died_says_how(signal: int, kind: str) -> None:
    """devicectl tells the signal; iOS does not tell why."""
    reading = IOS_APP.read([launched()], [f"App terminated due to signal {signal}.".encode()])
    assert reading.error is not None
    assert reading.error.kind == kind
    assert not reading.error.permanent


def test_no_result_without_a_crash_is_told_too() -> None:
    """The app ended by itself."""
    reading = IOS_APP.read([launched()], [])
    assert reading.error is not None
    assert reading.error.message == "the app ended without a result"


def test_a_passed_deadline_is_left_to_the_judge() -> None:
    """It has the better words for it."""
    assert IOS_APP.read([launched("deadline")], []) == Reading()


def test_the_app_says_what_it_could_not_do() -> None:
    """A delegate that cannot be made will not be made by another try."""
    error = {"kind": "delegate", "message": "Core ML could not be made", "remedy": "use another delegate"}
    found = read({key: value for key, value in a_result(error=error).items() if key != "samples_us"}).error
    assert found is not None
    assert (found.kind, found.permanent, found.remedy) == ("delegate", True, "use another delegate")


def test_the_check_gives_the_hash_of_the_app() -> None:
    """It stands for the runner's content in the cell."""
    facts, error = IOS_APP.read_check([launched(), json.dumps(a_result(mode="check")).encode()])
    assert error is None
    assert facts["runner_sha256"] == BUILD
    nothing, problem = IOS_APP.read_check([launched(), json.dumps(a_result(app={})).encode()])
    assert (nothing, problem and problem.message) == ({}, "the app does not say its own hash")


def test_the_request_states_everything() -> None:
    """No default of the app's is relied upon."""
    command = IOS_APP.command(CELL, Places("", {}, "Documents/devbench-file-x"), MEASURE)
    assert json.loads(command.argv[1]) == {
        "schema": "devbench.ios.request",
        "version": 1,
        "mode": "run",
        "model": "Documents/devbench-file-x",
        "delegate": "xnnpack",
        "threads": 2,
        "warmup_runs": 5,
        "warmup_min_ms": 300,
        "runs": 3,
        "min_ms": 300,
        "max_ms": 20000,
        "input_seed": 1,
    }


def test_inputs_are_refused() -> None:
    """The app makes its own; the plan is refused before any device is touched."""
    assert IOS_APP.takes_inputs is False
