"""Operator profiles in every form: recordings of the real tool, LiteRT's own summary, and shapes of older builds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.op_profile import OpProfile
from orchestrator.runners.benchmark_model_profile import read_profile
from tests.unit.test_benchmark_model_output import ALL, RECORDINGS

NATIVE = RECORDINGS.parent / "litert_native"
NODES = {"true": 89, "default": 89, "false": 164}


def outputs_of(name: str) -> dict[str, bytes]:
    files = list(RECORDINGS.glob(f"{name}.outfile.*"))
    return {"profile": files[0].read_bytes()} if files else {}


def recorded(name: str) -> OpProfile:
    profile = read_profile(ALL[name].stdout, ALL[name].stderr, outputs_of(name))
    assert profile is not None
    return profile


def read_text(text: str) -> OpProfile | None:
    return read_profile(text.encode().split(b"\n"), [], {})


PROFILED = sorted(
    name
    for name in ALL
    if "enable_op_profiling=true" in ALL[name].command and ALL[name].exit == 0 and name[:4] != "dry_"
)
BY_OPERATOR = [name for name in PROFILED if re.fullmatch(r"prof_.*_xnn_(true|false|default)", name)]


class TestRecordings:
    def test_they_are_there(self) -> None:
        """Of every mode: printed, CSV by both flags, proto in a file and as text."""
        assert len(PROFILED) == 19
        assert {recorded(name).source for name in PROFILED} == {"proto", "csv", "text"}

    @pytest.mark.parametrize("name", PROFILED)
    def test_operators_add_up_to_what_the_tool_says(self, name: str) -> None:
        """Printed times have a microsecond's resolution, so that many small ones are a little beside the sum."""
        profile = recorded(name)
        assert profile.problem is None
        assert profile.total_us is not None
        assert profile.time_us == pytest.approx(profile.total_us, abs=0.5 * len(profile.ops))
        assert profile.runs is not None and profile.runs > 9
        printed = next(line for line in ALL[name].stdout if line.startswith(b"INFO: Inference timings"))
        average_us = float(printed.rpartition(b" ")[2])
        assert 0.7 * average_us < profile.time_us <= average_us

    @pytest.mark.parametrize("name", BY_OPERATOR)
    def test_every_mode_has_the_same_operators(self, name: str) -> None:
        """Names and types, in their order, as in the file that XNNPACK's operators, or plain kernels, give."""
        kind = name.rpartition("_")[2]
        like = "prof_stdout_xnn_false" if kind == "false" else "prof_proto_file_xnn_default"
        rows = [(op.name, op.type, op.is_delegated) for op in recorded(name).ops]
        assert rows == [(op.name, op.type, op.is_delegated) for op in recorded(like).ops]
        assert len(rows) == NODES[kind]
        assert all(is_delegated == (kind != "false") for _, _, is_delegated in rows)

    def test_a_node_has_its_index(self) -> None:
        """The name ends with it."""
        ops = recorded("prof_csv_file_xnn_false").ops
        assert [op.node for op in ops] == list(range(164))
        assert (ops[2].name, ops[2].type) == ("[conv2d]:2", "CONV_2D")

    def test_commas_in_types_and_names_are_kept(self) -> None:
        """CSV has neither escapes nor quotes."""
        op = recorded("prof_csv_file_xnn_true").ops[0]
        assert op.type == "Convolution (NHWC, F32) IGEMM"
        assert op.name == "Delegate/Convolution (NHWC, F32) IGEMM:0"

    def test_delegated_time_is_told_from_that_of_the_cpu(self) -> None:
        """A model that XNNPACK took in part."""
        profile = recorded("profx_partial_stdout")
        assert profile.time_us - profile.delegated_us == pytest.approx(7.0)
        assert {op.type for op in profile.ops if not op.is_delegated} == {"SELECT_V2"}

    def test_a_delegate_that_shows_nothing_of_its_inside_is_delegated_all_the_same(self) -> None:
        """Its rows have its kernel's name."""
        ops = [op for op in recorded("extd_conv_profiled").ops if op.is_delegated]
        assert {op.type for op in ops} == {"DummyDelegate"}
        assert len(ops) == 18

    def test_the_runtime_knows_which_nodes_are_a_delegates(self) -> None:
        """Whatever its kernel is called."""
        row = "\t{:>40}\t    1.000\t    1.000\t 50.000%\t 50.000%\t     0.000\t        1\t[out]:{}"
        text = f"{HEAD}{row.format('secret kernel', 164)}\n{row.format('ADD', 3)}\n\nNumber of nodes executed: 2\n"
        runtime = (RECORDINGS / "runtime_info.outfile.pb").read_bytes()
        profile = read_profile(text.encode().split(b"\n"), [], {"runtime": runtime})
        assert profile is not None
        assert [op.is_delegated for op in profile.ops] == [True, False]

    def test_a_dry_run_has_no_operators(self) -> None:
        """It says so, and gives no number."""
        profile = recorded("dry_run_result")
        assert (profile.ops, profile.problem) == ((), "the profile has no operators")

    @pytest.mark.parametrize("name", ["plain_default", "help", "prof_mode_json_bad", "kill9_midrun"])
    def test_what_is_no_profile_is_none(self, name: str) -> None:
        """A latency run, usage, a refusal, a killed process."""
        assert read_profile(ALL[name].stdout, ALL[name].stderr, {}) is None


