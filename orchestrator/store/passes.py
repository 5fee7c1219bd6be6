"""Profile passes as rows: beside the trials, never among them."""

from __future__ import annotations

from typing import Any

from orchestrator.op_profile import OpProfile, ProfilePass
from orchestrator.trial import Cell, Finding, Outcome

PROFILE = "profile"


def pass_row(passed: ProfilePass) -> dict[str, Any]:
    return {
        "run_id": passed.run,
        "cell_id": passed.cell.id,
        "kind": PROFILE,
        "device": passed.cell.device,
        "session_id": passed.session,
        "outcome": str(passed.outcome),
        "reason": passed.reason,
        "started_at": passed.started_at,
        "duration_s": passed.duration_s,
        "latency_us": passed.latency_us,
        "content": passed.profile.as_json() if passed.profile else None,
        "evidence": dict(passed.evidence),
        "findings": [finding.as_json() for finding in passed.findings],
        "log": passed.log,
        "artifacts": dict(passed.artifacts),
    }


def pass_of(row: Any, cell: Cell) -> ProfilePass:
    return ProfilePass(
        run=row["run_id"],
        cell=cell,
        session=row["session_id"],
        outcome=Outcome(row["outcome"]),
        reason=row["reason"],
        started_at=row["started_at"],
        duration_s=row["duration_s"],
        latency_us=row["latency_us"],
        profile=OpProfile.from_json(row["content"]) if row["content"] else None,
        evidence=row["evidence"],
        findings=tuple(Finding.from_json(item) for item in row["findings"]),
        log=row["log"],
        artifacts=row["artifacts"],
    )
