"""What benchmark_model prints: every recording of the real tool, and the shapes that only other builds print."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.runners.base import Reading, RunnerError
from orchestrator.runners.benchmark_model_output import read_output
from orchestrator.trial import Summary

RECORDINGS = Path(__file__).parents[1] / "data" / "benchmark_model"


@dataclass(frozen=True)
class Recording:
    """One run of the real tool."""

    case: str
    command: str
    exit: int
    stdout: list[bytes]
    stderr: list[bytes]

    @property
    def reading(self) -> Reading:
        return read_output(self.stdout, self.stderr)


def _stream(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n") if path.exists() else []


def _recordings() -> dict[str, Recording]:
    found = {}
    for folder, prefix in ((RECORDINGS, ""), (RECORDINGS / "more_delegates", "more/")):
        for entry in json.loads((folder / "index.json").read_text(encoding="utf-8")):
            streams = [_stream(folder / f"{entry['case']}.{end}") for end in ("stdout", "stderr")]
            name = f"{prefix}{entry['case']}"
            found[name] = Recording(name, entry["command"], int(entry["exit"]), *streams)
    return found


ALL = _recordings()


def statistics_of(recording: Recording) -> list[dict[str, float]]:
    """The statistics lines, taken apart in the plainest way, apart from the parser."""
    lines = [line.decode("utf-8", "replace").strip() for line in recording.stdout]
    return [
        {key: float(value) for key, value in (pair.split("=") for pair in line.removeprefix("INFO: ").split())}
        for line in lines
        if line.startswith("INFO: count=")
    ]


def read_text(stdout: str, stderr: str = "") -> Reading:
    return read_output(stdout.encode().split(b"\n"), stderr.encode().split(b"\n"))


class TestRecordings:
    def test_all_are_there(self) -> None:
        """119 of the plain build and 6 of the one with more delegates."""
        assert len(ALL) == 125

    @pytest.mark.parametrize("name", ALL)
    def test_the_summary_is_the_second_statistics_line(self, name: str) -> None:
        """Every number of it, and nothing where the tool failed, was killed or made no inference."""
        recording, printed = ALL[name], statistics_of(ALL[name])
        if recording.exit != 0 or len(printed) != 2 or printed[1]["count"] == 0:
            assert recording.reading.summary is None
            return
        summary, line = recording.reading.summary, printed[1]
        assert summary is not None
        alone = {} if "avg" in line else dict.fromkeys(("min", "max", "avg"), line["curr"]) | {"std": 0.0}
        expected = {key: value for key, value in line.items() if key not in ("first", "curr")} | alone
        assert summary.as_json() == expected

    @pytest.mark.parametrize("name", ALL)
    def test_an_error_is_told_where_the_tool_failed_and_only_there(self, name: str) -> None:
        """A killed process says nothing of itself: its signal tells, in the agent's record."""
        recording = ALL[name]
        is_killed = recording.exit in (-9, -15) or name == "sigabrt_midrun"
        assert (recording.reading.error is not None) == (recording.exit != 0 and not is_killed)

    @pytest.mark.parametrize("name", ALL)
    def test_init_warm_up_and_memory_are_what_was_printed(self, name: str) -> None:
        """Against the words of the closing lines."""
        recording, metrics = ALL[name], ALL[name].reading.metrics
        text = b"\n".join(recording.stdout).decode("utf-8", "replace").replace("\r", "")
        if "Inference timings in us: Init: " in text:
            assert metrics["init_us"] == float(text.partition("timings in us: Init: ")[2].partition(",")[0])
        if "Memory footprint delta" in text:
            init, _, overall = text.partition("(MB): init=")[2].partition("\n")[0].partition(" overall=")
            assert (metrics["memory_init_mb"], metrics["memory_overall_mb"]) == (float(init), float(overall))
        printed = statistics_of(recording)
        if printed and printed[0]["count"] and recording.reading.error is None:
            assert metrics["warmup_count"] == printed[0]["count"]
            assert metrics["first_us"] == printed[0].get("first", printed[0]["curr"])

    @pytest.mark.parametrize("name", ALL)
    def test_what_was_not_consumed_is_seen(self, name: str) -> None:
        """The warning that the tool itself takes lightly."""
        text = b"\n".join(ALL[name].stdout).decode("utf-8", "replace").replace("\r", "")
        told = text.partition("Unconsumed cmdline flags: ")[2].partition("\n")[0].split()
        assert ALL[name].reading.observed.get("unconsumed_flags", []) == told

    @pytest.mark.parametrize("name", ALL)
    def test_the_echo_of_threads_is_seen(self, name: str) -> None:
        """As the tool understood it: `--num_threads=` gives garbage."""
        text = b"\n".join(ALL[name].stdout).decode("utf-8", "replace").replace("\r", "")
        told = text.partition("#threads used for CPU inference: [")[2].partition("]")[0]
        assert ALL[name].reading.observed.get("threads_echo") == (int(told) if told else None)

    def test_one_line_stream_for_both_is_read_alike(self) -> None:
        """`2>&1`, and a terminal that ends its lines with CR LF."""
        for name in ("plain_default_merged", "plain_default_pty"):
            assert ALL[name].reading.observed["xnnpack_created"] is True


