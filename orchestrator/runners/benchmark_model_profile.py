"""The operator profiles of `benchmark_model` in all their forms: proto, CSV, and the tables it prints. Pure.

Nothing is raised, and a row that is not whole gives nothing. Where rows are missing the profile says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.op_profile import OpCost, OpProfile
from orchestrator.runners.benchmark_model_protos import RuntimeFile, decode, decode_text, read_runtime, words_of

_LINE_MAX = 16 * 1024
_ROWS_MAX = 200_000
_TEXT_PROTO_MAX = 16 * 1024 * 1024
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,18})?(?:e[+-]?\d{1,3})?")
_PREFIX = re.compile(r"(?:(?:INFO|WARN|WARNING|ERROR|VERBOSE): )?(?:\[[\w./-]{1,200}:\d{1,6}\] )?")
_BANNER = re.compile(r"=+ ([A-Z][\w ]{1,60}) =+")
_SUBGRAPH = re.compile(r"(?:Primary graph|Subgraph) \((?:index: (\d{1,6}), )?name: .*\) profile:")
_BRACKETED = re.compile(r"\[([^\]]{1,40})\]")
_EXECUTED = re.compile(r"Number of nodes executed: (\d{1,9})")
_TIMINGS = re.compile(r"Timings \(microseconds\): count=(\d{1,18})(?:.* avg=(\S+)| curr=(\d{1,18}))?.*")
_OPAQUE = re.compile(r"[A-Z]\w*Delegate\w*|DELEGATE")
"""A delegate that shows nothing of its inside is one row, of its kernel's name; operators are in capitals."""
_HEXAGON = "TfLiteHexagonDelegate"
_DROPPED = b"Dropping ProfileBuffer event"
_SAID = {
    _DROPPED: "the profiler's buffer was too small: it dropped events",
    b"Initialized OpenCL-based API": "OpenCL makes every inference at least twice while it is profiled",
}
"""What a line with these words means for the profile beside it."""


def read_profile(stdout: Sequence[bytes], stderr: Sequence[bytes], outputs: Mapping[str, bytes]) -> OpProfile | None:
    """What each operator cost, from the file it wrote if there is one, otherwise from what it printed."""
    runtime = read_runtime(outputs["runtime"]) if outputs.get("runtime") else None
    profile = _read_file(outputs["profile"]) if outputs.get("profile") else None
    for stream in (stdout, stderr):
        if profile is None or not profile.ops:
            profile = _read_tables(stream) or _read_text_proto(stream) or profile
    if profile is None:
        return None
    notes = [*profile.notes, *(note for words, note in _SAID.items() if _says((stdout, stderr), words))]
    if _SAID[_DROPPED] in notes:
        profile = replace(profile, problem=profile.problem or _SAID[_DROPPED])
    if profile.inner and any(op.type == _HEXAGON for op in profile.ops):
        profile = replace(profile, inner=())
        notes.append("what Hexagon says of its own parts is left out: it counts cycles, and calls them milliseconds")
    return replace(profile, ops=_marked(profile.ops, runtime), notes=tuple(notes))


def _says(streams: Iterable[Sequence[bytes]], words: bytes) -> bool:
    return any(words in line for stream in streams for line in stream)


def _marked(ops: Iterable[OpCost], runtime: RuntimeFile | None) -> tuple[OpCost, ...]:
    """Which of them a delegate ran: it says so in the name, or the runtime knows the node as a delegate's."""
    known = runtime.delegate_nodes if runtime else frozenset()
    return tuple(
        replace(
            op,
            is_delegated=op.name.startswith("Delegate/")
            or (op.subgraph, op.node) in known
            or _OPAQUE.fullmatch(op.type) is not None,
        )
        for op in ops
    )


def _read_file(content: bytes) -> OpProfile | None:
    if b"Profiling Info" in content[:4096] or b"= Run Order =" in content[:65536]:
        return _read_tables(content.split(b"\n"))
    message = decode("Profile", content)
    if message is None:
        return OpProfile("proto", problem="the profile's file cannot be read: it is cut, or no profile")
    return _of_message(message)


# Proto


