"""Time one TFLite model with LiteRT's Interpreter and print what happened as JSON lines.

One self-contained file, because it is pushed to a device and run there; so it stays one past the usual length.
It needs Linux, Python 3.9 or newer, numpy and ai-edge-litert.

    python3 litert_runner.py --model FILE --threads N --delegate xnnpack|cpu --copy copy|zero-copy
        --warmup-runs N --warmup-min-ms MS --runs N --min-ms MS --max-ms MS --seed S
        [--inputs FILE.npz] [--expect-sha256 HEX]
    python3 litert_runner.py --beside …      as above, without --runs and --min-ms
    python3 litert_runner.py --check         alone

There are no defaults: whoever measures says what is measured. A value that starts with a dash is written with an
equals sign, as in --model=-x.tflite.

    --threads        1 to 1024
    --delegate       xnnpack: the default resolver, which applies XNNPACK; cpu: the runtime's own kernels
    --copy           copy: every iteration copies inputs in (set_tensor) and outputs out (get_tensor), timed
                     apart from the inference; zero-copy: inputs are written once into the runtime's memory and
                     outputs stay there. The runtime refuses to run while a view of its memory is alive, so the
                     loop holds none; `inputs_intact` in `end` says whether the inputs outlived all the runs.
    --warmup-runs    at least so many untimed runs, and --warmup-min-ms at least so long. The very first run is
                     timed on its own and counted nowhere else.
    --runs           at least so many timed runs, and --min-ms at least so long. --max-ms caps the warm-up and
                     the timed loop, each on its own, looked at after every run. No loop makes more than 200000.
    --seed           makes the inputs: floats uniform in [-1, 1), quantised integers uniform over their type,
                     booleans either; other integers 0 or 1, because most are indices and larger ones may point
                     outside a table. A string input is refused. Same seed, same input bytes.
    --inputs         an .npz with one array for each input, by the input's name or its position ("0"), of exactly
                     its shape and type; the seed is then not used
    --expect-sha256  refuse a model with another hash
    --beside         be a load: after the warm-up print one `ready` line, the first of all, and infer until killed
    --check          print `start` and end: can this device run it, and with what

Lines on standard output, in this order, each a JSON object with "event", flushed. Times are CLOCK_MONOTONIC, which
is what time.monotonic_ns reads. Nothing is printed while a loop runs. Standard error is for people.

    start    runner (version), runner_sha256, flags (null after --check), python, numpy, runtime,
             runtime_version, library and library_sha256 (the runtime's native code), pid, clock
    model    sha256, bytes, subgraphs, ops (of the first subgraph), inputs and outputs ({name, shape,
             shape_signature or null, dtype}): all read from the file before the runtime sees it. A process that
             dies by a signal with `model` as its last line was killed by the runtime loading this model or
             running it for the first time; the stack is on standard error.
    init     init_us = create_us + allocate_us, first_us (the first run alone), threads_before (before the model),
             threads_allocated, threads_after (the first run), nodes_total, nodes_delegated, partitions,
             remaining ({operator: count}, those that no delegate took)
    samples  phase "warmup" or "steady", first (index of the first), start_ns, invoke_ns, copy_in_ns, copy_out_ns:
             at most 500 iterations a line. start_ns is where an iteration begins, before its copy_in. The copy
             arrays are null with zero-copy.
    memory   rss_before_model_kb (Python, numpy and the runtime), rss_init_kb, rss_first_kb, rss_end_kb, peak_kb
             (VmHWM, reset before the model where the kernel allows it); the last two before any sample is printed
    end      count, warmup_count, stopped_by and warmup_stopped_by: "runs" (their number came last), "time"
             (the minimum time came last), "cap" (max-ms, or 200000 runs), null (no warm-up was asked for);
             output_sha256 (all output bytes of the last run, in order), inputs_intact (null with copy),
             gc "disabled", threads_end, and of the steady loop: wall_ns, cpu_ns (of the process),
             voluntary_switches, involuntary_switches, thread_cpu_ns (by thread, largest first, to within a
             scheduler tick; null where the kernel does not say)
    ready    with --beside, the only line: start, model and init as above, and warmup_count
    error    the last line when something is wrong: kind, message, remedy

    exit 0   done
    exit 64  usage, threads-invalid, profile-unsupported (--profile is the native runner's)
    exit 65  model-missing, model-empty, model-invalid, sha-mismatch, op-unsupported, delegate-failed,
             inputs-missing, inputs-mismatch, inputs-unsupported, out-of-memory, invoke-failed
    exit 69  runtime-missing
    exit 70  internal; the traceback is on standard error

What follows was measured with ai-edge-litert 2.3.0 on x86_64.

DELEGATION. The runtime keeps the nodes of the file at their indices and appends one node for each partition that a
delegate took, at allocation. So nodes beyond the count seen before it are partitions, whatever their name. A node
is in a partition if a walk back from the partition's outputs that stops at its inputs meets it: exact, but for a
node whose result nobody uses, which counts as remaining. It agrees with a second sign, that results inside a
partition have no memory, on graphs delegated whole, in 20 parts, and not at all. Only the first subgraph is seen,
not the bodies of IF and WHILE. Zero delegated nodes is no error here: the host decides.

THREADS. Numeric libraries are held to one thread, so threads_before is 1 and what comes later is the runtime's.
  - xnnpack: threads_allocated is exactly threads_before + N - 1, whatever the number of CPUs (N up to 200 tried)
    and however little was delegated. Another number means that N was not honoured. Remaining nodes may add threads
    later (threads_after). A graph without nodes makes none.
  - cpu: N = 1 adds none. For N > 1 each kernel library starts its own pool when an operator is large enough, so
    small graphs add none and others N - 1 to 3 (N - 1) + 1. So "more than before" says "not one", not how many,
    and "as before" says nothing. thread_cpu_ns says who worked.

WHAT CRASHES. The runtime checks the flatbuffer's structure itself: of 4500 scrambled or truncated files 4 crashed
it, all for want of subgraphs. That, and a buffer that lies outside the file, is refused here. Left to the runtime,
because sound files may look alike: a quantised operator on tensors whose scale is missing, zero, negative or not
finite (abort), and operators with wrong or absent inputs (segfault in XNNPACK).
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import hashlib
import json
import mmap
import os
import platform
import re
import resource
import signal
import struct
import sys
import time
import traceback
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import numpy as np

RUNNER = "1"
MAX_THREADS = 1024
MAX_RUNS = 200_000
CHUNK = 500
EXIT_USAGE, EXIT_DATA, EXIT_RUNTIME, EXIT_INTERNAL = 64, 65, 69, 70
DTYPES = [
    "float32",
    "float16",
    "int32",
    "uint8",
    "int64",
    "string",
    "bool",
    "int16",
    "complex64",
    "int8",
    "float64",
    "complex128",
    "uint64",
    "resource",
    "variant",
    "uint32",
    "uint16",
    "int4",
    "bfloat16",
]
SINGLE_THREADED = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

Event = dict[str, Any]
Detail = dict[str, Any]


class Failure(Exception):
    """Something the user can act on; becomes the `error` line."""

    def __init__(self, kind: str, message: str, *, remedy: str, exit_code: int = EXIT_DATA) -> None:
        super().__init__(message)
        self.kind, self.message, self.remedy, self.exit_code = kind, message, remedy, exit_code


def say(event: str, fields: Event) -> None:
    """Print one line of the protocol."""
    print(json.dumps({"event": event, **fields}, separators=(",", ":")), flush=True)


# ----------------------------------------------------------------------------------------- the command line


class Flags(argparse.ArgumentParser):
    """A parser whose complaints are `error` lines with exit 64."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found wrong."""
        remedy = "the flags are described at the top of litert_runner.py"
        raise Failure("usage", message, remedy=remedy, exit_code=EXIT_USAGE)


