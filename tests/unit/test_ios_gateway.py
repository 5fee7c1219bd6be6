"""The stage of an iPhone behind a Mac, and the conductor on it: this machine plays the Mac, with a stand-in for
`xcrun`. No Mac and no iPhone was involved; tests/cli/test_iphones.py does the same through a real ssh server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ios_harness.devicectl import PATIENCE, Patience
from ios_harness.gateway import GatewayStage
from orchestrator.clock import Deadline
from orchestrator.conductor import Conductor, Files
from orchestrator.content_hash import sha256
from orchestrator.errors import CommandTimeout, DeviceError, DeviceLost, DeviceUnfit, SettingsError, UsageError
from orchestrator.fleet import Device, Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.runners.base import Command
from orchestrator.transports.local import LocalTransport
from orchestrator.trial import Outcome, Slot, Trial
from tests.devices.mac import BUNDLE, FAILURES, OTHER_UDID, UDID, Mac
from tests.unit.trial_factory import make_cell

TINY = Path(__file__).parents[1] / "data" / "models" / "tiny_add.tflite"
MEASURE = Measure(runs=20, warmup_runs=2, trial_timeout_s=30)
BUILD = "8" * 64


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mac:
    made = Mac(tmp_path / "mac")
    monkeypatch.setenv("PATH", f"{made.bin}{os.pathsep}{os.environ['PATH']}")
    return made


def a_phone(mac: Mac, udid: str = UDID, limits: Limits | None = None) -> Device:
    address = {"gateway": "here", "udid": udid}
    return Device("iphone", "local", "ios", address, workdir=str(mac.workdir), limits=limits or Limits())


def a_stage(mac: Mac, udid: str = UDID, patience: Patience = PATIENCE) -> GatewayStage:
    return GatewayStage(LocalTransport(), a_phone(mac, udid), str(mac.workdir), patience)


def a_conductor(mac: Mac, limits: Limits | None = None, conditions: Conditions | None = None) -> Conductor:
    files = Files(models={sha256(TINY): TINY}, load_models={})
    conditions = conditions or Conditions(cool_down_max_s=0)
    conductor = Conductor(a_phone(mac, limits=limits), measure=MEASURE, conditions=conditions, files=files)
    conductor.use_runner("ios_app", {})
    return conductor


def conducted(
    mac: Mac, *, threads: int = 2, delegate: str = "xnnpack", after: Callable[[], None] = lambda: None
) -> Trial:
    """One trial; `after` happens between the phone being ready and the trial."""
    conductor = a_conductor(mac)
    after()
    cell = make_cell(
        device="iphone",
        model_sha256=sha256(TINY),
        runner="ios_app",
        runner_sha256=BUILD,
        threads=threads,
        delegate=delegate,
    )
    trial, _ = conductor.conduct(Slot(cell, 0, 0), run="r", session="s", stopped=lambda: False)
    conductor.close()
    return trial


def probe(mac: Mac, udid: str = UDID) -> None:
    a_stage(mac, udid).probe(Deadline.after(60))


# The happy path


def test_a_trial_on_an_iphone(mac: Mac) -> None:
    """Every sample arrives, with evidence, the phone's state, and what nobody verified by name."""
    trial = conducted(mac)
    assert trial.outcome == Outcome.MEASURED, trial.reason
    assert len(trial.samples_us) == 20
    assert trial.metrics["footprint_peak_bytes"] == 33_000_000
    assert trial.evidence["states"][1]["thermal_status"] == 0
    assert [finding.rule for finding in trial.findings] == ["delegate-unverified", "unwatched"]
    assert "process_maxrss_kb" not in trial.metrics


def test_what_the_phone_is(mac: Mac) -> None:
    """Model, chip, iOS and its build, cores and memory; what iOS hides is told as absent."""
    conductor = a_conductor(mac)
    conductor.close()
    facts = conductor.facts
    assert (facts.cpu_model, facts.os) == ("iPhone 15 Pro (iPhone16,1) A17 Pro", "iOS 18.2 (22C152)")
    assert (facts.cores, facts.memory_kb) == (6, 7_812_500)
    assert (facts.machine, facts.clusters, facts.absent["frequency"]) == ("ios-arm64", (), "iOS shows no CPU frequency")


def test_the_app_is_installed_once(mac: Mac) -> None:
    """From where a person who signed it put it on the Mac."""
    probe(mac)
    probe(mac)
    assert [call[1:4] for call in mac.calls].count(["device", "install", "app"]) == 1