class TestSummaryOfLiteRT:
    """What LiteRtGetProfileSummary gives, and with it the CompiledModel program's --use_profiler."""

    def test_counts_over_all_runs_become_costs_of_one(self) -> None:
        """65 operators of XNNPACK over 20 runs."""
        profile = read_profile([], (NATIVE / "summary_mobilenet.txt").read_bytes().split(b"\n"), {})
        assert profile is not None and profile.problem is None
        assert (len(profile.ops), profile.runs, profile.total_us) == (65, 20, pytest.approx(704.6))
        assert profile.time_us == pytest.approx(704.6, abs=0.5 * 65)
        assert profile.delegated_us == profile.time_us
        assert profile.ops[0].name == "Delegate/Convolution (NHWC, F32) IGEMM:0"

    def test_builtin_operators_are_the_cpus(self) -> None:
        """And one that two partitions share a name with is called twice an inference."""
        profile = read_profile((NATIVE / "summary_partial.txt").read_bytes().split(b"\n"), [], {})
        assert profile is not None
        rows = [(op.name, op.calls, op.is_delegated) for op in profile.ops]
        assert rows == [
            ("Delegate/Add (ND):0", 2.0, True),
            ("CUMSUM:1", 1.0, False),
            ("Delegate/Multiply (ND):1", 1.0, True),
        ]


HEAD = (
    "INFO: Operator-wise Profiling Info for Regular Benchmark Runs:\n"
    "============================== Run Order ==============================\n"
    "\t[node type]\t[first]\t[avg ms]\t[%]\t[cdf%]\t[mem KB]\t[times called]\t[Name]\n"
)


class TestOtherBuilds:
    def test_the_column_start_of_old_builds_moves_nothing(self) -> None:
        """Until TensorFlow 2.9; columns are known by their names."""
        head = HEAD.replace("\t[first]", "\t[start]\t[first]")
        profile = read_text(
            f"{head}\tCONV_2D\t9.000\t8.000\t2.500\t100%\t100%\t0.000\t2\t[a, b]:7\n\nNumber of nodes executed: 1\n"
        )
        assert profile is not None
        assert [(op.name, op.time_us, op.calls) for op in profile.ops] == [("[a, b]:7", 5000.0, 2.0)]

    def test_what_a_delegate_says_of_its_inside_is_not_added(self) -> None:
        """TensorFlow 2.10 to 2.12. Hexagon's milliseconds are cycles there, so that they are no times at all."""
        row = "\tTfLiteXNNPackDelegate\t2.000\t2.000\t100%\t100%\t0.000\t1\t[out]:9\n\nNumber of nodes executed: 1\n"
        inner = HEAD.partition("Runs:")[2].lstrip()
        inner += "\tAdd (ND)\t1.500\t1.500\t100%\t100%\t0.000\t1\tDelegate/Add (ND):0\n\n"
        profile = read_text(f"{HEAD}{row}Delegate internal:\n{inner}Number of nodes executed: 1\n")
        assert profile is not None and profile.problem is None
        assert (profile.time_us, [op.type for op in profile.inner]) == (2000.0, ["Add (ND)"])
        row = row.replace("XNNPack", "Hexagon")
        hexagon = read_text(f"{HEAD}{row}Delegate internal:\n{inner}Number of nodes executed: 1\n")
        assert hexagon is not None and hexagon.problem is None
        assert (hexagon.time_us, hexagon.inner) == (2000.0, ())
        assert "it counts cycles" in hexagon.notes[0]

    def test_a_gpu_that_works_twice_is_told(self) -> None:
        """OpenCL's profile is of more work than an inference; the line is Android's, from the reference."""
        stdout = ALL["prof_stdout_xnn_true"].stdout
        profile = read_profile(stdout, [b"INFO: Initialized OpenCL-based API."], {})
        assert profile is not None and profile.problem is None
        assert profile.notes == ("OpenCL makes every inference at least twice while it is profiled",)

    def test_subgraphs_are_kept_apart(self) -> None:
        """Their nodes have the same numbers."""
        table = HEAD.partition("Runs:\n")[2]
        row = "\tADD\t1.000\t1.000\t100%\t100%\t0.000\t3\t[x]:0\n\nNumber of nodes executed: 1\n"
        start = HEAD.partition("\n")[0]
        first = f"{start}\nPrimary graph (name: main) profile:\n{table}{row}"
        profile = read_text(f"{first}Subgraph (index: 2, name: body) profile:\n{table}{row}")
        assert profile is not None and profile.problem is None
        assert [(op.subgraph, op.time_us) for op in profile.ops] == [(0, 3000.0), (2, 3000.0)]

    def test_dropped_events_are_told(self) -> None:
        """A buffer that was too small leaves operators out."""
        lines = [*ALL["prof_stdout_xnn_true"].stdout, b"Warning: Dropping ProfileBuffer event."]
        profile = read_profile(lines, [], {})
        assert profile is not None and profile.problem is not None
        assert "dropped events" in profile.problem


