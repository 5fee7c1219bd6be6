"""What an agent's samples mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator import telemetry
from orchestrator.agent_lines import LineReader
from orchestrator.stage import Report

RECORDINGS = Path(__file__).parents[1] / "data" / "agent"
SECOND_NS = 1_000_000_000


def recorded(name: str) -> Report:
    reader = LineReader()
    reader.feed((RECORDINGS / name).read_bytes())
    return reader.report


def trial(*samples: dict[str, Any], **header: Any) -> Report:
    """A report of samples one second apart, all while the child ran."""
    timed = [{"t_ns": index * SECOND_NS, **sample} for index, sample in enumerate(samples)]
    return Report(
        header={"tick_hz": 100, **header},
        started={"t_ns": 0},
        closing={"t_ns": len(samples) * SECOND_NS},
        samples=list(timed),
    )


class TestColumns:
    def test_times_count_from_the_childs_start(self) -> None:
        """While the load settles they are negative; every column has one value a sample."""
        report = recorded("loaded.txt")
        columns = telemetry.columns(report)
        assert columns["t_ms"][0] == pytest.approx(-306.8)
        assert columns["t_ms"] == sorted(columns["t_ms"])
        assert {len(columns[name]) for name in ("t_ms", "busy", "idle", "child", "load_cpu_ns")} == {
            len(report.samples)
        }

    def test_what_the_device_does_not_show_is_absent(self) -> None:
        """No column of nothing; the reason stands under `absent`."""
        columns = telemetry.columns(recorded("idle.txt"))
        assert not {"freq_khz", "temp_mc", "battery", "load_cpu_ns"} & set(columns)
        assert columns["absent"] == {"freq_khz": "ENOENT", "temp_mc": "none", "battery": "none"}
        assert (columns["cpus"], columns["tick_hz"]) == ([0, 1], 100)

    def test_a_value_missing_now_and_then_leaves_a_hole(self) -> None:
        """The child is seen only while it runs."""
        columns = telemetry.columns(trial({"busy": [1]}, {"busy": [2], "child": {"cpu_ns": 5}}))
        assert columns["child"] == [None, {"cpu_ns": 5}]

    def test_no_samples_are_no_columns(self) -> None:
        """Telemetry can be turned off."""
        assert telemetry.columns(recorded("crash.txt")) == {}

    def test_a_damaged_sample_does_not_end_the_run(self) -> None:
        """One garbled line makes one failed trial, not a traceback."""
        reader = LineReader()
        content = (RECORDINGS / "idle.txt").read_bytes()
        reader.feed(content.replace(b'"busy":[', b'"busy":', 1))
        assert telemetry.columns(reader.report)["t_ms"]


class TestUsage:
    def test_the_recorded_trial(self) -> None:
        """Shares add up on a machine of two CPUs."""
        used = telemetry.usage(recorded("loaded.txt"))
        assert used is not None
        assert used.busy is not None
        assert used.child is not None
        assert used.load is not None
        assert 0.4 < used.wall_s < 0.7
        assert 0.3 < used.load < 0.5
        assert 0.5 < used.child < 1.3
        assert used.busy <= 2.05

    def test_shares_are_growth_over_time(self) -> None:
        """Two CPUs, one second: 150 ticks busy, child and load 0.5 each, so 0.5 for others."""
        used = telemetry.usage(
            trial(
                {"busy": [0, 0], "steal": [0, 0], "child": {"cpu_ns": 0}, "load_cpu_ns": [0, 0]},
                {
                    "busy": [100, 50],
                    "steal": [4, 0],
                    "child": {"cpu_ns": SECOND_NS // 2},
                    "load_cpu_ns": [SECOND_NS // 4, SECOND_NS // 4],
                },
            )
        )
        assert used == telemetry.Usage(wall_s=1.0, busy=1.5, child=0.5, load=0.5, steal=0.04)
        assert used is not None
        assert used.other == pytest.approx(0.5)

    def test_ticks_are_those_of_the_header(self) -> None:
        """250 ticks a second on many ARM kernels."""
        used = telemetry.usage(trial({"busy": [0]}, {"busy": [250]}, tick_hz=250))
        assert used is not None
        assert used.busy == 1.0

    def test_others_never_use_less_than_nothing(self) -> None:
        """Ticks are coarser than nanoseconds."""
        assert telemetry.Usage(1.0, busy=0.5, child=0.6).other == 0.0

    def test_what_is_not_known_stays_unknown(self) -> None:
        """Without the child's time nobody can say what others used."""
        used = telemetry.usage(trial({"busy": [0]}, {"busy": [100]}))
        assert used == telemetry.Usage(wall_s=1.0, busy=1.0)
        assert used is not None
        assert used.other is None

    def test_only_samples_while_the_child_ran_count(self) -> None:
        """Settling and what comes after are not the trial."""
        report = trial({"busy": [0]}, {"busy": [10]}, {"busy": [20]}, {"busy": [999]})
        report.started, report.closing = {"t_ns": SECOND_NS}, {"t_ns": 2 * SECOND_NS}
        used = telemetry.usage(report)
        assert used is not None
        assert (used.wall_s, used.busy) == (1.0, 0.1)

    @pytest.mark.parametrize("samples", [(), ({"busy": [1]},)])
    def test_fewer_than_two_samples_tell_nothing(self, samples: tuple[dict[str, Any], ...]) -> None:
        """A difference needs two."""
        assert telemetry.usage(trial(*samples)) is None

    def test_without_a_closing_record_nothing_is_told(self) -> None:
        """A stream that broke off."""
        report = trial({"busy": [0]}, {"busy": [10]})
        report.closing = {}
        assert telemetry.usage(report) is None

    def test_a_cpu_that_went_offline_is_left_out(self) -> None:
        """Its place holds null from then on."""
        used = telemetry.usage(trial({"busy": [0, 50]}, {"busy": [100, None]}))
        assert used is not None
        assert used.busy == 1.0


