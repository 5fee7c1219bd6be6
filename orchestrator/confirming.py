"""Stage two of the gate: the suspects alone, the baseline's bytes against tonight's, interleaved on their devices."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.analysis.comparison import FAILING, Change, Comparison
from orchestrator.analysis.gate_words import Confirmation, GateResult, Row, Verdict, worst_first
from orchestrator.content_hash import sha256
from orchestrator.contest import Pair, Side
from orchestrator.duel import BLOCKS, DuelResult, duel_measure, hold, prepare_duel, resume_duel
from orchestrator.errors import DevbenchError
from orchestrator.fleet import Device
from orchestrator.kept_sides import side_of
from orchestrator.observing import Observer
from orchestrator.plan import plan_from_json
from orchestrator.prepare import Prepared, device_from_json
from orchestrator.store import RunRecord, Store

COMMAND = "gate"


def confirm(
    store: Store,
    result: GateResult,
    fleet: Mapping[str, Device],
    observer: Observer,
    stop: threading.Event,
    *,
    budget_s: float | None = None,
    blocks: tuple[int, int] = BLOCKS,
) -> GateResult:
    """The result with every suspect confirmed, refuted, or with the reason why it could not be run again.

    Devices are those of `fleet` where it has them, and those of the run otherwise. Interrupted where `stop` was set;
    the same call goes on with what was begun.
    """
    suspects = worst_first(result.of(Verdict.SUSPECTED))
    if not suspects:
        return result
    record = store.find_run(result.run)
    pairs, unconfirmed = _pairs(store, record, suspects, fleet)
    if pairs:
        try:
            prepared, is_resumed = _prepared(store, record, result, pairs, budget_s, blocks)
        except DevbenchError as error:
            unconfirmed |= {pair.candidate.cell.id: error.fact for pair in pairs}
        else:
            found = hold(prepared, store, observer, stop, resumed=is_resumed)
            rows = tuple(decided(row, found) for row in result.rows)
            unconfirmed |= dict(found.missing)
            result = replace(result, rows=rows, duel=found.run_id)
    return replace(result, unconfirmed=unconfirmed)


def _pairs(
    store: Store, record: RunRecord, suspects: Sequence[Row], fleet: Mapping[str, Device]
) -> tuple[list[Pair], dict[str, str]]:
    """The questions to be asked again, and why some cannot be."""
    stored = {str(content["name"]): content for content in record.fleet.get("devices") or ()}
    pairs, unconfirmed = [], {}
    for row in suspects:
        assert row.baseline is not None and row.base_cell is not None, "a suspect was held against something"
        name = row.cell.device
        try:
            baseline, candidate = side_of(store, row.baseline, row.base_cell), side_of(store, record.id, row.cell)
            if lost := lost_runtime(baseline, candidate):
                unconfirmed[row.cell.id] = lost
            else:
                pairs.append(Pair(fleet.get(name) or device_from_json(stored[name]), baseline, candidate))
        except DevbenchError as error:
            unconfirmed[row.cell.id] = error.fact
    return pairs, unconfirmed


def lost_runtime(baseline: Side, candidate: Side) -> str | None:
    """Why the baseline cannot be brought back: its runtime was installed where it ran, and is another one now. Running
    both sides on tonight's would clear a runtime that got slower."""
    before, now = (side.runner_facts.get("library_sha256") for side in (baseline, candidate))
    is_kept = before in {sha256(path) for path in baseline.runner_files.values()}
    if before is None or now is None or before == now or is_kept:
        return None
    was, is_now = (side.runner_facts.get("runtime_version") or "unknown" for side in (baseline, candidate))
    return f"the runtime it ran on is not kept, and another is installed now ({was} {before[:8]}, {is_now} {now[:8]})"


def _prepared(
    store: Store,
    record: RunRecord,
    result: GateResult,
    pairs: Sequence[Pair],
    budget_s: float | None,
    blocks: tuple[int, int],
) -> tuple[Prepared, bool]:
    """The duel, or the one that was begun for the same question and interrupted; and whether it is that."""
    origin = {
        "command": COMMAND,
        "run": record.id,
        "baseline": result.baseline,
        "cells": sorted(pair.candidate.cell.id for pair in pairs),
        "resume": f"devbench gate {record.id} --baseline {result.baseline}",
    }
    for earlier in store.runs():
        if earlier.status in ("running", "interrupted") and _asks(earlier, origin):
            return resume_duel(store, earlier.id, COMMAND), True
    measure = duel_measure(plan_from_json(record.plan), blocks=blocks, budget_s=budget_s)
    return prepare_duel(store, pairs, measure=measure, origin=origin, threshold=result.threshold), False


def _asks(record: RunRecord, origin: Mapping[str, Any]) -> bool:
    asked = (record.duel or {}).get("origin") or {}
    return all(asked.get(key) == origin[key] for key in ("command", "run", "baseline", "cells"))


def decided(row: Row, found: DuelResult) -> Row:
    """A suspect with the answer of the duel. Slower by any metric confirms it: there the family was corrected for."""
    of_cell = [one for one in found.rows if one.cell.id == row.cell.id]
    if row.verdict is not Verdict.SUSPECTED or not of_cell or row.cell.id in found.missing:
        return row
    typical = next(one for one in of_cell if one.metric == "p50")
    slower = [one for one in of_cell if one.verdict in FAILING]
    answer = next(iter(sorted(slower, key=lambda one: one.metric != "p50")), typical)
    verdict = Verdict.SUSPECTED
    if slower:
        verdict = Verdict.CONFIRMED
    elif typical.verdict in (Change.SAME, Change.FASTER):
        verdict = Verdict.REFUTED
    return replace(row, verdict=verdict, confirmation=_confirmation(answer, found.run_id))


def _confirmation(answer: Comparison, run: str) -> Confirmation:
    return Confirmation(
        run=run,
        verdict=str(answer.verdict),
        effect=answer.effect,
        low=answer.low,
        high=answer.high,
        blocks=answer.n_new,
        metric=answer.metric,
    )
