"""How fast large operator profiles are read."""

from __future__ import annotations

import statistics

from orchestrator.clock import SYSTEM
from orchestrator.runners.benchmark_model_profile import read_profile
from tests.bench.measuring import ROOT

_ROUNDS = 5
_BYTES = 20_000_000
_RECORDINGS = ROOT / "tests" / "data" / "benchmark_model"
_LOG = b"INFO: [driver.cc:12] allocated 4096 bytes for tensor 17 of partition 3, usage 0x7f12, pool 2 of 4"


def megabytes_a_second() -> None:
    """Operator profiles of 20 MB from recordings repeated, and a log of 100 MB about one, in MB read a second"""
    text = (_RECORDINGS / "prof_stdout_xnn_false.stdout").read_bytes()
    csv = (_RECORDINGS / "prof_csv_file_xnn_false.outfile.csv").read_bytes()
    proto = (_RECORDINGS / "prof_proto_file_xnn_default.outfile.pb").read_bytes()
    for name, content in (("text", _repeated_rows(text)), ("CSV", _repeated_rows(csv))):
        _say(name, content, {"profile": content}, [])
    repeated = proto * (_BYTES // len(proto))  # protobuf joins messages that follow each other
    _say("proto", repeated, {"profile": repeated}, [])
    log = [_LOG] * (100_000_000 // (len(_LOG) + 1))
    _say("log about a profile", b"x" * 100_000_000, {}, [*log, *text.split(b"\n")])


def _repeated_rows(content: bytes) -> bytes:
    """The table of operators with its rows many times over."""
    start = content.index(b"\n", content.index(b"Run Order", content.index(b"Regular Benchmark"))) + 1
    start = content.index(b"\n", start) + 1
    end = content.index(b"\n\n", start) + 1
    rows = content[start:end]
    return content[:start] + rows * (_BYTES // len(rows)) + content[end:]


def _say(name: str, content: bytes, outputs: dict[str, bytes], stdout: list[bytes]) -> None:
    speeds = []
    for _ in range(_ROUNDS):
        began = SYSTEM.monotonic_s()
        profile = read_profile(stdout, [], outputs)
        speeds.append(len(content) / 1e6 / (SYSTEM.monotonic_s() - began))
        assert profile is not None and profile.ops
    count = len(profile.ops)
    print(f"  {name:20} {len(content) / 1e6:6.1f} MB, {count:7} operators: {statistics.median(speeds):6.1f} MB/s")
