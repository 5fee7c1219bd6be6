"""Timelines of trials: what is known stands at its time, what is reconstructed says so, and viewers can read it."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import telemetry
from orchestrator.agent_lines import LineReader
from orchestrator.errors import UsageError
from orchestrator.op_profile import OpCost, OpProfile, ProfilePass
from orchestrator.timeline import Moments, Timeline, read_moments, timeline_of
from orchestrator.timeline.events import Slice, lanes
from orchestrator.timeline_files import moments_of, write_trace
from orchestrator.trial import Finding, Outcome, Pass, Severity, Summary, Trial
from tests.unit.trace_checks import Event, checked, counter, tracks
from tests.unit.trial_factory import make_cell, make_trial

RECORDINGS = Path(__file__).parents[1] / "data" / "agent"
MS = 1_000_000
START_NS = 5_000_000_000_000
"""When the process of the told trial started, on the device's clock."""


def events_of(*timelines: Timeline, folder: Path) -> list[Event]:
    path = folder / "trace.json"
    count = write_trace(path, timelines)
    events = checked(path.read_bytes())
    assert len(events) == count
    return events


def told_trial() -> Trial:
    """Two warm-up and three measured inferences of known times beside one load thread, on a device that shows all."""
    samples = [-200, -100, 0, 100, 200]
    sampled = {
        "t_ms": [float(at) for at in samples],
        "cpus": [0, 7],
        "zones": ["cpu-thermal", "cpu-thermal"],
        "batteries": ["battery"],
        "tick_hz": 100,
        "freq_khz": [[1_800_000, None], [1_800_000, 2_400_000], [600_000, 2_400_000], [None, None], [600_000, None]],
        "busy": [[0, 0], [5, 10], [10, 20], [15, 30], [20, 40]],
        "idle": [[0, 0], [5, 0], [10, 0], [15, 0], [20, 0]],
        "steal": [[0, 0]] * 5,
        "temp_mc": [[41_000, -274_000]] * 5,
        "battery": [[{"percent": 80, "current_ua": -300_000}], [None], [], None, [{"percent": 79}]],
        "mem_available_kb": [2_000_000] * 5,
        "psi_cpu_us": [0, 1000, 1000, 51_000, None],
        "child": [None, None, {"cpu_ns": 0, "rss_kb": 1}, {"cpu_ns": 50 * MS, "rss_kb": 2, "threads": 3}, None],
        "load_cpu_ns": [[0], [50 * MS], [100 * MS], [150 * MS], [200 * MS]],
    }
    load = {"spec": "cpu:1@50", "threads": [{"offered": 0.5, "achieved": 0.4998}], "steady": True}
    evidence = {
        "argv": ["/x/runner", "--threads", "1"],
        "started": {"t_ns": START_NS},
        "loads": [
            {"phase": "settle", "from_ns": START_NS - 200 * MS, "to_ns": START_NS - 1 * MS, **load},
            {"phase": "run", "from_ns": START_NS - 1 * MS, "to_ns": START_NS + 190 * MS, **load},
        ],
        "warnings": [{"t_ns": START_NS + 2 * MS, "what": "affinity", "reason": "EINVAL"}],
        "closing": {"t_ns": START_NS + 185 * MS, "wall_ns": 185 * MS, "exit": 0},
        "cool_down": {"waited_s": 3.0, "waited_for": "42 °C", "canary_ns": 110, "canary_best_ns": 100},
    }
    return replace(
        make_trial(cell=make_cell(load="cpu:1@50")),
        outcome=Outcome.REJECTED,
        reason="too hot",
        samples_us=(1000.0, 1200.0, 1100.0),
        warmup_us=(3000.0, 2000.0),
        metrics={"init_us": 4000.0, "first_us": 5000.0, "steady_from_ns": START_NS + 60 * MS, "cool_down_s": 3.0},
        telemetry=sampled,
        evidence=evidence,
        findings=(Finding("limit", Severity.REJECT, "too hot", "wait"),),
        log="artifacts/run-1/x.log",
    )