def _count(text: str) -> int:
    """A whole number from zero on, in plain digits."""
    if not re.fullmatch("[0-9]{1,15}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _sha256(text: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a SHA-256 in hexadecimal")
    return text.lower()


def parse(arguments: list[str]) -> argparse.Namespace:
    """The flags, complete and consistent, or a usage Failure."""
    if "--profile" in arguments:
        message = "--profile: LiteRT's Python interface exposes no operator profile"
        remedy = "profile with the native runner: --runner litert_native"
        raise Failure("profile-unsupported", message, remedy=remedy, exit_code=EXIT_USAGE)
    parser = Flags(prog="litert_runner.py", allow_abbrev=False, add_help=False)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--model")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--delegate", choices=("xnnpack", "cpu"))
    parser.add_argument("--copy", choices=("copy", "zero-copy"))
    for name in ("--warmup-runs", "--warmup-min-ms", "--runs", "--min-ms", "--max-ms", "--seed"):
        parser.add_argument(name, type=_count)
    parser.add_argument("--inputs")
    parser.add_argument("--expect-sha256", type=_sha256)
    flags = parser.parse_args(arguments)
    _check_presence(parser, flags)
    if flags.threads is not None and not 1 <= flags.threads <= MAX_THREADS:
        message = f"--threads {flags.threads} is not between 1 and {MAX_THREADS}"
        remedy = "ask for at least one thread and seldom more than the device has CPUs"
        raise Failure("threads-invalid", message, remedy=remedy, exit_code=EXIT_USAGE)
    return flags


