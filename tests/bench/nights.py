"""How fast a year of nights is read: 365 runs of 50 devices, 584,000 trials."""

from __future__ import annotations

import datetime
import itertools
import json
import sqlite3
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator.clock import SYSTEM
from orchestrator.plan import Plan
from orchestrator.store import open_store
from orchestrator.trial import Cell
from tests.bench.measuring import PYTHON, timed

_LAST = SYSTEM.now().replace(hour=2, minute=0, second=0, microsecond=0) - datetime.timedelta(days=1)
_BEFORE = f"{_LAST - datetime.timedelta(days=1):%Y-%m-%d}"
_SAMPLES = 80
_DEVBENCH = (PYTHON, "-c", "from orchestrator.cli import main; main()")


@dataclass(frozen=True)
class Year:
    """How many nights of how many devices, and what each measures."""

    nights: int = 365
    devices: int = 50
    cells: int = 4
    blocks: int = 8

    @property
    def trials(self) -> int:
        return self.nights * self.devices * self.cells * self.blocks


def a_year_of_nights() -> None:
    """commands on a store of a year (wall time; the store is made by bulk insert, without artifacts)"""
    year = Year()
    with tempfile.TemporaryDirectory() as folder:
        began = SYSTEM.monotonic_s()
        place = Path(folder) / "store"
        fill(place, year)
        size = (place / "devbench.sqlite").stat().st_size
        print(f"  {year.nights} nights of {year.devices} devices: {year.trials} trials, {size / 1e9:.1f} GB, "
              f"made in {SYSTEM.monotonic_s() - began:.0f} s")  # fmt: skip
        print_times(place)
        done = timed([*_DEVBENCH, "prune", "--keep", "90d", "--store", str(place)])
        print(f"  {'devbench prune --keep 90d':57} {done.wall_s:6.2f} s  {done.stdout.decode().splitlines()[-1]}")


def print_times(place: Path) -> None:
    commands = [
        ["runs"],
        ["runs", "--limit", "0", "--json"],
        ["show", "last"],
        ["compare", _BEFORE, "last", "--ignore", "runner_sha256"],
        ["history", "--device", "phone00"],
        ["history"],
        ["health"],
        ["health", "--since", "1y"],
        ["prune", "--keep", "90d", "--dry-run"],
        ["bundle", "last", "--output", str(place / "bundle.zip")],
        ["gate", "last", "--baseline", _BEFORE, "--no-confirm"],
    ]
    for command in commands:
        argv = [*_DEVBENCH, *command, "--store", str(place)]
        if command[0] == "gate" and not _has(command[0]):
            print("  devbench gate: not in this version")
            continue
        done = timed(argv, accepted=(0, 1, 5))
        print(f"  devbench {' '.join(command):48} {done.wall_s:6.2f} s  {len(done.stdout):>9} bytes", flush=True)


def _has(command: str) -> bool:
    from orchestrator.cli import app

    return any((found.name or getattr(found.callback, "__name__", "")) == command for found in app.registered_commands)


def fill(place: Path, year: Year) -> None:
    """Make the store, its rows as a real night leaves them: samples, telemetry, evidence, sessions, figures."""
    open_store(place).close()
    connection = sqlite3.connect(place / "devbench.sqlite")
    connection.execute("PRAGMA synchronous=OFF")
    rng = np.random.default_rng(0)
    level = rng.uniform(6, 10, (year.devices, year.cells))
    for night in range(year.nights):
        with connection:
            _fill_night(connection, year, night, level, rng)
    connection.execute("ANALYZE")
    connection.close()


def _fill_night(
    connection: sqlite3.Connection, year: Year, night: int, level: np.ndarray, rng: np.random.Generator
) -> None:
    moment = _LAST - datetime.timedelta(days=year.nights - 1 - night)
    run = f"{moment:%Y-%m-%dT%H:%M:%SZ}-{night:04x}"
    names = [f"phone{number:02d}" for number in range(year.devices)]
    cells = {name: _cells(name, year.cells, night) for name in names}
    _insert(connection, "runs", [_run_row(run, moment, names)])
    _insert(connection, "sessions", (_session_row(run, name, moment) for name in names))
    _insert(
        connection,
        "cells",
        (cell.as_json() | {"run_id": run, "id": cell.id} for name in names for cell in cells[name]),
    )
    nights_noise = rng.normal(0, 0.01, (year.devices, 1, 1)) + level[:, :, None]
    latencies = np.exp(nights_noise + rng.normal(0, 0.02, (year.devices, year.cells, year.blocks)))
    latencies *= 1.06 if night > year.nights - 40 else 1.0
    rows = [
        _trial_row(
            run, names[device], cells[names[device]][cell].id, block, float(latencies[device, cell, block]), moment
        )
        for device, block, cell in itertools.product(range(year.devices), range(year.blocks), range(year.cells))
    ]
    _insert(connection, "trials", rows)
    _insert(connection, "figures", map(_figure_row, rows))


