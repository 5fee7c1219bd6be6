"""Which setting is best under some loads, and what keeps that from being settled.

The lowest mean latency wins, as under load the median hides every slow inference; under several loads the setting
whose worst is nearest to the best. Of settings as good as each other (proven within 5 %) the fewest threads win.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.analysis.contrast import IDLE, MARGIN, paired
from orchestrator.analysis.estimate import Estimate, Metric, estimates
from orchestrator.analysis.summary import CellSummary
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


def _latency_us(found: CellSummary) -> float | None:
    return found.estimate.latency_us[RANKED_BY].value


_AtLoad = Mapping[str, CellSummary]
Ratios = Mapping[tuple[int, int], Estimate]
"""A rival's cell over the leader's, by the identities of both."""


@dataclass(frozen=True)
class Draft:
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

    def decided(self, ratios: Ratios) -> Choice:
        leading = self.settings[self.leader]
        as_good, unsure = [self.leader], []
        for setting, at_load in self.settings.items():
            if setting == self.leader:
                continue
            against = [ratios[id(found), id(leading[load])] for load, found in at_load.items()]
            if all(ratio.high is not None and ratio.high < 1 + MARGIN for ratio in against):
                as_good.append(setting)
            elif not _is_beaten(against):
                unsure.append(setting)
        chosen = min(as_good)
        reason = self._doubt(chosen, unsure)
        certainty = Certainty.LEADING if reason else Certainty.SETTLED
        ahead = self._ahead(ratios) if chosen == self.leader else {}
        return Choice(chosen, tuple(self.settings[chosen].values()), certainty, reason, ahead)

    def _ahead(self, ratios: Ratios) -> dict[str, tuple[Setting, float]]:
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


def _is_beaten(against: Sequence[Estimate]) -> bool:
    """Whether a rival, wherever in its intervals, loses more at its worst load than it gains at its best."""
    lows = [ratio.low for ratio in against if ratio.low is not None]
    return len(lows) == len(against) and max(lows) > max(1 / low for low in lows)


def _named(chosen: Setting, rivals: Sequence[Setting]) -> str:
    delegates = len({setting.delegate for setting in (chosen, *rivals)}) > 1
    return " or ".join(setting.text(names_delegate=delegates) for setting in sorted(rivals)[:3])


def draft_of(cells: Sequence[CellSummary], *, busy: bool) -> Draft | None:
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
    return Draft(whole, leader, tuple(setting for setting in settings if setting not in whole))


def _is_doubted(at_load: _AtLoad) -> bool:
    return any(found.trust.verdict in _DOUBTED for found in at_load.values())


def _us(found: CellSummary) -> float:
    latency_us = _latency_us(found)
    assert latency_us is not None, "only measured cells are compared"
    return latency_us


def rival_ratios(drafts: Sequence[Draft]) -> Ratios:
    """Each rival over its leader, paired by block, all estimated together."""
    pairs = [pair for draft in drafts for pair in draft.pairs()]
    series = [paired(*(found.estimate.by_block[RANKED_BY] for found in pair)) for pair in pairs]
    found = estimates(series, probes=(1.0, 1 + MARGIN))
    return {(id(rival), id(leader)): ratio for (rival, leader), ratio in zip(pairs, found, strict=True)}