def partly_applied(name: str, kernels: int) -> str:
    what = "and the model graph will be partially executed by the delegate"
    return f"INFO: Explicitly applied {name} delegate, {what} w/ {kernels} delegate kernels."


class TestDelegates:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("xnnpack_true_threads_1", {"delegates_applied": ["xnnpack"], "delegation": "full", "partitions": 1}),
            ("profx_partial_stdout", {"delegates_applied": ["xnnpack"], "delegation": "partial", "partitions": 2}),
            ("extd_conv", {"nodes_delegated": 21, "nodes_total": 164, "partitions": 18, "delegation": "partial"}),
            ("extd_noop", {"nodes_delegated": 0, "nodes_total": 164, "delegates_unused": ["external"]}),
            ("ext_delegate_missing", {"delegates_applied": []}),
            ("xnnpack_false", {"delegates_applied": []}),
            ("more/delegate_use_gpu", {"fallbacks": ["GPU acceleration is unsupported on this platform."]}),
            ("more/delegate_use_nnapi", {"fallbacks": ["NNAPI acceleration is unsupported on this platform."]}),
        ],
    )
    def test_recorded_evidence(self, name: str, expected: dict[str, object]) -> None:
        """What was applied, what it took, and what fell back without a word in the exit status."""
        assert expected.items() <= ALL[name].reading.observed.items()

    def test_plain_kernels_show_no_xnnpack(self) -> None:
        """Implicit XNNPACK shows on standard error only."""
        assert "xnnpack_created" not in ALL["xnnpack_false"].reading.observed
        assert ALL["plain_default"].reading.observed["xnnpack_created"] is True

    @pytest.mark.parametrize(
        ("tail", "total"),
        [
            ("", None),
            (" for subgraph 0", 66),
            (" for subgraph 0 (main)", 66),
        ],
    )
    def test_android_counts_replaced_nodes(self, tail: str, total: int | None) -> None:
        """In the words of three generations of the runtime."""
        counted = f"60 out of {total}" if total else "60"
        line = (
            f"INFO: Replacing {counted} node(s) with delegate (TfLiteGpuDelegateV2) node, yielding 3 partitions{tail}."
        )
        applied = partly_applied("GPU", 1)
        observed = read_text(applied, line).observed
        assert (observed["nodes_delegated"], observed.get("nodes_total")) == (60, total)

    def test_nodes_of_several_subgraphs_are_added_up(self) -> None:
        """A line for each."""
        applied = partly_applied("XNNPACK", 2)
        lines = [
            f"INFO: Replacing {n} out of {m} node(s) with delegate (TfLiteXNNPackDelegate) node, "
            f"yielding 2 partitions for subgraph {s}."
            for s, (n, m) in enumerate(((5, 9), (3, 3)))
        ]
        observed = read_text(applied, "\n".join(lines)).observed
        assert (observed["nodes_delegated"], observed["nodes_total"]) == (8, 12)

    def test_nodes_of_a_known_other_delegate_are_not_a_vendors(self) -> None:
        """XNNPACK took what was left; how much the vendor's delegate took is not known."""
        applied = partly_applied("EXTERNAL", 1)
        line = "INFO: Replacing 4 out of 9 node(s) with delegate (TfLiteXNNPackDelegate) node, yielding 2 partitions."
        assert "nodes_delegated" not in read_text(applied, line).observed

    def test_operators_that_the_gpu_leaves_are_no_error(self) -> None:
        """They are reported as one."""
        text = (
            "ERROR: Following operations are not supported by GPU delegate:\nCUSTOM X: Not supported\n"
            "60 operations will run on the GPU, and the remaining 6 operations will run on the CPU.\n"
            "INFO: Initialized OpenCL-based API.\nINFO: Created 1 GPU delegate kernels."
        )
        reading = read_text("", text)
        assert reading.error is None
        assert (reading.observed["nodes_delegated"], reading.observed["nodes_total"]) == (60, 66)
        assert reading.observed["gpu_backend"] == "opencl"

    def test_a_fall_back_to_opengl_is_seen(self) -> None:
        """Another backend than was asked for, exit status 0."""
        reading = read_text("", "ERROR: Falling back to OpenGL\nINFO: Initialized OpenGL-based API.")
        assert reading.observed["gpu_backend"] == "opengl"
        assert reading.observed["fallbacks"] == ["Falling back to OpenGL"]

    def test_a_hexagon_that_is_missing_is_seen(self) -> None:
        """Then the CPU does the work."""
        line = "WARN: Could not create Hexagon delegate: platform may not support delegate"
        assert read_text(line).observed["fallbacks"] == [line.removeprefix("WARN: ")]


