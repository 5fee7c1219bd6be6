"""What both programs called `benchmark_model` print, read into a Reading. Pure.

A summary is believed only where two places agree: the statistics line of the measured phase and the closing line (or
block) that repeats its average. Lines that were cut, torn apart or mixed with others then give nothing, not a number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.runners.base import Reading, RunnerError
from orchestrator.runners.benchmark_model_delegates import Program
from orchestrator.runners.benchmark_model_errors import error_in
from orchestrator.runners.benchmark_model_evidence import Delegation
from orchestrator.runners.benchmark_model_files import with_files
from orchestrator.trial import Summary

_LINE_MAX = 64 * 1024
_KEPT_MAX = 20
"""Different messages that are kept; a failing model repeats one for every inference."""

_LEVEL = re.compile(r"(?:(INFO|WARN|WARNING|ERROR|FATAL|VERBOSE): )?(?:\[[\w./-]{1,200}:\d{1,6}\] )?")
_LOGCAT = re.compile(
    r"(?:\d\d-\d\d \d\d:\d\d:\d\d\.\d{3,6} +\d{1,9} +\d{1,9} (?P<level>[VDIWEF]) (?:tflite|litert) *: ?"
    r"|(?P<brief>[VDIWEF])/(?:tflite|litert) *\( *\d{1,9}\): ?)"
)
"""How logcat begins a line, in its forms `threadtime` and `brief`: an app's output is nowhere else."""
_LOGCAT_LEVELS = {"V": "VERBOSE", "D": "VERBOSE", "I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL"}
_WHOLE = r"\d{1,18}"
_REAL = r"\d{1,18}(?:\.\d{1,18})?(?:e[+-]?\d{1,3})?"
_STAT = re.compile(
    rf"count=(?P<count>{_WHOLE})(?: first=(?P<first>{_WHOLE}))?(?: curr=(?P<curr>{_WHOLE}))?(?P<same>\(all same\))?"
    rf"(?: min=(?P<min>{_WHOLE}) max=(?P<max>{_WHOLE}) avg=(?P<avg>{_REAL}) std=(?P<std>{_WHOLE}))?"
    rf"(?: p5=(?P<p5>{_WHOLE}) median=(?P<median>{_WHOLE}) p95=(?P<p95>{_WHOLE}))?"
)
_PHASE = re.compile(
    rf"Running benchmark for at least (?P<runs>{_WHOLE}) iterations and at least -?{_REAL} seconds"
    rf"(?: but terminate if exceeding (?P<cap>{_REAL}) seconds)?\."
)
_CLOSING = re.compile(
    rf"Inference timings in us: Init: (?P<init>{_REAL}), First inference: (?P<first>{_REAL}), "
    rf"Warmup \(avg\): (?P<warmup>{_REAL}), Inference \(avg\): (?P<avg>{_REAL})"
)
_OLD_CLOSING = re.compile(
    rf"Average inference timings in us: Warmup: (?P<warmup>{_REAL}), Init: (?P<init>{_REAL}), "
    rf"(?:no stats|Inference): (?P<avg>{_REAL})"
)
_BLOCK_AVERAGE = re.compile(rf"Inference \(avg\):\s+(?P<avg_ms>{_REAL}) ms \((?P<count>{_WHOLE}) runs\)")

_SIMPLE: tuple[tuple[str, re.Pattern[str], float], ...] = (
    ("init_us", re.compile(rf"Initialized session in ({_REAL})ms\."), 1000.0),
    ("memory_init_mb", re.compile(rf"(?:Memory|Peak memory) footprint .*\(MB\): init=({_REAL}) overall={_REAL}"), 1.0),
    ("memory_overall_mb", re.compile(rf"(?:Memory|Peak memory) footprint .*\(MB\): init={_REAL} overall=({_REAL})"), 1),
    ("memory_peak_mb", re.compile(rf"Overall peak memory footprint \(MB\) via periodic monitoring: ({_REAL})"), 1.0),
    ("model_size_mb", re.compile(rf"The input model file size \(MB\): ({_REAL})"), 1.0),
    ("init_us", re.compile(rf"Model initialization:\s+({_REAL}) ms"), 1000.0),
    ("memory_init_mb", re.compile(rf"Init footprint:\s+({_REAL}) MB"), 1.0),
    ("memory_overall_mb", re.compile(rf"Overall footprint:\s+({_REAL}) MB"), 1.0),
    ("memory_peak_mb", re.compile(rf"Peak memory:\s+({_REAL}) MB"), 1.0),
)
"""Metrics that stand alone on a line of their own, and their factor. What is already known is not replaced."""
_SIMPLE_WORDS = ("Initialized session", "footprint", "model file size", "Model initialization", "Peak memory")