def runner_log() -> bytes:
    """What the agent passes on of a runner that says when each inference began: inputs are copied in 10 us before."""

    def line(phase: str, starts_ms: list[float], invokes_us: list[float]) -> bytes:
        content = {
            "event": "samples",
            "phase": phase,
            "start_ns": [START_NS + round(at * MS) for at in starts_ms],
            "invoke_ns": [round(value * 1000) for value in invokes_us],
            "copy_in_ns": [10_000] * len(starts_ms),
        }
        return b"O %d " % (START_NS + 90 * MS) + json.dumps(content, separators=(",", ":")).encode() + b"\n"

    head = b'H {"t_ns":1,"protocol":1}\nS {"t_ns":%d}\nE %d INFO: Created \xff delegate.\n' % (
        START_NS - 200 * MS,
        START_NS + 4 * MS,
    )
    warmup = line("warmup", [50, 55], [3000, 2000])
    return head + warmup + line("steady", [60, 62, 64], [1000, 1200, 1100])


def placed(events: list[Event], name: str) -> list[tuple[float, float]]:
    """(start, length) in milliseconds of the slices of that name; zero is the start of the process."""
    zero = next(event["ts"] for event in events if event["name"] == "measured process")
    return [
        ((event["ts"] - zero) / 1000, event["dur"] / 1000)
        for event in events
        if event["name"] == name and event["ph"] == "X"
    ]


class TestTimes:
    def test_inferences_stand_where_the_log_says_they_began(self, tmp_path: Path) -> None:
        """After their inputs were copied in; gaps between them are gaps."""
        events = events_of(timeline_of(told_trial(), moments=read_moments(runner_log())), folder=tmp_path)
        assert placed(events, "inference") == [(60.01, 1.0), (62.01, 1.2), (64.01, 1.1)]
        assert placed(events, "warm-up inference") == [(50.01, 3.0), (55.01, 2.0)]
        assert placed(events, "measured") == [pytest.approx((60.01, 5.1))]
        stages = {event["name"]: event["args"]["times"] for event in tracks(events)["stages of the measured process"]}
        assert "reconstructed" not in stages["measured"] + stages["warm-up"]
        assert stages["initialisation"].startswith("reconstructed")

    def test_without_the_log_they_are_laid_end_to_end_from_the_known_start(self, tmp_path: Path) -> None:
        """And every one of them says so in its name; what came before is laid backwards from there."""
        events = events_of(timeline_of(told_trial()), folder=tmp_path)
        assert placed(events, "inference") == []
        assert placed(events, "inference (reconstructed)") == [(60.0, 1.0), (61.0, 1.2), (62.2, 1.1)]
        assert placed(events, "warm-up inference (reconstructed)") == [(55.0, 3.0), (58.0, 2.0)]
        assert placed(events, "first inference") == [(50.0, 5.0)]
        assert placed(events, "initialisation") == [(46.0, 4.0)]

    def test_starts_that_contradict_the_lengths_are_not_believed(self, tmp_path: Path) -> None:
        """Inferences of one process cannot overlap: then only the lengths count."""
        moments = Moments(steady_ns=(START_NS, START_NS + 1, START_NS + 2))
        events = events_of(timeline_of(told_trial(), moments=moments), folder=tmp_path)
        assert len(placed(events, "inference (reconstructed)")) == 3

    def test_a_summary_is_one_slice(self, tmp_path: Path) -> None:
        """A tool without samples gives no single inference, and none is made up."""
        summary = Summary(count=50, median=990.0, avg=1000.0)
        trial = replace(
            make_trial(summary=summary),
            metrics={"init_us": 2000.0, "first_us": 900.0, "warmup_count": 10, "warmup_avg_us": 1500.0},
            evidence={"started": {"t_ns": START_NS}, "closing": {"wall_ns": 100 * MS}},
        )
        events = events_of(timeline_of(trial), folder=tmp_path)
        assert placed(events, "initialisation") == [(0.0, 2.0)]
        assert placed(events, "warm-up") == [(2.0, 15.0)]
        assert placed(events, "measured") == [(17.0, 50.0)]
        measured = next(event for event in events if event["name"] == "measured")
        assert measured["args"]["summary_us"]["median"] == 990.0
        assert measured["args"]["times"].startswith("reconstructed")
        assert "inferences" not in tracks(events)
        assert not [event for event in events if event["name"] == "first inference"]  # it is part of this warm-up

    def test_the_wait_stands_before_the_trial(self, tmp_path: Path) -> None:
        """By the host's clock, and the canary where the trial begins."""
        events = events_of(timeline_of(told_trial()), folder=tmp_path)
        assert placed(events, "cool-down: waiting for the device") == [(-3200.0, 3000.0)]
        assert placed(events, "trial: rejected") == [(-3200.0, 3400.0)]
        canary = next(event for event in events if event["name"] == "canary probe")
        assert canary["args"]["of_best"] == 1.1


