"""Between the words and the rows of the store."""

from __future__ import annotations

import array
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.trial import Cell, Finding, Outcome, Pass, Slot, Summary, Trial

UNBUNDLED = "unbundled"
"""The key of a run's host that says that it came in a bundle, and when."""


@dataclass(frozen=True)
class RunRecord:
    """One run: what was asked, of whom, and how it ended."""

    id: str
    created_at: str
    status: str
    plan: Mapping[str, Any]
    fleet: Mapping[str, Any]
    host: Mapping[str, Any]
    seed: int
    devbench_version: str
    ended_at: str | None = None

    @property
    def is_ordinary(self) -> bool:
        """Whether it measured cells once a block: no calibration, and no two sides held against each other."""
        return not (self.plan.get("measure") or {}).get("arms")

    @property
    def duel(self) -> Mapping[str, Any] | None:
        """What it held against each other, where that is what it was for."""
        return self.fleet.get("duel")

    @property
    def is_from_here(self) -> bool:
        """Whether it was started with this store: neither imported nor unbundled."""
        return self.status != "imported" and UNBUNDLED not in self.host


@dataclass(frozen=True)
class SessionRecord:
    """One stretch of work on one device: what the device was, and why the work ended."""

    id: str
    run_id: str
    device: str
    started_at: str
    facts: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    ended_at: str | None = None
    ending: str | None = None


def safe_name(name: str) -> str:
    """As a file may be called that is about it."""
    return re.sub(r"[^A-Za-z0-9._-]+|^[.]+", "_", name)


def slot_key(trial: Trial) -> tuple[str, int, str]:
    return trial.cell.id, trial.slot.block, trial.slot.arm or ""


def imported_run(run_id: str, trials: Sequence[Trial], entered_at: str) -> RunRecord:
    devices = sorted({trial.cell.device for trial in trials})
    return RunRecord(
        id=run_id,
        created_at=entered_at,
        status="imported",
        plan={},
        fleet={"devices": [{"name": name} for name in devices]},
        host={},
        seed=0,
        devbench_version="",
    )


def _packed(values: Sequence[float]) -> bytes | None:
    """Little-endian doubles; nothing is rounded."""
    if not values:
        return None
    packed = array.array("d", values)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpacked(content: bytes | None) -> tuple[float, ...]:
    if not content:
        return ()
    values = array.array("d")
    values.frombytes(content)
    if sys.byteorder == "big":
        values.byteswap()
    return tuple(values)


def trial_row(trial: Trial) -> dict[str, Any]:
    return {
        "run_id": trial.run,
        "cell_id": trial.cell.id,
        "device": trial.cell.device,
        "block": trial.slot.block,
        "position": trial.slot.position,
        "arm": trial.slot.arm or "",
        "purpose": str(trial.slot.purpose),
        "session_id": trial.session,
        "outcome": str(trial.outcome),
        "reason": trial.reason,
        "started_at": trial.started_at,
        "duration_s": trial.duration_s,
        "samples_us": _packed(trial.samples_us),
        "warmup_us": _packed(trial.warmup_us),
        "summary": trial.summary.as_json() if trial.summary else None,
        "metrics": dict(trial.metrics),
        "telemetry": dict(trial.telemetry),
        "evidence": dict(trial.evidence),
        "findings": [finding.as_json() for finding in trial.findings],
        "log": trial.log,
    }


def cell_of(row: Any, prefix: str) -> Cell:
    names = (
        "device",
        "model",
        "model_sha256",
        "runner",
        "runner_sha256",
        "delegate",
        "threads",
        "affinity",
        "load",
    )
    return Cell(**{name: row[prefix + name] for name in names})


def trial_of(row: Any, cells: dict[str, Cell]) -> Trial:
    cell = cells.get(row["cell_id"])
    if cell is None:
        cell = cells[row["cell_id"]] = cell_of(row, "its_")
    return Trial(
        run=row["run_id"],
        slot=Slot(cell, row["block"], row["position"], row["arm"] or None, Pass(row["purpose"])),
        session=row["session_id"],
        outcome=Outcome(row["outcome"]),
        reason=row["reason"],
        started_at=row["started_at"],
        duration_s=row["duration_s"],
        samples_us=unpacked(row["samples_us"]),
        warmup_us=unpacked(row["warmup_us"]),
        summary=Summary(**row["summary"]) if row["summary"] else None,
        metrics=row["metrics"],
        telemetry=row["telemetry"],
        evidence=row["evidence"],
        findings=tuple(Finding.from_json(item) for item in row["findings"]),
        log=row["log"],
    )
