"""What the command line says about a plan; it wins over the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.delegate_tables import check_delegate
from orchestrator.errors import UsageError
from orchestrator.load import parse_load
from orchestrator.pinned import Reference
from orchestrator.plan import (
    Collect,
    Plan,
    check_affinity,
    check_runner,
    check_threads,
    check_tracer,
    parse_blocks,
    parse_sustain,
    parse_trace_size,
)
from orchestrator.settings import duration_s, fraction, suggestion
from orchestrator.trace import ANOMALY, EVERY


@dataclass(frozen=True)
class Overrides:
    """What the command line says; it wins over the file. None is unsaid."""

    models: tuple[str, ...] = ()
    runner: str | None = None
    delegates: str | None = None
    threads: str | None = None
    affinity: str | None = None
    loads: str | None = None
    blocks: str | None = None
    precision: str | None = None
    budget: str | None = None
    sustain: str | None = None
    seed: int | None = None
    profile: bool = False
    trace: bool | str = False
    trace_with: str | None = None
    trace_max_size: str | None = None
    baseline: str | None = None
    only: str | None = None
    """`profile` or `trace`: that alone, whatever else the plan collects."""
    reference: bool | None = None


def apply_overrides(plan: Plan, said: Overrides, folder: Path) -> Plan:
    """The plan with what the command line says; relative models of the command line start at `folder`."""
    return replace(
        plan,
        sweep=replace(plan.sweep, **_sweep_overrides(said, folder, tuple(plan.delegates))),
        measure=replace(plan.measure, **_measure_overrides(said)),
        collect=_collect_overrides(plan.collect, said),
        reference=plan.reference
        if said.reference is None
        else (plan.reference or Reference())
        if said.reference
        else None,
    )


def _collect_overrides(plan: Collect, said: Overrides) -> Collect:
    trace = _trace_word(said.trace) or plan.trace
    if not trace and (said.trace_with or said.trace_max_size):
        raise UsageError(
            "--trace-with and --trace-max-size are about traces, and none are asked for", remedy="add --trace"
        )
    tracers, size = said.trace_with, said.trace_max_size
    return Collect(
        profile=(plan.profile or said.profile) and said.only != "trace",
        trace=trace if said.only != "profile" else False,
        latency=plan.latency and said.only is None,
        trace_with=plan.trace_with if tracers is None else _listed("--trace-with", tracers, check_tracer),
        trace_bytes_max=plan.trace_bytes_max if size is None else _option("--trace-max-size", size, parse_trace_size),
        baseline=said.baseline or (plan.baseline if trace == ANOMALY and said.only is None else None),
    )


def _trace_word(said: bool | str) -> bool | str:
    if isinstance(said, bool) or said == ANOMALY:
        return said
    if said == EVERY:
        return True
    raise UsageError(f'--trace: "{said}" is unknown', remedy=suggestion(said, (EVERY, ANOMALY)))


def _sweep_overrides(said: Overrides, folder: Path, delegates: Sequence[str]) -> dict[str, Any]:
    sweep: dict[str, Any] = {}
    if said.models:
        sweep["models"] = tuple(str(folder / model) for model in said.models)
    if said.runner is not None:
        sweep["runners"] = _listed("--runner", said.runner, check_runner)
    if said.delegates is not None:
        sweep["delegates"] = _listed("--delegate", said.delegates, partial(check_delegate, known=delegates))
    if said.threads is not None:
        sweep["threads"] = None if said.threads == "auto" else _listed("--threads", said.threads, _thread_word)
    if said.affinity is not None:
        sweep["affinity"] = _listed("--affinity", said.affinity, check_affinity)
    if said.loads is not None:
        sweep["loads"] = None if said.loads == "auto" else _listed("--load", said.loads, partial(_load_word, folder))
    return sweep


def _measure_overrides(said: Overrides) -> dict[str, Any]:
    measure: dict[str, Any] = {}
    if said.blocks is not None:
        measure["blocks_min"], measure["blocks_max"] = _option("--blocks", said.blocks, parse_blocks)
    if said.precision is not None:
        measure["precision"] = _option("--precision", said.precision, fraction)
    if said.budget is not None:
        measure["budget_s"] = _option("--budget", said.budget, duration_s)
    if said.sustain is not None:
        measure["sustain_s"] = _option("--sustain", said.sustain, parse_sustain)
    if said.seed is not None:
        measure["seed"] = said.seed
    return measure


def blocks_said(text: str) -> tuple[int, int]:
    """What --blocks says."""
    blocks: tuple[int, int] = _option("--blocks", text, parse_blocks)
    return blocks


def budget_said(text: str) -> float:
    """What --budget says, in seconds."""
    return duration_said(text, "--budget")


def duration_said(text: str, option: str) -> float:
    """What an option says that is a time, in seconds."""
    return float(_option(option, text, duration_s))


def _thread_word(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f'"{text}" is no thread count: write --threads 1,2,4')
    return check_threads(int(text))


def _load_word(folder: Path, text: str) -> str:
    model = parse_load(text).model
    return text if model is None else f"model:{folder / model}"


def _listed(option: str, text: str, check: Any) -> tuple[Any, ...]:
    words = tuple(dict.fromkeys(_option(option, word.strip(), check) for word in text.split(",") if word.strip()))
    if not words:
        raise UsageError(f"{option}: nothing in the list", remedy=f"give {option} at least one value")
    return words


def _option(option: str, text: str, parse: Any) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        problem, _, remedy = str(error).partition(": ")
        raise UsageError(f"{option}: {problem}", remedy=remedy) from error
