"""What traces say of themselves: whole ones, cut ones, and what is no trace at all."""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from android_harness.perfetto_trace import read_perfetto
from orchestrator.trace import TraceSummary
from orchestrator.trace_files import read_bundle, read_ftrace, read_perf

SMALL = Path(__file__).parents[1] / "data" / "system_traces" / "small.perfetto-trace"
FTRACE = b"""\
# tracer: nop
#
# entries-in-buffer/entries-written: 4/4   #P:2
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
  benchmark_mode-4242    [001] d..2.  100.000100: sched_switch: prev_comm=a prev_pid=1 ==> next_comm=b next_pid=2
  benchmark_mode-4242    [001] .....  100.250000: tracing_mark_write: B|4242|CONV_2D@12/0
  benchmark_mode-4242    [001] .....  100.250100: tracing_mark_write: E|4242
          <idle>-0       [000] d..1.  101.500100: cpu_idle: state=1 cpu_id=0
"""


def whole_perf(samples: int = 3, *, claimed: int | None = None) -> bytes:
    """perf.data with one event whose samples have an identifier, an instruction pointer, a thread and a time."""
    records = struct.pack("<IHHI", 3, 0, 16, 0) + bytes(4)
    for number in range(samples):
        records += struct.pack("<IHHQQIIQ", 9, 2, 40, 1, 0x400000, 42, 42, 10**9 + number * 250_000_000)
    records += struct.pack("<IHHQQ", 2, 0, 24, 1, 7)
    attribute = struct.pack("<IIQQQ", 1, 128, 0, 1, 1 << 16 | 0b111).ljust(144, b"\0")
    at = 104 + len(attribute)
    size = len(records) if claimed is None else claimed
    head = struct.pack("<8sQQQQQQ", b"PERFILE2", 104, 144, 104, 144, at, size)
    return head.ljust(104, b"\0") + attribute + records


def bundle(*names: str, content: bytes = b"x" * 100) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.fixture
def seen(tmp_path: Path) -> Callable[[Callable[[Path], TraceSummary], bytes], TraceSummary]:
    def see(read: Callable[[Path], TraceSummary], content: bytes) -> TraceSummary:
        path = tmp_path / "trace"
        path.write_bytes(content)
        return read(path)

    return see


See = Callable[[Callable[[Path], TraceSummary], bytes], TraceSummary]


def test_a_perfetto_trace_that_perfettos_own_library_wrote() -> None:
    """Every packet and every event of the kernel, plain and compact, and TFLite's slices."""
    assert read_perfetto(SMALL) == TraceSummary(
        412,
        16,
        0.501,
        {
            "packets": 7,
            "ftrace bundles": 2,
            "process trees": 1,
            "system statistics": 1,
            "process statistics": 1,
            "sched_switch": 8,
            "print": 3,
            "sched_waking": 2,
            "cpu_frequency": 1,
            "thermal_temperature": 1,
            "gpu_frequency": 1,
        },
        2,
        None,
        ("events were lost in 1 places: the buffer was too small",),
    )


def test_a_perfetto_trace_cut_anywhere_is_not_whole(see_cuts: list[TraceSummary]) -> None:
    """Except between two packets, where nobody can tell; what came before the cut is counted."""
    whole = [trace for trace in see_cuts if trace.problem is None]
    assert len(see_cuts) == 411 and len(whole) < 7
    assert all("cut off" in (trace.problem or "") or "no event" in (trace.problem or "") for trace in see_cuts[1:-120])
    assert max(trace.events for trace in see_cuts if trace.problem) > 10


@pytest.fixture
def see_cuts(seen: See) -> list[TraceSummary]:
    content = SMALL.read_bytes()
    return [seen(read_perfetto, content[:size]) for size in range(1, len(content))]


def test_text_of_the_kernel(seen: See) -> None:
    """Events by name, the time they cover, TFLite's slices."""
    trace = seen(read_ftrace, FTRACE)
    assert (trace.events, trace.duration_s, trace.tflite_slices, trace.problem) == (4, 1.5, 1, None)
    assert trace.counts == {"sched_switch": 1, "tracing_mark_write": 2, "cpu_idle": 1}


def test_text_as_atrace_gives_it(seen: See) -> None:
    """After its own words, plain or packed, the same."""
    plain = seen(read_ftrace, b"capturing trace... done\nTRACE:\n" + FTRACE)
    packed = seen(read_ftrace, b"TRACE:\n" + zlib.compress(FTRACE))
    assert plain.events == packed.events == 4
    assert plain.problem is None and packed.problem is None