def test_a_model_is_copied_once_and_nothing_is_left_on_the_mac(mac: Mac) -> None:
    """The phone holds it by its hash; requests, results and answers are gone."""
    for _ in range(2):
        conducted(mac)
    copies = [
        call for call in mac.calls if call[1:4] == ["device", "copy", "to"] and any("file" in word for word in call)
    ]
    assert len(copies) == 1
    assert sha256(mac.documents() / f"devbench-file-{sha256(TINY)}") == sha256(TINY)
    left = [path for path in mac.workdir.rglob("*") if path.is_file() and "DevbenchBenchmark.app" not in path.parts]
    assert left == []


def test_a_torn_copy_is_noticed_and_mended(mac: Mac) -> None:
    """devicectl does not replace files, so the app removes one whose content is not what its name says."""
    stage = a_stage(mac)
    stage.probe(Deadline.after(60))
    mac.break_("torn-copy")
    with pytest.raises(DeviceError, match="arrived on the phone with another content"):
        stage.ensure(TINY)
    assert stage.ensure(TINY) == f"Documents/devbench-file-{sha256(TINY)}"


def test_every_call_names_the_phone(mac: Mac) -> None:
    """Two phones on one Mac: the other one is never touched."""
    conducted(mac)
    probe(mac, OTHER_UDID)
    named = [call[call.index("--device") + 1] for call in mac.calls if "--device" in call]
    assert set(named) == {UDID, OTHER_UDID}
    assert list(mac.documents(OTHER_UDID).glob("devbench-file-*")) == []


def test_clean_removes_the_app_and_what_is_on_the_mac(mac: Mac) -> None:
    """But not the app that a person put there."""
    conducted(mac)
    a_stage(mac).clean()
    assert not mac.documents().exists()
    assert [path.name for path in mac.workdir.iterdir()] == ["DevbenchBenchmark.app"]
    a_stage(mac).clean()


def test_prune_asks_the_app(mac: Mac) -> None:
    """It alone can remove files in its container."""
    stage = a_stage(mac)
    stage.probe(Deadline.after(60))
    assert stage.prune() == 0


# Failures


@pytest.mark.parametrize("name", FAILURES)
def test_each_failure_of_devicectl_is_explained(mac: Mac, name: str) -> None:
    """At whichever step it shows itself, with a remedy; nothing is left on the Mac but the app."""
    mac.break_(name)
    with pytest.raises(DeviceError) as caught:
        probe(mac)
    assert not caught.value.fact.startswith("iphone: devicectl could not")
    assert caught.value.remedy
    assert [path for path in mac.workdir.rglob("*.json") if "DevbenchBenchmark.app" not in path.parts] == []


