"""A run as plain data for the page: everything it shows at first sight, and no trial's details."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator import __version__
from orchestrator.analysis.choosing import Choice
from orchestrator.analysis.comparison import THRESHOLD, Comparison, percent
from orchestrator.analysis.crossover import Crossover
from orchestrator.analysis.estimate import Estimate, trial_latencies_us
from orchestrator.analysis.history import History
from orchestrator.analysis.operators import CellOps
from orchestrator.analysis.recommendation import Recommendation
from orchestrator.analysis.summary import CellSummary
from orchestrator.analysis.sustained import Sustained
from orchestrator.analysis.traces import CellTrace
from orchestrator.reports.doubts import cell_key, doubts, key_of, missing
from orchestrator.reports.run_content import RunContent
from orchestrator.reports.terminal import facts_text
from orchestrator.store import SessionRecord
from orchestrator.trial import Trial

_OPS_TOP = 12
_OPS_CELLS_MAX = 60
_HISTORIES_MAX = 200
_RUNS_MAX = 120
DIGITS = 8

Data = dict[str, Any]


def payload(content: RunContent) -> Data:
    """What the page holds in the open; figures have digits to spare, as they are rounded again."""
    record, summary = content.record, content.summary
    trials = trials_by_cell(content.trials)
    speedups = {
        (item.contrast.cell.id, item.contrast.arm): item for item in summary.crossovers if item.contrast.metric == "p50"
    }
    sensitivities = {
        (item.cell.id, item.arm): item.ratio for item in summary.load_sensitivities if item.metric == "p50"
    }
    return {
        "devbench": __version__,
        "run": {
            "id": record.id,
            "status": record.status,
            "created_at": record.created_at,
            "ended_at": record.ended_at,
            "seed": record.seed,
            "version": record.devbench_version,
            "tags": list(content.tags),
            "notes": list(content.notes),
        },
        "outcomes": _totals(content.trials),
        "devices": [_device(session) for session in _last_sessions(content.sessions)],
        "models": {digest: {"bytes": size} for digest, size in content.model_bytes.items()},
        "cells": [
            _cell(
                found,
                trials.get(cell_key(found), ()),
                speedups.get((found.cell.id, found.estimate.arm)),
                sensitivities.get((found.cell.id, found.estimate.arm)),
                content.stops.get(found.cell.id),
            )
            | {"is_reference": found.cell.id in content.references}
            for found in summary.cells
        ],
        "recommendations": [_recommendation(item) for item in content.recommendations],
        "doubts": [item.as_json() for item in doubts(summary)],
        "missing": [item.as_json() for item in missing(content.trials)],
        "remarks": [remark.as_json() for remark in summary.remarks],
        "sized": [sized.as_json() for sized in content.sized],
        "ops": [_ops(found) for found in content.ops[:_OPS_CELLS_MAX]],
        "traces": [_trace(found) for found in content.traces],
        "ops_left_out": max(0, len(content.ops) - _OPS_CELLS_MAX),
        "compared": _compared(content),
        "past": _past(content),
        "sustained": [_sustained(found, trials.get(found.cell.id, ())) for found in summary.sustained],
    }


def _trace(found: CellTrace) -> Data:
    """Where the trace of a cell is kept, and how to look at it; the file itself may be large."""
    passed, trace = found.passed, found.passed.trace
    return {
        "cell": passed.cell.id,
        "tool": passed.kind,
        "outcome": str(passed.outcome),
        "reason": passed.reason,
        "why": passed.why,
        "path": found.path,
        "bytes": trace.size_bytes if trace else None,
        "events": trace.events if trace else None,
        "viewer": found.viewer,
    }


def trials_by_cell(trials: Sequence[Trial]) -> dict[str, list[Trial]]:
    """The trials of each cell of the page, in the order in which they were made."""
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(key_of(trial.cell.id, trial.slot.arm), []).append(trial)
    return found


def figure(value: float | None) -> float | None:
    """Rounded; None for what is no number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")


def _estimate(found: Estimate | None) -> list[Any] | None:
    if found is None or found.value is None:
        return None
    return [figure(found.value), figure(found.low), figure(found.high), found.n]


