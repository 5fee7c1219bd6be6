"""What ran against what was asked: real trials, altered in one respect each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.agent_lines import LineReader
from orchestrator.evidence import judge
from orchestrator.evidence_terms import Asked, Readiness
from orchestrator.fleet import Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.platforms.base import Hold
from orchestrator.runners.base import Reading, RunnerError
from orchestrator.runners.litert_runner import LITERT_RUNNER
from orchestrator.stage import Report
from orchestrator.trial import Finding, Outcome, Severity
from tests.unit.trial_factory import make_cell

RECORDINGS = Path(__file__).parents[1] / "data" / "agent"
HOLD = Hold("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance")
TICKS_A_SECOND = 100


def recorded(name: str, *, cut: Callable[[bytes], bytes] = bytes) -> Report:
    reader = LineReader()
    reader.feed(cut((RECORDINGS / name).read_bytes()))
    return reader.finish()


@dataclass
class Scene:
    """A recorded trial with what was asked of it; tests alter one thing and look at the judgement."""

    asked: Asked
    report: Report
    reading: Reading

    def observe(self, **changes: Any) -> Scene:
        """The runner saw something else."""
        self.reading = replace(self.reading, observed={**self.reading.observed, **changes})
        return self

    def ask(self, **changes: Any) -> Scene:
        """Another cell was asked for."""
        self.asked = replace(self.asked, cell=replace(self.asked.cell, **changes))
        return self

    def closing(self, **changes: Any) -> Scene:
        self.report.closing = {**self.report.closing, **changes}
        return self

    def started(self, **changes: Any) -> Scene:
        self.report.started = {**self.report.started, **changes}
        return self

    def samples(self, **columns: Any) -> Scene:
        """Every sample shows this; a list of two goes evenly from the first value to the second."""
        last = len(self.report.samples) - 1
        for index, sample in enumerate(self.report.samples):
            shown = {name: value(index / last) if callable(value) else value for name, value in columns.items()}
            self.report.samples[index] = {**sample, **shown}
        return self

    @property
    def outcome(self) -> Outcome:
        return judge(self.asked, self.report, self.reading)[0]

    @property
    def findings(self) -> dict[str, tuple[Severity, str]]:
        """Severity and reason by rule."""
        outcome, reason, found = judge(self.asked, self.report, self.reading)
        worst = {Outcome.FAILED: Severity.FAIL, Outcome.REJECTED: Severity.REJECT}.get(outcome)
        assert reason == next((finding.reason for finding in found if finding.severity == worst), None)
        assert all(finding.remedy for finding in found)
        return {finding.rule: (finding.severity, finding.reason) for finding in found}


def scene(name: str = "idle.txt", *, load: str = "idle", cut: Callable[[bytes], bytes] = bytes) -> Scene:
    """A recorded trial of two threads under XNNPACK, asked for as it was run."""
    whole = recorded("idle.txt")
    observed = LITERT_RUNNER.read(whole.stdout, whole.stderr).observed
    cell = make_cell(
        threads=2,
        load=load,
        model_sha256=observed["model_sha256"],
        runner_sha256=observed["runner_sha256"],
    )
    measure = Measure(runs=20, min_ms=300, max_ms=5000, sample_ms=50, trial_timeout_s=90)
    report = recorded(name, cut=cut)
    for sample in report.samples:  # whoever else was busy while this was recorded is no part of the scene
        sample.pop("busy", None)
    asked = Asked(cell, measure, Conditions(), Limits(), affinity_mask="3", holds=())
    return Scene(asked, report, LITERT_RUNNER.read(report.stdout, report.stderr))


def loaded() -> Scene:
    return scene("loaded.txt", load="cpu:1@50")


class TestAsAsked:
    def test_a_trial_that_ran_as_asked_is_measured_without_findings(self) -> None:
        """The recording as it is."""
        assert (scene().outcome, scene().findings) == (Outcome.MEASURED, {})

    def test_a_load_squeezed_by_the_model_is_a_note(self) -> None:
        """Competition is what is being measured."""
        assert loaded().outcome == Outcome.MEASURED
        assert loaded().findings == {
            "load-squeezed": (
                Severity.NOTE,
                "beside the model the load cpu:1@50 got 37 % of a CPU a thread, of 50 %",
            )
        }

    def test_the_worst_finding_gives_the_reason(self) -> None:
        """Others are kept beside it."""
        altered = scene().observe(nodes_delegated=10, count=1)
        assert altered.outcome == Outcome.REJECTED
        assert set(altered.findings) == {"delegate-partial", "count"}


FAILURES = {
    "crash.txt": ("crash", "the runner was killed by signal 11: about to fall"),
    "killed.txt": ("killed", "the runner was killed by signal 9 (SIGKILL)"),
    "deadline.txt": ("timeout", "no end after 90 s: killed"),
    "exit_3.txt": ("exit", "the runner ended with status 3: cannot open /dev/gpu"),
    "spawn.txt": ("spawn", "the runner could not be started (ENOENT)"),
    "host_gone.txt": ("cut", "the agent was cut off (host-gone)"),
    "no_newline.txt": ("no-samples", "the runner printed no latency"),
}


class TestFailures:
    @pytest.mark.parametrize(("name", "expected"), FAILURES.items(), ids=FAILURES)
    def test_a_trial_that_did_not_run_fails_with_its_story(self, name: str, expected: tuple[str, str]) -> None:
        """One finding: the rest would only follow from it."""
        rule, reason = expected
        assert scene(name).outcome == Outcome.FAILED
        assert scene(name).findings == {rule: (Severity.FAIL, reason)}

    def test_a_kill_hints_at_memory(self) -> None:
        """The kernel's own killer leaves no other trace."""
        (finding,) = judge(*vars(scene("killed.txt")).values())[2]
        assert finding.remedy == "see whether the device ran out of memory (the runner had 1552 KB)"

    def test_a_stream_without_an_end_is_incomplete(self) -> None:
        """The connection broke in the middle."""
        cut = scene(cut=lambda content: content[: len(content) // 2])
        assert cut.findings == {
            "truncated": (Severity.FAIL, "the output of the trial is incomplete: the closing record is missing")
        }

    def test_a_stream_with_a_line_lost_is_incomplete(self) -> None:
        """Although its end arrived."""
        cut = scene(cut=lambda content: b"".join(content.splitlines(keepends=True)[1:]))
        assert cut.findings == {
            "truncated": (Severity.FAIL, "the output of the trial is incomplete: 21 of 22 lines arrived")
        }

    def test_a_stream_with_a_line_garbled_says_so(self) -> None:
        """All lines arrived; one of them cannot be read."""
        garbled = scene(cut=lambda content: content.replace(b'"busy":[', b'"busy":', 1))
        assert garbled.findings == {
            "truncated": (Severity.FAIL, "the output of the trial is incomplete: 1 of 22 lines cannot be read")
        }

    @pytest.mark.parametrize("reason", ["host-gone", "heartbeat", "terminated"])
    def test_an_agent_that_was_cut_off_is_no_fault_of_the_model(self, reason: str) -> None:
        """Each way is named."""
        altered = scene().closing(reason=reason, exit=None, signal=9)
        assert altered.findings == {"cut": (Severity.FAIL, f"the agent was cut off ({reason})")}

    def test_the_runners_own_error_tells_more_than_its_exit(self) -> None:
        """Kind, message and remedy come from the device."""
        altered = scene("exit_3.txt")
        altered.reading = Reading(error=RunnerError("op-unsupported", "no operator X", "convert it", permanent=True))
        assert judge(altered.asked, altered.report, altered.reading) == (
            Outcome.FAILED,
            "no operator X",
            (Finding("runner-op-unsupported", Severity.FAIL, "no operator X", "convert it"),),
        )

    @pytest.mark.parametrize("kind", ["model-invalid", "sha-mismatch", "delegate-failed", "out-of-memory", "internal"])
    def test_every_kind_of_runner_error_has_a_rule_of_its_own(self, kind: str) -> None:
        """So that they can be counted apart."""
        altered = scene()
        altered.reading = replace(altered.reading, error=RunnerError(kind, "m", "r", permanent=False))
        assert altered.findings == {f"runner-{kind}": (Severity.FAIL, "m")}

    def test_a_load_that_died_rejects(self) -> None:
        """The model may be fine; what the load said last is told."""
        died = scene("load_died.txt", load="model:detector@1f2e3d4c")
        assert died.outcome == Outcome.REJECTED
        assert died.findings == {
            "load-died": (Severity.REJECT, "the load model:detector@1f2e3d4c died: no memory for the load")
        }

    def test_last_words_are_cut_to_a_readable_length(self) -> None:
        """A program may print a megabyte before it falls."""
        altered = scene("exit_3.txt")
        altered.report.stderr.append(b"x" * 100_000)
        altered.report.stderr.append(b"  ")
        ((_, reason),) = altered.findings.values()
        assert reason == "the runner ended with status 3: " + "x" * 300


class TestContent:
    def test_another_model_rejects(self) -> None:
        """The hash on the device is what counts."""
        altered = scene().observe(model_sha256="f" * 64)
        wanted = altered.asked.cell.model_sha256[:12]
        assert altered.findings == {
            "model-content": (Severity.REJECT, f"another model ran: ffffffffffff instead of {wanted}")
        }

    def test_another_runner_rejects(self) -> None:
        """The same for the program that measures."""
        altered = scene().observe(runner_sha256="e" * 64)
        wanted = (altered.asked.cell.runner_sha256 or "")[:12]
        assert altered.findings == {
            "runner-content": (Severity.REJECT, f"another runner ran: eeeeeeeeeeee instead of {wanted}")
        }

    def test_a_runner_without_a_known_hash_is_not_compared(self) -> None:
        """Imported cells may have none."""
        assert scene().ask(runner_sha256=None).findings == {}


class TestDelegate:
    def test_no_node_delegated_rejects(self) -> None:
        """The model ran, but not as asked."""
        assert scene().observe(nodes_delegated=0).findings == {
            "delegate": (
                Severity.REJECT,
                "xnnpack took none of the 64 nodes: the model ran on plain CPU kernels",
            )
        }

    def test_some_nodes_delegated_is_a_warning(self) -> None:
        """Partial delegation is common and must be known."""
        assert scene().observe(nodes_delegated=60).findings == {
            "delegate-partial": (Severity.WARN, "xnnpack took 60 of 64 nodes")
        }

    def test_nodes_delegated_where_plain_kernels_were_asked_for_reject(self) -> None:
        """`cpu` means no delegate at all."""
        assert scene().ask(delegate="cpu").findings == {
            "delegate": (Severity.REJECT, "plain CPU kernels were asked for, and 64 nodes were delegated")
        }


class TestThreads:
    @pytest.mark.parametrize(("asked", "used"), [(1, 2), (4, 2)])
    def test_a_pool_of_another_size_rejects(self, asked: int, used: int) -> None:
        """XNNPACK makes its pool at allocation: the number is exact."""
        assert scene().ask(threads=asked).findings["threads"] == (
            Severity.REJECT,
            f"{'1 thread was' if asked == 1 else f'{asked} threads were'} asked for, and the runtime uses {used}",
        )

    def test_plain_kernels_on_one_thread_must_start_none(self) -> None:
        """One thread can be told from several."""
        altered = scene().ask(delegate="cpu", threads=1).observe(nodes_delegated=0)
        assert altered.findings["threads"] == (
            Severity.REJECT,
            "1 thread was asked for, and the runtime uses 2",
        )

    def test_plain_kernels_on_several_threads_start_as_many_as_they_like(self) -> None:
        """How many of N they need is their business."""
        altered = scene().ask(delegate="cpu", threads=4).observe(nodes_delegated=0)
        assert altered.findings == {}

    def test_a_process_confined_to_fewer_cpus_than_threads_rejects(self) -> None:
        """Whoever started devbench under taskset confined the runner as well."""
        altered = scene().started(affinity="1")
        altered.asked = replace(altered.asked, affinity_mask=None)
        assert altered.findings == {"confined": (Severity.REJECT, "2 threads may run on 1 CPUs only (mask 1)")}

    @pytest.mark.parametrize("key", ["threads_before", "nodes_delegated"])
    def test_what_the_runner_does_not_say_is_unverified(self, key: str) -> None:
        """Absent evidence is no evidence."""
        what = "threads" if key == "threads_before" else "delegate"
        assert list(scene().observe(**{key: None}).findings) == [f"{what}-unverified"]

    def test_inputs_that_the_model_overwrote_reject(self) -> None:
        """In zero-copy mode the inputs are written once and must last."""
        assert list(scene().observe(inputs_intact=False).findings) == ["inputs"]

    def test_a_runner_that_speaks_of_more_threads_than_the_kernel_shows_is_not_believed(self) -> None:
        """The agent looks into /proc."""
        altered = scene().closing(threads={"max": 1, "by_cpu_ns": [1]})
        assert altered.findings == {"threads": (Severity.REJECT, "the runner speaks of 2 threads, the kernel shows 1")}

    def test_the_kernels_word_counts_only_after_enough_looks(self) -> None:
        """Threads of a trial shorter than three samples may not have been seen."""
        altered = scene().closing(threads={"max": 1, "by_cpu_ns": [1]})
        altered.reading = replace(altered.reading, metrics={"steady_wall_ns": 100_000_000})
        assert altered.findings == {}


class TestAffinity:
    @pytest.mark.parametrize("when", ["at the start", "at the end"])
    def test_another_mask_rejects(self, when: str) -> None:
        """Read back from the process, before and after."""
        altered = scene()
        altered = altered.started(affinity="1") if when == "at the start" else altered.closing(affinity="1")
        assert altered.findings == {
            "affinity": (Severity.REJECT, f"mask 3 was asked for, and {when} the process may run on 1")
        }

    def test_masks_are_numbers_not_text(self) -> None:
        """The kernel may write zeros before it."""
        assert scene().started(affinity="00000003").findings == {}

    def test_any_cpu_is_no_mask(self) -> None:
        """Nothing was asked, so nothing can differ."""
        altered = scene().started(affinity="f")
        altered.asked = replace(altered.asked, affinity_mask=None)
        assert altered.findings == {}


class TestCount:
    def test_samples_that_got_lost_reject(self) -> None:
        """The runner counted more than arrived."""
        altered = scene()
        altered.reading = replace(altered.reading, samples_us=altered.reading.samples_us[:-1])
        count = len(altered.reading.samples_us)
        assert altered.findings == {
            "count": (Severity.REJECT, f"the runner counted {count + 1} inferences, {count} arrived")
        }

    def test_fewer_than_asked_reject(self) -> None:
        """Without a reason to stop there."""
        altered = scene()
        altered.asked = replace(altered.asked, measure=replace(altered.asked.measure, runs=1000))
        count = len(altered.reading.samples_us)
        assert altered.findings == {"count": (Severity.REJECT, f"{count} of 1000 inferences were made")}

    def test_fewer_for_want_of_time_are_a_warning(self) -> None:
        """The cap was asked for, too."""
        altered = scene().observe(stopped_by="cap")
        altered.asked = replace(altered.asked, measure=replace(altered.asked.measure, runs=1000))
        count = len(altered.reading.samples_us)
        assert altered.findings == {"count-capped": (Severity.WARN, f"{count} of 1000 inferences within max_ms = 5000")}


class TestLoad:
    def phases(self, *, settle: float = 0.5, run: float = 0.5, alive: bool = True) -> Scene:
        """The recorded load with other shares achieved."""
        altered = loaded()
        achieved = {"settle": settle, "run": run}
        altered.report.loads = [
            {**phase, "alive": alive, "threads": [{"offered": 0.5, "achieved": achieved[phase["phase"]]}]}
            for phase in altered.report.loads
        ]
        return altered

    def test_a_load_as_asked_gives_no_finding(self) -> None:
        """Half a CPU offered, half a CPU held."""
        assert self.phases().findings == {}

    @pytest.mark.parametrize("achieved", [0.2, 0.8])
    def test_a_load_that_did_not_settle_rejects(self, achieved: float) -> None:
        """Too little, because others kept the CPUs busy, or too much."""
        assert self.phases(settle=achieved).findings == {
            "load-not-achieved": (
                Severity.REJECT,
                f"the load cpu:1@50 held {100 * achieved:.0f} % of a CPU where 50 % was asked, "
                "before the model started",
            )
        }

    def test_the_plans_tolerance_decides(self) -> None:
        """In points of a CPU's percent."""
        altered = self.phases(settle=0.2)
        altered.asked = replace(altered.asked, conditions=Conditions(load_tolerance_points=40))
        assert altered.findings == {}

    def test_a_load_squeezed_during_the_run_is_a_note(self) -> None:
        """It never rejects."""
        altered = self.phases(run=0.1)
        assert altered.outcome == Outcome.MEASURED
        assert altered.findings == {
            "load-squeezed": (
                Severity.NOTE,
                "beside the model the load cpu:1@50 got 10 % of a CPU a thread, of 50 %",
            )
        }

    def test_a_load_that_was_not_running_rejects(self) -> None:
        """Each phase is looked at."""
        assert self.phases(alive=False).findings["load"] == (
            Severity.REJECT,
            "the load cpu:1@50 was not running in phase run",
        )

    def test_a_load_nobody_speaks_of_rejects(self) -> None:
        """No evidence is no load."""
        assert scene().ask(load="cpu:1@50").findings == {
            "load": (Severity.REJECT, "the agent says nothing of the load cpu:1@50")
        }

    def test_a_load_that_hardly_ran_beside_the_model_rejects(self) -> None:
        """Squeezed is the competition being measured; starved is no load."""
        altered = loaded()
        run = next(phase for phase in altered.report.loads if phase["phase"] == "run")
        starved = {**run, "threads": [{"offered": 0.5, "achieved": 0.05}]}
        altered.report.loads = [phase for phase in altered.report.loads if phase["phase"] != "run"] + [starved]
        assert list(altered.findings) == ["load-starved"]

    def test_a_load_beside_a_shorter_trial_says_nothing(self) -> None:
        """Its share over a few of its own periods is chance."""
        altered = loaded()
        run = next(phase for phase in altered.report.loads if phase["phase"] == "run")
        short = {**run, "to_ns": run["from_ns"] + 50_000_000, "threads": [{"offered": 0.5, "achieved": 0.0}]}
        altered.report.loads = [phase for phase in altered.report.loads if phase["phase"] != "run"] + [short]
        assert altered.findings == {}


class TestHolds:
    def held(self, **found: Any) -> Scene:
        altered = scene().started(holds=[{"path": HOLD.path, "seen": "performance", "error": None, **found}])
        altered.asked = replace(altered.asked, holds=(HOLD,))
        return altered

    def test_a_setting_that_was_held_gives_no_finding(self) -> None:
        """Read back as asked."""
        assert self.held().findings == {}

    @pytest.mark.parametrize(
        ("found", "why"),
        [
            ({"seen": "schedutil"}, "it reads schedutil"),
            ({"seen": None, "error": "EACCES"}, "EACCES"),
            ({"path": "/other"}, "it reads None"),
        ],
    )
    def test_a_setting_that_was_not_held_rejects(self, found: dict[str, Any], why: str) -> None:
        """With what it reads instead, or why it could not be written."""
        assert self.held(**found).findings == {
            "hold": (Severity.REJECT, f"{HOLD.path} could not be held at performance: {why}")
        }

    def test_a_setting_left_changed_is_a_warning(self) -> None:
        """The trial counts; the device is no longer as it was found."""
        assert self.held().closing(holds_restored=False).findings == {
            "hold-not-restored": (Severity.WARN, "a held setting could not be put back")
        }


class TestCoolDown:
    def ready(self, **readiness: Any) -> Scene:
        altered = scene()
        altered.asked = replace(altered.asked, readiness=Readiness({}, canary_slack=0.1, **readiness))
        return altered

    def test_a_wait_is_told(self) -> None:
        """How long, and for what; the trial counts."""
        assert self.ready(waited_s=12.4, waited_for="too hot").findings == {
            "cool-down": (Severity.NOTE, "waited 12 s before the trial: too hot")
        }

    def test_a_canary_within_its_slack_says_nothing(self) -> None:
        """Nor does a device that has none."""
        assert self.ready(canary_ns=1099, canary_best_ns=1000).findings == {}
        assert self.ready().findings == {}

    def test_a_device_below_its_best_pace_is_a_warning(self) -> None:
        """The trial counts, and whoever reads it knows that the clock was held down."""
        assert self.ready(canary_ns=1300, canary_best_ns=1000).findings == {
            "not-cool": (Severity.WARN, "a canary probe took 30 % longer than at its best in this session")
        }


class TestLimits:
    def limited(self, *states: dict[str, float | None], broken: tuple[str, ...] = (), **limits: float) -> Scene:
        altered = scene()
        limited = Limits(**limits)  # type: ignore[arg-type]  # floats only here
        altered.asked = replace(altered.asked, limits=limited, states=states, breaches=broken)
        return altered

    def test_a_limit_the_platform_found_broken_rejects_once(self) -> None:
        """Before and during the trial it may be the same one."""
        hot = "61.5 degrees C, and the limit is 60"
        altered = self.limited(
            {"temperature_c": 61.5}, {"temperature_c": 61.5}, broken=(hot, hot), temperature_c_max=60
        )
        assert altered.findings == {"limit": (Severity.REJECT, hot)}

    def test_a_limit_that_holds_gives_no_finding(self) -> None:
        """It was read, and nothing was broken."""
        assert self.limited({"temperature_c": 60.0}, temperature_c_max=60).findings == {}

    def test_a_device_that_held_itself_back_is_a_warning(self) -> None:
        """Now, or noted by the firmware between the two looks; what it noted long ago is not this trial's."""
        old, new = ["under-voltage"], ["under-voltage", "throttled"]
        noted = self.limited({"throttled_since_boot": old}, {"throttled_since_boot": new})  # type: ignore[dict-item]
        assert noted.findings == {"throttled": (Severity.WARN, "the device held itself back: throttled")}
        now = self.limited({"throttled": []}, {"throttled": ["cpufreq-cpu0 at step 2 of 4"]})  # type: ignore[dict-item]
        assert now.findings["throttled"][1] == "the device held itself back: cpufreq-cpu0 at step 2 of 4"
        assert self.limited({"throttled_since_boot": old}, {"throttled_since_boot": old}).findings == {}  # type: ignore[dict-item]

    @pytest.mark.parametrize(
        ("limit", "sensor"),
        [
            ("temperature_c_max", "no sensor"),
            ("battery_percent_min", "no battery"),
            ("thermal_status_max", "no thermal status"),
        ],
    )
    def test_a_limit_nobody_can_check_is_a_warning(self, limit: str, sensor: str) -> None:
        """As on the recorded machine, which has no sensor."""
        assert self.limited({"temperature_c": None}, **{limit: 3}).findings == {
            f"{limit}-unread": (Severity.WARN, f"{limit} is set, and {sensor} can be read")
        }


def busy_neighbours(cpus: float, *, steal: float = 0.0) -> Scene:
    """The recorded trial with the child at one CPU and others at so many, on samples while the child ran."""
    altered = scene()
    altered.report.samples = [sample for sample in altered.report.samples if "child" in sample]
    first_ns, last_ns = (altered.report.samples[place]["t_ns"] for place in (0, -1))
    span_s = (last_ns - first_ns) / 1e9
    return altered.samples(
        busy=lambda share: [share * span_s * TICKS_A_SECOND * (1.0 + cpus)],
        steal=lambda share: [share * span_s * TICKS_A_SECOND * steal],
        child=lambda share: {"cpu_ns": share * span_s * 1e9},
    )


class TestNeighbours:
    def limit(self, altered: Scene, percent: float) -> Scene:
        altered.asked = replace(altered.asked, conditions=Conditions(other_cpu_percent_max=percent))
        return altered

    def test_other_programs_beyond_the_limit_reject(self) -> None:
        """In percent of one CPU."""
        assert self.limit(busy_neighbours(0.6), 50).findings == {
            "other-cpu": (Severity.REJECT, "other programs used 60 % of a CPU, and the limit is 50 %")
        }

    def test_a_limit_of_zero_is_a_limit(self) -> None:
        """None is none."""
        assert self.limit(busy_neighbours(0.1), 0).outcome == Outcome.REJECTED

    def test_below_the_limit_they_are_a_warning(self) -> None:
        """From a fifth of a CPU on; half a CPU, or a quarter of all where that is more, is the limit nobody set."""
        assert busy_neighbours(0.4).findings == {"other-cpu": (Severity.WARN, "other programs used 40 % of a CPU")}
        assert busy_neighbours(0.15).findings == {}
        assert busy_neighbours(0.6).outcome == Outcome.REJECTED
        many_cpus = busy_neighbours(0.6)
        many_cpus.report.header = {**many_cpus.report.header, "cpus": list(range(8))}
        assert many_cpus.outcome == Outcome.MEASURED

    def test_stolen_time_is_a_warning(self) -> None:
        """The hypervisor's other guests."""
        assert busy_neighbours(0.0, steal=0.08).findings == {
            "steal": (Severity.WARN, "the hypervisor took 8 % of a CPU away")
        }

    def test_a_trial_as_the_agent_really_sends_it_is_checked_too(self) -> None:
        """With the sample after the child's end, which shows no child."""
        altered = self.limit(busy_neighbours(0.6), 50)
        last = altered.report.samples[-1]
        after = {key: value for key, value in last.items() if key != "child"}
        altered.report.samples.append({**after, "t_ns": altered.report.closing["t_ns"] - 1})
        assert altered.outcome == Outcome.REJECTED


class TestFrequency:
    def test_a_clock_that_fell_is_a_warning(self) -> None:
        """From five percent on, while the child ran: the sample after its end does not count."""
        falling = scene().samples(freq_khz=lambda share: [2_000_000 - 400_000 * share])
        steady = scene().samples(freq_khz=lambda share: [2_000_000 - 80_000 * share])
        assert falling.findings == {"frequency": (Severity.WARN, "the fastest CPU's clock moved by 17 %")}
        assert steady.findings == {}
