"""Which setting to use for each model on each device: when idle, under load, and how surely.

The lowest mean latency wins, as under load the median hides every slow inference; under several loads the setting
whose worst is nearest to the best. Of settings as good as each other (proven within 5 %) the fewest threads win.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.analysis.contrast import IDLE, MARGIN, paired
from orchestrator.analysis.crossover import Crossover, Verdict
from orchestrator.analysis.estimate import Estimate, Metric, estimates
from orchestrator.analysis.summary import CellSummary, RunSummary
from orchestrator.analysis.trust import TrustVerdict

RANKED_BY: Metric = "mean"
_DOUBTED = (TrustVerdict.CONTAMINATED, TrustVerdict.INSUFFICIENT)


class Certainty(StrEnum):
    """Whether every other setting is proven no better."""

    SETTLED = "settled"
    LEADING = "leading"


@dataclass(frozen=True, order=True)
class Setting:
    """What one chooses: threads first, as fewer are preferred."""

    threads: int
    delegate: str
    affinity: str

    @classmethod
    def of(cls, found: CellSummary) -> Setting:
        return cls(found.cell.threads, found.cell.delegate, found.cell.affinity)

    def text(self, *, names_delegate: bool = True) -> str:
        """`xnnpack, 2 threads on big`."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        affinity = "" if self.affinity == "any" else f" on {self.affinity}"
        return f"{self.delegate}, {threads}{affinity}" if names_delegate else f"{threads}{affinity}"


@dataclass(frozen=True)
class Choice:
    """The setting to use under some loads, its cell at each of them, and what keeps it from being settled."""

    setting: Setting
    cells: tuple[CellSummary, ...]
    certainty: Certainty
    reason: str | None
    ahead: Mapping[str, tuple[Setting, float]]
    """At each load the best setting of another delegate, and how many times as fast the chosen one is."""

    @property
    def worst(self) -> CellSummary:
        """Its cell at the load where it is slowest."""
        return max(self.cells, key=lambda found: _latency_us(found) or 0.0)

    def as_json(self) -> dict[str, Any]:
        return {
            "delegate": self.setting.delegate,
            "threads": self.setting.threads,
            "affinity": self.setting.affinity,
            "certainty": str(self.certainty),
            "reason": self.reason,
            "cells": {found.cell.load: found.cell.id for found in self.cells},
            "worst_load": self.worst.cell.load,
        }


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
_AtLoad = Mapping[str, CellSummary]


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
    drafts = {place: (_draft(cells, busy=False), _draft(cells, busy=True)) for place, cells in groups.items()}
    ratios = _ratios([draft for pair in drafts.values() for draft in pair if draft])
    said = []
    for place, (idle, loaded) in drafts.items():
        choices = idle.decided(ratios) if idle else None, loaded.decided(ratios) if loaded else None
        said.append(_recommendation(place, groups[place], choices, crossovers.get(place, [])))
    return tuple(said)


def _place(found: CellSummary) -> _Place:
    cell = found.cell
    return cell.device, cell.model, cell.model_sha256, cell.runner, found.estimate.arm or ""


def _latency_us(found: CellSummary) -> float | None:
    return found.estimate.latency_us[RANKED_BY].value


# Choosing


