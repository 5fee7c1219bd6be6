"""The native runner on this machine, with the real runtime: the same flags give the same lines as litert_runner."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.runner_process import FLOAT, INT8, MODELS, TINY, Runner, flags, run_program

# ------------------------------------------------------------------------------------- the contract with litert_runner

SOUND = ("tiny_add", "int8_add", "two_inputs", "no_inputs", "dynamic_batch", "partial", "islands")
UNFIT = ("custom_op", "new_op_version", "huge", "string_input", "unfed", "truncated", "not_a_model", "empty")


@pytest.mark.parametrize("name", SOUND)
def test_same_model_same_flags_same_results(native: Runner, in_python: Runner, name: str) -> None:
    """Inputs from the seed, outputs, delegation and threads are equal, to the byte and to the node."""
    model = MODELS / f"{name}.tflite"
    ours, theirs = native.measured(model, threads="3"), in_python.measured(model, threads="3")
    assert ours.one("end")["output_sha256"] == theirs.one("end")["output_sha256"]
    assert ours.one("model") == theirs.one("model")
    threads = ("threads_before", "threads_allocated", "threads_after")
    assert [ours.one("init")[key] for key in threads] == [theirs.one("init")[key] for key in threads]
    delegated = ("nodes_total", "nodes_delegated", "partitions", "remaining")
    assert [ours.one("delegation")[key] for key in delegated] == [theirs.one("init")[key] for key in delegated]


@pytest.mark.parametrize(("model", "delegate"), [(FLOAT, "xnnpack"), (INT8, "xnnpack"), (INT8, "cpu")])
def test_same_outputs_of_a_whole_network(native: Runner, in_python: Runner, model: Path, delegate: str) -> None:
    """Float and int8 inputs are numpy's own bytes, and the same kernels run."""
    ours = native.measured(model, delegate=delegate, copy="zero-copy", runs="2")
    theirs = in_python.measured(model, delegate=delegate, copy="zero-copy", runs="2")
    assert ours.one("end")["output_sha256"] == theirs.one("end")["output_sha256"]
    assert ours.one("end")["inputs_intact"] is True
    assert ours.one("delegation")["nodes_delegated"] == theirs.one("init")["nodes_delegated"]


def test_same_lines(native: Runner, in_python: Runner) -> None:
    """Every field of every line is there, in the same order of lines, but for where delegation is said."""
    ours, theirs = native.measured(runs="503"), in_python.measured(runs="503")
    assert [kind for kind in ours.kinds if kind != "delegation"] == theirs.kinds
    for mine, other in zip((e for e in ours.events if e["event"] != "delegation"), theirs.events, strict=True):
        added = {"libc"} if mine["event"] == "start" else set()
        moved = {"nodes_total", "nodes_delegated", "partitions", "remaining"} if mine["event"] == "init" else set()
        assert mine.keys() == (other.keys() - moved) | added
    assert ours.one("start")["flags"].keys() - {"runtime", "profile"} == theirs.one("start")["flags"].keys()


@pytest.mark.parametrize("name", UNFIT)
def test_same_errors(native: Runner, in_python: Runner, name: str) -> None:
    """Each way in which a model can be unfit has its kind, its fact and its remedy, word for word."""
    model = MODELS / f"{name}.tflite"
    ours, theirs = native.run(model), in_python.run(model)
    assert (ours.exit_code, ours.events[-1]) == (theirs.exit_code, theirs.events[-1])


@pytest.mark.parametrize(("name", "kind"), [("odd_zero_point", "delegate-failed"), ("uneven_add", "model-invalid")])
def test_a_delegate_that_fails_is_told_from_a_model_that_is_wrong(
    native: Runner, in_python: Runner, name: str, kind: str
) -> None:
    """Where XNNPACK cannot and the plain kernels can, it is the delegate that failed; both runners try."""
    model = MODELS / f"{name}.tflite"
    ours, theirs = native.run(model).error, in_python.run(model).error
    assert ours[:2] == theirs[:2] == (65, kind)
    assert theirs[2].startswith(ours[2])
    assert (native.run(model, delegate="cpu").exit_code == 0) == (kind == "delegate-failed")


USAGE: list[dict[str, str | None]] = [
    {"use_gpu": "1"},
    {"thread": "1"},
    {"seed": None},
    {"model": None},
    {"delegate": "gpu"},
    {"copy": "none"},
    {"runs": "0"},
    {"runs": "200001"},
    {"runs": "-5"},
    {"runs": "1e3"},
    {"threads": "two"},
    {"threads": "0"},
    {"threads": "-1"},
    {"threads": "1025"},
    {"min_ms": "9", "max_ms": "8"},
    {"warmup_min_ms": "9", "max_ms": "8"},
    {"expect_sha256": "abc"},
    {"expect_sha256": "0" * 64},
    {"beside": ""},
    {"check": "", "beside": ""},
]


