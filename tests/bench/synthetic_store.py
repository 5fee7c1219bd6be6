"""A store with runs that nobody measured, drawn from a known truth, as large as one likes: for figures and for tests.

Everything a report shows is in it: delegates, threads, loads, telemetry, logs, profiles, earlier and faster runs,
and trials that were rejected, failed, skipped and never run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator.op_profile import OpCost, OpProfile, ProfilePass
from orchestrator.store import RunRecord, SessionRecord, Store, open_store
from orchestrator.trace import TracePass, TraceSummary
from orchestrator.trial import Cell, Finding, Outcome, Severity, Slot, Trial

_LOADED = {"idle": 1.0, "app": 1.25, "cpu:2@50": 1.4, "cpu:4@100": 1.9}
_OPS = (("CONV_2D", 0.46), ("DEPTHWISE_CONV_2D", 0.31), ("FULLY_CONNECTED", 0.12), ("ADD", 0.05), ("SOFTMAX", 0.01))
_STATE = {"temperature_c": 31.5, "thermal_status": 0, "battery_percent": 87, "charging": True, "screen": "on"}


@dataclass(frozen=True)
class Shape:
    """How large the run is, and what its things are called."""

    devices: Sequence[str] = ("pixel8", "galaxy-a14")
    models: Sequence[str] = ("mobilenet_v2_f32", "mobilenet_v2_int8", "efficientnet_b0")
    threads: Sequence[int] = (1, 2, 4)
    loads: Sequence[str] = ("idle", "app", "cpu:2@50")
    delegates: Sequence[str] = ("xnnpack", "gpu")
    blocks: int = 8
    samples: int = 60
    points: int = 20
    log: str = "INFO: Initialized TensorFlow Lite runtime.\nINFO: Created delegate.\nINFO: count=60 avg=812\n"
    earlier_runs: int = 1
    arms: Sequence[str | None] = (None,)
    """Two make a run of two sides, of which the second is slower by 6 %."""


LARGE = Shape(
    devices=tuple(f"phone-{number:03}" for number in range(100)),
    models=("detector_f32", "detector_int8"),
    threads=(1, 4),
    loads=("idle", "cpu:2@50"),
    blocks=9,
    earlier_runs=0,
)
"""100 devices, 1200 cells, 10 800 trials."""


def filled(folder: Path, shape: Shape, *, seed: int = 1) -> Store:
    """The store with its runs; the last one is the one to look at."""
    store = open_store(folder)
    digests = _keep_models(store, folder, shape)
    for number in range(shape.earlier_runs + 1):
        _add_run(store, shape, digests, number, np.random.default_rng([seed, number]))
    return store


def _keep_models(store: Store, folder: Path, shape: Shape) -> dict[str, str]:
    from orchestrator.content_hash import sha256

    digests = {}
    for number, model in enumerate(shape.models):
        path = folder / f"model-{number}.tflite"
        path.write_bytes(bytes([number]) * (400_000 + 900_000 * (3 * number % 4)))
        store.keep_blob(path)
        digests[model] = sha256(path)
        path.unlink()
    return digests


def _cells(shape: Shape, digests: dict[str, str]) -> Iterator[Cell]:
    for device in shape.devices:
        for model in shape.models:
            for delegate in shape.delegates:
                for threads in shape.threads if delegate == "xnnpack" else shape.threads[:1]:
                    for load in shape.loads:
                        yield Cell(
                            device, model, digests[model], "benchmark_model", "cd" * 32, delegate, threads, "any", load
                        )


def _truth_us(cell: Cell, shape: Shape) -> float:
    """More threads pay when idle and cost under load; a GPU is faster and does not mind."""
    base = 9000.0 / (1 + 0.7 * list(shape.models).index(cell.model)) * (1 + 0.11 * (hash_of(cell.device) % 9))
    if cell.delegate != "xnnpack":
        return base * 0.34 * (1 + 0.05 * (_LOADED.get(cell.load, 1.3) - 1))
    busy = _LOADED.get(cell.load, 1.3) - 1
    return base / cell.threads**0.75 * (1 + busy * (cell.threads - 1) * 0.9 + 0.1 * busy)


def hash_of(text: str) -> int:
    return sum(text.encode("utf-8", "replace"))


def _add_run(store: Store, shape: Shape, digests: dict[str, str], number: int, rng: np.random.Generator) -> None:
    day = 10 + number
    record = RunRecord(
        id=f"2026-11-{day}T02:00:00Z-{number:04x}",
        created_at=f"2026-11-{day}T02:00:00.000Z",
        status="finished",
        plan={},
        fleet={"devices": [{"name": name} for name in shape.devices]},
        host={},
        seed=7,
        devbench_version="0.1.0",
        ended_at=f"2026-11-{day}T03:00:00.000Z",
    )
    cells = list(_cells(shape, digests))
    store.add_run(record, cells)
    for index, device in enumerate(shape.devices):
        store.add_session(_session(record, device, index))
    is_late = number > 0.6 * shape.earlier_runs
    trials = [
        _trial(store, shape, record, Slot(cell, block, position, arm), 1.06 ** (is_late + turn), rng)
        for block in range(shape.blocks)
        for position, cell in enumerate(cells)
        for turn, arm in enumerate(shape.arms)
    ]
    store.add_trials(trials)
    for cell in cells[: 2 * len(shape.loads)]:
        if cell.load == "idle":
            store.add_pass(_profile(shape, record, cell))
            store.add_pass(_trace(record, cell))


def _session(record: RunRecord, device: str, index: int) -> SessionRecord:
    facts: dict[str, Any] = {
        "cpu_model": "Tensor G3",
        "clusters": [{"name": name, "cpus": [0] * size} for name, size in (("little", 4), ("mid", 4), ("big", 1))],
        "memory_kb": 8_000_000,
        "os": "Android 15",
        "kernel": "5.15",
    }
    warned = (Finding("governor", Severity.WARN, "the governor is schedutil", "hold the clocks steady"),)
    return SessionRecord(
        f"{record.id}-{index}", record.id, device, record.created_at, facts, () if index else warned, None, "done"
    )


def _trial(
    store: Store,
    shape: Shape,
    record: RunRecord,
    slot: Slot,
    drift: float,
    rng: np.random.Generator,
) -> Trial:
    cell, block, position = slot.cell, slot.block, slot.position
    outcome, reason = _fate(cell, rng)
    ran = outcome in (Outcome.MEASURED, Outcome.REJECTED)
    median_us = _truth_us(cell, shape) * drift * float(np.exp(rng.normal(0, 0.012)))
    samples = tuple((median_us * np.exp(rng.gamma(1.2, 0.012, shape.samples))).tolist()) if ran else ()
    log = None
    if outcome is not Outcome.SKIPPED:
        name = f"b{block:03}-p{position:05}-{cell.id}{slot.arm or ''}"
        log = store.keep_log(name, record.id, f"# {cell.device} {cell.model} {reason}\n{shape.log}".encode())
    return Trial(
        run=record.id,
        slot=slot,
        session=f"{record.id}-{list(shape.devices).index(cell.device)}",
        outcome=outcome,
        reason=reason,
        started_at=f"2026-11-{record.id[8:10]}T02:{block:02}:{position % 60:02}.000Z",
        duration_s=1.4,
        samples_us=samples,
        metrics={"init_us": 3500.0, "memory_peak_kb": 41_000, "steady_from_ns": 1_300_000_000},
        telemetry=_telemetry(shape.points, rng) if ran else {},
        evidence=_evidence(cell),
        findings=(Finding("drift", Severity.WARN, "latency drifts within the trial", "cool it"),) if block == 3 else (),
        log=log,
    )


def _fate(cell: Cell, rng: np.random.Generator) -> tuple[Outcome, str | None]:
    draw = rng.random()
    if cell.delegate == "gpu" and hash_of(cell.device + cell.model) % 11 == 0:
        return Outcome.SKIPPED, "the device has no GPU delegate"
    if draw < 0.03:
        return Outcome.REJECTED, f"other programs used {60 + int(1000 * draw)} % of a CPU, and the limit is 50 %"
    if draw < 0.035:
        return Outcome.FAILED, "benchmark_model was ended by signal 9"
    return (Outcome.NOT_RUN, "the device went away") if draw > 0.997 else (Outcome.MEASURED, None)


def _telemetry(points: int, rng: np.random.Generator) -> dict[str, Any]:
    steps = np.arange(points)
    busy = np.cumsum(rng.integers(4, 10, (points, 4)), axis=0)
    return {
        "t_ms": (100.0 * steps).tolist(),
        "freq_khz": [[1_700_000, int(2_900_000 - 4000 * step)] for step in steps],
        "temp_mc": [[31_000 + 120 * int(step), 29_000] for step in steps],
        "busy": busy.tolist(),
        "child": [{"cpu_ns": int(90e6 * step)} for step in steps],
        "load_cpu_ns": [[int(50e6 * step)] for step in steps],
        "tick_hz": 100,
        "absent": {"battery": "none"},
    }


def _evidence(cell: Cell) -> dict[str, Any]:
    return {
        "argv": ["/data/local/tmp/benchmark_model", f"--graph={cell.model}.tflite", f"--num_threads={cell.threads}"],
        "env": {},
        "load_placement": "other-group",
        "observed": {"model_sha256": cell.model_sha256, "threads_seen": cell.threads, "nodes_delegated": 64},
        "started": {"t_ns": 1_000_000_000, "pid": 4711, "affinity": "ff"},
        "closing": {"exit": 0, "maxrss_kb": 41_000},
        "states": [_STATE, _STATE | {"temperature_c": 32.0}],
        "artifacts": {"result": f"artifacts/{cell.id}-result"},
    }


def _trace(record: RunRecord, cell: Cell) -> TracePass:
    return TracePass(
        record.id,
        cell,
        f"{record.id}-0",
        Outcome.MEASURED,
        None,
        record.created_at,
        artifacts={"trace": f"artifacts/{cell.id}.perfetto-trace"},
        kind="perfetto",
        trace=TraceSummary(2_400_000, events=20_000, duration_s=1.5),
        why="its trials fall into two groups",
    )


def _profile(shape: Shape, record: RunRecord, cell: Cell) -> ProfilePass:
    total_us = _truth_us(cell, shape)
    ops = tuple(
        OpCost(f"{kind.lower()}:{node}", kind, total_us * share / 3, is_delegated=kind != "SOFTMAX")
        for kind, share in _OPS
        for node in range(3)
    )
    return ProfilePass(
        record.id,
        cell,
        f"{record.id}-0",
        Outcome.MEASURED,
        None,
        record.created_at,
        latency_us=1.07 * total_us,
        profile=OpProfile("proto", ops, runs=50),
    )