class TestTracks:
    def test_load_threads_say_what_they_offered_and_achieved(self, tmp_path: Path) -> None:
        """A slice for each phase of the load."""
        events = events_of(timeline_of(told_trial()), folder=tmp_path)
        assert [event["name"] for event in tracks(events)["load thread 0 (cpu:1@50)"]] == [
            "settling: offered 50 %, achieved 50 %",
            "load: offered 50 %, achieved 50 %",
        ]
        assert placed(events, "load: offered 50 %, achieved 50 %") == [(-1.0, 191.0)]

    def test_counters_hold_what_was_sampled(self, tmp_path: Path) -> None:
        """Levels at their sample, rates from a sample to the next; a value that is missing has no point."""
        trial = replace(told_trial(), metrics={})
        events = events_of(timeline_of(trial), folder=tmp_path)
        assert counter(events, "cpu0 frequency MHz") == [(0, 1800), (100, 1800), (200, 600), (400, 600)]
        assert counter(events, "cpu7 frequency MHz") == [(100, 2400), (200, 2400)]
        assert counter(events, "cpu0 busy %") == [(at, 50) for at in (0, 100, 200, 300)]
        assert counter(events, "cpu7 busy %") == [(at, 100) for at in (0, 100, 200, 300)]
        assert counter(events, "CPUs used, all") == [(at, 1.5) for at in (0, 100, 200, 300)]
        assert counter(events, "CPUs used, load") == [(at, 0.5) for at in (0, 100, 200, 300)]
        assert counter(events, "CPUs used, measured process") == [(200, 0.5)]
        assert counter(events, "CPUs used, other programs") == [(200, 0.5)]
        assert counter(events, "load thread 0 achieved %") == [(at, 50) for at in (0, 100, 200, 300)]
        assert counter(events, "battery %") == [(0, 80), (400, 79)]
        assert counter(events, "battery mA") == [(0, -300)]
        assert counter(events, "waiting for a CPU % (PSI)") == [(0, 1), (100, 0), (200, 50)]
        assert counter(events, "cpu-thermal (zone 0) °C")[0] == (0, 41)
        assert counter(events, "cpu-thermal (zone 1) °C")[0] == (0, -274)
        assert counter(events, "threads of the measured process") == [(300, 3)]

    def test_what_a_device_does_not_show_has_no_counter(self, tmp_path: Path) -> None:
        """Absent is not zero; the recording is of a machine without clocks, sensors and battery."""
        reader = LineReader()
        reader.feed((RECORDINGS / "loaded.txt").read_bytes())
        report = reader.finish()
        trial = replace(
            make_trial(),
            telemetry=telemetry.columns(report),
            evidence={"started": report.started, "loads": report.loads, "closing": report.closing},
        )
        moments = read_moments((RECORDINGS / "loaded.txt").read_bytes())
        events = events_of(timeline_of(trial, moments=moments), folder=tmp_path)
        names = {event["name"] for event in events if event["ph"] == "C"}
        assert "cpu0 busy %" in names and "load thread 0 achieved %" in names
        assert not [name for name in names if "MHz" in name or "°C" in name or "battery" in name]
        whole = next(event for event in events if event["name"].startswith("trial: "))
        assert whole["args"]["absent"] == {"freq_khz": "ENOENT", "temp_mc": "none", "battery": "none"}

    def test_findings_and_warnings_are_instants(self, tmp_path: Path) -> None:
        """A warning at its time, a judgement at the end, each with its reason and remedy."""
        events = events_of(timeline_of(told_trial()), folder=tmp_path)
        warning, finding = tracks(events)["findings and warnings"]
        assert (warning["name"], warning["ts"]) == ("agent: affinity: EINVAL", 3_202_000.0)
        assert (finding["name"], finding["args"]["remedy"]) == ("reject: limit", "wait")
        assert finding["ts"] == 3_400_000.0

    def test_what_was_printed_stands_at_its_time(self, tmp_path: Path) -> None:
        """Lines of the process but for its samples; bytes that are no text do no harm."""
        events = events_of(timeline_of(told_trial(), moments=read_moments(runner_log())), folder=tmp_path)
        (line,) = tracks(events)["what the process printed, when it arrived"]
        assert line["args"] == {"stream": "stderr", "text": "INFO: Created \N{REPLACEMENT CHARACTER} delegate."}
        assert line["ts"] == 3_204_000.0

    def test_operators_are_one_typical_inference(self, tmp_path: Path) -> None:
        """In the order in which they ran, from the start of the measured stage; one too short to be drawn is a mark."""
        ops = (
            OpCost("conv:0", "CONV_2D", 600.0),
            OpCost("add:1", "ADD", 0.0),
            OpCost("fc:2", "FULLY_CONNECTED", 200.0),
        )
        profile = OpProfile("proto", ops=ops, init=(OpCost("prepare", "ModifyGraph", 70.0),), runs=50)
        trial = told_trial()
        passed = ProfilePass("run-1", trial.cell, "s", Outcome.MEASURED, None, "2026-11-18T02:00:00Z", profile=profile)
        events = events_of(timeline_of(trial, profile=passed), folder=tmp_path)
        assert placed(events, "typical inference") == [(60.0, 0.8)]
        assert placed(events, "conv:0") + placed(events, "fc:2") == [(60.0, 0.6), (60.6, 0.2)]
        assert placed(events, "prepare") == [(46.0, 0.07)]
        (short,) = [event for event in events if event["name"] == "add:1"]
        assert short["ph"] == "i"
        outer = next(event for event in events if event["name"] == "typical inference")
        assert "not inferences of this trial" in outer["args"]["what"]

    def test_the_trial_says_what_ran(self, tmp_path: Path) -> None:
        """Cell, hashes, flags, outcome and reason are one click away."""
        events = events_of(timeline_of(told_trial(), facts={"soc": "Tensor G3", "cpus": [1]}), folder=tmp_path)
        said = next(event for event in events if event["name"] == "trial: rejected")["args"]
        assert (said["outcome"], said["reason"], said["model_sha256"]) == ("rejected", "too hot", "ab" * 32)
        assert said["argv"] == ["/x/runner", "--threads", "1"]
        assert said["device_facts"] == {"soc": "Tensor G3"}
        labels = next(event for event in events if event["name"] == "process_labels")
        assert labels["args"]["labels"] == "rejected: too hot"


