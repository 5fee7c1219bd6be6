"""The runner litert_runner, host side: its command lines, and the reading of real output."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.evidence import judge
from orchestrator.evidence_terms import Asked
from orchestrator.fleet import Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.runners.base import Places, Reading, RunnerError
from orchestrator.runners.litert_runner import LITERT_RUNNER
from orchestrator.stage import Report
from tests.unit.trial_factory import make_cell

RECORDINGS = Path(__file__).parents[1] / "data" / "litert_runner"
PLACES = Places(python="/usr/bin/python3", files={"runner": "/w/runner.py"}, model="/w/-net.tflite")
MEASURE = Measure(warmup_runs=3, warmup_min_ms=200, runs=40, min_ms=250, max_ms=9000, input_seed=6)
SHARED = (
    "/usr/bin/python3 /w/runner.py --model=/w/-net.tflite --threads {threads} --delegate cpu --copy {copy} --seed 6 "
    "--warmup-runs 3 --warmup-min-ms 200 --max-ms 9000"
)


def lines(name: str) -> list[bytes]:
    return (RECORDINGS / f"{name}.jsonl").read_bytes().splitlines()


def reading(name: str) -> Reading:
    return LITERT_RUNNER.read(lines(name), [])


def events(name: str, kind: str) -> list[dict[str, Any]]:
    return [event for event in map(json.loads, lines(name)) if event["event"] == kind]


class TestCommands:
    CELL = make_cell(threads=4, delegate="cpu", model_sha256="ab" * 32)

    def test_the_measured_command_gives_every_flag(self) -> None:
        """The runner has no defaults; the model's hash is checked there too."""
        command = LITERT_RUNNER.command(self.CELL, PLACES, MEASURE)
        expected = SHARED.format(threads=4, copy="copy") + f" --runs 40 --min-ms 250 --expect-sha256 {'ab' * 32}"
        assert " ".join(command.argv) == expected
        assert command.env == {"TF_CPP_MIN_LOG_LEVEL": "1"}

    def test_the_variant_reads_and_writes_tensors_in_place(self) -> None:
        """`litert_runner:zero-copy`."""
        command = LITERT_RUNNER.command(replace(self.CELL, runner="litert_runner:zero-copy"), PLACES, MEASURE)
        assert " ".join(command.argv).startswith(SHARED.format(threads=4, copy="zero-copy"))

    def test_inputs_are_added_where_there_are_some(self) -> None:
        """With an equals sign, whatever the name starts with."""
        argv = LITERT_RUNNER.command(self.CELL, replace(PLACES, inputs="/w/-in.npz"), MEASURE).argv
        assert "--inputs=/w/-in.npz" in argv
        assert not any(word.startswith("--inputs") for word in LITERT_RUNNER.command(self.CELL, PLACES, MEASURE).argv)

    def test_beside_a_cell_a_model_runs_on_one_thread(self) -> None:
        """The load does not scale with the cell; it has no end of its own."""
        argv = LITERT_RUNNER.beside_command(self.CELL, PLACES, MEASURE).argv
        assert " ".join(argv) == SHARED.format(threads=1, copy="copy") + " --beside"

    def test_the_check_stands_alone(self) -> None:
        """Whether the device can run it at all."""
        command = LITERT_RUNNER.check_command("/usr/bin/python3", {"runner": "/w/runner.py"})
        assert command.argv[3:] == ("sh", "/usr/bin/python3", "/w/runner.py", "--check")

    def test_the_check_starts_python(self) -> None:
        """Here this one, with the real runner: it ends as that ends."""
        files = {role: str(path) for role, path in LITERT_RUNNER.files("", "x86_64").items()}
        command = LITERT_RUNNER.check_command(sys.executable, files)
        done = subprocess.run(command.argv, capture_output=True, timeout=60, check=False)
        facts, error = LITERT_RUNNER.read_check(done.stdout.splitlines())
        assert (done.returncode == 0) == (error is None) == bool(facts)

    def test_a_device_without_python_is_told_of_the_native_runner(self) -> None:
        """The shell says it, because nothing else can."""
        command = LITERT_RUNNER.check_command("no-such-python3", {"runner": "/w/runner.py"})
        done = subprocess.run(command.argv, capture_output=True, timeout=60, check=False)
        facts, error = LITERT_RUNNER.read_check(done.stdout.splitlines())
        assert (done.returncode, facts) == (69, {})
        assert error == RunnerError(
            "python-missing",
            "there is no no-such-python3 on the device",
            "measure with --runner litert_native, which needs no Python, or install Python and ai-edge-litert",
            permanent=True,
        )

    def test_the_file_it_pushes_is_there(self) -> None:
        """One file, found without importing it."""
        assert {role: path.is_file() for role, path in LITERT_RUNNER.files("", "aarch64").items()} == {"runner": True}


