"""The device program litert_runner.py, run as it runs on a device: as a process, with the real runtime."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import runner_process

pytest.importorskip("ai_edge_litert", reason="needs the extra `local`")

ROOT = Path(__file__).parents[2]
RUNNER = ROOT / "device_agents" / "litert_runner.py"
MODELS = ROOT / "tests" / "data" / "models"
FLOAT = ROOT / "orchestrator" / "bundled" / "mobilenet_v2_035_f32.tflite"
INT8 = ROOT / "orchestrator" / "bundled" / "mobilenet_v2_035_int8.tflite"
TINY = MODELS / "tiny_add.tflite"
NO_SUCH_HASH = "0" * 64
ORDINARY = {"--" + name.replace("_", "-"): value for name, value in runner_process.ORDINARY.items()}

Event = dict[str, Any]


@dataclass(frozen=True)
class Ran(runner_process.Ran):
    """What one process printed and how it ended."""

    def column(self, phase: str, name: str) -> list[int]:
        """One column of the samples of a phase, chunks joined."""
        chunks = [e for e in self.events if e["event"] == "samples" and e["phase"] == phase]
        return [value for chunk in chunks for value in chunk[name]]


def arguments(model: Path | str, changes: dict[str, str | None]) -> list[str]:
    """A full command line; a change to None leaves the flag out, one to "" gives it without a value."""
    flags = {"--model": str(model), **ORDINARY, **changes}
    given = [(name, value) for name, value in flags.items() if value is not None]
    return [name if value == "" else f"{name}={value}" for name, value in given]


def start(command: Sequence[str], *python_flags: str) -> Ran:
    """Run the runner with these arguments to its end."""
    argv = [sys.executable, *python_flags, str(RUNNER), *command]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=False)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return Ran(events, done.returncode, done.stderr.decode(errors="replace"))


def run(model: Path | str = TINY, /, **changes: str | None) -> Ran:
    """Run with ordinary flags but for the changes: `max_ms="5"` means --max-ms 5."""
    return start(arguments(model, {"--" + name.replace("_", "-"): value for name, value in changes.items()}))


def measured(model: Path | str = TINY, /, **changes: str | None) -> Ran:
    """As `run`, and it must have gone well."""
    ran = run(model, **changes)
    assert ran.exit_code == 0, ran
    return ran


def failure(ran: Ran) -> tuple[int, str, str, str]:
    """Exit code, kind, message and remedy; the error is the last line."""
    error = ran.events[-1]
    assert error["event"] == "error", ran
    return ran.exit_code, error["kind"], error["message"], error["remedy"]


# ----------------------------------------------------------------------------------------------------------- errors

MANUAL = "the flags are described at the top of litert_runner.py"
AGAIN = "copy or convert the model again and compare its SHA-256 with the original"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--use-gpu": "1"}, "unrecognized arguments: --use-gpu=1"),
        ({"--thread": "1"}, "unrecognized arguments: --thread=1"),
        ({"--seed": None}, "--seed is missing"),
        ({"--model": None}, "--model is missing"),
        ({"--delegate": "gpu"}, "argument --delegate: invalid choice: 'gpu' (choose from 'xnnpack', 'cpu')"),
        ({"--runs": "0"}, "--runs 0 is not between 1 and 200000"),
        ({"--runs": "200001"}, "--runs 200001 is not between 1 and 200000"),
        ({"--runs": "-5"}, "argument --runs: '-5' is not a whole number"),
        ({"--min-ms": "9", "--max-ms": "8"}, "--min-ms 9 is more than --max-ms 8"),
        ({"--warmup-min-ms": "9", "--max-ms": "8"}, "--warmup-min-ms 9 is more than --max-ms 8"),
        ({"--expect-sha256": "abc"}, "argument --expect-sha256: 'abc' is not a SHA-256 in hexadecimal"),
        ({"--beside": ""}, "--min-ms has no meaning with --beside"),
        ({"--check": "", "--beside": ""}, "--check and --beside exclude each other"),
    ],
)
def test_usage(changes: dict[str, str | None], message: str) -> None:
    """A wrong command line is said so, with exit 64, before anything is loaded."""
    ran = start(arguments(TINY, changes))
    assert failure(ran) == (64, "usage", message, MANUAL)
    assert len(ran.events) == 1


@pytest.mark.parametrize("threads", ["0", "-1", "1025"])
def test_threads_invalid(threads: str) -> None:
    """A thread count that the runtime would misuse is refused by name."""
    remedy = "ask for at least one thread and seldom more than the device has CPUs"
    message = f"--threads {threads} is not between 1 and 1024"
    assert failure(run(threads=threads)) == (64, "threads-invalid", message, remedy)


BROKEN = {
    "truncated": ("model-invalid", "broken or truncated model: something in it points to byte 640 of 388", AGAIN),
    "far_buffer": (
        "model-invalid",
        f"broken or truncated model: buffer 1 lies at bytes {2**63} to {2**64}, outside the file",
        AGAIN,
    ),
    "not_a_model": (
        "model-invalid",
        "not a TFLite model: no TFL3 identifier at byte 4; the file starts with b'<!DOCTYPE html><'",
        "give a .tflite file, not an archive or a web page",
    ),
    "custom_op": (
        "op-unsupported",
        "the runtime lacks the custom operator DevbenchNoSuchOp",
        "convert the model with built-in operators only, or use a runtime that has this operator",
    ),
    "new_op_version": (
        "op-unsupported",
        "the runtime lacks the operator ADD version 99",
        "use a newer ai-edge-litert, or convert the model for the version that the device has",
    ),
    "huge": (
        "out-of-memory",
        "there is not enough memory for the model's tensors",
        "use a smaller model or input, or a device with more memory",
    ),
    "string_input": (
        "inputs-unsupported",
        "input 'text' takes strings",
        "devbench measures numeric inputs only: split the text part off the model",
    ),
    "unfed": (
        "invoke-failed",
        "the model does not run: Input tensor 1 lacks data",
        "the inputs may not suit the model: give real ones with --inputs",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("delegate", ["xnnpack", "cpu"])
def test_broken_models(name: str, delegate: str) -> None:
    """Each way in which a model can be unfit has its kind, its fact and its remedy, with either delegate."""
    assert failure(run(MODELS / f"{name}.tflite", delegate=delegate)) == (65, *BROKEN[name])


def test_model_empty() -> None:
    """An empty file is its own kind: it usually means a push that failed."""
    file = MODELS / "empty.tflite"
    assert failure(run(file)) == (65, "model-empty", f"{file} is empty", "push the model again; was the disk full?")


def test_model_missing(tmp_path: Path) -> None:
    """A file that is not there, and a folder, cannot be read."""
    remedy = "check the path, that it is a file, and that this user may read it"
    absent = tmp_path / "absent.tflite"
    message = f"cannot read {absent}: [Errno 2] No such file or directory: '{absent}'"
    assert failure(run(absent)) == (65, "model-missing", message, remedy)
    assert failure(run(tmp_path))[:2] == (65, "model-missing")


def test_delegate_failed() -> None:
    """Where XNNPACK cannot and the plain kernels can, it is the delegate that failed."""
    file = MODELS / "xnnpack_refuses.tflite"
    code, kind, message, remedy = failure(run(file))
    assert (code, kind) == (65, "delegate-failed")
    assert message.startswith("XNNPACK cannot prepare the model: failed to delegate ADD node #0")
    assert remedy == "run it with --delegate cpu, or convert the model so that XNNPACK accepts it"
    measured(file, delegate="cpu")


def test_expected_hash() -> None:
    """The model's hash is compared before the runtime sees the file."""
    seen = hashlib.sha256(TINY.read_bytes()).hexdigest()
    message = f"{TINY} has SHA-256 {seen}, asked for {NO_SUCH_HASH}"
    remedy = "push the model again; the copy on the device differs"
    assert failure(run(expect_sha256=NO_SUCH_HASH)) == (65, "sha-mismatch", message, remedy)
    assert measured(expect_sha256=seen.upper()).one("model")["sha256"] == seen