def _insert(connection: sqlite3.Connection, table: str, rows: Any) -> None:
    rows = iter(rows)
    first = next(rows)
    names = ", ".join(f'"{name}"' for name in first)
    marks = ", ".join(f":{name}" for name in first)
    connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", itertools.chain([first], rows))


def _run_row(run: str, moment: datetime.datetime, names: list[str]) -> dict[str, Any]:
    devices = [{"name": name, "transport": "adb", "address": {"serial": f"R58{name}"}, "tags": []} for name in names]
    fleet = {"devices": devices, "files": {"models": [["m", "ab" * 32]]}}
    plan = Plan(folder=Path("/lab")).as_json()
    return {
        "id": run,
        "created_at": f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z",
        "ended_at": f"{moment + datetime.timedelta(hours=2):%Y-%m-%dT%H:%M:%S.%f}Z",
        "status": "finished",
        "plan": json.dumps(plan),
        "fleet": json.dumps(fleet),
        "host": "{}",
        "seed": 1,
        "devbench_version": "0.1.0",
    }


_FACTS = json.dumps(
    {"os": "Android 14", "machine": "aarch64", "cores": 8, "raw": {f"ro.{i}": "x" * 30 for i in range(99)}}
)


def _session_row(run: str, name: str, moment: datetime.datetime) -> dict[str, Any]:
    return {
        "id": f"{run}-{name}",
        "run_id": run,
        "device": name,
        "started_at": f"{moment:%Y-%m-%dT%H:%M:%S.000Z}",
        "ended_at": f"{moment:%Y-%m-%dT%H:%M:%S.000Z}",
        "facts": _FACTS,
        "findings": "[]",
        "ending": "done",
    }


def _cells(name: str, count: int, night: int) -> list[Cell]:
    """Half of them are the same bytes all year; the others get a new build every week."""
    return [
        Cell(name, f"model{number}", "ab" * 32, "benchmark_model", f"{night // 7 if number % 2 else 0:064x}", "xnnpack",
             1 + number % 4, "any", "idle")
        for number in range(count)
    ]  # fmt: skip


_SPREAD = np.exp(0.02 * np.random.default_rng(1).normal(size=_SAMPLES))
_TELEMETRY = json.dumps({"t_ns": list(range(0, 2_000_000_000, 100_000_000)), "freq_khz": [[1_800_000] * 8] * 20,
                         "temp_mc": [[31_000, 32_000]] * 20})  # fmt: skip
_EVIDENCE = json.dumps({"argv": ["x" * 60] * 10, "states": [{"temperature_c": 31.0, "battery_percent": 80}] * 2,
                        "cool_down": {"canary_best_ns": 2_000_000, "canary_ns": 2_000_100}})  # fmt: skip


def _trial_row(
    run: str, name: str, cell: str, block: int, latency_us: float, moment: datetime.datetime
) -> dict[str, Any]:
    return {
        "run_id": run,
        "cell_id": cell,
        "device": name,
        "block": block,
        "position": 0,
        "arm": "",
        "session_id": f"{run}-{name}",
        "outcome": "measured",
        "started_at": f"{moment + datetime.timedelta(minutes=block):%Y-%m-%dT%H:%M:%S.000Z}",
        "duration_s": 2.0,
        "samples_us": (latency_us * _SPREAD).tobytes(),
        "metrics": "{}",
        "telemetry": _TELEMETRY,
        "evidence": _EVIDENCE,
        "findings": "[]",
        "purpose": "latency",
    }


_MEDIAN, _MEAN, _P95 = (float(figure) for figure in (np.median(_SPREAD), _SPREAD.mean(), np.quantile(_SPREAD, 0.95)))


def _figure_row(row: dict[str, Any]) -> dict[str, Any]:
    keys = ("run_id", "cell_id", "block", "arm", "position", "session_id", "started_at")
    latency_us = np.frombuffer(row["samples_us"])[0] / _SPREAD[0]
    figures = {"p50": latency_us * _MEDIAN, "mean": latency_us * _MEAN, "p95": latency_us * _P95}
    return {key: row[key] for key in keys} | {key: float(value) for key, value in figures.items()}


if __name__ == "__main__":
    fill(Path(sys.argv[1]), Year(*map(int, sys.argv[2:])))
