"""The files that `benchmark_model` writes, decoded: its summary, what was delegated, the operators' times. Pure.

Nothing is raised: a file that is empty, cut or no such message at all gives None. Fields that a newer release adds are
passed over, as protobuf means them to be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.message import Message

_PACKAGE = "devbench.benchmark_model"
_FLOAT, _INT64, _INT32, _STRING = 2, 3, 5, 9
_NODES_MAX = 1_000_000

# Field numbers, names and types as the tools have them: where no file can be written they print the same as text. What
# nobody reads here is left out, and passed over.
_MESSAGES: dict[str, tuple[tuple[str, int, int | str, bool], ...]] = {
    "Result": (("latency", 2, "Latency", False), ("memory", 3, "Memory", False), ("misc", 4, "Misc", False)),
    "Latency": tuple(
        (name, number, _FLOAT, False)
        for number, name in enumerate(("avg", "min", "max", "std", "median", "p5", "p95", "init", "first", "warmup"), 1)
    ),
    "Memory": (("init_kb", 1, _INT64, False), ("overall_kb", 2, _INT64, False), ("peak_mb", 3, _FLOAT, False)),
    "Misc": (("model_mb", 1, _FLOAT, False), ("runs", 2, _INT32, False), ("warmup_runs", 3, _INT32, False)),
    "Profile": (("init_profile", 2, "ModelProfile", False), ("runtime_profile", 3, "ModelProfile", False)),
    "ModelProfile": (
        ("subgraph_profiles", 1, "SubgraphProfile", True),
        ("delegate_profiles", 2, "DelegateProfile", True),
    ),
    "SubgraphProfile": (("subgraph_index", 2, _INT32, False), ("per_op_profiles", 3, "Op", True)),
    "DelegateProfile": (("delegate_name", 1, _STRING, False), ("per_op_profiles", 2, "Op", True)),
    "Op": (
        ("node_type", 1, _STRING, False),
        ("inference_microseconds", 2, "Stat", False),
        ("mem_kb", 3, "Stat", False),
        ("times_called", 4, _INT64, False),
        ("name", 5, _STRING, False),
        ("run_order", 6, _INT64, False),
    ),
    "Stat": (("avg", 3, _INT64, False), ("sum", 8, _INT64, False), ("count", 9, _INT64, False)),
    "Runtime": (("subgraphs", 2, "Subgraph", True),),
    "Subgraph": (("subgraph_id", 1, _INT32, False), ("nodes", 3, "Node", True), ("execution_plan", 4, _INT32, True)),
    "Node": (
        ("id", 1, _INT32, False),
        ("type", 3, _STRING, False),
        ("delegate_node_details", 8, "DelegateNode", False),
    ),
    "DelegateNode": (("delegate_name", 1, _STRING, False), ("tflite_node_ids_replaced", 2, _INT32, True)),
}


@cache
def _kind(name: str) -> Any:
    """The message class of a name, made when the first file is read."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="benchmark_model.proto", package=_PACKAGE, syntax="proto2")
    for message, fields in _MESSAGES.items():
        made = file.message_type.add(name=message)
        for field_name, number, kind, is_repeated in fields:
            field = made.field.add(name=field_name, number=number, label=3 if is_repeated else 1)
            if isinstance(kind, str):
                field.type, field.type_name = 11, f".{_PACKAGE}.{kind}"
            else:
                field.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def decode(name: str, content: bytes) -> Message | None:
    """The message; None where the bytes are none, or say nothing that we read."""
    from google.protobuf.message import DecodeError

    message = _kind(name)()
    try:
        message.ParseFromString(content)
        has_content = bool(message.ListFields())
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return message if has_content else None


def decode_text(name: str, text: str) -> Message | None:
    """The message in protobuf's text form."""
    from google.protobuf import text_format

    message: Message = _kind(name)()
    try:
        text_format.Parse(text, message, allow_unknown_field=True)
    except (text_format.ParseError, ValueError, RecursionError):
        return None
    return message if message.ListFields() else None


def words_of(value: str | bytes) -> str:
    """A text of a message; protobuf gives one that is no UTF-8 as it is."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


# The summary


@dataclass(frozen=True)
class ResultFile:
    """The tool's summary in microseconds and megabytes; what it did not set, or set to nonsense, is absent."""

    latency_us: dict[str, float]
    memory: dict[str, float]
    runs: int | None
    warmup_runs: int | None


def read_result(content: bytes) -> ResultFile | None:
    message: Any = decode("Result", content)
    if message is None:
        return None
    latency = {name: round(1000.0 * value, 3) for name, value in _set_numbers(message.latency)}
    memory = {"memory_init_mb": "init_kb", "memory_overall_mb": "overall_kb"}
    found = dict(_set_numbers(message.memory))
    megabytes = {name: found[key] / 1024.0 for name, key in memory.items() if key in found}
    if found.get("peak_mb", 0.0) > 0.0:
        megabytes["memory_peak_mb"] = found["peak_mb"]
    counts = {name: int(value) for name, value in _set_numbers(message.misc) if name.endswith("runs")}
    return ResultFile(latency, megabytes, counts.get("runs"), counts.get("warmup_runs"))


def _set_numbers(message: Any) -> Iterator[tuple[str, float]]:
    """Numbers that were set and can be times, sizes or counts. A run without inferences sets the extremes of int64."""
    for field, value in message.ListFields():
        if isinstance(value, int | float) and math.isfinite(value) and 0 <= value < 1e12:
            yield field.name, value


# What was delegated


@dataclass(frozen=True)
class RuntimeFile:
    """How the model was divided, over all its subgraphs."""

    nodes: int
    """Of the model, before any delegate replaced them."""
    delegated: dict[str, int]
    """Nodes taken, by the delegate kernel's name."""
    partitions: int
    """How many delegate nodes the runtime executes."""
    delegate_nodes: frozenset[tuple[int, int]]
    """(subgraph, node) of those."""


def read_runtime(content: bytes) -> RuntimeFile | None:
    """None also where the file contradicts itself."""
    message = decode("Runtime", content)
    return None if message is None else runtime_of(message)


def runtime_of(message: Any) -> RuntimeFile | None:
    nodes, delegated, found = 0, dict[str, int](), set[tuple[int, int]]()
    for subgraph in message.subgraphs:
        planned = set(subgraph.execution_plan)
        for node in subgraph.nodes:
            if not node.HasField("delegate_node_details"):
                nodes += 1
            elif node.id in planned:
                taken = node.delegate_node_details
                name = words_of(taken.delegate_name or node.type)
                delegated[name] = delegated.get(name, 0) + len(set(taken.tflite_node_ids_replaced))
                found.add((subgraph.subgraph_id, node.id))
    if not 0 < nodes <= _NODES_MAX or sum(delegated.values()) > nodes:
        return None
    return RuntimeFile(nodes, delegated, len(found), frozenset(found))
