"""How often a device is said to decay that does not, and how often one that does is found."""

from __future__ import annotations

from collections import Counter

import numpy as np

from orchestrator.analysis.health import Verdict, healths
from tests.unit.fleet_models import FleetModel

_FLEETS = 40


def alarms_and_findings() -> None:
    """simulated fleets of 50 devices over 30 nights, `phone00` decaying or not (tests/unit/fleet_models.py)"""
    models = {
        "nothing, noise 1 %": FleetModel(),
        "nothing, noise 3 %": FleetModel(sd=0.03),
        "nothing, nights resemble each other": FleetModel(correlation=0.5),
        "+5 % slowly": FleetModel(decay=0.05),
        "+7 % slowly": FleetModel(decay=0.07),
        "+7 % in the last week": FleetModel(decay=0.07, at_once=True),
        "+7 % slowly, noise 3 %": FleetModel(decay=0.07, sd=0.03),
    }
    print("  what happens                          others: watch  decaying    it: watch or decaying  decaying")
    for name, model in models.items():
        others, it = _verdicts(model)
        told = it[Verdict.WATCH] + it[Verdict.DECAYING]
        found = f"{100 * told / _FLEETS:21.0f} %  {100 * it[Verdict.DECAYING] / _FLEETS:6.0f} %" if model.decay else ""
        shares = [100 * others[verdict] / others.total() for verdict in (Verdict.WATCH, Verdict.DECAYING)]
        print(f"  {name:38} {shares[0]:10.2f} %  {shares[1]:6.2f} %    {found}")


def _verdicts(model: FleetModel) -> tuple[Counter[Verdict], Counter[Verdict]]:
    rng = np.random.default_rng(4)
    others: Counter[Verdict] = Counter()
    it: Counter[Verdict] = Counter()
    for _ in range(_FLEETS):
        for found in healths(model.drawn(rng)):
            (it if found.device == "phone00" and model.decay else others)[found.verdict] += 1
    return others, it