def _check_presence(parser: Flags, flags: argparse.Namespace) -> None:
    """Every flag of the chosen form is there, and none of another form."""
    measured = {"runs", "min_ms"}
    always = {"model", "threads", "delegate", "copy", "warmup_runs", "warmup_min_ms", "max_ms", "seed"}
    wanted = set() if flags.check else always if flags.beside else always | measured
    allowed = wanted if flags.check else wanted | {"inputs", "expect_sha256"}
    given = {name for name, value in vars(flags).items() if value is not None} - {"check", "beside"}
    form = "--check" if flags.check else "--beside" if flags.beside else "a measurement"
    if flags.check and flags.beside:
        parser.error("--check and --beside exclude each other")
    for name in sorted(wanted - given):
        parser.error(f"--{name.replace('_', '-')} is missing")
    for name in sorted(given - allowed):
        parser.error(f"--{name.replace('_', '-')} has no meaning with {form}")
    if "runs" in wanted and not 1 <= flags.runs <= MAX_RUNS:
        parser.error(f"--runs {flags.runs} is not between 1 and {MAX_RUNS}")
    for low in ("min_ms", "warmup_min_ms"):
        if low in given and getattr(flags, low) > flags.max_ms:
            parser.error(f"--{low.replace('_', '-')} {getattr(flags, low)} is more than --max-ms {flags.max_ms}")


# ------------------------------------------------------------------------------------------- the model file


def _unpack(data: bytes | mmap.mmap, form: str, at: int) -> tuple[int, ...]:
    if at < 0 or at + struct.calcsize(form) > len(data):
        raise ValueError(f"something in it points to byte {at} of {len(data)}")
    return struct.unpack_from(form, data, at)


class Table:
    """One table of a flatbuffer, read with bounds checks: ValueError means a broken file."""

    def __init__(self, data: bytes | mmap.mmap, at: int) -> None:
        self.data, self.at = data, at
        self.vtable = at - self._read("<i", at)
        self.vtable_bytes = self._read("<H", self.vtable)

    def _read(self, form: str, at: int) -> int:
        return _unpack(self.data, form, at)[0]

    def field(self, index: int) -> int | None:
        """Where a field lies, or None if it is absent."""
        slot = 4 + 2 * index
        offset = self._read("<H", self.vtable + slot) if slot + 2 <= self.vtable_bytes else 0
        return self.at + offset if offset else None

    def number(self, index: int, form: str) -> int:
        """A scalar; absent ones are 0."""
        at = self.field(index)
        return 0 if at is None else self._read(form, at)

    def vector(self, index: int) -> tuple[int, int] | None:
        """Start and length of a vector."""
        at = self.field(index)
        if at is None:
            return None
        start = at + self._read("<I", at)
        return start + 4, self._read("<I", start)

    def tables(self, index: int) -> Iterator[Table]:
        """The tables of a vector of tables."""
        start, count = self.vector(index) or (0, 0)
        for at in range(start, start + 4 * count, 4):
            yield Table(self.data, at + self._read("<I", at))

    def integers(self, index: int) -> list[int]:
        """A vector of int32."""
        start, count = self.vector(index) or (0, 0)
        return list(_unpack(self.data, f"<{count}i", start))

    def text(self, index: int) -> str:
        """A string; absent ones are empty."""
        start, count = self.vector(index) or (0, 0)
        if start + count > len(self.data):
            raise ValueError("a string runs past the end of the file")
        return self.data[start : start + count].decode("utf-8", "backslashreplace")


def check_model(data: bytes | mmap.mmap) -> Event:
    """What the file says of itself, or a model-invalid Failure where it is no sound model."""
    remedy = "copy or convert the model again and compare its SHA-256 with the original"
    if bytes(data[4:8]) != b"TFL3":
        start = bytes(data[:16])
        message = f"not a TFLite model: no TFL3 identifier at byte 4; the file starts with {start!r}"
        raise Failure("model-invalid", message, remedy="give a .tflite file, not an archive or a web page")
    try:
        return _described(data)
    except ValueError as broken:
        message = f"broken or truncated model: {broken}"
        raise Failure("model-invalid", message, remedy=remedy) from broken