class TestAnyTrial:
    @pytest.mark.parametrize("outcome", list(Outcome))
    def test_a_trial_of_which_nothing_is_known_has_a_timeline(self, outcome: Outcome, tmp_path: Path) -> None:
        """Imported, failed before anything was said, or on a phone without an agent."""
        trial = replace(make_trial(outcome=outcome, reason="lost"), started_at="", duration_s=2.5)
        trial = replace(trial, samples_us=())
        events = events_of(timeline_of(trial), folder=tmp_path)
        (seen,) = [event for event in events if event["name"] == "trial as the host saw it"]
        assert seen["dur"] == 2_500_000.0

    def test_a_phone_without_an_agent_shows_its_inferences(self, tmp_path: Path) -> None:
        """Lengths are all that an iPhone tells, so that nothing claims a time of the device."""
        trial = replace(make_trial(samples=3), metrics={"init_us": 500.0}, evidence={"closing": {"exit": 0}})
        found = tracks(events_of(timeline_of(trial), folder=tmp_path))
        assert [event["name"] for event in found["inferences"]] == ["inference (reconstructed)"] * 3
        assert found["inferences"][0]["ts"] == 500.0

    def test_an_app_is_not_taken_for_the_program_that_drives_it(self, tmp_path: Path) -> None:
        """What the agent saw is of the driver; what the app used is among the others."""
        trial = told_trial()
        trial = replace(trial, evidence={**trial.evidence, "observed": {"process": {"threads_max": 9}}})
        names = {event["name"] for event in events_of(timeline_of(trial), folder=tmp_path)}
        assert {"driver of the app", "CPUs used, the app and other programs"} <= names
        assert not [name for name in names if "measured process" in name and name != "thread_name"]

    def test_a_stream_that_broke_off_is_drawn_as_far_as_it_was_heard(self, tmp_path: Path) -> None:
        """Without a closing record the end of the process is not known."""
        trial = told_trial()
        trial = replace(trial, evidence={**trial.evidence, "closing": {}}, samples_us=(), warmup_us=(), metrics={})
        events = events_of(timeline_of(trial), folder=tmp_path)
        (heard,) = [event for event in events if event["name"] == "until the last that was heard"]
        assert heard["dur"] == 200_000.0

    def test_trials_of_a_run_stand_one_after_the_other(self, tmp_path: Path) -> None:
        """Each a process of its own, placed by the host's clock; one without a time follows the one before."""
        first = replace(make_trial(samples=1), started_at="2026-11-18T02:00:00.000Z", duration_s=1.0)
        third = replace(first, started_at="2026-11-18T02:00:10.000Z", slot=replace(first.slot, purpose=Pass.SUSTAIN))
        second = replace(first, started_at="")
        events = events_of(*map(timeline_of, (first, second, third)), folder=tmp_path)
        begins = [event["ts"] for event in events if event["name"] == "trial: measured"]
        assert begins == [0.0, 1_000_000.0, 10_000_000.0]
        assert len({event["pid"] for event in events}) == 3

    def test_hostile_names_are_plain_strings(self, tmp_path: Path) -> None:
        """Whatever a model, a sensor or a program is called, the file stays JSON in ASCII."""
        name = '</script>","ph":"X"\u2028\x00😀'
        trial = told_trial()
        trial = replace(trial, slot=replace(trial.slot, cell=make_cell(model=name, device=name)), reason=name)
        trial = replace(trial, telemetry={**trial.telemetry, "zones": [name + "\udcff"]}, metrics={name: float("nan")})
        events = events_of(timeline_of(trial), folder=tmp_path)
        whole = next(event for event in events if event["name"] == "trial: rejected")
        assert whole["args"]["model"] == name and whole["args"]["metrics"] == {name: "nan"}

    def test_slices_that_overlap_get_rows_of_their_own(self) -> None:
        """Viewers draw a partial overlap as nonsense."""
        parts = [Slice("a", 0, 10), Slice("b", 5, 10), Slice("c", 6, 2), Slice("d", 10, 5), Slice("e", 2, 3)]
        assert [[part.name for part in row] for row in lanes(parts)] == [["a", "e", "c", "d"], ["b"]]