def _of_message(message: Any) -> OpProfile:
    runtime, init = message.runtime_profile, message.init_profile
    ops = [op for part in runtime.subgraph_profiles for op in _proto_ops(part.per_op_profiles, part.subgraph_index)]
    inner = [op for part in runtime.delegate_profiles for op in _proto_ops(part.per_op_profiles, 0)]
    first = [op for part in init.subgraph_profiles for op in _proto_ops(part.per_op_profiles, part.subgraph_index)]
    return OpProfile(
        "proto",
        ops=tuple(ops),
        inner=tuple(inner),
        init=tuple(first),
        runs=_runs(runtime),
        total_us=sum(op.time_us for op in ops) if ops else None,
        problem=None if ops else "the profile has no operators",
    )


def _proto_ops(rows: Any, subgraph: int) -> Iterator[OpCost]:
    """`avg` is cut to whole microseconds, so that the sum is used; it counts calls, not inferences."""
    for row in sorted(rows, key=lambda row: row.run_order):
        stat, calls = row.inference_microseconds, max(1, row.times_called)
        if stat.count > 0 and 0 <= stat.sum < 2**62 and row.times_called >= 0:
            memory_kb = row.mem_kb.sum / row.mem_kb.count if row.mem_kb.count > 0 and row.mem_kb.sum >= 0 else None
            time_us = round(calls * stat.sum / stat.count, 6)
            name, kind = words_of(row.name), words_of(row.node_type)
            yield OpCost(name, kind, time_us, float(calls), subgraph, memory_kb=memory_kb)