def _described(data: bytes | mmap.mmap) -> Event:
    root = Table(data, _unpack(data, "<I", 0)[0])
    subgraphs = list(root.tables(2))
    if not subgraphs:
        raise ValueError("it has no subgraphs")
    for index, buffer in enumerate(root.tables(4)):
        offset, size = buffer.number(1, "<Q"), buffer.number(2, "<Q")
        if offset > 1 and offset + size > len(data):
            raise ValueError(f"buffer {index} lies at bytes {offset} to {offset + size}, outside the file")
    main, tensors = subgraphs[0], list(subgraphs[0].tables(0))
    return {
        "subgraphs": len(subgraphs),
        "ops": (main.vector(3) or (0, 0))[1],
        "inputs": [_described_tensor(tensors, index) for index in main.integers(1)],
        "outputs": [_described_tensor(tensors, index) for index in main.integers(2)],
    }


def _described_tensor(tensors: list[Table], index: int) -> Event:
    if not 0 <= index < len(tensors):
        raise ValueError(f"there is no tensor {index} among {len(tensors)}")
    tensor = tensors[index]
    kind = tensor.number(1, "<B")
    return {
        "name": tensor.text(3),
        "shape": tensor.integers(0),
        "shape_signature": tensor.integers(7) if tensor.vector(7) else None,
        "dtype": DTYPES[kind] if kind < len(DTYPES) else f"type {kind}",
    }


@dataclass(frozen=True)
class Model:
    """An open model file. The runtime gets `path`, the descriptor's own, so it loads the very file that was hashed."""

    path: str
    facts: Event


def open_model(flags: argparse.Namespace) -> Model:
    """Open, hash and check the model; reading it all also brings it into the page cache."""
    name = flags.model
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        size = os.fstat(descriptor).st_size
        if not size:
            raise Failure("model-empty", f"{name} is empty", remedy="push the model again; was the disk full?")
        data = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as refused:  # ValueError: a null byte in the name
        remedy = "check the path, that it is a file, and that this user may read it"
        raise Failure("model-missing", f"cannot read {name}: {refused}", remedy=remedy) from refused
    with data:
        digest = hashlib.sha256(data).hexdigest()
        if flags.expect_sha256 not in (None, digest):
            message = f"{name} has SHA-256 {digest}, asked for {flags.expect_sha256}"
            raise Failure("sha-mismatch", message, remedy="push the model again; the copy on the device differs")
        facts = check_model(data)
    alias = f"/proc/self/fd/{descriptor}"
    return Model(alias if Path(alias).exists() else name, {"sha256": digest, "bytes": size, **facts})


# ---------------------------------------------------------------------------------------------- the runtime


def start_facts(flags: argparse.Namespace) -> Event:
    """Load numpy and the runtime, and say which they are."""
    for name in SINGLE_THREADED:
        os.environ[name] = "1"
    try:
        import ai_edge_litert
        import numpy as np
        from ai_edge_litert import interpreter
    except ImportError as missing:
        message = f"LiteRT cannot be loaded: {missing}"
        remedy = (
            f"on the device: {sys.executable} -m pip install ai-edge-litert numpy; "
            "or measure with --runner litert_native, which brings its own runtime"
        )
        raise Failure("runtime-missing", message, remedy=remedy, exit_code=EXIT_RUNTIME) from missing
    library = _native_library(Path(interpreter.__file__).parent)
    return {
        "runner": RUNNER,
        "runner_sha256": _hash_of(Path(__file__)),
        "flags": None if flags.check else vars(flags),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "runtime": "ai-edge-litert",
        "runtime_version": getattr(ai_edge_litert, "__version__", None),
        "library": library.name,
        "library_sha256": _hash_of(library),
        "pid": os.getpid(),
        "clock": "CLOCK_MONOTONIC",
    }


def _hash_of(file: Path) -> str:
    """The SHA-256 of a file, read in pieces so that the process does not grow by its size."""
    digest = hashlib.sha256()
    with file.open("rb", buffering=0) as opened:
        while True:
            piece = opened.read(1 << 18)
            if not piece:
                return digest.hexdigest()
            digest.update(piece)


def _native_library(package: Path) -> Path:
    """The largest library of the package that is mapped: the others are stubs of a few kilobytes."""
    loaded = {Path(line.split(maxsplit=5)[5].rstrip("\n")) for line in _mapped_lines() if str(package) in line}
    return max(loaded or set(package.glob("*.so")), key=lambda file: file.stat().st_size)


def _mapped_lines() -> list[str]:
    with contextlib.suppress(OSError):
        return Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
    return []


def _interpreter(model: Model, *, delegate: str, threads: int) -> Any:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    plain, default = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.AUTO
    resolver = default if delegate == "xnnpack" else plain
    return Interpreter(model_path=model.path, num_threads=threads, experimental_op_resolver_type=resolver)