class TestFiles:
    def test_a_name_that_ends_in_gz_is_packed(self, tmp_path: Path) -> None:
        """The same events, and the same bytes each time."""
        timelines = [timeline_of(told_trial())]
        for name in ("a.json", "a.json.gz", "b.json.gz"):
            write_trace(tmp_path / name, timelines)
        plain, packed, again = ((tmp_path / name).read_bytes() for name in ("a.json", "a.json.gz", "b.json.gz"))
        assert gzip.decompress(packed) == plain
        assert packed == again

    def test_a_place_that_cannot_be_written_is_refused(self, tmp_path: Path) -> None:
        """And nothing is left behind."""
        (tmp_path / "file").write_text("x")
        with pytest.raises(UsageError, match="cannot write"):
            write_trace(tmp_path / "file" / "trace.json", [])

    def test_a_log_that_is_gone_costs_nothing_but_the_times(self, tmp_path: Path) -> None:
        """Logs may be pruned, and imported trials have none."""
        assert moments_of(told_trial(), tmp_path) == Moments()
        (tmp_path / "artifacts" / "run-1").mkdir(parents=True)
        (tmp_path / "artifacts" / "run-1" / "x.log").write_bytes(runner_log())
        assert moments_of(told_trial(), tmp_path).steady_ns[0] == START_NS + 60 * MS + 10_000

    def test_a_log_cut_anywhere_is_read_as_far_as_it_goes(self) -> None:
        """Half a line says nothing."""
        log = runner_log()
        found = [read_moments(log[:end]) for end in range(0, len(log), 7)]
        assert {len(moments.steady_ns) for moments in found} == {0}
        assert {len(moments.warmup_ns) for moments in found} == {0, 2}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
