"""What `benchmark_model` printed, completed by the files it wrote: more digits, and what text never says. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.runners.base import Reading
from orchestrator.runners.benchmark_model_evidence import kernel_base
from orchestrator.runners.benchmark_model_protos import ResultFile, RuntimeFile, read_result, read_runtime
from orchestrator.trial import Summary

_WHOLE = ("min", "max", "median", "p5", "p95", "std")
"""Whole microseconds in the tool; a 32-bit float of milliseconds is a little beside them."""


def with_files(reading: Reading, outputs: Mapping[str, bytes]) -> Reading:
    """The reading with what the files say. A file that contradicts the text is told, and the trial rejected for it."""
    observed: dict[str, Any] = dict(reading.observed)
    if "runtime" in outputs:
        runtime = read_runtime(outputs["runtime"])
        observed |= _delegation(runtime) if runtime else {"unreadable_files": ["runtime"]}
    if "result" not in outputs:
        return replace(reading, observed=observed)
    result = read_result(outputs["result"])
    if result is None:
        observed["unreadable_files"] = [*observed.get("unreadable_files", []), "result"]
        return replace(reading, observed=observed)
    if reading.error:
        # It is written all the same, with the times of inferences that failed.
        return replace(reading, observed=observed)
    summary = summary_of(result)
    if reading.summary and summary and not _agree(reading.summary, summary):
        observed["result_proto"] = "contradicts the printed summary"
        return replace(reading, observed=observed)
    observed["result_proto"] = "agrees" if reading.summary and summary else "alone" if summary else "without a summary"
    if summary and "count" not in observed:
        observed["count"] = summary.count
    metrics = {**reading.metrics, **_metrics(result)}
    return replace(reading, summary=summary or reading.summary, metrics=metrics, observed=observed)


def summary_of(result: ResultFile) -> Summary | None:
    """The summary in a result file; None where no inference was made, or where the numbers cannot be of one set."""
    found = {key: float(round(result.latency_us[key])) for key in _WHOLE if key in result.latency_us}
    average = result.latency_us.get("avg")
    if not result.runs or average is None or len(found) != len(_WHOLE):
        return None
    ordered = [found[key] for key in ("min", "p5", "median", "p95", "max")]
    is_possible = ordered == sorted(ordered) and found["min"] - 1 <= average <= found["max"] + 1 and found["max"] > 0
    return Summary(result.runs, avg=average, **found) if is_possible else None


def _agree(printed: Summary, written: Summary) -> bool:
    """Whether they are of the same samples; old builds print no percentiles, and six digits of the average."""
    assert printed.avg is not None and written.avg is not None, "no summary is without"
    pairs = [(getattr(printed, key), getattr(written, key)) for key in ("min", "max", "median")]
    is_same = all(mine is None or abs(mine - other) <= 1.0 + 1e-6 * other for mine, other in pairs)
    return is_same and printed.count == written.count and abs(printed.avg - written.avg) <= 0.01 + 1e-5 * written.avg


def _metrics(result: ResultFile) -> dict[str, float]:
    metrics = dict(result.memory)
    if result.latency_us.get("init"):
        metrics["init_us"] = float(round(result.latency_us["init"]))
    if result.warmup_runs and result.latency_us.get("first"):
        metrics |= {"first_us": float(round(result.latency_us["first"])), "warmup_count": result.warmup_runs}
        metrics["warmup_avg_us"] = result.latency_us.get("warmup", 0.0)
    return metrics


def _delegation(runtime: RuntimeFile) -> dict[str, Any]:
    """By the names that evidence.py knows; written on every system, where the log lines are Android's alone."""
    taken = sum(runtime.delegated.values())
    rows = [
        {"delegate": kernel_base(name), "nodes_delegated": count, "nodes_total": runtime.nodes}
        for name, count in runtime.delegated.items()
    ]
    return {
        "nodes_total": runtime.nodes,
        "nodes_delegated": taken,
        "partitions": runtime.partitions,
        "nodes_replaced": rows,
        "delegation_from": "runtime",
        "delegation": "full" if taken == runtime.nodes else "partial" if taken else "none",
    }