class TestBadInput:
    def test_a_profile_that_breaks_off_says_so_and_keeps_what_it_has(self) -> None:
        """Cut in the middle of a line."""
        text = b"\n".join(ALL["prof_stdout_xnn_false"].stdout)
        cut = text[: text.index(b"[depthwise_conv2d_7]") + 5]
        profile = read_profile(cut.split(b"\n"), [], {})
        assert profile is not None
        assert profile.problem == "it breaks off before its end"
        whole = {(op.name, op.time_us) for op in recorded("prof_stdout_xnn_false").ops}
        assert {(op.name, op.time_us) for op in profile.ops[:-1]} <= whole

    def test_a_line_of_another_stream_within_the_table_costs_its_row_only(self) -> None:
        """And the profile knows that rows are missing."""
        text = b"\n".join(ALL["prof_stdout_xnn_false"].stdout)
        place = text.index(b"CONV_2D")
        torn = text[:place] + b"INFO: Created TensorFlow Lite XNNPACK delegate for CPU.\n" + text[place:]
        profile = read_profile(torn.split(b"\n"), [], {})
        assert profile is not None
        assert profile.problem is None or "rows are missing" in profile.problem
        assert len(profile.ops) >= 163

    @pytest.mark.parametrize("value", ["nan", "inf", "-1.000", "1e999", "0x10", "", "1,5"])
    def test_what_is_no_time_gives_no_row(self, value: str) -> None:
        """Nor a number that nobody printed."""
        profile = read_text(
            f"{HEAD}\tADD\t1.000\t{value}\t100%\t100%\t0.000\t1\t[x]:0\n\nNumber of nodes executed: 1\n"
        )
        assert profile is not None
        assert profile.ops == ()

    def test_exponents_are_numbers(self) -> None:
        """CSV prints small times so."""
        assert recorded("prof_csv_file_xnn_false").ops[0].time_us == pytest.approx(0.0377358, rel=1e-4)

    @pytest.mark.parametrize("content", [b"", b"\xff" * 100, b"\x12\xff\xff\xff\xff\x0f", b"\n" * 50])
    def test_a_file_that_is_no_profile_is_told(self, content: bytes) -> None:
        """It is kept as an artifact; the reason is stored."""
        profile = read_profile([], [], {"profile": content})
        assert profile is None or profile.problem == "the profile's file cannot be read: it is cut, or no profile"

    def test_bytes_that_are_no_text_are_passed_over(self) -> None:
        """A vendor's library may print anything."""
        lines = [b"\x80\xff\xfe", *ALL["prof_csv_nofile_xnn_true"].stdout, b"\x00" * 1000]
        assert read_profile(lines, [], {}) == recorded("prof_csv_nofile_xnn_true")

    def test_a_hundred_megabytes_of_log_do_not_hide_it(self) -> None:
        """Nor do they take its memory for rows."""
        noise = [b"W/driver: " + b"x" * 10_000] * 10_000
        profile = read_profile([*noise, *ALL["prof_stdout_xnn_true"].stdout, *noise], [], {})
        assert profile == recorded("prof_stdout_xnn_true")


def test_recordings_are_whole() -> None:
    """Files the tool wrote stand beside what it printed."""
    assert len(list(Path(RECORDINGS).glob("*.outfile.*"))) == 10