@dataclass(frozen=True)
class _Draft:
    """The settings measured under all of some loads, and the one that leads."""

    settings: Mapping[Setting, _AtLoad]
    leader: Setting
    partial: tuple[Setting, ...]
    """Settings measured under some of the loads only, so that nobody knows their worst."""

    def pairs(self) -> Iterator[tuple[CellSummary, CellSummary]]:
        """Every rival's cells over the leader's."""
        for setting, at_load in self.settings.items():
            if setting != self.leader:
                yield from ((found, self.settings[self.leader][load]) for load, found in at_load.items())

    def decided(self, ratios: Mapping[tuple[int, int], Estimate]) -> Choice:
        leading = self.settings[self.leader]
        as_good, unsure = [self.leader], []
        for setting, at_load in self.settings.items():
            if setting == self.leader:
                continue
            against = [ratios[id(found), id(leading[load])] for load, found in at_load.items()]
            if all(ratio.high is not None and ratio.high < 1 + MARGIN for ratio in against):
                as_good.append(setting)
            elif not any(ratio.low is not None and ratio.low > 1 for ratio in against):
                unsure.append(setting)
        chosen = min(as_good)
        reason = self._doubt(chosen, unsure)
        certainty = Certainty.LEADING if reason else Certainty.SETTLED
        ahead = self._ahead(ratios) if chosen == self.leader else {}
        return Choice(chosen, tuple(self.settings[chosen].values()), certainty, reason, ahead)

    def _ahead(self, ratios: Mapping[tuple[int, int], Estimate]) -> dict[str, tuple[Setting, float]]:
        found: dict[str, tuple[Setting, float]] = {}
        for setting, at_load in self.settings.items():
            for load, rival in at_load.items() if setting.delegate != self.leader.delegate else ():
                ratio = ratios[id(rival), id(self.settings[self.leader][load])].value
                if ratio is not None and (load not in found or ratio < found[load][1]):
                    found[load] = setting, ratio
        return found

    def _doubt(self, chosen: Setting, unsure: Sequence[Setting]) -> str | None:
        """What keeps the choice from being settled: numbers that something besides the model made may mislead, whether
        they are the chosen setting's or a rival's."""
        verdicts = {found.trust.verdict for found in self.settings[chosen].values()} & set(_DOUBTED)
        if verdicts:
            return f"what was measured of it is {' and '.join(sorted(verdicts))}"
        if unsure:
            return f"{_named(chosen, unsure)} may be as good"
        doubted = [setting for setting, at_load in self.settings.items() if _is_doubted(at_load)]
        if doubted:
            return f"what was measured of {_named(chosen, doubted)} cannot be trusted"
        return f"{_named(chosen, self.partial)} was not measured under every load" if self.partial else None


def _named(chosen: Setting, rivals: Sequence[Setting]) -> str:
    delegates = len({setting.delegate for setting in (chosen, *rivals)}) > 1
    return " or ".join(setting.text(names_delegate=delegates) for setting in sorted(rivals)[:3])


def _draft(cells: Sequence[CellSummary], *, busy: bool) -> _Draft | None:
    """The settings that were measured under every load that counts; None where there is none."""
    loads = [found.cell.load for found in cells if (found.cell.load != IDLE) == busy and _latency_us(found) is not None]
    settings: dict[Setting, dict[str, CellSummary]] = {}
    for found in cells:
        if found.cell.load in loads and _latency_us(found) is not None:
            settings.setdefault(Setting.of(found), {})[found.cell.load] = found
    whole = {setting: at_load for setting, at_load in settings.items() if len(at_load) == len(set(loads))}
    if not whole:
        return None
    best_us = {load: min(_us(at_load[load]) for at_load in whole.values()) for load in loads}
    regret = {
        setting: max(math.log(_us(at_load[load]) / best_us[load]) for load in at_load)
        for setting, at_load in whole.items()
    }
    leader = min(whole, key=lambda setting: (regret[setting], setting))
    return _Draft(whole, leader, tuple(setting for setting in settings if setting not in whole))


def _is_doubted(at_load: _AtLoad) -> bool:
    return any(found.trust.verdict in _DOUBTED for found in at_load.values())


def _us(found: CellSummary) -> float:
    latency_us = _latency_us(found)
    assert latency_us is not None, "only measured cells are compared"
    return latency_us


def _ratios(drafts: Sequence[_Draft]) -> dict[tuple[int, int], Estimate]:
    """Each rival over its leader, paired by block, all estimated together."""
    pairs = [pair for draft in drafts for pair in draft.pairs()]
    series = [paired(*(found.estimate.by_block[RANKED_BY] for found in pair)) for pair in pairs]
    found = estimates(series, probes=(1.0, 1 + MARGIN))
    return {(id(rival), id(leader)): ratio for (rival, leader), ratio in zip(pairs, found, strict=True)}


# Saying it


def _recommendation(
    place: _Place,
    cells: Sequence[CellSummary],
    choices: tuple[Choice | None, Choice | None],
    crossovers: Sequence[Crossover],
) -> Recommendation:
    idle, loaded = choices
    device, model, model_sha256, runner, arm = place
    names_delegate = len({(found.cell.delegate) for found in cells}) > 1
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
