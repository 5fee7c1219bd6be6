"""Passes that are no trials as rows: beside the trials, never among them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from orchestrator.cell_pass import CellPass
from orchestrator.op_profile import OpProfile, ProfilePass
from orchestrator.trace import TracePass, TraceSummary
from orchestrator.trial import Cell, Finding, Outcome

P = TypeVar("P", bound=CellPass)

PROFILE = "profile"
TRACE = "trace"
"""A cell may have a trace of each tracer, so that these kinds go on with a colon and its name."""


def kind_of(passed: CellPass) -> str:
    if isinstance(passed, TracePass):
        return f"{TRACE}:{passed.kind}" if passed.kind else TRACE
    return PROFILE


def pass_row(passed: CellPass) -> dict[str, Any]:
    return {
        "run_id": passed.run,
        "cell_id": passed.cell.id,
        "kind": kind_of(passed),
        "device": passed.cell.device,
        "session_id": passed.session,
        "outcome": str(passed.outcome),
        "reason": passed.reason,
        "started_at": passed.started_at,
        "duration_s": passed.duration_s,
        "latency_us": passed.latency_us,
        "content": _content(passed),
        "evidence": dict(passed.evidence),
        "findings": [finding.as_json() for finding in passed.findings],
        "log": passed.log,
        "artifacts": dict(passed.artifacts),
    }


def _content(passed: CellPass) -> dict[str, Any] | None:
    if isinstance(passed, TracePass):
        return {"trace": passed.trace.as_json() if passed.trace else None, "why": passed.why}
    assert isinstance(passed, ProfilePass)
    return passed.profile.as_json() if passed.profile else None


def profile_of(row: Any, cell: Cell) -> ProfilePass:
    profile = OpProfile.from_json(row["content"]) if row["content"] else None
    return replace(_common(ProfilePass, row, cell), profile=profile)


def trace_of(row: Any, cell: Cell) -> TracePass:
    content = row["content"] or {}
    return replace(
        _common(TracePass, row, cell),
        kind=row["kind"].partition(":")[2] or None,
        trace=TraceSummary.from_json(content["trace"]) if content.get("trace") else None,
        why=content.get("why"),
    )


def _common(kind: type[P], row: Any, cell: Cell) -> P:
    return kind(
        run=row["run_id"],
        cell=cell,
        session=row["session_id"],
        outcome=Outcome(row["outcome"]),
        reason=row["reason"],
        started_at=row["started_at"],
        duration_s=row["duration_s"],
        latency_us=row["latency_us"],
        evidence=row["evidence"],
        findings=tuple(Finding.from_json(item) for item in row["findings"]),
        log=row["log"],
        artifacts=row["artifacts"],
    )
