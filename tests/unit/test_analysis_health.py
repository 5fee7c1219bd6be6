"""Which device decays: found when it does, and nearly never when none does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orchestrator.analysis.health import Night, Verdict, healths
from orchestrator.analysis.worsening import worsening
from tests.unit.fleet_models import FleetModel

QUIET = FleetModel(devices=6, nights=14)


def changed(change: Callable[[int, Night], Night], model: FleetModel = QUIET) -> dict[str, tuple[Verdict, set[str]]]:
    """What is said when one phone's nights are changed; `change` is given how many nights ago it was."""
    nights = [
        change(model.nights - 1 - int(night.run[3:]), replace(night, ending="done", drops=0))
        if night.device == "phone00"
        else replace(night, ending="done", drops=0)
        for night in model.drawn(np.random.default_rng(5))
    ]
    return {item.device: (item.verdict, {finding.rule for finding in item.findings}) for item in healths(nights)}


@pytest.mark.parametrize("model", [FleetModel(), FleetModel(correlation=0.5), FleetModel(sd=0.03)], ids=str)
def test_healthy_fleets_are_left_in_peace(model: FleetModel) -> None:
    """Of 200 devices over 30 nights, none is said to decay and at most 4 to be watched."""
    rng = np.random.default_rng(11)
    verdicts = [item.verdict for _ in range(4) for item in healths(model.drawn(rng))]
    assert verdicts.count(Verdict.DECAYING) == 0
    assert verdicts.count(Verdict.WATCH) <= 4


@pytest.mark.parametrize("model", [FleetModel(decay=0.07), FleetModel(decay=0.07, at_once=True)], ids=str)
def test_a_device_that_decays_is_named_with_the_run(model: FleetModel) -> None:
    """Slowly or at once, in a fleet whose room is warm on some nights."""
    for seed in range(4):
        found = {item.device: item for item in healths(model.drawn(np.random.default_rng(seed)))}
        assert found["phone00"].verdict is Verdict.DECAYING
        if model.at_once:
            assert {moved.run for moved in found["phone00"].moved.values()} == {"run023"}


def test_what_moves_all_devices_is_no_device() -> None:
    """A hot week, or an update of the runner's library, shows on all of them."""
    nights = FleetModel(devices=8).drawn(np.random.default_rng(1))
    hot = [replace(night, pace=(night.pace or 0) + 0.1) if night.run > "run022" else night for night in nights]
    assert {item.verdict for item in healths(hot)} <= {Verdict.HEALTHY, Verdict.WATCH}
    assert not any(item.moved for item in healths(hot))


def test_an_update_is_told_from_decay() -> None:
    """The build changed with the level: watch it, calibrate it anew, but it does not decay."""
    found = changed(lambda ago, night: replace(night, pace=(night.pace or 0) + 0.1, build="15") if ago < 6 else night)
    assert found["phone00"] == (Verdict.WATCH, {"pace-moved"})


def lost_on(*nights: int) -> Callable[[int, Night], Night]:
    return lambda ago, night: replace(night, ending="lost: gone") if ago in nights else night


def lately(nights: int, **changes: Any) -> Callable[[int, Night], Night]:
    return lambda ago, night: replace(night, **changes) if ago < nights else night


@pytest.mark.parametrize(
    ("rule", "verdict", "change"),
    [
        ("lost", Verdict.DECAYING, lost_on(0, 2, 4)),
        ("lost", Verdict.WATCH, lost_on(0, 2)),
        ("drops", Verdict.WATCH, lately(3, drops=2)),
        ("battery", Verdict.DECAYING, lately(1, battery_health="dead")),
        ("battery-low", Verdict.WATCH, lately(3, battery_percent=20.0)),
        ("failures", Verdict.DECAYING, lately(9, outcomes={"measured": 16, "failed": 16})),
        ("failures", Verdict.WATCH, lately(9, outcomes={"measured": 26, "failed": 6})),
        ("rejections", Verdict.WATCH, lately(9, outcomes={"measured": 16, "rejected": 16})),
    ],
)
def test_each_sign_is_seen(rule: str, verdict: Verdict, change: Callable[[int, Night], Night]) -> None:
    found = changed(change)
    assert found["phone00"] == (verdict, {rule})
    assert {verdict for name, (verdict, _) in found.items() if name != "phone00"} == {Verdict.HEALTHY}


def test_a_device_that_starts_warmer_is_watched() -> None:
    def warmer(ago: int, night: Night) -> Night:
        return replace(night, temperature_c=(night.temperature_c or 0) + 20) if ago < 6 else night

    assert changed(warmer)["phone00"] == (Verdict.WATCH, {"temperature-moved"})


def test_one_lost_night_long_ago_is_no_matter() -> None:
    assert changed(lambda ago, night: replace(night, ending="lost: gone") if ago > 8 else night)["phone00"][1] == set()


def test_a_build_that_fails_everywhere_is_no_device() -> None:
    nights = [replace(night, outcomes={"failed": 32}) for night in QUIET.drawn(np.random.default_rng(2))]
    assert not any(finding.rule == "failures" for item in healths(nights) for finding in item.findings)


def test_too_few_nights_say_nothing() -> None:
    one = Night("phone", "run", 0.0)
    assert [item.verdict for item in healths([one])] == [Verdict.NEW]
    assert healths([]) == []
    assert worsening([0.0] * 4 + [9.0] * 5, 0.02) is None


def test_falling_is_not_worsening() -> None:
    assert worsening([0.1] * 10 + [0.0] * 10, 0.02) is None
    assert worsening([0.0] * 20, 0.02) is None


def test_the_record_can_be_written_as_json() -> None:
    json.dumps([item.as_json() for item in healths(QUIET.drawn(np.random.default_rng(0)))], allow_nan=False)