clock_ns = st.integers(START_NS - 10**9, START_NS + 10**9) | anything
columns = st.fixed_dictionaries(
    {},
    optional={
        "t_ms": st.lists(st.floats(-1e4, 1e4) | anything, max_size=6) | anything,
        **{name: st.lists(st.lists(st.integers(0, 9) | anything, max_size=3), max_size=6) | anything for name in
           ("freq_khz", "busy", "idle", "steal", "temp_mc", "load_cpu_ns", "battery")},
        **{name: st.lists(st.integers(0, 9) | anything, max_size=6) | anything for name in ("psi_cpu_us", "child")},
        **dict.fromkeys(("cpus", "zones", "batteries", "tick_hz", "absent", "mem_available_kb"), anything),
    },
)  # fmt: skip
load_phases = st.fixed_dictionaries(
    {}, optional={"phase": anything, "from_ns": clock_ns, "to_ns": clock_ns, "threads": st.lists(anything) | anything}
)
stamped = st.fixed_dictionaries({}, optional={"t_ns": clock_ns, "wall_ns": st.integers(0, 10**9) | anything})
evidences = st.fixed_dictionaries(
    {},
    optional={
        "started": stamped | anything,
        "closing": stamped | anything,
        "loads": st.lists(load_phases | anything, max_size=3) | anything,
        "warnings": st.lists(stamped, max_size=2) | anything,
        "cool_down": anything,
        "argv": anything,
    },
)
metrics = st.fixed_dictionaries(
    {},
    optional={
        name: st.floats(0, 1e6) | anything
        for name in ("init_us", "first_us", "warmup_count", "warmup_avg_us", "cool_down_s", "process_wall_ns")
    }
    | {"steady_from_ns": clock_ns},
)
latencies = st.lists(st.floats(0.001, 1e12) | st.floats(), max_size=5).map(tuple)
starts = st.lists(st.integers(START_NS, START_NS + 10**8), max_size=5).map(lambda found: tuple(sorted(found)))


@settings(max_examples=300, deadline=None)
@given(latencies, latencies, metrics, columns, evidences, starts, st.floats(), st.text(max_size=12))
def test_whatever_a_record_holds_its_timeline_can_be_read(
    tmp_path_factory: pytest.TempPathFactory,
    samples: tuple[float, ...],
    warmup: tuple[float, ...],
    known: dict[str, Any],
    sampled: dict[str, Any],
    evidence: dict[str, Any],
    began: tuple[int, ...],
    duration_s: float,
    started_at: str,
) -> None:
    """Never an exception, a negative length or a partial overlap."""
    trial = replace(
        make_trial(),
        samples_us=samples,
        warmup_us=warmup,
        metrics=known,
        telemetry=sampled,
        evidence=evidence,
        duration_s=duration_s,
        started_at=started_at,
    )
    moments = Moments(warmup_ns=began, steady_ns=began)
    folder = tmp_path_factory.getbasetemp()
    events_of(timeline_of(trial, moments=moments), timeline_of(trial), folder=folder)


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=200) | st.lists(st.sampled_from([*runner_log().split(b"\n"), b"o 1 x", b"O x"])).map(b"\n".join)
)
def test_whatever_a_log_holds_it_is_read(log: bytes) -> None:
    """Never an exception."""
    read_moments(log)
