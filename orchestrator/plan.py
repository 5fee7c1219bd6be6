"""The plan: what the user wants measured and how carefully, from plan.toml and the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.delegate_tables import check_delegate, read_delegates, read_required_share
from orchestrator.delegates import BUILT_IN, Delegate, parts_of, with_cache
from orchestrator.load import parse_load
from orchestrator.pinned import Reference, read_reference
from orchestrator.settings import Table, duration_s, read_toml, size_bytes
from orchestrator.trace import ANOMALY, BYTES_DEFAULT, BYTES_MAX, BYTES_MIN

T = TypeVar("T")

THREADS_MAX = 1024
RUNS_MAX = 200_000
SUSTAIN_S_MIN, SUSTAIN_S_MAX = 2.0, 86_400.0
PLACEMENTS = ("other-group", "same-group")
AS_FOUND = "as-found"
CANARY = ("auto", "on", "off")
_AFFINITY = re.compile(r"any|big|mid|little|(0x)?[0-9a-fA-F]{1,256}")
_TRACER = re.compile(r"[a-z0-9_]+")
_RUNNER = re.compile(r"[a-z0-9_]+(:[a-z0-9-]+)?")


@dataclass(frozen=True)
class Sweep:
    """The grid. None for threads or loads means: what suits each device."""

    models: tuple[str, ...] = ()
    runners: tuple[str, ...] = ()
    delegates: tuple[str, ...] = ("xnnpack",)
    threads: tuple[int, ...] | None = None
    affinity: tuple[str, ...] = ("any",)
    loads: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Measure:
    """How carefully. A trial takes at least `runs` timed inferences and at least `min_ms`."""

    blocks_min: int = 8
    blocks_max: int = 18
    precision: float = 0.02
    warmup_runs: int = 5
    warmup_min_ms: int = 300
    runs: int = 50
    min_ms: int = 300
    max_ms: int = 20_000
    settle_ms: int = 300
    sample_ms: int = 100
    trial_timeout_s: float = 120.0
    budget_s: float | None = None
    seed: int | None = None
    input_seed: int = 1
    inputs: str | None = None
    sustain_s: float | None = None
    """Run each cell back to back for this long instead, to see when the device slows down."""
    arms: tuple[str, ...] = ()
    """Every cell runs once for each of these in a block; calibration has two that are the same."""
    sessions: int = 1
    """The blocks are spread over so many sessions: the device is let go and made ready anew in between."""


@dataclass(frozen=True)
class Conditions:
    """What is held or demanded while measuring."""

    governor: str = AS_FOUND
    screen: str = AS_FOUND
    airplane: bool = False
    fixed_performance: bool = False
    doze: str = AS_FOUND
    stop_background_apps: bool = False
    load_placement: str = "other-group"
    load_tolerance_points: float = 10.0
    other_cpu_percent_max: float | None = None
    canary: str = "auto"
    canary_slack: float = 0.1
    cool_down_max_s: float = 120.0
    delegated_share_min: float = 0.0
    """The share of nodes the delegate must take: 0 is any but none, 1 is all."""


@dataclass(frozen=True)
class Collect:
    """What else is brought back."""

    profile: bool = False
    trace: bool | str = False
    """True is every cell, `anomaly` the odd ones."""
    latency: bool = True
    trace_with: tuple[str, ...] = ()
    """The tracers by name; empty for the best that each device has."""
    trace_bytes_max: int = BYTES_DEFAULT
    baseline: str | None = None
    """The run that tells which cells got slower; None is the newest earlier one that has the cell."""


@dataclass(frozen=True)
class Plan:
    """Everything the user wants, knowing no device."""

    sweep: Sweep = Sweep()
    measure: Measure = Measure()
    conditions: Conditions = Conditions()
    collect: Collect = Collect()
    folder: Path = Path()
    """Where relative model paths start."""
    own_delegates: tuple[Delegate, ...] = ()
    reference: Reference | None = None
    has_no_reference: bool = False
    """The plan says `reference = false`, so that a night measures none either."""

    @property
    def delegates(self) -> Mapping[str, Delegate]:
        """Every delegate that a cell of this plan may name."""
        return {**BUILT_IN, **{delegate.name: delegate for delegate in self.own_delegates}}

    def delegate(self, word: str) -> Delegate:
        """The delegate behind `gpu`, `gpu+warm` or the label of a cell of this plan."""
        name, cache = parts_of(word)
        return with_cache(self.delegates[name], cache)

    def as_json(self) -> dict[str, Any]:
        return {
            part: {item.name: getattr(getattr(self, part), item.name) for item in fields(getattr(self, part))}
            for part in ("sweep", "measure", "conditions", "collect")
        } | {
            "folder": str(self.folder),
            "delegates": [delegate.as_json() for delegate in self.own_delegates],
            "reference": self.reference.as_json() if self.reference else None,
        }


def plan_from_json(content: Mapping[str, Any]) -> Plan:
    """The plan as stored with its run, for `--resume`."""
    return Plan(
        sweep=_part(Sweep, content["sweep"]),
        measure=measure_from_json(content["measure"]),
        conditions=_part(Conditions, content["conditions"]),
        collect=_part(Collect, content["collect"]),
        folder=Path(content["folder"]),
        own_delegates=tuple(Delegate.from_json(item) for item in content.get("delegates") or ()),
        reference=Reference(**content["reference"]) if content.get("reference") else None,
    )


def measure_from_json(content: Mapping[str, Any]) -> Measure:
    return _part(Measure, content)


def _part(kind: type[T], values: Mapping[str, Any]) -> T:
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})


def read_plan(path: Path) -> Plan:
    """The plan in `path`, every key checked."""
    root = read_toml(path)
    sweep, measure = root.table("sweep"), root.table("measure")
    conditions, collect = root.table("conditions"), root.table("collect")
    own_delegates = read_delegates(root)
    known = (*BUILT_IN, *(delegate.name for delegate in own_delegates))
    reference, has_none = read_reference(root, check_runner, partial(check_delegate, known=known), THREADS_MAX)
    plan = Plan(
        sweep=_read_sweep(sweep, known),
        measure=_read_measure(measure),
        conditions=_read_conditions(conditions),
        collect=_read_collect(collect),
        folder=path.parent,
        own_delegates=own_delegates,
        reference=reference,
        has_no_reference=has_none,
    )
    for table in (sweep, measure, conditions, collect, root):
        table.finish()
    return plan


def _read_collect(table: Table) -> Collect:
    collect = Collect(
        profile=table.boolean("profile", False),
        trace=_read_trace(table),
        latency=table.boolean("latency", True),
        trace_with=_checked(table, "trace_with", (), check_tracer),
        trace_bytes_max=_read_trace_size(table),
        baseline=table.optional_text("baseline"),
    )
    if not (collect.latency or collect.profile or collect.trace):
        raise table.error("latency", "is false, and nothing else is collected", "add profile = true, or remove it")
    if not collect.latency and collect.trace == ANOMALY:
        raise table.error("latency", "is false, and only latencies show what is odd", "write trace = true")
    if collect.baseline and collect.trace != ANOMALY:
        raise table.error("baseline", "tells which cells are odd", 'write trace = "anomaly" with it')
    return collect


def _read_trace(table: Table) -> bool | str:
    value = table.raw("trace")
    if value in (None, True, False, ANOMALY):
        return value or False
    raise table.error("trace", f"{value!r} is neither true, false nor {ANOMALY}", f'write trace = true or "{ANOMALY}"')


def _read_trace_size(table: Table) -> int:
    text = table.optional_text("trace_max_size")
    try:
        return BYTES_DEFAULT if text is None else parse_trace_size(text)
    except ValueError as error:
        raise _split(table, "trace_max_size", error) from error


def parse_trace_size(text: str) -> int:
    """Bytes; ValueError for what is no size, or no sensible one for a trace."""
    size = size_bytes(text)
    if not BYTES_MIN <= size <= BYTES_MAX:
        raise ValueError(f'"{text}" is no size for a trace: use 1MB to 4GB')
    return size


def check_tracer(name: str) -> str:
    if not _TRACER.fullmatch(name):
        raise ValueError(f'"{name}" is no name of a tracer: write it like perfetto or perf')
    return name


def _read_sweep(table: Table, delegates: Sequence[str]) -> Sweep:
    default = Sweep()
    return Sweep(
        models=_checked(table, "models", default.models, str),
        runners=_checked(table, "runners", default.runners, check_runner),
        delegates=_checked(table, "delegates", default.delegates, partial(check_delegate, known=delegates)),
        threads=_read_threads(table),
        affinity=_checked(table, "affinity", default.affinity, check_affinity),
        loads=None if _is_auto(table, "loads") else _checked(table, "loads", (), parse_load),
    )


def _is_auto(table: Table, key: str) -> bool:
    return table.raw(key) in (None, "auto")


def _read_threads(table: Table) -> tuple[int, ...] | None:
    value = table.raw("threads")
    if value in (None, "auto"):
        return None
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        raise table.error("threads", f"{value!r} is not a list of whole numbers", 'write threads = [1, 2, 4] or "auto"')
    if not value:
        raise table.error("threads", "is an empty list", "name at least one, or leave threads out")
    try:
        return tuple(check_threads(item) for item in value)
    except ValueError as error:
        raise _split(table, "threads", error) from error


def _checked(table: Table, key: str, default: Sequence[str], check: Any) -> tuple[str, ...]:
    values = table.texts(key, default)
    if table.has(key) and not values:
        raise table.error(key, "is an empty list", f"name at least one, or leave {key} out")
    try:
        for value in values:
            check(value)
    except ValueError as error:
        raise _split(table, key, error) from error
    return values


def _split(table: Table, key: str, error: ValueError) -> Exception:
    problem, _, remedy = str(error).partition(": ")
    return table.error(key, problem, remedy)


def check_threads(count: int) -> int:
    if not 1 <= count <= THREADS_MAX:
        raise ValueError(f"{count} threads: use 1 to {THREADS_MAX}")
    return count


def check_affinity(text: str) -> str:
    if not _AFFINITY.fullmatch(text) or (text not in ("any", "big", "mid", "little") and int(text, 16) == 0):
        raise ValueError(f'"{text}" is no affinity: use any, big, mid, little or a hexadecimal CPU mask such as f0')
    return text


def check_runner(name: str) -> str:
    if not _RUNNER.fullmatch(name):
        raise ValueError(f'"{name}" is no runner name: write it like litert_runner or litert_runner:zero-copy')
    return name


def parse_blocks(text: str) -> tuple[int, int]:
    """(8, 18) for `8:18`, (10, 10) for `10`; ValueError otherwise."""
    match = re.fullmatch(r"\s*(\d+)\s*(?::\s*(\d+)\s*)?", text)
    low = int(match[1]) if match else 0
    high = int(match[2] or match[1]) if match else 0
    if not 1 <= low <= high <= 10_000:
        raise ValueError(f'"{text}" is no number of blocks: write MIN:MAX or one number, at least 1 and at most 10000')
    return low, high


def _read_blocks(table: Table) -> tuple[int, int]:
    value = table.raw("blocks")
    if value is None:
        return Measure.blocks_min, Measure.blocks_max
    if type(value) is not int and not isinstance(value, str):
        raise table.error("blocks", f"{value!r} is not a number of blocks", 'write blocks = "8:18" or blocks = 10')
    try:
        return parse_blocks(str(value))
    except ValueError as error:
        raise _split(table, "blocks", error) from error


def parse_sustain(text: str) -> float:
    """Seconds of a sustained run; ValueError for what is no duration, or too short or long to be one."""
    seconds = duration_s(text)
    if not SUSTAIN_S_MIN <= seconds <= SUSTAIN_S_MAX:
        raise ValueError(f'"{text}" is no time for a sustained run: use 2s to 24h')
    return seconds


def _read_sustain(table: Table) -> float | None:
    text = table.optional_text("sustain")
    try:
        return None if text is None else parse_sustain(text)
    except ValueError as error:
        raise _split(table, "sustain", error) from error


def _read_measure(table: Table) -> Measure:
    default = Measure()
    blocks_min, blocks_max = _read_blocks(table)
    measure = Measure(
        blocks_min=blocks_min,
        blocks_max=blocks_max,
        precision=table.fraction("precision") or default.precision,
        warmup_runs=table.integer("warmup_runs", 0, RUNS_MAX, default.warmup_runs),
        warmup_min_ms=table.integer("warmup_min_ms", 0, 600_000, default.warmup_min_ms),
        runs=table.integer("runs", 1, RUNS_MAX, default.runs),
        min_ms=table.integer("min_ms", 0, 3_600_000, default.min_ms),
        max_ms=table.integer("max_ms", 1, 3_600_000, default.max_ms),
        settle_ms=table.integer("settle_ms", 10, 600_000, default.settle_ms),
        sample_ms=table.integer("sample_ms", 0, 60_000, default.sample_ms),
        trial_timeout_s=table.duration_s("trial_timeout") or default.trial_timeout_s,
        budget_s=table.duration_s("budget"),
        seed=table.optional_integer("seed", 0, 2**63 - 1),
        input_seed=table.integer("input_seed", 0, 2**31 - 1, default.input_seed),
        inputs=table.optional_text("inputs"),
        sustain_s=_read_sustain(table),
    )
    if measure.max_ms < measure.min_ms:
        raise table.error("max_ms", f"{measure.max_ms} is below min_ms = {measure.min_ms}", "raise max_ms")
    if measure.max_ms < measure.warmup_min_ms:
        problem = f"{measure.max_ms} is below warmup_min_ms = {measure.warmup_min_ms}"
        raise table.error("max_ms", problem, "raise max_ms, which caps the warm-up too")
    return measure


def _read_conditions(table: Table) -> Conditions:
    default = Conditions()
    return Conditions(
        governor=table.optional_text("governor") or default.governor,
        screen=table.choice("screen", (AS_FOUND, "on", "off"), default.screen),
        airplane=table.boolean("airplane", default.airplane),
        fixed_performance=table.boolean("fixed_performance", default.fixed_performance),
        doze=table.choice("doze", (AS_FOUND, "off"), default.doze),
        stop_background_apps=table.boolean("stop_background_apps", default.stop_background_apps),
        load_placement=table.choice("load_placement", PLACEMENTS, default.load_placement),
        load_tolerance_points=table.number("load_tolerance_points", 0.1, 100, default.load_tolerance_points),
        other_cpu_percent_max=table.optional_number("other_cpu_percent_max", 0, 100_000),
        canary=table.choice("canary", CANARY, default.canary),
        canary_slack=table.fraction("canary_slack") or default.canary_slack,
        cool_down_max_s=table.duration_s("cool_down_max") or default.cool_down_max_s,
        delegated_share_min=read_required_share(table),
    )