@pytest.mark.parametrize("changes", USAGE, ids=lambda changes: "-".join(changes))
def test_same_refusals(native: Runner, in_python: Runner, changes: dict[str, str | None]) -> None:
    """A wrong command line is refused in the same words."""
    assert native.run(**changes).error == in_python.run(**changes).error


def test_inputs_from_a_file(native: Runner, in_python: Runner, tmp_path: Path) -> None:
    """An .npz gives the same result in both, by name or by position."""
    arrays = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "1": np.ones((1, 3), np.float32)}
    names = [entry["name"] for entry in native.measured(MODELS / "two_inputs.tflite").one("model")["inputs"]]
    file = tmp_path / "in.npz"
    np.savez(file, **{names[0]: arrays["x"], "1": arrays["1"]})
    ran = [runner.measured(MODELS / "two_inputs.tflite", inputs=str(file)) for runner in (native, in_python)]
    assert ran[0].one("end")["output_sha256"] == ran[1].one("end")["output_sha256"]


def test_wrong_inputs(native: Runner, tmp_path: Path) -> None:
    """Another shape or type, a missing or a spare array, a compressed or a broken file: each is told apart."""
    right = np.zeros((1, 64), np.float32)
    (name,) = (entry["name"] for entry in native.measured().one("model")["inputs"])
    wrong: dict[str, tuple[dict[str, object], str]] = {
        "shape": ({name: np.zeros((64, 1), np.float32)}, "inputs-mismatch"),
        "type": ({name: right.astype(np.float64)}, "inputs-mismatch"),
        "absent": ({"other": right}, "inputs-mismatch"),
        "spare": ({name: right, "other": right}, "inputs-mismatch"),
    }
    for case, (arrays, kind) in wrong.items():
        np.savez(tmp_path / f"{case}.npz", **arrays)  # type: ignore[arg-type]  # arrays by name is what it takes
        assert native.run(inputs=str(tmp_path / f"{case}.npz")).error[:2] == (65, kind), case
    np.savez_compressed(tmp_path / "small.npz", **{name: right})
    assert native.run(inputs=str(tmp_path / "small.npz")).error[1] == "inputs-unsupported"
    whole = (tmp_path / "shape.npz").read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 3):
        (tmp_path / "cut.npz").write_bytes(whole[:length])
        assert native.run(inputs=str(tmp_path / "cut.npz")).error[:2] == (65, "inputs-missing")
    assert native.run(inputs=str(tmp_path / "nowhere.npz")).error[1] == "inputs-missing"


# -------------------------------------------------------------------------------------------------- what it does itself


def test_it_says_what_runs(native: Runner, runtime: Path) -> None:
    """Its own hash and that of the library it opened."""
    start = run_program([*native.program, "--check"]).one("start")
    assert start["runner_sha256"] == hashlib.sha256(Path(native.program[0]).read_bytes()).hexdigest()
    assert start["library_sha256"] == hashlib.sha256(runtime.read_bytes()).hexdigest()
    assert (start["library"], start["flags"]) == ("libLiteRt.so", None)


def test_plain_kernels_take_one_thread(native: Runner) -> None:
    """More would be ignored by this interface, so it is refused."""
    assert native.run(delegate="cpu", threads="2").error == (
        64,
        "threads-invalid",
        "--threads 2: through LiteRT's C interface the plain kernels run on one thread",
    )


def test_loops_stop_as_asked(native: Runner) -> None:
    """By number, by time, by cap; samples in chunks, complete and in order."""
    ran = native.measured(runs="1203", max_ms="50000")
    steady = [event for event in ran.all("samples") if event["phase"] == "steady"]
    assert [(chunk["first"], len(chunk["invoke_ns"])) for chunk in steady] == [(0, 500), (500, 500), (1000, 203)]
    starts = [value for chunk in steady for value in chunk["start_ns"]]
    assert starts == sorted(starts)
    assert (ran.one("end")["count"], ran.one("end")["stopped_by"]) == (1203, "runs")
    assert native.measured(min_ms="20", warmup_runs="0").one("end")["stopped_by"] == "time"
    capped = native.measured(runs="200000", max_ms="30", warmup_runs="0").one("end")
    assert (capped["stopped_by"], capped["warmup_stopped_by"], capped["warmup_count"]) == ("cap", None, 0)
    assert 0 < capped["count"] < 200000


def test_the_models_memory_is_its_own(native: Runner) -> None:
    """What came before the model can be told from it, and the peak starts with it."""
    memory = native.measured(FLOAT, runs="1").one("memory")
    assert memory["rss_before_model_kb"] < memory["rss_init_kb"] <= memory["rss_first_kb"] <= memory["peak_kb"]
    assert native.measured().one("memory")["peak_kb"] < memory["peak_kb"]