def _unsupported_op(complaint: str) -> Failure | None:
    """The op-unsupported Failure, if that is what the runtime's words mean."""
    custom = re.search(r"unresolved custom op: (.+?)\.(\n|$)", complaint)
    flex = re.search(r"Node number \d+ \((Flex\w+)\) failed", complaint)
    builtin = re.search(r"Didn't find op for builtin opcode '(\w*)' version '(\d+)'", complaint)
    unknown = re.search(r"builtin_code out of range: (\d+)", complaint)
    if custom or flex:
        name = (custom or flex)[1]  # type: ignore[index]  # one of the two matched
        remedy = "convert the model with built-in operators only, or use a runtime that has this operator"
        return Failure("op-unsupported", f"the runtime lacks the custom operator {name}", remedy=remedy)
    if builtin or unknown:
        name = f"{builtin[1] or '(unknown)'} version {builtin[2]}" if builtin else f"number {unknown[1]}"  # type: ignore[index]  # one of the two matched
        remedy = "use a newer ai-edge-litert, or convert the model for the version that the device has"
        return Failure("op-unsupported", f"the runtime lacks the operator {name}", remedy=remedy)
    return None


def diagnose(model: Model, delegate: str, refused: Exception, *, stage: str) -> Failure:
    """What an exception of the runtime means for the user. After a failed allocation the plain kernels are tried
    too: if they can, it is the delegate that cannot."""
    complaint = " ".join(str(refused).split())
    op = _unsupported_op(str(refused))
    if op:
        return op
    if stage == "allocate" and delegate == "xnnpack":
        try:
            _interpreter(model, delegate="cpu", threads=1).allocate_tensors()
        except (RuntimeError, ValueError, MemoryError) as plain:
            if not str(plain):
                return diagnose(model, "cpu", plain, stage=stage)
        else:
            remedy = "run it with --delegate cpu, or convert the model so that XNNPACK accepts it"
            return Failure("delegate-failed", f"XNNPACK cannot prepare the model: {complaint}", remedy=remedy)
    # The arena reports its failure by an exception without words.
    if isinstance(refused, MemoryError) or (stage == "allocate" and not complaint):
        remedy = "use a smaller model or input, or a device with more memory"
        return Failure("out-of-memory", "there is not enough memory for the model's tensors", remedy=remedy)
    if stage == "invoke":
        remedy = "the inputs may not suit the model: give real ones with --inputs"
        return Failure("invoke-failed", f"the model does not run: {complaint}", remedy=remedy)
    remedy = "convert the model again, with fixed input shapes, and try it with the same ai-edge-litert elsewhere"
    return Failure("model-invalid", f"the runtime refuses the model: {complaint}", remedy=remedy)


def delegation(interpreter: Any, nodes_total: int) -> Event:
    """Which nodes of the file a delegate took; the method is in the manual above."""
    native = interpreter._interpreter
    outputs = [[int(t) for t in native.NodeOutputs(node)] for node in range(native.NumNodes())]
    maker = {tensor: node for node in range(nodes_total) for tensor in outputs[node]}
    taken: set[int] = set()
    for partition in range(nodes_total, len(outputs)):
        border = {int(t) for t in native.NodeInputs(partition)}
        ahead = list(outputs[partition])
        while ahead:
            tensor = ahead.pop()
            node = maker.get(tensor)
            if node is None or node in taken or tensor in border:
                continue
            taken.add(node)
            ahead.extend(int(t) for t in native.NodeInputs(node))
    remaining = Counter(str(native.NodeName(node)) for node in range(nodes_total) if node not in taken)
    return {
        "nodes_total": nodes_total,
        "nodes_delegated": len(taken),
        "partitions": len(outputs) - nodes_total,
        "remaining": dict(sorted(remaining.items())),
    }


# ----------------------------------------------------------------------------------------------- the inputs


def make_inputs(details: list[Detail], flags: argparse.Namespace) -> list[np.ndarray[Any, Any]]:
    """An array for every input: from the seed, or from --inputs."""
    for detail in details:
        if detail["dtype"].__name__ in ("bytes_", "object_", "str_"):
            remedy = "devbench measures numeric inputs only: split the text part off the model"
            message = f"input {detail['name']!r} takes strings"
            raise Failure("inputs-unsupported", message, remedy=remedy)
    if flags.inputs is not None:
        return _given_inputs(details, flags.inputs)
    return [_seeded(detail, [flags.seed, position]) for position, detail in enumerate(details)]