def test_runtime_missing() -> None:
    """Without the runtime (here: Python without site-packages) it says what to install."""
    code, kind, message, remedy = failure(start(["--check"], "-S", "-E"))
    assert (code, kind) == (69, "runtime-missing")
    assert message.startswith("LiteRT cannot be loaded: No module named ")
    by_pip = f"on the device: {sys.executable} -m pip install ai-edge-litert numpy"
    assert remedy == f"{by_pip}; or measure with --runner litert_native, which brings its own runtime"


def test_internal_error() -> None:
    """A mistake of the runner's own is reported as such, with the traceback on standard error."""
    broken = f"import sys; sys.path.insert(0, {str(RUNNER.parent)!r}); import litert_runner as r; r.parse = None; "
    argv = [sys.executable, "-c", broken + "sys.exit(r.main([]))"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    error = json.loads(done.stdout)
    assert (done.returncode, error["kind"]) == (70, "internal")
    assert error["message"] == "TypeError: 'NoneType' object is not callable"
    assert "Traceback" in done.stderr


def test_a_crash_of_the_runtime_can_be_attributed() -> None:
    """If the runtime aborts on a model, `model` is the last line and the stack names the stage."""
    ran = run(MODELS / "no_scale.tflite")
    assert ran.exit_code == -signal.SIGABRT
    assert [event["event"] for event in ran.events] == ["start", "model"]
    assert "in allocate_tensors" in ran.stderr


CORRUPTION_BATCH = f"""
import os, signal, sys
sys.path.insert(0, {str(RUNNER.parent)!r})
import litert_runner
litert_runner.start_facts(litert_runner.parse(["--check"]))
for file in sys.argv[2:]:
    child = os.fork()
    if not child:
        signal.alarm(20)
        os.dup2(os.open(file + ".out", os.O_CREAT | os.O_WRONLY), 1)
        os._exit(litert_runner.main(["--model=" + file, *sys.argv[1].split()]))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file)
"""


def test_corrupted_models_never_hang(tmp_path: Path) -> None:
    """Scrambled, cut and partly zeroed models end in a result, a named error or a signal, and soon."""
    sound, rng, files = TINY.read_bytes(), random.Random(11), []
    for number in range(60):
        content = bytearray(sound)
        at = rng.randrange(len(content))
        if number % 3 == 0:
            del content[at:]
        elif number % 3 == 1:
            content[at : at + 16] = bytes(len(content[at : at + 16]))
        else:
            content[at] = rng.randrange(256)
        files.append(tmp_path / f"{number}.tflite")
        files[-1].write_bytes(content)
    flags = " ".join(arguments(TINY, {"--model": None, "--threads": "2"}))
    argv = [sys.executable, "-c", CORRUPTION_BATCH, flags, *map(str, files)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    ends = [(int(line.split()[0]), Path(line.split()[1] + ".out")) for line in done.stdout.splitlines()]
    assert len(ends) == 60
    assert {code for code, _ in ends} <= {0, 65, -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE}
    for code, output in ends:
        last = json.loads(output.read_text().splitlines()[-1])
        assert last["event"] == {0: "end", 65: "error"}.get(code, "model")
    assert sum(code == 65 for code, _ in ends) > 20


# ----------------------------------------------------------------------------------------------------------- events


def test_order_of_events() -> None:
    """The lines come in the documented order, and the facts about what runs are there."""
    ran = measured(FLOAT, threads="2")
    assert [e["event"] for e in ran.events] == ["start", "model", "init", "samples", "samples", "memory", "end"]
    begin = ran.one("start")
    assert begin["runner_sha256"] == hashlib.sha256(RUNNER.read_bytes()).hexdigest()
    assert begin["runtime"] == "ai-edge-litert" and begin["library"].endswith(".so")
    assert len(begin["library_sha256"]) == 64
    assert begin["flags"]["threads"] == 2 and begin["flags"]["max_ms"] == 5000
    model = ran.one("model")
    image = {"name": "image", "shape": [1, 224, 224, 3], "shape_signature": None, "dtype": "float32"}
    assert (model["bytes"], model["ops"], model["inputs"]) == (FLOAT.stat().st_size, 64, [image])


def test_check() -> None:
    """--check says what is there and ends."""
    ran = start(["--check"])
    assert ran.exit_code == 0
    assert [event["event"] for event in ran.events] == ["start"]
    assert ran.one("start")["flags"] is None


def test_init_and_memory() -> None:
    """Times add up, and the model's own share of the memory can be told from Python's."""
    ran = measured(FLOAT)
    init, memory = ran.one("init"), ran.one("memory")
    assert init["init_us"] == pytest.approx(init["create_us"] + init["allocate_us"], abs=0.01)
    assert init["first_us"] > 0
    assert memory["rss_init_kb"] > memory["rss_before_model_kb"] > 0
    assert memory["peak_kb"] >= max(memory["rss_first_kb"], memory["rss_end_kb"])
    tiny = measured().one("memory")
    assert tiny["peak_kb"] - tiny["rss_before_model_kb"] < 10_000, "the peak is the model's, not that of hashing"


def test_samples_in_chunks() -> None:
    """1203 runs come in lines of at most 500, complete, in order of time, on the monotonic clock."""
    ran = measured(runs="1203", warmup_runs="7")
    steady = [e for e in ran.events if e["event"] == "samples" and e["phase"] == "steady"]
    assert [(chunk["first"], len(chunk["invoke_ns"])) for chunk in steady] == [(0, 500), (500, 500), (1000, 203)]
    starts = ran.column("steady", "start_ns")
    assert starts == sorted(starts) and len(set(starts)) == 1203
    parts = zip(*(ran.column("steady", name) for name in ("copy_in_ns", "invoke_ns", "copy_out_ns")), strict=True)
    ends = [begin + sum(spent) for begin, spent in zip(starts, parts, strict=True)]
    assert all(end <= following for end, following in zip(ends, starts[1:], strict=False))
    assert len(ran.column("warmup", "invoke_ns")) == 7 and ran.column("warmup", "start_ns")[-1] < starts[0]
    end = ran.one("end")
    assert (end["count"], end["warmup_count"], end["stopped_by"]) == (1203, 7, "runs")
    assert max(map(len, (json.dumps(event) for event in ran.events))) < 32 * 1024


def test_zero_copy_has_no_copy_times() -> None:
    """With zero-copy the copy columns are null, and the inputs are still in place at the end."""
    ran = measured(INT8, copy="zero-copy", runs="20")
    (chunk,) = [e for e in ran.events if e["event"] == "samples" and e["phase"] == "steady"]
    assert chunk["copy_in_ns"] is None and chunk["copy_out_ns"] is None and len(chunk["invoke_ns"]) == 20
    assert ran.one("end")["inputs_intact"] is True
    assert measured().one("end")["inputs_intact"] is None


# -------------------------------------------------------------------------------------------------- when a loop ends


def test_minimum_time() -> None:
    """Runs go on past their number until the minimum time is over."""
    end = measured(runs="3", min_ms="60", warmup_runs="1", warmup_min_ms="30").one("end")
    assert (end["stopped_by"], end["warmup_stopped_by"]) == ("time", "time")
    assert end["count"] > 3 and end["wall_ns"] >= 60e6


def test_cap() -> None:
    """The cap ends a loop early and is named as the reason, for the warm-up too."""
    end = measured(FLOAT, runs="200000", warmup_runs="200000", max_ms="80").one("end")
    assert (end["stopped_by"], end["warmup_stopped_by"]) == ("cap", "cap")
    assert 1 <= end["count"] < 200000


def test_cap_shorter_than_one_run() -> None:
    """A cap of nothing still leaves one run of each loop, so there is a sample to look at."""
    end = measured(FLOAT, runs="9", max_ms="0").one("end")
    assert (end["count"], end["stopped_by"], end["warmup_count"]) == (1, "cap", 1)


def test_no_warm_up() -> None:
    """Zero warm-up is possible and is told apart from a warm-up that stopped."""
    ran = measured(warmup_runs="0")
    assert (ran.one("end")["warmup_count"], ran.one("end")["warmup_stopped_by"]) == (0, None)
    assert ran.column("warmup", "invoke_ns") == []


def test_long_loop_of_unknown_length() -> None:
    """A loop that makes more runs than it made room for loses none of them."""
    ran = measured(min_ms="150", copy="zero-copy")
    assert len(ran.column("steady", "invoke_ns")) == ran.one("end")["count"]
    assert min(ran.column("steady", "invoke_ns")) > 0


# --------------------------------------------------------------------------------------------------------- evidence


@pytest.mark.parametrize("model", [FLOAT, INT8, MODELS / "partial.tflite"], ids=["f32", "int8", "partial"])
def test_same_seed_same_output(model: Path) -> None:
    """The output depends on the seed and on neither threads, nor copy mode, nor the process."""
    variants = [("1", "copy"), ("1", "copy"), ("2", "copy"), ("2", "zero-copy")]
    digests = {measured(model, threads=n, copy=copy).one("end")["output_sha256"] for n, copy in variants}
    assert len(digests) == 1
    assert measured(model, seed="8").one("end")["output_sha256"] not in digests


def test_seed_gives_the_documented_floats() -> None:
    """Each float input is uniform in [-1, 1), from a generator of its own."""
    left, right = (
        np.random.default_rng([7, position]).random(shape, dtype=np.float32) * np.float32(2) - np.float32(1)
        for position, shape in enumerate([(2, 3), (1, 3)])
    )
    ran = measured(MODELS / "two_inputs.tflite")
    assert ran.one("end")["output_sha256"] == hashlib.sha256((left + right).tobytes()).hexdigest()


def test_seed_gives_the_documented_integers() -> None:
    """A quantised input covers its type: the model doubles it around its zero point of 3, and clips."""
    given = np.random.default_rng([7, 0]).integers(-128, 127, (1, 64), dtype=np.int8, endpoint=True)
    doubled = np.clip(2 * (given.astype(int) - 3) + 3, -128, 127).astype(np.int8)
    ran = measured(MODELS / "int8_add.tflite", delegate="cpu")
    assert ran.one("end")["output_sha256"] == hashlib.sha256(doubled.tobytes()).hexdigest()


@pytest.mark.parametrize(
    ("model", "total", "delegated", "partitions", "remaining"),
    [
        (FLOAT, 64, 64, 1, {}),
        (INT8, 64, 64, 1, {}),
        (MODELS / "partial.tflite", 4, 3, 2, {"CUMSUM": 1}),
        (MODELS / "islands.tflite", 2, 0, 0, {"CUMSUM": 2}),
    ],
    ids=["f32", "int8", "partial", "islands"],
)
def test_what_xnnpack_took(model: Path, total: int, delegated: int, partitions: int, remaining: dict[str, int]) -> None:
    """Full, partial and no delegation are told apart, with the names of what was left."""
    init = measured(model).one("init")
    assert (init["nodes_total"], init["nodes_delegated"], init["partitions"]) == (total, delegated, partitions)
    assert init["remaining"] == remaining


def test_cpu_delegates_nothing() -> None:
    """With the plain kernels every node remains."""
    init = measured(INT8, delegate="cpu").one("init")
    assert (init["nodes_total"], init["nodes_delegated"], init["partitions"]) == (64, 0, 0)
    assert init["remaining"] == {"ADD": 10, "CONV_2D": 35, "DEPTHWISE_CONV_2D": 17, "FULLY_CONNECTED": 1, "MEAN": 1}


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("model", [FLOAT, MODELS / "islands.tflite"], ids=["f32", "islands"])
def test_xnnpack_makes_exactly_the_threads_asked_for(model: Path, threads: int) -> None:
    """N threads are N - 1 more at allocation, however little was delegated; this is what the host relies on."""
    ran = measured(model, threads=str(threads))
    init = ran.one("init")
    assert (init["threads_before"], init["threads_allocated"]) == (1, threads)
    assert ran.one("end")["threads_end"] == init["threads_after"] == threads
    assert len(ran.one("end")["thread_cpu_ns"]) == threads


def test_cpu_threads_are_made_late() -> None:
    """The plain kernels make threads at the first run, if at all: one thread asked for makes none."""
    one, two = measured(FLOAT, delegate="cpu").one("init"), measured(FLOAT, delegate="cpu", threads="2").one("init")
    assert (one["threads_before"], one["threads_after"]) == (1, 1)
    assert two["threads_allocated"] == 1 < two["threads_after"]
    small = measured(TINY, delegate="cpu", threads="2").one("init")
    assert small["threads_after"] == 1, "too small an operator for a second thread"


def test_dynamic_shape_is_reported() -> None:
    """A free batch runs with the size that the file gives, and the file's -1 is passed on."""
    ran = measured(MODELS / "dynamic_batch.tflite")
    (tensor,) = ran.one("model")["inputs"]
    assert (tensor["shape"], tensor["shape_signature"]) == ([1, 64], [-1, 64])


def test_model_without_inputs() -> None:
    """A model that takes nothing runs in both copy modes."""
    file = MODELS / "no_inputs.tflite"
    digests = {measured(file, copy=copy).one("end")["output_sha256"] for copy in ("copy", "zero-copy")}
    assert digests == {hashlib.sha256((2 * np.arange(1, 65, dtype=np.float32)).tobytes()).hexdigest()}


# ----------------------------------------------------------------------------------------------------------- inputs


def npz(file: Path, arrays: dict[str, np.ndarray[Any, Any]]) -> str:
    """Write an .npz and return its name."""
    np.savez(file, allow_pickle=False, **arrays)
    return str(file)


@pytest.mark.parametrize("copy", ["copy", "zero-copy"])
def test_given_inputs(tmp_path: Path, copy: str) -> None:
    """Arrays go to the inputs they name, by name or by position, and the output is their sum."""
    left, right = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[10, 20, 30]], np.float32)
    expected = hashlib.sha256((left + right).tobytes()).hexdigest()
    for names in (("left", "right"), ("0", "1")):
        file = npz(tmp_path / "in.npz", {names[0]: left, names[1]: right})
        ran = measured(MODELS / "two_inputs.tflite", inputs=file, copy=copy)
        assert ran.one("end")["output_sha256"] == expected