PHASES = """\
STARTING!
Running benchmark for at least 1 iterations and at least 0.5 seconds but terminate if exceeding 150 seconds.
{warmup}

Running benchmark for at least 50 iterations and at least 1 seconds but terminate if exceeding 150 seconds.
{steady}

{closing}
"""
CLOSING = "Inference timings in us: Init: 5000, First inference: 9, Warmup (avg): 9, Inference (avg): {avg}"
WARMUP = "count=3 first=9 curr=9 min=8 max=10 avg=9 std=1"


def shaped(steady: str, closing: str) -> Reading:
    return read_text(PHASES.format(warmup=WARMUP, steady=steady, closing=closing))


class TestShapesOfOtherReleases:
    def test_before_2_13_lines_have_no_prefix_and_before_2_19_no_percentiles(self) -> None:
        """Then the median is not known, and not made up."""
        reading = shaped("count=50 first=12 curr=11 min=10 max=20 avg=11.5 std=2", CLOSING.format(avg="11.5"))
        assert reading.summary == Summary(50, avg=11.5, std=2.0, min=10.0, max=20.0)

    def test_before_2_2_the_closing_line_had_another_order(self) -> None:
        """And told no first inference."""
        closing = "Average inference timings in us: Warmup: 9, Init: 5000, Inference: 11.5"
        reading = shaped("count=50 first=12 curr=11 min=10 max=20 avg=11.5 std=2", closing)
        assert reading.summary is not None and reading.metrics["init_us"] == 5000.0

    def test_a_second_and_more_is_printed_with_an_exponent(self) -> None:
        """`avg` alone; it is not rounded any further."""
        line = "count=50 first=1010000 curr=1010000 min=1000000 max=1100000 avg=1.01013e+06 std=9"
        reading = shaped(line, CLOSING.format(avg="1.01013e+06"))
        assert reading.summary is not None and reading.summary.avg == 1_010_130.0

    def test_equal_samples_are_printed_as_one(self) -> None:
        """Then the one is every figure."""
        reading = shaped("count=50 curr=7(all same) p5=7 median=7 p95=7", CLOSING.format(avg="7"))
        assert reading.summary == Summary(50, median=7, p5=7, p95=7, avg=7, std=0, min=7, max=7)

    @pytest.mark.parametrize(
        "steady",
        [
            "count=50 first=12 curr=11 min=10 max=20 avg=nan std=2",
            "count=50 first=12 curr=11 min=10 max=20 avg=1e999 std=2",
            "count=50 first=12 curr=11 min=20 max=10 avg=11.5 std=2",
            "count=50 first=12 curr=11 min=10 max=20 avg=11.5 std=2 p5=15 median=12 p95=11",
            "count=50 first=12 curr=11 min=10 max=20 avg=11.5",
            "count=50 first=12 curr=11 min=10 max=20 avg=11.6 std=2",
        ],
    )
    def test_numbers_that_cannot_be_are_none(self, steady: str) -> None:
        """Not a number, past all bounds, in the wrong order, cut, or at odds with the closing line."""
        assert shaped(steady, CLOSING.format(avg="11.5")).summary is None

    def test_without_the_closing_line_there_is_no_summary(self) -> None:
        """The statistics line may have been cut where it still looks whole."""
        assert shaped("count=50 first=12 curr=11 min=10 max=20 avg=11.5 std=2", "").summary is None

    def test_fewer_runs_than_asked_mean_the_time_cap(self) -> None:
        """The tool says neither that it stopped early nor why."""
        assert ALL["max_secs_small"].reading.observed["stopped_by"] == "cap"
        assert ALL["repeat_00"].reading.observed["stopped_by"] == "enough"

    def test_the_compiled_model_program(self) -> None:
        """Statistics on standard output, its block of results on standard error."""
        block = "\n".join(
            f"INFO: [benchmark_litert_model.h:{number}] {text}"
            for number, text in enumerate(
                (
                    "Dynamically loaded GPU accelerator(libLiteRtClGlAccelerator.so) registered.",
                    "",
                    "========== BENCHMARK RESULTS ==========",
                    "Model initialization: 12.35 ms",
                    "Warmup (first):       0.01 ms",
                    "Warmup (avg):         0.01 ms (3 runs)",
                    "Inference (avg):      1.23 ms (50 runs)",
                    "Inference (min):      1.20 ms",
                    "Init footprint:       7.50 MB",
                    "Overall footprint:    9.25 MB",
                    "Peak memory usage not available. (peak_mem_mb <= 0)",
                )
            )
        )
        steady = "INFO: count=50 first=1250 curr=1230 min=1200 max=1300 avg=1234.5 std=20 p5=1210 median=1233 p95=1280"
        reading = read_text(PHASES.format(warmup=WARMUP, steady=steady, closing=""), block)
        assert reading.summary is not None and reading.summary.median == 1233.0
        assert reading.observed["program"] == "compiled-model"
        assert reading.observed["accelerators"] == ["gpu"]
        assert reading.metrics["init_us"] == 12350.0
        assert (reading.metrics["memory_init_mb"], reading.metrics["memory_overall_mb"]) == (7.5, 9.25)
        other = read_text(PHASES.format(warmup=WARMUP, steady=steady, closing=""), block.replace("1.23 ms", "1.25 ms"))
        assert other.summary is None