def _seeded(detail: Detail, seed: list[int]) -> np.ndarray[Any, Any]:
    import numpy as np

    rng, shape = np.random.default_rng(seed), tuple(detail["shape"])
    dtype: np.dtype[Any] = np.dtype(detail["dtype"])
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        quantised = len(detail["quantization_parameters"]["scales"]) > 0
        span = np.iinfo(dtype)
        low, high = (span.min, span.max) if quantised else (0, 1)
        return rng.integers(low, high, shape, dtype=dtype, endpoint=True)
    made = rng.random(shape, dtype=np.float32) * np.float32(2) - np.float32(1)
    return np.asarray(made).astype(dtype)


def _given_inputs(details: list[Detail], file: str) -> list[np.ndarray[Any, Any]]:
    import zipfile

    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as refused:
        remedy = "write it with numpy.savez(FILE, name=array, …) and push it again"
        raise Failure("inputs-missing", f"cannot read inputs from {file}: {refused}", remedy=remedy) from refused
    chosen = []
    for position, detail in enumerate(details):
        keys = [key for key in (detail["name"], str(position)) if key in arrays]
        if not keys:
            raise _mismatch(details, f"no array for input {position}, {detail['name']!r}")
        value = arrays.pop(keys[0])
        shape = tuple(int(n) for n in detail["shape"])
        if value.shape != shape or value.dtype != detail["dtype"]:
            wanted = f"{np.dtype(detail['dtype']).name} {list(shape)}"
            given = f"{value.dtype.name} {list(value.shape)}"
            raise _mismatch(details, f"input {position}, {detail['name']!r}, wants {wanted}, given {given}")
        chosen.append(np.ascontiguousarray(value).reshape(shape))
    if arrays:
        raise _mismatch(details, f"the model has no input {sorted(arrays)[0]!r}")
    return chosen


def _mismatch(details: list[Detail], message: str) -> Failure:
    names = ", ".join(f"{position} or {detail['name']!r}" for position, detail in enumerate(details))
    return Failure("inputs-mismatch", message, remedy=f"name the arrays {names or '(none)'}, with exact shape and type")


# ------------------------------------------------------------------------------------------------ the loops


@dataclass(frozen=True)
class Limits:
    """When a loop stops."""

    runs: int
    min_ns: int
    max_ns: int

    def verdict(self, runs: int, elapsed_ns: int) -> str | None:
        """Why to stop after so many runs and so long; None to go on."""
        if runs >= self.runs and elapsed_ns >= self.min_ns:
            return "runs" if runs == self.runs else "time"
        return "cap" if elapsed_ns >= self.max_ns or runs >= MAX_RUNS else None


@dataclass
class Loop:
    """The raw times of one loop. The arrays are longer than `count`; what lies beyond is not a sample."""

    phase: str
    start: array[int]
    invoke: array[int]
    copy_in: array[int] | None
    copy_out: array[int] | None
    count: int = 0
    stopped_by: str | None = None

    def report(self) -> None:
        """Print the samples, CHUNK iterations a line."""
        for first in range(0, self.count, CHUNK):
            part = slice(first, min(first + CHUNK, self.count))
            columns = {
                "start": self.start,
                "invoke": self.invoke,
                "copy_in": self.copy_in,
                "copy_out": self.copy_out,
            }
            lists = {f"{name}_ns": None if kept is None else list(kept[part]) for name, kept in columns.items()}
            say("samples", {"phase": self.phase, "first": first, **lists})


def _zeros(count: int) -> array[int]:
    return array("q", bytes(8 * count))


