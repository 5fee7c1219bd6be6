"""A run as CSV, one row a cell, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io

from orchestrator.analysis.estimate import Estimate
from orchestrator.analysis.summary import CellSummary
from orchestrator.reports.run_content import RunContent
from orchestrator.trial import Outcome

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def run_csv(content: RunContent) -> str:
    """A line of names and a line for each cell; latencies in microseconds, empty where there is none."""
    speedups = {
        (item.contrast.cell, item.contrast.arm): (item.contrast.ratio.inverse, str(item.verdict))
        for item in content.summary.crossovers
        if item.contrast.metric == "p50"
    }
    against_idle = {
        (item.cell, item.arm): item.ratio for item in content.summary.load_sensitivities if item.metric == "p50"
    }
    rows = []
    for found in content.summary.cells:
        key = found.cell, found.estimate.arm
        speedup, verdict = speedups.get(key, (None, ""))
        rows.append(
            _cell(found, content.record.id)
            | _named("speedup", speedup)
            | {"speedup_verdict": verdict}
            | _named("against_idle", against_idle.get(key))
            | {"stopped": content.stops.get(found.cell.id, "")}
        )
    names = list(rows[0]) if rows else ["run"]
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(names)
    table.writerows([[_safe(row[name]) for name in names] for row in rows])
    return written.getvalue()


def _cell(found: CellSummary, run: str) -> dict[str, object]:
    estimate, spread = found.estimate, found.variability
    row: dict[str, object] = {"run": run, "cell": found.cell.id, "arm": estimate.arm or "", **found.cell.as_json()}
    for metric, latency in estimate.latency_us.items():
        row |= _named(f"{metric}_us", latency)
    row |= {f"{name}_us": latency.value for name, latency in found.percentiles_us.items()}
    row |= {
        "half_width": estimate.half_width,
        "cv_within": spread.within_cv,
        "cv_between": spread.between_cv,
        "slow_fraction": spread.slow_fraction,
        "trust": str(found.trust.verdict),
        "trust_reasons": "; ".join(reason.text for reason in found.trust.reasons),
    }
    row |= {f"trials_{str(outcome).replace('-', '_')}": estimate.outcomes.get(outcome, 0) for outcome in Outcome}
    return row | {"not_measured": "; ".join(f"{count} x {reason}" for reason, count in estimate.reasons)}


def _named(name: str, found: Estimate | None) -> dict[str, object]:
    if found is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def _safe(value: object) -> object:
    """Text that a spreadsheet would take for a formula gets an apostrophe before it."""
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return "" if value is None else value