def _totals(trials: Sequence[Trial]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for trial in trials:
        totals[str(trial.outcome)] = totals.get(str(trial.outcome), 0) + 1
    return totals


def _last_sessions(sessions: Sequence[SessionRecord]) -> list[SessionRecord]:
    return list({session.device: session for session in sessions}.values())


def _device(session: SessionRecord) -> Data:
    return {
        "name": session.device,
        "facts": facts_text(session.facts),
        "findings": [finding.as_json() for finding in session.findings],
        "ending": session.ending,
    }


def _cell(
    found: CellSummary,
    trials: Sequence[Trial],
    speedup: Crossover | None,
    against_idle: Estimate | None,
    stopped: str | None,
) -> Data:
    estimate, spread = found.estimate, found.variability
    return {
        **{key: value for key, value in found.cell.as_json().items() if value is not None},
        "id": cell_key(found),
        "arm": estimate.arm,
        "p50": _estimate(estimate.latency_us["p50"]),
        "p50_note": estimate.latency_us["p50"].note,
        "mean": _estimate(estimate.latency_us["mean"]),
        "p95": _estimate(estimate.latency_us["p95"]),
        "p90": _estimate(found.percentiles_us.get("p90")),
        "p99": _estimate(found.percentiles_us.get("p99")),
        "half": figure(estimate.half_width),
        "cv_in": figure(spread.within_cv),
        "cv_between": figure(spread.between_cv),
        "slow": figure(spread.slow_fraction),
        "speedup": _estimate(speedup.contrast.ratio.inverse) if speedup else None,
        "verdict": str(speedup.verdict) if speedup else None,
        "base_threads": speedup.contrast.base.threads if speedup else None,
        "vs_idle": _estimate(against_idle),
        "trust": str(found.trust.verdict),
        "trust_reasons": [reason.as_json() for reason in found.trust.reasons],
        "outcomes": {str(outcome): count for outcome, count in estimate.outcomes.items() if count},
        "reasons": [list(pair) for pair in estimate.reasons],
        "notes": [*estimate.notes, *spread.notes],
        "medians": {key: figure(value) for key, value in estimate.medians.items() if value is not None},
        "stopped": stopped,
        "trials": [_dot(trial) for trial in trials],
    }


def _dot(trial: Trial) -> list[Any]:
    """Block, outcome and typical latency: enough to draw it. What was not measured has no latency to be drawn at."""
    is_measured = trial.outcome == "measured"
    return [trial.slot.block, str(trial.outcome), figure(trial_latencies_us(trial)["p50"]) if is_measured else None]


def _choice(choice: Choice | None, arm: str | None) -> Data | None:
    if choice is None:
        return None
    return {
        "setting": choice.setting.text(),
        "threads": choice.setting.threads,
        "delegate": choice.setting.delegate,
        "affinity": choice.setting.affinity,
        "certainty": str(choice.certainty),
        "reason": choice.reason,
        "cell": key_of(choice.worst.cell.id, arm),
        "cells": [key_of(found.cell.id, arm) for found in choice.cells],
    }


def _recommendation(item: Recommendation) -> Data:
    return {
        "device": item.device,
        "model": item.model,
        "model_sha256": item.model_sha256,
        "runner": item.runner,
        "arm": item.arm,
        "idle": _choice(item.idle, item.arm),
        "loaded": _choice(item.loaded, item.arm),
        "text": item.text,
    }


def _ops(found: CellOps) -> Data:
    profile = found.profile
    return {
        "cell": found.cell.id,
        "name": str(found.cell),
        "outcome": str(found.passed.outcome),
        "reason": found.passed.reason,
        "runs": profile.runs if profile else None,
        "total_us": figure(profile.time_us) if profile else None,
        "delegated_us": figure(profile.delegated_us) if profile else None,
        "distortion": figure(found.distortion.ratio) if found.distortion else None,
        "types": [
            [row.type, row.is_delegated, row.count, figure(row.time_us), figure(row.share)] for row in found.types
        ],
        "top": [[op.name, op.type, op.is_delegated, figure(op.time_us)] for op in found.top(_OPS_TOP)],
        "notes": list(profile.notes) if profile else [],
        "log": found.passed.log,
        "artifacts": dict(found.passed.artifacts),
    }


def _compared(content: RunContent) -> Data | None:
    if content.compared is None:
        return None
    return {
        "base": content.compared.names[0],
        "new": content.compared.names[1],
        "threshold": THRESHOLD,
        "rows": [_comparison(row, content.compared.arm) for row in content.compared.rows],
        "only_base": [str(cell) for cell in content.compared.only_base],
        "only_new": [str(cell) for cell in content.compared.only_new],
    }


def _comparison(row: Comparison, arm: str | None) -> Data:
    return {
        "cell": key_of(row.cell.id, arm),
        "name": str(row.cell),
        "metric": row.metric,
        "verdict": str(row.verdict),
        "effect": figure(percent(row.effect)),
        "low": figure(percent(row.low)),
        "high": figure(percent(row.high)),
        "p": figure(row.p_adjusted),
        "n": [row.n_base, row.n_new],
        "interleaved": row.is_interleaved,
        "trust": str(row.trust.verdict),
        "blocks_needed": row.blocks_needed,
        "notes": list(row.notes),
    }


def _past(content: RunContent) -> Data:
    items = sorted(content.past, key=lambda item: not item.changes)
    return {
        "cells": [_history(item) for item in items[:_HISTORIES_MAX]],
        "cells_left_out": max(0, len(items) - _HISTORIES_MAX),
    }


def _history(item: History) -> Data:
    """The newest runs of a cell, as many as can be told apart in a drawing."""
    first = max(0, len(item.points) - _RUNS_MAX)
    points = item.points[first:]
    told = ("run", "direction", "effect_percent", "changed_fields")
    return {
        "cell": key_of(item.cell.id, item.arm),
        "name": str(item.cell),
        "runs_left_out": first,
        "points": [[point.run, point.started_s, *(_estimate(point.latency_us) or [None] * 4)] for point in points],
        "changes": [
            {"index": change["index"] - first, **{key: _rounded(change[key]) for key in told}}
            for change in item.as_json()["change_points"]
            if change["index"] >= first
        ],
        "note": item.note,
    }


def _rounded(value: Any) -> Any:
    return figure(value) if isinstance(value, float) else value


def _sustained(found: Sustained, trials: Sequence[Trial]) -> Data:
    curve: Sequence[Mapping[str, Any]] = found.as_json()["curve"]
    return {
        **found.cell.as_json(),
        "id": found.cell.id,
        "name": str(found.cell),
        "trials": [_dot(trial) for trial in trials],
        "seconds": figure(found.seconds),
        "start_us": figure(found.start_us),
        "end_us": figure(found.end_us),
        "throttled_after_s": figure(found.throttled_after_s),
        "curve": [[figure(point["t_s"]), figure(point["median_us"]), point["temperature_c"]] for point in curve],
        "notes": list(found.notes),
    }