def _capacity(limits: Limits, expected_ns: int) -> int:
    """Room for the runs to come, so that the loop need not allocate: those asked for, or twice min-ms' worth."""
    return min(MAX_RUNS, max(limits.runs, 2 * limits.min_ns // max(expected_ns, 1_000)) + 64)


def copy_loop(session: Session, phase: str, limits: Limits) -> Loop:
    """Set every input, infer, get every output; each timed."""
    room = _capacity(limits, session.first_ns)
    loop = Loop(phase, _zeros(room), _zeros(room), _zeros(room), _zeros(room))
    start, invoke, copy_in, copy_out = loop.start, loop.invoke, loop.copy_in, loop.copy_out
    assert copy_in is not None and copy_out is not None
    inputs, outputs, verdict = session.indexed_inputs, session.output_indices, limits.verdict
    clock, set_tensor, get_tensor = (
        time.monotonic_ns,
        session.interpreter.set_tensor,
        session.interpreter.get_tensor,
    )
    infer = session.interpreter.invoke
    run, began = 0, clock()
    while True:
        before = clock()
        for index, value in inputs:
            set_tensor(index, value)
        ready = clock()
        infer()
        done = clock()
        for index in outputs:
            get_tensor(index)
        after = clock()
        start[run], copy_in[run], invoke[run], copy_out[run] = (
            before,
            ready - before,
            done - ready,
            after - done,
        )
        run += 1
        stopped_by = verdict(run, after - began)
        if stopped_by:
            break
        if run == room:
            for kept in (start, invoke, copy_in, copy_out):
                kept.extend(_zeros(room))
            room += room
    loop.count, loop.stopped_by = run, stopped_by
    return loop


def zero_copy_loop(session: Session, phase: str, limits: Limits) -> Loop:
    """Infer on the inputs that already lie in the runtime's memory."""
    room = _capacity(limits, session.first_ns)
    loop = Loop(phase, _zeros(room), _zeros(room), None, None)
    start, invoke, verdict = loop.start, loop.invoke, limits.verdict
    clock, infer = time.monotonic_ns, session.interpreter.invoke
    run, began = 0, clock()
    while True:
        before = clock()
        infer()
        after = clock()
        start[run], invoke[run] = before, after - before
        run += 1
        stopped_by = verdict(run, after - began)
        if stopped_by:
            break
        if run == room:
            for kept in (start, invoke):
                kept.extend(_zeros(room))
            room += room
    loop.count, loop.stopped_by = run, stopped_by
    return loop


# ---------------------------------------------------------------------------------------------- the process


def status_kb(field: str) -> int | None:
    """VmRSS or VmHWM of this process; None where /proc does not say."""
    with contextlib.suppress(OSError):
        found = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
        return int(found[1]) if found else None
    return None


def thread_cpu_ns() -> dict[str, int] | None:
    """CPU time of every thread by its id; None where the kernel does not say."""
    try:
        return {
            task.name: int((task / "schedstat").read_text().split()[0]) for task in Path("/proc/self/task").iterdir()
        }
    except (OSError, ValueError, IndexError):
        return None


def thread_count() -> int | None:
    """Threads of this process now; None where /proc does not say."""
    with contextlib.suppress(OSError):
        return len(list(Path("/proc/self/task").iterdir()))
    return None


class Session:
    """A loaded model with its inputs set and its first run behind it."""

    def __init__(self, model: Model, flags: argparse.Namespace) -> None:
        self.model, self.flags = model, flags
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew: what came before is not the model's
        self.memory: Event = {"rss_before_model_kb": status_kb("VmRSS")}
        self.facts: Event = {"threads_before": thread_count()}
        self.first_ns = 0
        self.interpreter = self._load()
        self.inputs = make_inputs(self.interpreter.get_input_details(), flags)
        details = self.interpreter.get_input_details()
        self.indexed_inputs = [(details[n]["index"], value) for n, value in enumerate(self.inputs)]
        self.output_indices = [detail["index"] for detail in self.interpreter.get_output_details()]
        self._first_run()

    def _load(self) -> Any:
        clock, stage = time.monotonic_ns, "create"
        try:
            began = clock()
            interpreter = _interpreter(self.model, delegate=self.flags.delegate, threads=self.flags.threads)
            created = clock()
            nodes_total, stage = interpreter._interpreter.NumNodes(), "allocate"
            resumed = clock()
            interpreter.allocate_tensors()
            allocated = clock()
        except (RuntimeError, ValueError, MemoryError) as refused:
            raise diagnose(self.model, self.flags.delegate, refused, stage=stage) from refused
        create_us, allocate_us = (created - began) / 1e3, (allocated - resumed) / 1e3
        self.facts["init_us"] = round(create_us + allocate_us, 3)
        self.facts.update(create_us=create_us, allocate_us=allocate_us, threads_allocated=thread_count())
        self.facts.update(delegation(interpreter, nodes_total))
        self.memory["rss_init_kb"] = status_kb("VmRSS")
        return interpreter

    def _first_run(self) -> None:
        try:
            for index, value in self.indexed_inputs:
                self.interpreter.set_tensor(index, value)
            began = time.monotonic_ns()
            self.interpreter.invoke()
            self.first_ns = time.monotonic_ns() - began
        except (RuntimeError, ValueError, MemoryError) as refused:
            raise diagnose(self.model, self.flags.delegate, refused, stage="invoke") from refused
        self.facts.update(first_us=self.first_ns / 1e3, threads_after=thread_count())
        self.memory["rss_first_kb"] = status_kb("VmRSS")

    def loop(self, phase: str, limits: Limits) -> Loop:
        """Run one loop in the asked copy mode."""
        run = copy_loop if self.flags.copy == "copy" else zero_copy_loop
        try:
            return run(self, phase, limits)
        except (RuntimeError, ValueError, MemoryError) as refused:
            raise diagnose(self.model, self.flags.delegate, refused, stage="invoke") from refused

    def warm_up(self) -> Loop:
        """The warm-up loop; empty if none was asked for."""
        limits = Limits(self.flags.warmup_runs, self.flags.warmup_min_ms * 1_000_000, self.flags.max_ms * 1_000_000)
        if not limits.runs and not limits.min_ns:
            return Loop("warmup", _zeros(0), _zeros(0), None, None)
        return self.loop("warmup", limits)

    def output_sha256(self) -> str:
        """A digest over the bytes of all outputs."""
        digest = hashlib.sha256()
        for index in self.output_indices:
            digest.update(self.interpreter.get_tensor(index).tobytes())
        return digest.hexdigest()

    def inputs_intact(self) -> bool:
        """Whether the runtime's memory still holds the inputs."""
        get = self.interpreter.get_tensor
        return all(get(index).tobytes() == value.tobytes() for index, value in self.indexed_inputs)


def measure(session: Session) -> None:
    """Warm up, time, print samples, memory and end."""
    flags = session.flags
    warmup = session.warm_up()
    threads, used, wall, cpu = thread_cpu_ns(), resource.getrusage(resource.RUSAGE_SELF), *_clocks()
    steady = session.loop("steady", Limits(flags.runs, flags.min_ms * 1_000_000, flags.max_ms * 1_000_000))
    wall_end, cpu_end = _clocks()
    used_end, threads_end = resource.getrusage(resource.RUSAGE_SELF), thread_cpu_ns()
    end: Event = {
        "count": steady.count,
        "warmup_count": warmup.count,
        "stopped_by": steady.stopped_by,
        "warmup_stopped_by": warmup.stopped_by,
        "output_sha256": session.output_sha256(),
        "inputs_intact": session.inputs_intact() if flags.copy == "zero-copy" else None,
        "gc": "disabled",
        "threads_end": thread_count(),
        "wall_ns": wall_end - wall,
        "cpu_ns": cpu_end - cpu,
        "voluntary_switches": used_end.ru_nvcsw - used.ru_nvcsw,
        "involuntary_switches": used_end.ru_nivcsw - used.ru_nivcsw,
        "thread_cpu_ns": None,
    }
    if threads is not None and threads_end is not None:
        spent = (value - threads.get(name, 0) for name, value in threads_end.items())
        end["thread_cpu_ns"] = sorted(spent, reverse=True)
    session.memory.update(rss_end_kb=status_kb("VmRSS"), peak_kb=status_kb("VmHWM"))
    warmup.report()
    steady.report()
    say("memory", session.memory)
    say("end", end)


def _clocks() -> tuple[int, int]:
    return time.monotonic_ns(), time.process_time_ns()


def be_a_load(session: Session, facts: Event) -> NoReturn:
    """Warm up, say so, then infer until a signal ends the process."""
    warmup = session.warm_up()
    say("ready", {**facts, "init": session.facts, "warmup_count": warmup.count})
    limits = Limits(1_000, 0, 1_000_000_000)  # short, so that the samples nobody reads stay few
    while True:
        session.loop("beside", limits)


def run(arguments: list[str]) -> None:
    """The whole program; Failures come out as exceptions."""
    flags = parse(arguments)
    start = start_facts(flags)
    if not flags.beside:
        say("start", start)
    if flags.check:
        return
    model = open_model(flags)
    if not flags.beside:
        say("model", model.facts)
    gc.collect()
    gc.disable()
    session = Session(model, flags)
    if flags.beside:
        be_a_load(session, {"start": start, "model": model.facts})
    say("init", session.facts)
    measure(session)


def main(arguments: list[str]) -> int:
    """Run and turn what went wrong into the `error` line and the exit code."""
    faulthandler.enable()
    for name in ("SIGINT", "SIGPIPE"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)  # end at once and quietly
    try:
        run(arguments)
    except Failure as failure:
        say("error", {"kind": failure.kind, "message": failure.message, "remedy": failure.remedy})
        return failure.exit_code
    except MemoryError:
        remedy = "use a smaller model or input, or a device with more memory"
        say("error", {"kind": "out-of-memory", "message": "Python ran out of memory", "remedy": remedy})
        return EXIT_DATA
    except Exception as bug:  # noqa: BLE001  # the last line of defence: report it as ours
        traceback.print_exc()
        remedy = "report it with the traceback on standard error"
        say("error", {"kind": "internal", "message": f"{type(bug).__name__}: {bug}", "remedy": remedy})
        return EXIT_INTERNAL
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
