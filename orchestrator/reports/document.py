"""A run as one JSON document: what `--json` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.analysis.recommendation import recommend
from orchestrator.analysis.summary import RunSummary
from orchestrator.pinned import is_reference
from orchestrator.store import RunRecord, SessionRecord


def run_document(
    record: RunRecord, sessions: Sequence[SessionRecord], summary: RunSummary, stops: Mapping[str, str]
) -> dict[str, Any]:
    """Everything a reader needs about a run but its raw samples, which `export` gives."""
    references = [cell.cell.id for cell in summary.cells if is_reference(record.fleet, cell.cell)]
    return {
        "run": record.id,
        "status": record.status,
        "created_at": record.created_at,
        "ended_at": record.ended_at,
        "seed": record.seed,
        "devbench_version": record.devbench_version,
        "plan": dict(record.plan),
        "host": dict(record.host),
        "devices": [_device(session) for session in sessions],
        "trials": _totals(summary),
        "stopped": dict(stops),
        "recommendations": [item.as_json() for item in recommend(summary, references)],
        **summary.as_json(),
        "references": references,
    }


def _device(session: SessionRecord) -> dict[str, Any]:
    return {
        "name": session.device,
        "session": session.id,
        "started_at": session.started_at,
        "ended_at": session.ended_at,
        "ending": session.ending,
        "facts": dict(session.facts),
        "findings": [finding.as_json() for finding in session.findings],
    }


def _totals(summary: RunSummary) -> dict[str, int]:
    totals: dict[str, int] = {}
    for cell in summary.cells:
        for outcome, count in cell.estimate.outcomes.items():
            totals[str(outcome)] = totals.get(str(outcome), 0) + count
    return totals
