"""The files that benchmark_model writes: recordings of the real tool, newer releases, and broken ones."""

from __future__ import annotations

import pytest

from orchestrator.runners.benchmark_model_output import read_output
from orchestrator.runners.benchmark_model_profile import read_profile
from orchestrator.runners.benchmark_model_protos import decode_text, read_result, read_runtime, runtime_of
from tests.unit.test_benchmark_model_output import ALL, RECORDINGS

RESULT = (RECORDINGS / "result_file.result.pb").read_bytes()
RUNTIME = (RECORDINGS / "runtime_info.outfile.pb").read_bytes()
NEWER = b"\xfa\x06\x05hello\x80\x07\x01"
"""Fields 111 and 112, which no release has."""


class TestResult:
    def test_it_says_what_was_printed(self) -> None:
        """In more digits; the text's own numbers are the truth of this test."""
        reading = read_output(ALL["result_file"].stdout, ALL["result_file"].stderr, {"result": RESULT})
        printed = read_output(ALL["result_file"].stdout, ALL["result_file"].stderr)
        assert reading.summary == printed.summary
        assert reading.observed["result_proto"] == "agrees"
        for key in ("init_us", "first_us", "warmup_count"):
            assert reading.metrics[key] == printed.metrics[key]
        assert reading.metrics["memory_overall_mb"] == pytest.approx(printed.metrics["memory_overall_mb"], rel=1e-5)

    def test_it_stands_in_for_torn_text(self) -> None:
        """Lines were lost; the file is whole."""
        reading = read_output(ALL["result_file"].stdout[:8], [], {"result": RESULT})
        assert reading.summary == ALL["result_file"].reading.summary
        assert reading.observed["result_proto"] == "alone"

    def test_a_file_of_another_run_is_told(self) -> None:
        """Its numbers are not taken, and the rules reject the trial."""
        reading = read_output(ALL["plain_default"].stdout, ALL["plain_default"].stderr, {"result": RESULT})
        assert reading.summary == ALL["plain_default"].reading.summary
        assert reading.observed["result_proto"] == "contradicts the printed summary"

    def test_a_run_without_inferences_has_no_summary(self) -> None:
        """It writes extremes of whole numbers, and no number at all for the throughput."""
        content = (RECORDINGS / "dry_run_result.result.pb").read_bytes()
        reading = read_output(ALL["dry_run_result"].stdout, ALL["dry_run_result"].stderr, {"result": content})
        assert reading.summary is None
        assert all(0 <= value < 1e9 for value in reading.metrics.values())

    def test_failed_inferences_leave_no_times(self) -> None:
        """The file is written all the same; only the status and standard error tell."""
        content = (RECORDINGS / "extd_err_invoke_result.result.pb").read_bytes()
        recording = ALL["extd_err_invoke_result"]
        reading = read_output(recording.stdout, recording.stderr, {"result": content})
        assert reading.error is not None and reading.summary is None
        assert "first_us" not in reading.metrics

    def test_a_newer_release_may_add_fields(self) -> None:
        """They are passed over."""
        assert read_result(RESULT + NEWER) == read_result(RESULT)

    @pytest.mark.parametrize("content", [b"", RESULT[:-3], RESULT[3:], b"\x00", NEWER])
    def test_a_broken_file_is_none(self, content: bytes) -> None:
        """Cut at either end, empty, of another kind."""
        reading = read_output(ALL["plain_default"].stdout, [], {"result": content})
        assert read_result(content) is None
        assert reading.summary == ALL["plain_default"].reading.summary
        assert reading.observed["unreadable_files"] == ["result"]


def test_a_newer_release_may_add_fields_to_every_file() -> None:
    """To the runtime info, and to the profile, at the end and at the start."""
    profile = (RECORDINGS / "prof_proto_file_xnn_default.outfile.pb").read_bytes()
    for newer in (lambda content: content + NEWER, lambda content: NEWER + content):
        assert read_runtime(newer(RUNTIME)) == read_runtime(RUNTIME)
        assert read_profile([], [], {"profile": newer(profile)}) == read_profile([], [], {"profile": profile})


def test_a_name_that_is_no_text_is_one_all_the_same() -> None:
    """A driver may name its kernels in any bytes."""
    content = (RECORDINGS / "prof_proto_file_xnn_default.outfile.pb").read_bytes()
    profile = read_profile([], [], {"profile": content.replace(b"Delegate/Add", b"\xff\xfelegate/Add")})
    assert profile is not None
    assert sum(op.name.startswith("\ufffd\ufffdlegate/Add") for op in profile.ops) == 16
    runtime = read_runtime(RUNTIME.replace(b"TfLiteXNNPackDelegate", b"TfLite\xffNNPackDelegate"))
    assert runtime is not None and list(runtime.delegated) == ["TfLite\ufffdNNPackDelegate"]


class TestRuntime:
    def test_who_took_what(self) -> None:
        """The portable way to know: the log line is Android's alone."""
        found = read_runtime(RUNTIME)
        assert found is not None
        assert (found.nodes, found.delegated, found.partitions) == (164, {"TfLiteXNNPackDelegate": 164}, 1)
        plain = read_runtime((RECORDINGS / "runtime_info_xnn_false.outfile.pb").read_bytes())
        assert plain is not None
        assert (plain.nodes, plain.delegated, plain.partitions) == (164, {}, 0)

    def test_the_same_printed_as_text(self) -> None:
        """Where no file could be written."""
        lines = [line.decode() for line in ALL["runtime_info_nofile"].stdout]
        start = next(place for place, line in enumerate(lines) if line.startswith("INFO: subgraphs {"))
        end = next(place for place, line in enumerate(lines) if place > start and line == "}")
        text = "\n".join([lines[start].removeprefix("INFO: "), *lines[start + 1 : end + 1]])
        assert runtime_of(decode_text("Runtime", text)) == read_runtime(RUNTIME)

    def test_it_is_evidence(self) -> None:
        """By the names that the rules know."""
        recording = ALL["runtime_info"]
        observed = read_output(recording.stdout, recording.stderr, {"runtime": RUNTIME}).observed
        assert observed["nodes_delegated"] == observed["nodes_total"] == 164
        assert observed["nodes_replaced"] == [{"delegate": "xnnpack", "nodes_delegated": 164, "nodes_total": 164}]
        assert observed["delegation"] == "full"

    @pytest.mark.parametrize("content", [b"", RUNTIME[:1000], RUNTIME[5:], RESULT, b"\x12\x00"])
    def test_a_broken_file_is_none(self, content: bytes) -> None:
        """And told."""
        assert read_runtime(content) is None
        recording = ALL["runtime_info"]
        observed = read_output(recording.stdout, recording.stderr, {"runtime": content}).observed
        assert observed["unreadable_files"] == ["runtime"]
        assert "nodes_total" not in observed