@pytest.mark.parametrize("name", ["a b'c\"d$(touch pwned)`id`;&|*é -x.tflite", "-model.tflite", "new\nline.tflite"])
def test_hostile_paths(native: Runner, tmp_path: Path, name: str) -> None:
    """A name is a name, whatever it holds."""
    hostile = tmp_path / name
    hostile.write_bytes(TINY.read_bytes())
    assert native.measured(hostile).one("start")["flags"]["model"] == str(hostile)
    assert native.run(tmp_path / f"absent {name}").error[1] == "model-missing"


def test_missing_and_foreign_models(native: Runner, tmp_path: Path) -> None:
    """A folder is no model; a file of eight bytes neither; a rank that the C interface has not is told."""
    assert native.run(tmp_path).error[1] == "model-missing"
    short = tmp_path / "short.tflite"
    short.write_bytes(b"\0\0\0\0TFL3")
    assert native.run(short).error[1] == "model-invalid"
    assert native.run(MODELS / "far_buffer.tflite").error[1] == "model-invalid"
    assert native.run(MODELS / "xnnpack_refuses.tflite").error == (
        65,
        "model-invalid",
        "the runtime refuses the model: Tensor rank (20) exceeds max rank (8)",
    )


def test_a_model_cut_anywhere_never_hangs_or_misleads(native: Runner, tmp_path: Path) -> None:
    """It ends in a named error or, where the runtime itself crashes, in a signal with `model` as the last line."""
    whole = (MODELS / "partial.tflite").read_bytes()
    cut = tmp_path / "cut.tflite"
    for length in range(4, len(whole), 53):
        cut.write_bytes(whole[:length])
        ran = native.run(cut, runs="1")
        assert ran.exit_code in (0, 65) or ran.exit_code < 0
        assert ran.kinds[-1] == {0: "end", 65: "error"}.get(ran.exit_code, "model")


def test_a_crash_of_the_runtime_can_be_attributed(native: Runner) -> None:
    """If the runtime aborts on a model, `model` is the last line, and standard error says so."""
    ran = native.run(MODELS / "no_scale.tflite")
    assert (ran.exit_code, ran.kinds) == (-signal.SIGABRT, ["start", "model"])
    assert "the runtime crashed while it loaded the model or first ran it" in ran.stderr