_THREADS = re.compile(rf"(?:#threads used for CPU inference|Num threads): \[(-?{_WHOLE})\]")
_UNCONSUMED = "Unconsumed cmdline flags: "
_LOUD = ("WARN", "WARNING", "ERROR", "FATAL")
_BARE_ERRORS = ("Benchmarking failed", "Failed to ")
"""How errors of the tool itself begin before TensorFlow 2.13, which had no `ERROR: ` before them."""


@dataclass(frozen=True)
class Stat:
    """One statistics line, in microseconds."""

    count: int
    first: float | None
    last: float | None
    summary: Summary | None
    """None where no inference was made, or where the numbers contradict each other."""


@dataclass
class _Phase:
    runs: int
    stat: Stat | None = None


@dataclass
class _Log:
    """What was found on the way through the lines."""

    phases: list[_Phase] = field(default_factory=list)
    strays: int = 0
    """Statistics lines that belong to no phase: then nothing is sure of any."""
    closings: list[re.Match[str]] = field(default_factory=list)
    blocks: list[re.Match[str]] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    threads: list[int] = field(default_factory=list)
    unconsumed: list[str] = field(default_factory=list)
    messages: dict[tuple[str, str], None] = field(default_factory=dict)
    """(level, text) of what is louder than INFO, each once, in order."""
    delegation: Delegation = field(default_factory=Delegation)


def text_of(line: bytes) -> str:
    return line[:_LINE_MAX].decode("utf-8", "replace").rstrip("\r\n")


def read_output(
    stdout: Sequence[bytes], stderr: Sequence[bytes], outputs: Mapping[str, bytes] | None = None
) -> Reading:
    """What the tool's output and files say. Nothing is raised, and no number is given that is not there."""
    log = _Log()
    for level, text in _lines(stdout, stderr):
        _take(log, level, text)
    error = error_in(list(log.messages))
    measured = _measured(log)
    summary = measured.summary if measured and not error else None
    printed = Reading(summary=summary, metrics=_metrics(log, measured, error), observed=_observed(log), error=error)
    return with_files(printed, outputs) if outputs else printed