GOLDEN = {
    "help": ("internal", "usage: benchmark_model <flags>"),
    "no_args": ("flags", "Please specify the name of your TF Lite input file with --graph"),
    "prof_mode_json_bad": (
        "flags",
        "Output modejson is not supported. Supported values are: 'stdout', 'csv' and 'proto'.",
    ),
    "flag_bad_bool": ("flags", "Failed to parse flag 'use_xnnpack' against argv '--use_xnnpack=yes'"),
    "list_signatures": ("internal", "benchmarking failed"),
    "signature_bad": (
        "signature",
        'Signature not specified or incorrect. Pass one of the following to the flag "--signature_to_run_for"',
    ),
    "signature_on_nosig": ("signature", "Signature key is specified, but the model does not have any signatures."),
    "require_full_delegation": ("delegate", "Disallowed CPU fallback detected."),
    "input_layer_ok": ("prepare", "Node number 4 (TfLiteXNNPackDelegate) failed to prepare."),
    "input_layer_wrong_rank": ("internal", "Input tensor #0 should have 4 dimensions!"),
    "input_value_file_missing": ("fatal", "Failed to read the input_layer_value_file:/nonexistent.bin"),
    "graph_missing_file": ("model", "Could not open '/nonexistent/model.tflite'."),
    "graph_text": ("model", "The model is not a valid Flatbuffer buffer"),
    "model_face_landmark_with_attention_xnn": (
        "operator",
        "Encountered unresolved custom op: Landmarks2TransformMatrix.",
    ),
    "extd_err_init": ("delegate", "Failed to apply EXTERNAL delegate."),
    "extd_err_prepare": ("delegate", "Failed to apply EXTERNAL delegate."),
    "extd_err_invoke": ("invoke", "Node number 164 (DummyDelegate) failed to invoke."),
    "extd_err_invoke_result": ("invoke", "Node number 164 (DummyDelegate) failed to invoke."),
}


class TestErrors:
    @pytest.mark.parametrize("name", GOLDEN)
    def test_the_message_that_tells_most(self, name: str) -> None:
        """Of all that was printed, and with something to do about it."""
        error = ALL[name].reading.error
        assert error is not None and (error.kind, error.message) == GOLDEN[name]
        assert error.remedy

    def test_before_2_13_errors_have_no_prefix(self) -> None:
        """The tool's own, that is; the runtime always had one."""
        reading = read_text("STARTING!", "Failed to apply GPU delegate.\nBenchmarking failed.")
        assert reading.error == RunnerError(
            "delegate",
            "Failed to apply GPU delegate.",
            "this device or model does not suit the delegate: use another",
            True,
        )

    def test_the_last_word_is_heard_after_any_number_of_others(self) -> None:
        """Only so many different messages are kept."""
        text = "\n".join(f"ERROR: number {index}" for index in range(100)) + "\nERROR: Benchmarking failed."
        error = read_text("", text).error
        assert error is not None and error.message == "number 0"

    def test_failed_inferences_leave_no_times(self) -> None:
        """The tool prints them all the same, and writes them to its result file."""
        reading = ALL["extd_err_invoke_result"].reading
        assert reading.summary is None
        assert "steady_first_us" not in reading.metrics and "first_us" not in reading.metrics

    def test_memory_that_runs_out_may_be_there_next_time(self) -> None:
        """Everything else fails again."""
        error = read_text("", "ERROR: std::bad_alloc\nERROR: Benchmarking failed.").error
        assert error is not None and not error.permanent