LEFT, RIGHT = np.zeros((2, 3), np.float32), np.zeros((1, 3), np.float32)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"left": LEFT}, "no array for input 1, 'right'"),
        ({"left": LEFT, "right": LEFT}, "input 1, 'right', wants float32 [1, 3], given float32 [2, 3]"),
        (
            {"left": LEFT.astype(np.int32), "right": RIGHT},
            "input 0, 'left', wants float32 [2, 3], given int32 [2, 3]",
        ),
        ({"left": LEFT, "right": RIGHT, "rigth": RIGHT}, "the model has no input 'rigth'"),
    ],
)
def test_inputs_mismatch(tmp_path: Path, arrays: dict[str, np.ndarray[Any, Any]], message: str) -> None:
    """Inputs that do not fit are refused by name, with what fits."""
    remedy = "name the arrays 0 or 'left', 1 or 'right', with exact shape and type"
    ran = run(MODELS / "two_inputs.tflite", inputs=npz(tmp_path / "in.npz", arrays))
    assert failure(ran) == (65, "inputs-mismatch", message, remedy)


def test_inputs_missing(tmp_path: Path) -> None:
    """An inputs file that is absent, is no archive, or holds pickled objects is refused."""
    remedy = "write it with numpy.savez(FILE, name=array, …) and push it again"
    absent = tmp_path / "absent.npz"
    message = f"cannot read inputs from {absent}: [Errno 2] No such file or directory: '{absent}'"
    assert failure(run(inputs=str(absent))) == (65, "inputs-missing", message, remedy)
    (tmp_path / "text.npz").write_text("not an archive")
    np.save(tmp_path / "single.npy", LEFT)
    np.savez(tmp_path / "pickled.npz", x=np.array([{"a": 1}], dtype=object))
    for name in ("text.npz", "single.npy", "pickled.npz"):
        assert failure(run(inputs=str(tmp_path / name)))[:2] == (65, "inputs-missing"), name


