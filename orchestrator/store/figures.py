"""What a measured trial comes to: its latencies without its samples, as rows beside the trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from orchestrator.analysis.estimate import METRICS, trial_latencies_us
from orchestrator.store.rows import unpacked
from orchestrator.trial import Cell, Outcome, Pass, Slot, Summary, Trial

_KEYS = ("run_id", "cell_id", "block", "arm", "position", "session_id", "started_at")
_NO_SLOT = Slot(Cell("", "", "", "", None, "", 1, "", ""), 0, 0)


def figure_rows(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """A row for each trial that counts; other passes and what was not measured have none."""
    return [
        {
            "run_id": trial.run,
            "cell_id": trial.cell.id,
            "block": trial.slot.block,
            "arm": trial.slot.arm or "",
            "position": trial.slot.position,
            "session_id": trial.session,
            "started_at": trial.started_at,
            **_latencies(trial),
        }
        for trial in trials
        if trial.outcome is Outcome.MEASURED and trial.slot.purpose is Pass.LATENCY
    ]


def stored_figure_rows(rows: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The same from rows of measured trials, for stores that were written before there were figures."""
    for row in rows:
        summary = Summary(**row["summary"]) if row["summary"] else None
        samples_us = unpacked(row["samples_us"])
        trial = Trial("", _NO_SLOT, "", Outcome.MEASURED, None, "", samples_us=samples_us, summary=summary)
        yield {key: row[key] for key in _KEYS} | _latencies(trial)


def _latencies(trial: Trial) -> dict[str, float | None]:
    found = trial_latencies_us(trial)
    return {str(metric): found[metric] for metric in METRICS}