class TestReading:
    def test_samples_are_the_inferences_in_microseconds(self) -> None:
        """Copies are timed apart; warm-up is kept apart."""
        found = reading("xnnpack_2_threads")
        warmup, steady = events("xnnpack_2_threads", "samples")
        assert found.samples_us == tuple(value / 1000 for value in steady["invoke_ns"])
        assert found.warmup_us == tuple(value / 1000 for value in warmup["invoke_ns"])
        assert (len(found.samples_us), len(found.warmup_us), found.error) == (12, 2, None)

    def test_chunks_are_joined_in_order(self) -> None:
        """1200 inferences come in lines of 500."""
        found = reading("three_chunks")
        steady = [event for event in events("three_chunks", "samples") if event["phase"] == "steady"]
        assert len(steady) == 3
        assert found.samples_us == tuple(value / 1000 for event in steady for value in event["invoke_ns"])
        assert len(found.samples_us) == found.observed["count"] == 1200

    def test_evidence_of_what_ran_is_kept(self) -> None:
        """Hashes, delegation, threads, count: the names evidence.py knows."""
        observed = reading("xnnpack_2_threads").observed
        assert (observed["nodes_total"], observed["nodes_delegated"]) == (64, 64)
        assert (observed["threads_before"], observed["threads_allocated"]) == (1, 2)
        assert (observed["count"], observed["stopped_by"]) == (12, "runs")
        assert len(observed["model_sha256"]) == len(observed["runner_sha256"]) == 64
        assert observed["flags"]["threads"] == 2

    def test_plain_kernels_delegate_nothing(self) -> None:
        """Zero is evidence, not absence."""
        assert reading("cpu_1_thread").observed["nodes_delegated"] == 0

    def test_partial_delegation_is_seen(self) -> None:
        """Some nodes stay with the runtime."""
        observed = reading("partial").observed
        assert 0 < observed["nodes_delegated"] < observed["nodes_total"]

    def test_a_capped_loop_says_so(self) -> None:
        """Fewer inferences than asked, for a reason."""
        observed = reading("capped").observed
        assert observed["stopped_by"] == "cap"
        assert observed["count"] < 5000

    def test_metrics_hold_memory_start_up_and_copies(self) -> None:
        """Copies are medians over the trial."""
        metrics = reading("xnnpack_2_threads").metrics
        _, steady = events("xnnpack_2_threads", "samples")
        ordered = sorted(steady["copy_in_ns"])
        assert metrics["copy_in_us"] == pytest.approx((ordered[5] + ordered[6]) / 2000)
        assert metrics["init_us"] == pytest.approx(metrics["create_us"] + metrics["allocate_us"], abs=1)
        assert metrics["memory_peak_kb"] > metrics["memory_before_model_kb"] > 0
        assert metrics["steady_from_ns"] == steady["start_ns"][0]

    def test_zero_copy_has_no_copies(self) -> None:
        """Absent, not zero; and the inputs outlived the runs."""
        found = reading("zero_copy")
        assert "copy_in_us" not in found.metrics
        assert found.observed["inputs_intact"] is True


ERRORS = {
    "custom_op": ("op-unsupported", True),
    "sha_mismatch": ("sha-mismatch", True),
    "string_input": ("inputs-unsupported", True),
    "truncated": ("model-invalid", True),
    "not_a_model": ("model-invalid", True),
    "xnnpack_refuses": ("delegate-failed", True),
}


class TestErrors:
    @pytest.mark.parametrize(("name", "expected"), ERRORS.items(), ids=ERRORS)
    def test_the_runners_own_error_is_passed_on(self, name: str, expected: tuple[str, bool]) -> None:
        """Kind, message and remedy as the device told them; another try cannot help."""
        error = reading(name).error
        (event,) = events(name, "error")
        assert error is not None
        assert (error.kind, error.permanent) == expected
        assert (error.message, error.remedy) == (event["message"], event["remedy"])

    @pytest.mark.parametrize("kind", ["internal", "out-of-memory"])
    def test_what_may_pass_is_not_permanent(self, kind: str) -> None:
        """Memory that was short may be there the next time."""
        (event,) = events("custom_op", "error")
        error = LITERT_RUNNER.read([json.dumps({**event, "kind": kind}).encode()], []).error
        assert error is not None
        assert not error.permanent

    def test_a_runner_that_died_has_said_nothing_wrong(self) -> None:
        """An abort leaves no error line; the closing record of the agent tells."""
        found = reading("no_scale")
        assert (found.error, found.samples_us) == (None, ())
        assert found.observed["model_sha256"]