def test_a_load_is_ready_and_dies_when_told(native: Runner) -> None:
    """With --beside: one line after the warm-up, then inference until SIGTERM."""
    changes: dict[str, str | None] = {"beside": "", "runs": None, "min_ms": None}
    load = subprocess.Popen([*native.program, *flags(TINY, changes)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert load.stdout
        ready = json.loads(load.stdout.readline())
        assert (ready["event"], ready["warmup_count"], ready["init"]["threads_after"]) == ("ready", 2, 1)
        assert load.poll() is None
        load.terminate()
        assert load.wait(timeout=10) == -signal.SIGTERM
    finally:
        load.kill()
        load.wait()


def test_a_closed_output_ends_it(native: Runner) -> None:
    """Quietly, by SIGPIPE, and before the long loop is over."""
    reading, writing = os.pipe()
    os.close(reading)
    argv = [*native.program, *flags(TINY, {"min_ms": "15000", "max_ms": "20000"})]
    try:
        done = subprocess.run(argv, stdout=writing, stderr=subprocess.PIPE, timeout=10, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


# ---------------------------------------------------------------------------------------------- a runtime that is unfit


def patched(runtime: Path, folder: Path, **changes: str) -> Path:
    """The real library with some of its own words replaced by others of the same length."""
    content = runtime.read_bytes()
    for old, new in changes.items():
        assert old.encode() + b"\0" in content and len(old) == len(new)
        content = content.replace(old.encode() + b"\0", new.encode() + b"\0")
    file = folder / "libLiteRt.so"
    file.write_bytes(content)
    return file


def versions(runtime: Path, family: str) -> list[str]:
    """The symbol versions of a family that the library asks for, the lowest first."""
    words = {word.decode() for word in runtime.read_bytes().split(b"\0") if word.startswith(family.encode())}
    return sorted(words, key=lambda word: [int(part) for part in word.removeprefix(family).split(".")])


def checked(native: Runner, runtime: Path) -> tuple[int, str, str]:
    return run_program([native.program[0], "--check", f"--runtime={runtime}"]).error


@pytest.mark.parametrize(
    ("family", "has"),
    [("GLIBC_", f"glibc {platform.libc_ver()[1]}"), ("GLIBCXX_", "an older libstdc++")],
)
def test_a_libc_that_is_too_old_is_named(native: Runner, runtime: Path, tmp_path: Path, family: str, has: str) -> None:
    """The loader refuses a library that asks for what this system has not, and the highest version is told: here the
    real library, made to ask for versions of the future."""
    known = versions(runtime, family)
    future = {word: family + "9" + word.removeprefix(family)[1:] for word in known[-2:]}
    unfit = patched(runtime, tmp_path, **future)
    needed = max(future.values(), key=lambda word: [int(part) for part in word.removeprefix(family).split(".")])
    assert checked(native, unfit) == (69, "libc-too-old", f"libLiteRt.so needs {needed}, and this system has {has}")


def test_a_missing_library_is_named(native: Runner, runtime: Path, tmp_path: Path) -> None:
    """Of those that the runtime needs."""
    unfit = patched(runtime, tmp_path, **{"libgcc_s.so.1": "libgcc_X.so.1"})
    told = "libLiteRt.so needs libgcc_X.so.1, which this system does not have"
    assert checked(native, unfit) == (69, "library-missing", told)


def test_what_is_no_runtime_is_refused(native: Runner, runtime: Path, tmp_path: Path) -> None:
    """A file that is not there, an empty one, another library, one without a function that we call."""
    absent, empty = tmp_path / "absent.so", tmp_path / "empty.so"
    empty.touch()
    lacking = patched(runtime, tmp_path, LiteRtStartProfiler="LiteRtStartProfileX")
    assert checked(native, absent) == (69, "runtime-missing", f"cannot open {absent}: No such file or directory")
    assert checked(native, empty)[:2] == (69, "runtime-missing")
    assert checked(native, lacking) == (69, "runtime-missing", f"{lacking} has no function LiteRtStartProfiler")


# --------------------------------------------------------------------------------------------------------- the profile


def test_profile_of_a_graph_in_parts(native: Runner) -> None:
    """Nodes by their index in the file, delegated operators by partition; every run's time of each."""
    ran = native.measured(MODELS / "partial.tflite", profile="", runs="4")
    found = [(op["name"], op["kind"], op["node"], op["partition"], op["index"]) for op in ran.all("op")]
    assert found == [
        ("Add (ND)", "delegate", None, 0, 0),
        ("CUMSUM", "node", 1, None, None),
        ("Add (ND)", "delegate", None, 1, 0),
        ("Multiply (ND)", "delegate", None, 1, 1),
    ]
    assert [op["position"] for op in ran.all("op")] == [0, 1, 2, 3]
    for op in ran.all("op"):
        assert len(op["elapsed_us"]) == op["count"] == 4
        assert (op["total_us"], op["min_us"], op["max_us"]) == (
            sum(op["elapsed_us"]),
            min(op["elapsed_us"]),
            max(op["elapsed_us"]),
        )
    delegation = {"nodes_total": 4, "nodes_delegated": 3, "partitions": 2, "remaining": {"CUMSUM": 1}}
    assert ran.one("delegation") == {"event": "delegation", **delegation}
    assert "end" not in ran.kinds and ran.kinds[-1] == "profile"


@pytest.mark.parametrize("delegate", ["xnnpack", "cpu"])
def test_profile_of_a_network(native: Runner, delegate: str) -> None:
    """The operators make up nearly all of an inference, and the runtime's summary comes with them."""
    ran = native.measured(FLOAT, profile="", runs="6", delegate=delegate, max_ms="50000")
    end = ran.one("profile")
    assert (end["count"], end["truncated"], end["ops"]) == (6, False, len(ran.all("op")))
    (whole,) = (phase for phase in ran.all("phase") if phase["name"] == "Invoke")
    inside = sum(op["min_us"] for op in ran.all("op"))  # the least of each: other programs may interrupt any run
    assert 0.5 * whole["min_us"] < inside <= whole["min_us"] + len(ran.all("op"))
    if delegate == "cpu":
        assert [op["node"] for op in ran.all("op")] == list(range(64))
    text = [line for chunk in ran.all("summary") for line in chunk["lines"]]
    assert any("Top by Computation Time" in line for line in text)
    assert f"Number of nodes executed: {end['ops']}" in text
    (steady,) = (samples for samples in ran.all("samples") if samples["phase"] == "steady")
    assert len(steady["invoke_ns"]) == 6


def test_profile_limits(native: Runner, in_python: Runner) -> None:
    """At most 2000 runs; and the Python interface has none, which its runner says."""
    assert native.run(profile="", runs="2001").error[2] == "--runs 2001 is not between 1 and 2000 with --profile"
    assert (
        native.run(profile="", beside="", runs=None, min_ms=None).error[2] == "--profile has no meaning with --beside"
    )
    assert in_python.run(profile="").error == (
        64,
        "profile-unsupported",
        "--profile: LiteRT's Python interface exposes no operator profile",
    )