def _lines(stdout: Sequence[bytes], stderr: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    """(level, text) of each line once it is stripped of its prefix. A message equal to the one before is left out:
    a model that fails prints the same for every inference."""
    before = b""
    for stream in (stdout, stderr):
        for line in stream:
            if line == before or not line:
                continue
            before = line
            text, logged = text_of(line), ""
            if b"t" in line[:60] and (found := _LOGCAT.match(text)):
                logged, text = _LOGCAT_LEVELS[found["level"] or found["brief"]], text[found.end() :]
            prefix = _LEVEL.match(text)
            level, start = (prefix[1] or "", prefix.end()) if prefix else ("", 0)
            yield level or logged, text[start:].rstrip()


def _take(log: _Log, level: str, text: str) -> None:
    if level or text.startswith(_BARE_ERRORS):
        _keep_message(log, level or "ERROR", text[:500])
    for words, take in _TAKERS:
        if any(word in text for word in words):
            take(log, text)
            return
    log.delegation.take(text)


def _keep_message(log: _Log, level: str, text: str) -> None:
    """What says that all failed is kept however much came before."""
    kept = sum(known == level for known, _ in log.messages)
    is_last_word = level == "FATAL" or text.startswith("Benchmarking failed")
    if level in _LOUD and (kept < _KEPT_MAX or is_last_word):
        log.messages.setdefault((level, text))


def _take_stat(log: _Log, text: str) -> None:
    """Operator profiles have such lines as well, but never at the start."""
    if not text.startswith("count="):
        return
    stat = _stat(text)
    if stat is None or not log.phases or log.phases[-1].stat is not None:
        log.strays += 1
    else:
        log.phases[-1].stat = stat


def _take_phase(log: _Log, text: str) -> None:
    if found := _PHASE.fullmatch(text):
        log.phases.append(_Phase(int(found["runs"])))


def _take_closing(log: _Log, text: str) -> None:
    if found := _CLOSING.fullmatch(text) or _OLD_CLOSING.fullmatch(text):
        log.closings.append(found)


def _take_block_average(log: _Log, text: str) -> None:
    if found := _BLOCK_AVERAGE.fullmatch(text):
        log.blocks.append(found)


def _take_unconsumed(log: _Log, text: str) -> None:
    log.unconsumed += text.partition(_UNCONSUMED)[2].split()


def _take_threads(log: _Log, text: str) -> None:
    if found := _THREADS.fullmatch(text):
        log.threads.append(int(found[1]))


def _take_metric(log: _Log, text: str) -> None:
    for key, pattern, factor in _SIMPLE:
        if (found := pattern.fullmatch(text)) and (value := _real(found[1])) is not None:
            log.metrics.setdefault(key, round(value * factor, 6))


_TAKERS: tuple[tuple[tuple[str, ...], Callable[[_Log, str], None]], ...] = (
    (("count=",), _take_stat),
    (("Running benchmark for ",), _take_phase),
    (("timings in us: ",), _take_closing),
    (("Inference (avg):",), _take_block_average),
    ((_UNCONSUMED,), _take_unconsumed),
    (("#threads used", "Num threads"), _take_threads),
    (_SIMPLE_WORDS, _take_metric),
)
"""Who reads a line that has one of these words; the first takes it."""


def _real(text: str | None) -> float | None:
    value = float(text) if text is not None else math.nan
    return value if math.isfinite(value) else None


def _stat(text: str) -> Stat | None:
    """A statistics line in any of its shapes; None where it has none of them."""
    found = _STAT.fullmatch(text)
    if found is None:
        return None
    count, first, last = int(found["count"]), _real(found["first"]), _real(found["curr"])
    if count == 0:
        return Stat(0, None, None, None)
    values = {key: _real(found[key]) for key in ("median", "p5", "p95", "avg", "std", "min", "max")}
    if last is not None and values["avg"] is None and (count == 1 or found["same"]):
        # One value, or all the same one: then it is also the average, the extremes and every percentile.
        values = {key: last if values[key] is None else values[key] for key in values} | {"std": 0.0}
    summary = Summary(count, **values)
    return Stat(count, first if first is not None else last, last, summary if _is_possible(summary) else None)


def _is_possible(summary: Summary) -> bool:
    """Whether the numbers can be of one set of samples; `avg` is rounded to six digits."""
    ordered = [
        value for value in (summary.min, summary.p5, summary.median, summary.p95, summary.max) if value is not None
    ]
    if summary.avg is None or ordered != sorted(ordered):
        return False
    slack = 1e-5 * summary.avg
    least, most = summary.min, summary.max
    return least is not None and most is not None and least - slack <= summary.avg <= most + slack


def _measured(log: _Log) -> Stat | None:
    """The statistics of the measured phase, the second of two, where the closing repeats their average."""
    if len(log.phases) != 2 or log.strays or len(log.closings) + len(log.blocks) != 1:
        return None
    stat = log.phases[1].stat
    if stat is None or stat.summary is None or stat.summary.avg is None:
        return None
    if log.closings:
        return stat if _real(log.closings[0]["avg"]) == stat.summary.avg else None
    printed_ms = _real(log.blocks[0]["avg_ms"])
    is_same = printed_ms is not None and abs(printed_ms - stat.summary.avg / 1000.0) <= 0.0051 + 1e-8 * stat.summary.avg
    return stat if is_same and int(log.blocks[0]["count"]) == stat.count else None


def _metrics(log: _Log, measured: Stat | None, error: RunnerError | None) -> dict[str, Any]:
    """Init, first inference, warm-up, memory: each where it was printed. Times of failed inferences are none."""
    metrics: dict[str, Any] = dict(log.metrics)
    if len(log.closings) == 1 and (init_us := _real(log.closings[0]["init"])) is not None:
        metrics["init_us"] = init_us
    warmup = log.phases[0].stat if log.phases else None
    if error or log.strays:
        return metrics
    if warmup and warmup.summary:
        metrics |= {"first_us": warmup.first, "warmup_count": warmup.count, "warmup_avg_us": warmup.summary.avg}
    if measured:
        metrics |= {"steady_first_us": measured.first, "steady_last_us": measured.last}
    return {key: value for key, value in metrics.items() if value is not None}


def _observed(log: _Log) -> dict[str, Any]:
    phase = log.phases[1] if len(log.phases) == 2 and not log.strays else None
    count = phase.stat.count if phase and phase.stat else None
    program = Program.COMPILED_MODEL if log.blocks else Program.INTERPRETER if log.closings else None
    observed: dict[str, Any] = {
        "program": str(program) if program else None,
        "count": count,
        "unconsumed_flags": log.unconsumed or None,
        "threads_echo": log.threads[-1] if log.threads else None,
        "warnings": [text for level, text in log.messages if level != "FATAL"] or None,
    }
    if phase and count is not None:
        # Fewer inferences than the tool was told to make: of all its reasons to stop only the time cap is left.
        observed["stopped_by"] = "cap" if count < phase.runs else "enough"
    observed |= log.delegation.observed(is_interpreter=program == Program.INTERPRETER)
    return {key: value for key, value in observed.items() if value is not None}