class TestReadings:
    def test_the_hottest_sensor_of_all_samples_counts(self) -> None:
        """In degrees; null is no reading."""
        assert telemetry.temperature_c([{"temp_mc": [41_000, None]}, {"temp_mc": [39_000, 52_500]}, {}]) == 52.5

    def test_readings_no_working_sensor_gives_are_left_out(self) -> None:
        """Drivers report -273 or 2 billion when a sensor is off."""
        assert telemetry.temperature_c([{"temp_mc": [-273_000, 2_000_000_000, 40_000]}]) == 40.0
        assert telemetry.temperature_c([{"temp_mc": [-273_000]}]) is None

    def test_the_lowest_battery_counts(self) -> None:
        """And none is None, not zero."""
        samples: list[dict[str, Any]] = [{"battery": [{"percent": 80}, None]}, {"battery": [{"percent": 79}]}, {}]
        assert telemetry.battery_percent(samples) == 79.0
        assert telemetry.battery_percent([{"battery": [{"status": "Unknown"}]}]) is None

    def test_the_drop_is_that_of_the_fastest_clock(self) -> None:
        """A little core that idles is no throttling."""
        steady = [{"freq_khz": [400, 2_000]}, {"freq_khz": [1_800, 2_000]}]
        throttled = [{"freq_khz": [400, 2_000]}, {"freq_khz": [400, 1_500]}]
        assert telemetry.frequency_drop(steady) == 0.0
        assert telemetry.frequency_drop(throttled) == pytest.approx(0.25)
        assert telemetry.frequency_drop([{"freq_khz": [None, None]}, {}]) is None

    def test_busy_cpus_are_a_share_of_all(self) -> None:
        """Two CPUs, half of their time busy: one CPU."""
        samples = [{"busy": [0, 0], "idle": [0, 0]}, {"busy": [75, 25], "idle": [25, 75]}]
        assert telemetry.busy_cpus(samples) == 1.0
        assert telemetry.busy_cpus(samples[:1]) is None
        assert telemetry.busy_cpus([{}, {}]) is None