def test_a_mac_without_xcrun(mac: Mac, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux, or a Mac without developer tools."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(DeviceUnfit, match="the Mac has no devicectl"):
        probe(mac)


def test_an_app_that_is_nowhere(mac: Mac) -> None:
    """Neither on the phone nor on the Mac."""
    mac.remove_app()
    with pytest.raises(DeviceUnfit) as caught:
        probe(mac)
    assert caught.value.fact == (
        f"iphone: the app {BUNDLE} is not on the phone, and {mac.workdir}/DevbenchBenchmark.app is not on the Mac"
    )


def test_a_hanging_copy_ends_by_our_deadline(mac: Mac) -> None:
    """devicectl over Wi-Fi may hang for ever; its own timeout is not relied upon."""
    stage = a_stage(mac, patience=Patience(copy_s=-4.5))
    mac.break_("copy-hangs")
    with pytest.raises(CommandTimeout) as caught:
        stage.probe(Deadline.after(60))
    assert "devicectl did not copy" in caught.value.fact


def test_a_phone_that_is_offline_is_worth_another_try(mac: Mac) -> None:
    """The list says so before anything is tried."""
    mac.change_phone(UDID, "connectionProperties", tunnelState="unavailable")
    with pytest.raises(DeviceLost):
        probe(mac)


BAD_TRIALS = {
    "jetsam": (Outcome.FAILED, "iOS killed the app (signal 9) before it had a result"),
    "crash": (Outcome.FAILED, "the app crashed (signal 11)"),
    "no-result": (Outcome.FAILED, "the app ended without a result"),
    "truncated": (Outcome.FAILED, "the app's result is cut short or no JSON"),
    "nan": (Outcome.FAILED, "the app's result has NaN where a number belongs"),
    "negative": (Outcome.FAILED, "samples_us in the app's result holds '-1.0'"),
    "other-version": (Outcome.FAILED, "the app speaks version 2 of its results"),
    "other-nonce": (Outcome.FAILED, "the result is another trial's"),
    "huge": (Outcome.FAILED, "the app's result is larger than 32 MiB"),
    "no-delegate": (Outcome.FAILED, "Core ML could not be made"),
    "other-model": (Outcome.REJECTED, "another model ran"),
    "one-thread": (Outcome.REJECTED, "2 threads were asked for, and the tool speaks of 1"),
    "hot": (Outcome.REJECTED, "thermal state 3 (critical), and the limit is 1 (fair)"),
}


@pytest.mark.parametrize(("name", "outcome", "reason"), [(name, *row) for name, row in BAD_TRIALS.items()])
def test_what_goes_wrong_in_the_app_is_the_trials(mac: Mac, name: str, outcome: Outcome, reason: str) -> None:
    """It is stored with its reason; the phone stays in the run."""
    trial = conducted(mac, after=lambda: mac.break_(name))
    assert trial.outcome == outcome
    assert (trial.reason or "").startswith(reason)


def test_a_phone_that_locks_itself_between_trials(mac: Mac) -> None:
    """Is the phone's trouble, not the trial's."""
    with pytest.raises(DeviceUnfit, match="the phone is locked"):
        conducted(mac, after=lambda: mac.break_("locked"))


def run_hanging(mac: Mac, seconds: float, stopped: Callable[[], bool]) -> object:
    """A trial whose app never ends by itself; gives how it was ended."""
    from ios_harness.app_runner import IOS_APP
    from orchestrator.runners.base import Places
    from orchestrator.stage import Trialling

    stage = a_stage(mac, patience=Patience(launch_s=0.0))
    stage.probe(Deadline.after(60))
    command = IOS_APP.command(make_cell(), Places("", {}, stage.ensure(TINY)), MEASURE)
    mac.break_("hang")
    trialling = Trialling(command, "idle", None, "other-group", 0, 100, None, (), seconds)
    return stage.run(trialling, stopped).closing["reason"]


def test_an_app_that_hangs_is_ended_by_our_deadline(mac: Mac) -> None:
    """The trial ends; that the phone is told too is seen below, where the app has surely begun."""
    assert run_hanging(mac, 1.0, lambda: False) == "deadline"


def test_a_stopped_run_ends_the_app(mac: Mac) -> None:
    """On the phone too: devicectl is told to end it."""
    assert run_hanging(mac, 60.0, (mac.world / "hanging").exists) == "terminated"
    assert mac.calls[-1][1:4] == ["device", "process", "terminate"]


# Settings


def test_programs_cannot_be_pushed_to_such_a_phone(mac: Mac) -> None:
    """Nor run there: refused by name."""
    stage = a_stage(mac)
    with pytest.raises(DeviceUnfit, match="no program can be pushed"):
        stage.ensure(TINY, executable=True)
    with pytest.raises(DeviceUnfit, match="only devbench's own app runs, not benchmark_model"):
        stage.check(Command(("/x/benchmark_model", "--help")), Deadline.after(5))


def test_a_canary_that_is_asked_for_is_told_to_be_impossible(mac: Mac) -> None:
    """Not silently left out."""
    conductor = a_conductor(mac, conditions=Conditions(canary="on"))
    conductor.close()
    assert [finding.rule for finding in conductor.findings] == ["no-canary"]


def test_gateway_and_udid_go_together(mac: Mac) -> None:
    """One alone is a slip."""
    from orchestrator.conductor import platform_of

    for address in ({"gateway": "mac"}, {"udid": UDID}):
        with pytest.raises(SettingsError):
            platform_of(Device("iphone", "local", "ios", address))
    assert platform_of(Device("iphone", "local", "ios", {})).name == "ios-jailbroken"


def test_a_jailbroken_phone_has_no_limits_to_check() -> None:
    """It tells neither heat nor battery, so a limit would be a promise nobody keeps."""
    from orchestrator.conductor import platform_of

    with pytest.raises(UsageError) as caught:
        platform_of(Device("freed", "local", "ios", {}, limits=Limits(battery_percent_min=50)))
    assert caught.value.fact == "freed: limits.battery_percent_min cannot be checked on platform ios"
    assert caught.value.remedy == "remove it; ios can check: none"
