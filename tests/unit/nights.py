"""Nights for tests: runs of a fleet with sessions, trials, logs and blobs, in a real store."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.content_hash import sha256
from orchestrator.plan import Measure, Plan
from orchestrator.store import RunRecord, SessionRecord, Store
from orchestrator.trial import Cell
from tests.unit.trial_factory import make_cell, make_trial

LAST_NIGHT = datetime.datetime(2026, 11, 18, 2, tzinfo=datetime.UTC)


def night_id(nights_ago: int) -> str:
    moment = LAST_NIGHT - datetime.timedelta(days=nights_ago)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}-{nights_ago:04x}"


def add_night(
    store: Store,
    nights_ago: int,
    *,
    blocks: int = 2,
    devices: Sequence[str] = ("pixel8",),
    model: Path | None = None,
    status: str = "finished",
    arms: Sequence[str] = (),
    logs: bool = True,
) -> str:
    """A run of so many nights ago, with the artifacts of its trials and its model as a blob; gives its id."""
    run_id = night_id(nights_ago)
    moment = LAST_NIGHT - datetime.timedelta(days=nights_ago)
    digest = sha256(model) if model else "ab" * 32
    if model:
        store.keep_blob(model)
    cells = [make_cell(device=device, model_sha256=digest) for device in devices]
    store.add_run(a_record(run_id, moment, devices, digest, status, arms), cells)
    for cell in cells:
        _add_work(store, run_id, moment, cell, blocks, logs)
    return run_id


def a_record(
    run_id: str, moment: datetime.datetime, devices: Sequence[str], digest: str, status: str, arms: Sequence[str]
) -> RunRecord:
    fleet: dict[str, Any] = {
        "devices": [{"name": name, "transport": "adb", "address": {"serial": f"SERIAL-{name}"}} for name in devices],
        "files": {"models": [["mobilenet_v2", digest]], "load_models": {}, "inputs": None, "delegates": []},
    }
    return RunRecord(
        id=run_id,
        created_at=f"{moment:%Y-%m-%dT%H:%M:%S}.000000Z",
        status=status,
        plan=Plan(folder=Path("/lab/bench"), measure=Measure(arms=tuple(arms))).as_json(),
        fleet=fleet,
        host={},
        seed=1,
        devbench_version="0.1.0",
        ended_at=f"{moment:%Y-%m-%dT%H}:40:00.000Z",
    )


def _add_work(store: Store, run_id: str, moment: datetime.datetime, cell: Cell, blocks: int, logs: bool) -> None:
    session = f"{run_id}-{cell.device}"
    began = f"{moment:%Y-%m-%dT%H}:00:01.000Z"
    store.add_session(SessionRecord(session, run_id, cell.device, began, {"cores": 8}))
    trials = [
        replace(
            make_trial(cell=cell, block=block, run=run_id),
            session=session,
            log=store.keep_log(f"{cell.device}-b{block}", run_id, b"a log\n") if logs else None,
        )
        for block in range(blocks)
    ]
    store.add_trials(trials)
    store.end_session(session, f"{moment:%Y-%m-%dT%H}:30:00.000Z", "done")