class TestCheck:
    def test_a_device_that_can_run_it_gives_facts(self) -> None:
        """Versions and the library's hash."""
        facts, error = LITERT_RUNNER.read_check(lines("check"))
        assert error is None
        assert {"runtime", "runtime_version", "library_sha256", "python"} <= set(facts)

    def test_a_device_that_cannot_gives_the_reason(self) -> None:
        """No runtime installed there."""
        line = b'{"event":"error","kind":"runtime-missing","message":"no ai-edge-litert","remedy":"pip install it"}'
        facts, error = LITERT_RUNNER.read_check([line])
        assert facts == {}
        assert error is not None
        assert (error.kind, error.message, error.remedy) == ("runtime-missing", "no ai-edge-litert", "pip install it")


class TestNoise:
    def test_lines_of_other_libraries_are_passed_over(self) -> None:
        """Between and around the runner's own."""
        noise = [b"", b"INFO: Created delegate", b"{}", b'{"event"', b'{"event":"samp', b'{"event": \xff}', b"[1, 2]"]
        recorded = lines("xnnpack_2_threads")
        mixed = [line for pair in zip(recorded, noise, strict=False) for line in pair] + recorded[len(noise) :]
        assert LITERT_RUNNER.read(mixed, []) == reading("xnnpack_2_threads")

    @pytest.mark.parametrize("column", ['"abc"', "null", "7", '["a"]', "[null]", "{}"])
    def test_a_column_of_the_wrong_type_gives_no_samples(self, column: str) -> None:
        """A trial without samples is then judged as such."""
        line = f'{{"event":"samples","phase":"steady","invoke_ns":{column}}}'.encode()
        assert LITERT_RUNNER.read([line], []).samples_us == ()

    @given(name=st.sampled_from(["xnnpack_2_threads", "custom_op"]), data=st.data())
    @settings(max_examples=60, deadline=None)
    def test_damaged_output_never_raises(self, name: str, data: st.DataObject) -> None:
        """What cannot be read is missing from the reading."""
        content = bytearray(b"\n".join(lines(name)))
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        LITERT_RUNNER.read(bytes(content[: data.draw(st.integers(0, len(content)))]).splitlines(), [])

    @given(name=st.sampled_from(["xnnpack_2_threads", "cpu_1_thread"]), data=st.data())
    @settings(max_examples=200, deadline=None)
    def test_whatever_a_field_says_can_be_judged_and_kept(self, name: str, data: st.DataObject) -> None:
        """Lines that are JSON, with anything in the place of some values: no exception, and nothing JSON cannot say."""
        anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just([[1.5]])
        events = [json.loads(line) for line in lines(name) if line]
        for event in data.draw(st.lists(st.sampled_from(events), min_size=1, max_size=4)):
            event[data.draw(st.sampled_from(sorted(set(event) - {"event"})))] = data.draw(anything)
        found = LITERT_RUNNER.read([json.dumps(event, separators=(",", ":")).encode() for event in events], [])
        json.dumps([found.metrics, found.observed], allow_nan=False)
        asked = Asked(make_cell(), Measure(), Conditions(), Limits(), None, ())
        judge(asked, Report(closing={"reason": "exit", "exit": 0, "lines": 0}), found)

    def test_a_line_nested_without_end_is_passed_over(self) -> None:
        """As is one that holds what is no JSON."""
        deep = b'{"event":"init","init_us":' + b"[" * 100_000
        assert LITERT_RUNNER.read([deep, b'{"event":"init","init_us":NaN}'], []).metrics == {}

    @pytest.mark.parametrize("number", ["1" + "0" * 400, "NaN", "-5", "true"])
    def test_numbers_that_are_no_latency_give_no_samples(self, number: str) -> None:
        """The promise of the protocol: what cannot be read is no sample, and no exception."""
        line = f'{{"event":"samples","phase":"steady","invoke_ns":[{number}]}}'.encode()
        assert LITERT_RUNNER.read([line], []).samples_us == ()
