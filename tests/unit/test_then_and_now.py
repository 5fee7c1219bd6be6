"""What differs about a device now against then."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.then_and_now import Moment, differences, moment_of_trials
from orchestrator.trial import Cell, Outcome, Slot, Trial

CELL = Cell("pixel", "m", "a" * 64, "benchmark_model", "b" * 64, "xnnpack", 1, "any", "idle")
THEN = Moment(
    hardware="Pixel 8",
    system="Android 14, build A",
    battery_percent=90,
    temperature_c=30.0,
    thermal_status=0,
    screen_on=True,
    other_cpus=0.1,
    free_memory_kb=4_000_000,
)


def test_nothing_differs_where_nothing_is_known_or_it_is_within_reason() -> None:
    """A phone is never quite the same; what was not read is no difference."""
    now = replace(THEN, battery_percent=85, temperature_c=31.5, free_memory_kb=3_800_000, screen_on=None)
    assert differences(THEN, now) == []
    assert differences(THEN, Moment()) == []


def test_what_differs_is_said_in_words() -> None:
    """Build, battery, heat, screen, other programs, memory."""
    now = replace(
        THEN,
        system="Android 14, build B",
        battery_percent=40,
        temperature_c=41.0,
        thermal_status=2,
        screen_on=False,
        other_cpus=1.5,
        free_memory_kb=1_000_000,
    )
    assert [found.text for found in differences(THEN, now)] == [
        "system: Android 14, build A then, Android 14, build B now",
        "screen on then, screen off now",
        "30.0 °C then, 41.0 °C now",
        "thermal status 0 then, thermal status 2 now",
        "battery 90 % then, battery 40 % now",
        "other programs keep 0.1 CPUs busy then, other programs keep 1.5 CPUs busy now",
        "3906 MB of memory free then, 977 MB of memory free now",
    ]


def a_trial(outcome: Outcome = Outcome.MEASURED, **state: object) -> Trial:
    columns = {
        "t_ms": [0.0, 1000.0],
        "busy": [[0, 0], [150, 50]],
        "tick_hz": 100,
        "child": [{"cpu_ns": 0}, {"cpu_ns": 1_500_000_000}],
        "mem_available_kb": [500, 400],
    }
    states = [state, {}]
    return Trial("r", Slot(CELL, 0, 0), "s", outcome, None, "", telemetry=columns, evidence={"states": states})


def test_then_is_how_it_typically_was_before_measured_trials() -> None:
    """Medians of states and telemetry; what the model itself used is not other programs'."""
    trials = [a_trial(battery_percent=percent, screen_on=True) for percent in (50, 60, 90)]
    trials.append(a_trial(Outcome.REJECTED, battery_percent=1))
    moment = moment_of_trials({"os": "Android 14"}, trials, {"runtime": "LiteRT", "runtime_version": "2.1"})
    assert (moment.system, moment.battery_percent, moment.screen_on) == ("Android 14", 60, True)
    assert (moment.runtime, moment.free_memory_kb) == ("LiteRT 2.1", 500)
    assert moment.other_cpus is not None and abs(moment.other_cpus - 0.5) < 1e-9


def test_a_run_without_states_still_has_facts() -> None:
    """Nobody limited the device, and no agent watched it."""
    bare = Trial("r", Slot(CELL, 0, 0), "s", Outcome.MEASURED, None, "")
    assert moment_of_trials({"kernel": "6.1"}, [bare], None) == Moment(kernel="6.1")