def _runs(runtime: Any) -> int | None:
    for part in runtime.subgraph_profiles:
        for row in part.per_op_profiles:
            if row.times_called > 0 and row.inference_microseconds.count >= row.times_called:
                return int(row.inference_microseconds.count // row.times_called)
    return None


def _read_text_proto(lines: Sequence[bytes]) -> OpProfile | None:
    """Where a proto was asked for and its file could not be written, the tool prints it as text."""
    kept, size = list[str](), 0
    for line in lines:
        text = _text(line)
        if kept or text.startswith(("init_profile {", "runtime_profile {")):
            kept.append(text)
            size += len(text)
        if size > _TEXT_PROTO_MAX:
            return OpProfile("text", problem="the printed profile is too long to be read")
    while kept and kept[-1].rstrip() != "}":
        kept.pop()
    message = decode_text("Profile", "\n".join(kept)) if kept else None
    return None if message is None else replace(_of_message(message), source="text")


# Tables


@dataclass
class _Tables:
    """What was found on the way through the tables."""

    block: str = ""
    subgraph: int = 0
    is_inner: bool = False
    columns: tuple[str, ...] = ()
    """Of the table under way; empty between tables."""
    form: str = "tabs"
    """What divides its columns: tabs, commas, or spaces, as in the CompiledModel program, whose counts are over all
    inferences."""
    awaits_header: bool = False
    rows: dict[str, list[OpCost]] = field(default_factory=lambda: {"init": [], "ops": [], "inner": []})
    executed: dict[str, int] = field(default_factory=dict)
    """How many rows there must be, by the tables' own count."""
    runs: int | None = None
    total_us: float | None = None

    @property
    def place(self) -> str:
        return "init" if self.block == "init" else "inner" if self.is_inner else "ops"


def _read_tables(lines: Iterable[bytes]) -> OpProfile | None:
    tables = _Tables()
    for line in lines:
        _take(tables, _text(line))
    if not tables.block and not tables.rows["ops"]:
        return None
    lost = {place: count - len(tables.rows[place]) for place, count in tables.executed.items()}
    problem = next(
        (f"{count} of {tables.executed[place]} rows are missing" for place, count in lost.items() if count), None
    )
    if "ops" not in tables.executed:
        problem = "it breaks off before its end"
    if tables.form == "spaces":
        _count_by_inference(tables)
    return OpProfile(
        "csv" if tables.form == "commas" else "text",
        ops=tuple(tables.rows["ops"]),
        inner=tuple(tables.rows["inner"]),
        init=tuple(tables.rows["init"]),
        runs=tables.runs,
        total_us=tables.total_us,
        problem=problem if tables.rows["ops"] else "the profile has no operators",
    )


def _text(line: bytes) -> str:
    text = line[:_LINE_MAX].decode("utf-8", "replace").rstrip("\r\n")
    prefix = _PREFIX.match(text)
    return text[prefix.end() :] if prefix else text


def _take(tables: _Tables, text: str) -> None:
    if tables.columns and text.strip() and not text.startswith("="):
        _take_row(tables, text)
        return
    tables.columns = ()
    if tables.awaits_header:
        _take_header(tables, text)
    else:
        _take_between(tables, text)


def _take_between(tables: _Tables, text: str) -> None:
    """What stands between tables says what the next one is about, and how many rows the last one had."""
    if found := _BANNER.fullmatch(text.strip()):
        tables.awaits_header = found[1] == "Run Order"
    elif text.startswith("Profiling Info for Benchmark Initialization:"):
        tables.block, tables.is_inner = "init", False
    elif text.startswith("Operator-wise Profiling Info for Regular Benchmark Runs:"):
        tables.block, tables.is_inner, tables.subgraph = "runtime", False, 0
    elif text.startswith("Delegate internal:"):
        tables.is_inner = True
    elif found := _SUBGRAPH.fullmatch(text):
        tables.subgraph = int(found[1] or 0)
    elif found := _EXECUTED.fullmatch(text):
        tables.executed[tables.place] = tables.executed.get(tables.place, 0) + int(found[1])
    elif (found := _TIMINGS.fullmatch(text)) and tables.place == "ops" and tables.subgraph == 0:
        tables.runs, tables.total_us = int(found[1]), _number(found[2] or found[3] or "")


def _take_header(tables: _Tables, text: str) -> None:
    tables.awaits_header = False
    form = "commas" if text.startswith("node type,") else "tabs" if "\t" in text else "spaces"
    words = {"commas": text.split(","), "tabs": text.split("\t"), "spaces": _BRACKETED.findall(text)}[form]
    names = tuple(word.strip().strip("[]").lower().replace("_", " ") for word in words if word.strip())
    if names[:1] == ("node type",) and names[-1:] == ("name",) and {"avg ms", "times called"} <= set(names):
        tables.columns, tables.form = names, form


def _take_row(tables: _Tables, text: str) -> None:
    """The type may hold commas and spaces, and in CSV a name holds tabs for commas: so rows of these are taken from the
    right, and those with tabs from the left."""
    columns = tables.columns
    more = len(columns) - 1
    if tables.form == "tabs":
        parts = text.lstrip("\t").split("\t", more)
    else:
        parts = text.rsplit(", " if tables.form == "commas" else None, more)
    rows = tables.rows[tables.place]
    if len(parts) != len(columns) or len(rows) >= _ROWS_MAX:
        return
    named = dict(zip(columns, (part.strip() for part in parts), strict=True))
    numbers = {key: _number(named[key].removesuffix("%")) for key in columns[1:-1]}
    avg_ms, calls = numbers["avg ms"], numbers["times called"]
    if avg_ms is None or calls is None or None in numbers.values() or not named["node type"]:
        return
    kind, name = named["node type"], named["name"]
    if tables.form == "commas":
        name = name.replace("\t", ",")
    elif tables.form == "spaces":  # `[Delegate]:3` says nothing that the type does not, but for the number
        name, kind = f"{kind}:{name.rpartition(':')[2]}", kind.removeprefix("Delegate/")
    time_us = round(1000.0 * avg_ms * max(1.0, calls), 6)
    rows.append(OpCost(name, kind, time_us, max(1.0, calls), tables.subgraph, memory_kb=numbers.get("mem kb")))


def _count_by_inference(tables: _Tables) -> None:
    """Most operators run once an inference, so that the least count is how many there were."""
    rows = tables.rows["ops"]
    runs = min((row.calls for row in rows), default=0.0)
    tables.runs, tables.total_us = int(runs) or None, tables.total_us / runs if runs and tables.total_us else None
    tables.rows["ops"] = [replace(row, calls=row.calls / runs, time_us=round(row.time_us / runs, 6)) for row in rows]


def _number(text: str) -> float | None:
    """A number that a table can have: finite and not below zero."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    return value if math.isfinite(value) else None