# ------------------------------------------------------------------------------------------------------ as a load


def test_beside_runs_until_it_is_ended() -> None:
    """As a load it prints one line, when it is warm, then infers until SIGTERM ends it."""
    changes: dict[str, str | None] = {"--beside": "", "--runs": None, "--min-ms": None}
    argv = [sys.executable, str(RUNNER), *arguments(FLOAT, changes)]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            ready = json.loads(child.stdout.readline())
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(0.3)
            spent_ticks = int(Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[11])
            child.terminate()
            rest, _ = child.communicate(timeout=5)
        finally:
            child.kill()
    assert (ready["event"], ready["warmup_count"], ready["init"]["nodes_delegated"]) == ("ready", 2, 64)
    assert ready["start"]["flags"]["beside"] is True and ready["model"]["ops"] == 64
    assert (rest, child.returncode) == (b"", -signal.SIGTERM)
    assert spent_ticks > 0


def test_beside_reports_an_error_as_its_line() -> None:
    """A load that cannot start says why."""
    ran = run(MODELS / "empty.tflite", beside="", runs=None, min_ms=None)
    assert failure(ran)[:2] == (65, "model-empty")
    assert len(ran.events) == 1


# ------------------------------------------------------------------------------------------------------- odd names


@pytest.mark.parametrize(
    "name",
    [
        b"two words.tflite",
        b'it\'s "quoted".tflite',
        b"$(touch pwned) `id` ; & | * ?.tflite",
        "größe-模型-😀.tflite".encode(),
        b"not-utf8-\xff\xfe.tflite",
        b"-dash.tflite",
        b"new\nline\t.tflite",
        b"%s{0}\\n.tflite",
    ],
)
def test_hostile_names(tmp_path: Path, name: bytes) -> None:
    """Any name that the file system allows can be measured, and comes back unharmed."""
    shutil.copy(os.fsencode(TINY), os.fsencode(tmp_path) + b"/" + name)
    argv = [sys.executable, str(RUNNER), *arguments(os.fsdecode(name), {})]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, timeout=60, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert os.fsencode(events[0]["flags"]["model"]) == name
    assert events[-1]["event"] == "end"
    assert os.listdir(os.fsencode(tmp_path)) == [name]  # noqa: PTH208  # pathlib has no names in bytes
