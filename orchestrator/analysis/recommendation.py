"""What to use for each model on each device, in a sentence: when idle, under load, and how surely."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.analysis.choosing import RANKED_BY, Choice, draft_of, rival_ratios
from orchestrator.analysis.contrast import IDLE
from orchestrator.analysis.crossover import Crossover, Verdict
from orchestrator.analysis.summary import CellSummary, RunSummary


@dataclass(frozen=True)
class Recommendation:
    """What to use for one model with one runner on one device; `text` says it in a sentence."""

    device: str
    model: str
    model_sha256: str
    runner: str
    arm: str | None
    idle: Choice | None
    loaded: Choice | None
    text: str

    def as_json(self) -> dict[str, Any]:
        return {
            "device": self.device,
            "model": self.model,
            "model_sha256": self.model_sha256,
            "runner": self.runner,
            "arm": self.arm,
            "ranked_by": RANKED_BY,
            "idle": self.idle.as_json() if self.idle else None,
            "loaded": self.loaded.as_json() if self.loaded else None,
            "text": self.text,
        }


_Place = tuple[str, str, str, str, str]


def recommend(summary: RunSummary, without: Collection[str] = ()) -> tuple[Recommendation, ...]:
    """One recommendation for each model, runner and device of a run, in the order of its cells; cells whose ids are in
    `without`, such as a pinned reference, are nobody's choice."""
    groups: dict[_Place, list[CellSummary]] = {}
    for found in summary.cells:
        if found.cell.id not in without:
            groups.setdefault(_place(found), []).append(found)
    crossovers: dict[_Place, list[Crossover]] = {}
    for crossover in summary.crossovers:
        if crossover.contrast.metric == RANKED_BY:
            cell, arm = crossover.contrast.cell, crossover.contrast.arm
            place = cell.device, cell.model, cell.model_sha256, cell.runner, arm or ""
            crossovers.setdefault(place, []).append(crossover)
    drafts = {place: (draft_of(cells, busy=False), draft_of(cells, busy=True)) for place, cells in groups.items()}
    ratios = rival_ratios([draft for pair in drafts.values() for draft in pair if draft])
    said = []
    for place, (idle, loaded) in drafts.items():
        choices = idle.decided(ratios) if idle else None, loaded.decided(ratios) if loaded else None
        said.append(_recommendation(place, groups[place], choices, crossovers.get(place, [])))
    return tuple(said)


def _place(found: CellSummary) -> _Place:
    cell = found.cell
    return cell.device, cell.model, cell.model_sha256, cell.runner, found.estimate.arm or ""


def _recommendation(
    place: _Place,
    cells: Sequence[CellSummary],
    choices: tuple[Choice | None, Choice | None],
    crossovers: Sequence[Crossover],
) -> Recommendation:
    idle, loaded = choices
    device, model, model_sha256, runner, arm = place
    names_delegate = len({found.cell.delegate for found in cells}) > 1
    advice = _advice(cells, idle, loaded, names_delegate=names_delegate)
    sentence = _crossover_text(idle, loaded, crossovers) or _delegates_text(idle, loaded)
    text = f"{sentence}: {advice}" if sentence else advice
    return Recommendation(device, model, model_sha256, runner, arm or None, idle, loaded, text)


def _advice(cells: Sequence[CellSummary], idle: Choice | None, loaded: Choice | None, *, names_delegate: bool) -> str:
    if idle is None and loaded is None:
        return "no setting was measured, so none can be recommended"
    only = idle or loaded
    assert only is not None, "one of them is there"
    if idle is None or loaded is None:
        where, other = ("when idle", "under load") if idle else ("under load", "when idle")
        was_swept = any((found.cell.load == IDLE) == (idle is None) for found in cells)
        why = f"no setting was measured {other} throughout" if was_swept else f"nothing was swept {other}"
        return f"use {only.setting.text(names_delegate=names_delegate)} {where}{_doubt(only.reason)}; {why}"
    one, other = (choice.setting.text(names_delegate=names_delegate) for choice in (idle, loaded))
    if idle.reason == loaded.reason:
        return f"use {_both(one, other)}{_doubt(idle.reason)}"
    if idle.setting == loaded.setting:
        return f"use {one}, when idle{_doubt(idle.reason)} and under load{_doubt(loaded.reason)}"
    return f"use {one} when idle{_doubt(idle.reason)}, {other} under load{_doubt(loaded.reason)}"


def _both(idle: str, loaded: str) -> str:
    return idle if idle == loaded else f"{idle} when idle, {loaded} under load"


def _doubt(reason: str | None) -> str:
    return f" (not settled: {reason})" if reason else ""


def _crossover_text(idle: Choice | None, loaded: Choice | None, crossovers: Sequence[Crossover]) -> str | None:
    """How the chosen thread count, or the most threads swept, do against the base: idle, and where they do worst."""
    chosen = [choice.setting for choice in (idle, loaded) if choice]
    if not chosen:
        return None
    swept = [
        item
        for item in crossovers
        if (item.contrast.cell.delegate, item.contrast.cell.affinity) == (chosen[0].delegate, chosen[0].affinity)
        and item.speedup is not None
    ]
    if not swept:
        return None
    most = max(item.contrast.cell.threads for item in swept)
    base = swept[0].contrast.base.threads
    threads = next((setting.threads for setting in chosen if base < setting.threads), most)
    of_threads = [item for item in swept if item.contrast.cell.threads == threads]
    at_idle = next((item for item in of_threads if item.contrast.cell.load == IDLE), None)
    busy = [item for item in of_threads if item.contrast.cell.load != IDLE]
    worst = min(busy, key=lambda item: item.speedup or math.inf, default=None)
    told = [item for item in (at_idle, worst) if item]
    is_open = all(item.verdict is Verdict.UNDECIDED for item in told)
    parts = [
        f"{_speed(item, is_open)}{f' as fast as {base}' if not number else ''} {_where(item.contrast.cell.load)}"
        for number, item in enumerate(told)
    ]
    return f"{threads} threads are {' and '.join(parts)}{' (undecided)' if is_open else ''}" if told else None


def _delegates_text(idle: Choice | None, loaded: Choice | None) -> str | None:
    """How the chosen delegate does against the best of the others: idle, and where it does worst."""
    first = idle or loaded
    if first is None:
        return None
    ahead = dict(idle.ahead) if idle else {}
    if loaded and loaded.ahead and loaded.setting.delegate == first.setting.delegate:
        worst = min(loaded.ahead, key=lambda load: loaded.ahead[load][1])
        ahead[worst] = loaded.ahead[worst]
    parts, named = list[str](), None
    for load, (rival, ratio) in ahead.items():
        against = "" if rival == named else f" as fast as {rival.text()}"
        parts.append(f"{ratio:.2f}x{against} {_where(load)}")
        named = rival
    return f"{first.setting.delegate} is {' and '.join(parts)}" if parts else None


def _where(load: str) -> str:
    return "when idle" if load == IDLE else f"under {load}"


def _speed(crossover: Crossover, is_open: bool) -> str:
    unsettled = " (undecided)" if crossover.verdict is Verdict.UNDECIDED and not is_open else ""
    return f"{crossover.speedup:.2f}x{unsettled}"