def test_events_that_the_kernel_lost_are_told(seen: See) -> None:
    """They are a note: the rest is good."""
    trace = seen(read_ftrace, FTRACE + b"CPU:1 [LOST 123 EVENTS]\n")
    assert trace.problem is None and trace.notes == ("123 events were lost: the buffer was too small",)


def test_perf_data(seen: See) -> None:
    """Samples, the time they cover, and what was lost."""
    trace = seen(read_perf, whole_perf())
    assert (trace.events, trace.duration_s, trace.problem) == (3, 0.5, None)
    assert trace.counts == {"samples": 3, "lost": 7, "other records": 1}


def test_a_bundle_of_instruments(seen: See) -> None:
    trace = seen(read_bundle, bundle("devbench.trace/form.template", "devbench.trace/corespace/data"))
    assert (trace.problem, trace.counts) == (None, {"files": 2, "bytes": 200})


BROKEN = {
    "empty perfetto": (read_perfetto, b"", "it is empty"),
    "perfetto that is text": (read_perfetto, b"hello", "it does not begin as Perfetto's traces do"),
    "perfetto without events": (read_perfetto, b"\n\x02@\x05", "no event of the kernel is in it"),
    "perfetto with another field": (
        read_perfetto,
        b"\n\x02@\x05\x12\x00",
        "something other than a packet is at byte 6, after 1 packets",
    ),
    "perfetto with a number without an end": (
        read_perfetto,
        b"\n" + b"\xff" * 11,
        "it is no Perfetto trace, or torn, at byte 11, after 0 packets",
    ),
    "empty ftrace": (read_ftrace, b"", "it is empty"),
    "ftrace without events": (read_ftrace, b"# tracer: nop\n#\n", "no event is in it"),
    "ftrace that is an error": (
        read_ftrace,
        b"error opening trace: Permission denied\n",
        "it does not begin as the kernel's traces do",
    ),
    "atrace cut off": (
        read_ftrace,
        b"TRACE:\n" + zlib.compress(FTRACE)[:-20],
        "it is cut off: the packed text has no end",
    ),
    "atrace torn": (read_ftrace, b"TRACE:\n\x78\x9c" + b"\xff" * 40, "it cannot be unpacked"),
    "empty perf": (read_perf, b"", "it is empty"),
    "perf that is none": (read_perf, b"x" * 500, "it does not begin as perf.data does (PERFILE2)"),
    "perf that was killed": (
        read_perf,
        whole_perf(claimed=0),
        "its header says that nothing was recorded: the tracer did not end in order",
    ),
    "perf without samples": (read_perf, whole_perf(0), "no sample is in it"),
    "perf cut off": (read_perf, whole_perf()[:-30], "it has 378 bytes, and its header speaks of 408"),
    "no tar": (read_bundle, b"x" * 100, "it is no whole tar file"),
    "tar cut off": (
        read_bundle,
        bundle("a.trace/x", content=bytes(range(256)) * 50)[:90],
        "it is no whole tar file",
    ),
    "tar of something else": (read_bundle, bundle("readme"), "no .trace bundle is in it"),
    "empty bundle": (read_bundle, bundle("a.trace/x", content=b""), "the bundle in it is empty"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_whole_says_so(seen: See, name: str) -> None:
    """In words that tell what happened; nothing is raised."""
    read, content, problem = BROKEN[name]
    assert (seen(read, content).problem or "").startswith(problem)


def test_a_file_that_is_not_there_is_a_problem_too(tmp_path: Path) -> None:
    """As everything that reading can meet."""
    problem = read_perfetto(tmp_path / "none").problem
    assert problem == "it cannot be read (No such file or directory)"


@pytest.mark.parametrize("read", [read_perfetto, read_ftrace, read_perf, read_bundle])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=st.sampled_from([b"", b"\n", b"TRACE:\n\x78\x01", b"# tracer: nop\n", whole_perf()[:300]]),
    rest=st.binary(max_size=300),
    torn=st.integers(0, 411),
)
def test_nothing_is_ever_raised(
    tmp_path: Path, read: Callable[[Path], TraceSummary], head: bytes, rest: bytes, torn: int
) -> None:
    """Whatever the bytes are, good ones torn up among them."""
    path = tmp_path / "trace"
    for content in (head + rest, SMALL.read_bytes()[:torn] + rest):
        path.write_bytes(content)
        assert read(path).size_bytes == len(content)
