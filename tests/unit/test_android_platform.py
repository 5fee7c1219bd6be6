"""What a phone is and how it is: facts, states, limits, fitness, and who holds the governor."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from android_harness.facts import STATE_QUESTIONS
from android_harness.platform import ANDROID, AndroidPlatform
from orchestrator.agent import SamplesWhenRead
from orchestrator.errors import DeviceLost
from orchestrator.fleet import Limits
from orchestrator.plan import Conditions
from orchestrator.platforms.base import Facts, Hold, Platform
from orchestrator.platforms.questions import batch
from orchestrator.transports.base import Completed
from orchestrator.trial import Severity

from .android_phone import NO_FACTS, Phone

DATA = Path(__file__).parents[1] / "data" / "android"
GPU = "GLES: ARM, Mali-G715, OpenGL ES 3.2 v1.r44p0-01eac0"
SHAPES: Mapping[str, str] = {
    "props": "getprop.txt",
    "thermalservice": "thermalservice_aidl.txt",
    "battery": "battery.txt",
    "power": "power.txt",
    "nnapi": "services.txt",
    "free": "df_toybox.txt",
}
ANSWERS: Mapping[str, str] = {name: (DATA / file).read_text(encoding="utf-8") for name, file in SHAPES.items()} | {
    "low_power": "0",
    "root": "no",
    "selinux": "Enforcing",
    "gpu": GPU,
    "adb_wifi": "null",
}
CPUS = [
    {"id": cpu, "capacity": capacity, "max_khz": khz, "governor": "sched_pixel"}
    for cpus, capacity, khz in (((0, 1, 2, 3), 193, 1_704_000), ((4, 5, 6), 652, 2_367_000), ((7,), 1024, 2_914_000))
    for cpu in cpus
]
PROBED: Mapping[str, Any] = {
    "machine": "aarch64",
    "kernel_release": "5.15.148-android14-11",
    "uid": 2000,
    "cpu_model": "ARMv8",
    "cpus": CPUS,
    "governors": ["sched_pixel", "performance"],
    "mem_total_kb": 7_800_000,
    "thermal": [
        {"zone": 0, "name": "BIG", "temp_mc": 57_900, "error": None},
        {"zone": 1, "name": "TPU", "temp_mc": None, "error": "EACCES"},
        {"zone": 2, "name": "off", "temp_mc": -273_000, "error": None},
    ],
    "absent": {"os_release": "ENOENT"},
}


class Answering:
    """A phone that gives these answers to whatever script asks for them."""

    def __init__(self, **changes: str) -> None:
        self.answers = {**ANSWERS, **changes}
        self.asked = 0

    def __call__(self, argv: Sequence[str]) -> Completed:
        self.asked += 1
        assert list(argv[:2]) == ["sh", "-c"]
        said = [
            f"@@devbench {name}\n{text}\n\n@@end {0 if text else 1}\n"
            for name, text in self.answers.items()
            if f'"@@devbench {name}"' in argv[2]
        ]
        return Completed(0, "".join(said).encode(), b"")


def facts_of(probed: Mapping[str, Any] | None = None, **changes: str) -> Facts:
    return ANDROID.facts(probed or PROBED, Answering(**changes))


def rules(facts: Facts) -> list[str]:
    return [finding.rule for finding in ANDROID.fitness(facts)]


def test_it_is_a_platform() -> None:
    """As the registry expects one."""
    platform: Platform = ANDROID
    assert platform.name == "android"
    assert set(platform.limits) == set(vars(Limits()))
    assert (platform.default_runner, list(platform.machine_command)) == ("benchmark_model", ["uname", "-m"])


class TestFacts:
    def test_a_phone(self) -> None:
        """All of it in one round trip, and fit to be stored."""
        asking = Answering()
        facts = ANDROID.facts(PROBED, asking)
        assert asking.asked == 1
        assert facts.cpu_model == "Google Pixel 8, Tensor G3"
        assert facts.os == "Android 14 (API 34), build AP2A.240805.005/12025142"
        assert [(one.name, one.cpus, one.max_khz) for one in facts.clusters] == [
            ("big", (7,), 2_914_000),
            ("mid", (4, 5, 6), 2_367_000),
            ("little", (0, 1, 2, 3), 1_704_000),
        ]
        assert (facts.machine, facts.memory_kb, facts.governor) == ("aarch64", 7_800_000, "sched_pixel")
        assert facts.sensors == ("BIG", "LITTLE", "G3D", "battery", "VIRTUAL-SKIN")
        assert facts.virtualisation is None
        android = facts.raw["android"]
        assert (android["api"], android["build_type"], android["root"]) == (34, "user", None)
        assert android["abis"] == ["arm64-v8a", "armeabi-v7a", "armeabi"]
        assert (android["gpu"], android["egl"]) == (GPU.removeprefix("GLES: "), "mali")
        assert android["nnapi"] == ["google-edgetpu", "nnapi-sample_all"]
        assert (android["free_kb"], android["selinux"], android["screen_on"]) == (91612340, "Enforcing", False)
        assert (android["battery"]["percent"], android["battery"]["voltage_mv"]) == (85.0, 4120)
        assert json.loads(json.dumps(facts.as_json()))["raw"]["android"]["boot_completed"] is True

    def test_what_cannot_be_read_is_absent_with_the_reason(self) -> None:
        """Never zero, and never left out in silence."""
        facts = facts_of(
            thermalservice="Can't find service: thermalservice",
            battery="Permission Denial: can't dump",
            gpu="",
            nnapi="",
            free="df: /data/local/tmp: Permission denied",
        )
        assert facts.absent == {
            "os_release": "ENOENT",
            "thermal.TPU": "EACCES",
            "thermal.off": "no plausible value",
            "android.thermalservice": "no such service",
            "android.battery": "not permitted",
            "android.gpu": "no answer",
            "android.nnapi": "no driver is registered as a service",
            "android.free": "EACCES",
            "android.root": "no su",
        }
        assert facts.sensors == ("BIG",)
        assert facts.raw["android"]["free_kb"] is None

    def test_a_phone_that_says_nothing(self) -> None:
        """The agent's probe is all there is."""
        facts = ANDROID.facts(PROBED, lambda argv: Completed(1, b"", b"sh: out of memory"))
        assert (facts.cpu_model, facts.os, facts.cores) == ("ARMv8", None, 8)
        assert facts.absent["android.battery"] == "no answer"
        assert [finding.severity for finding in ANDROID.fitness(facts) if finding.severity is Severity.WARN] == []

    def test_a_lost_phone_is_an_error(self) -> None:
        """Not a phone without facts."""

        def ask(argv: Sequence[str]) -> Completed:
            raise DeviceLost("gone", remedy="plug it in")

        with pytest.raises(DeviceLost):
            ANDROID.facts(PROBED, ask)

    @pytest.mark.parametrize(
        ("uid", "said", "root"),
        [(0, "no", "adbd"), (2000, "su -c", "su -c"), (2000, "su 0 sh -c", "su 0 sh -c"), (2000, "denied", None)],
    )
    def test_root(self, uid: int, said: str, root: str | None) -> None:
        facts = facts_of({**PROBED, "uid": uid}, root=said)
        assert facts.raw["android"]["root"] == root
        assert facts.absent.get("android.root") == ("su is there and refuses" if root is None else None)

    def test_the_question_about_root_in_a_shell(self, tmp_path: Path) -> None:
        """With the `su` of a rooted phone, and without."""
        for rooted, expected in ((True, "su -c"), (False, None)):
            folder = tmp_path / str(rooted)
            folder.mkdir()
            facts = AndroidPlatform(folder=str(folder)).facts(PROBED, Phone(folder, rooted=rooted).ask)
            assert facts.raw["android"]["root"] == expected
            assert (facts.raw["android"]["free_kb"], facts.raw["android"]["selinux"]) == (999999, "Enforcing")

    def test_an_older_phones_chip(self) -> None:
        """ro.soc.model came with Android 12."""
        props = ANSWERS["props"].replace("[ro.soc.model]", "[x]")
        assert facts_of(props=props).cpu_model == "Google Pixel 8, zuma"
        assert facts_of(props=props.replace("[ro.board.platform]", "[y]")).cpu_model == "Google Pixel 8, shiba"


class TestState:
    def test_a_state_is_one_round_trip(self) -> None:
        """Telemetry is not even read where Android itself says how warm and how charged it is."""
        asking = Answering()
        state = ANDROID.state(SamplesWhenRead(lambda: pytest.fail("nobody needs them")), asking, NO_FACTS)
        assert asking.asked == 1
        expected = {
            "thermal_status": 2,
            "temperature_c": 41.351,
            "temperature_of": "skin",
            "battery_percent": 85.0,
            "battery_temperature_c": 28.1,
            "charging": True,
            "low_power_mode": False,
            "screen_on": False,
            "absent": {},
        }
        assert {key: state[key] for key in expected} == expected
        json.dumps(dict(state))

    def test_where_the_temperature_comes_from(self) -> None:
        """Skin, else CPU, else the agent's sensors, else the battery; it is told which."""
        samples = [{"temp_mc": [45_000, -273_000, None, 0]}, {"temp_mc": [44_000, 47_500, None, 0]}]
        vendor = (DATA / "thermalservice_vendor.txt").read_text(encoding="utf-8")
        for text, given, expected in (
            (vendor, samples, (47.2, "CPU")),
            ("", samples, (47.5, "hottest sensor")),
            ("", [], (28.1, "battery")),
        ):
            state = ANDROID.state(given, Answering(thermalservice=text), NO_FACTS)
            assert (state["temperature_c"], state["temperature_of"]) == expected

    def test_an_overridden_battery_is_not_believed(self) -> None:
        """The kernel's level, which the agent read, is the real one."""
        stopped = Answering(battery=(DATA / "battery_stopped.txt").read_text(encoding="utf-8"))
        samples = [{"battery": [{"percent": 41}]}, {"battery": [{"percent": 40}, None]}]
        assert ANDROID.state(samples, stopped, NO_FACTS)["battery_percent"] == 40.0
        assert ANDROID.state([], stopped, NO_FACTS)["battery_percent"] is None

    def test_nothing_known(self) -> None:
        """Unknown is None, with the reason."""
        state = ANDROID.state([], lambda argv: Completed(0, b"", b""), NO_FACTS)
        assert [state[key] for key in ("thermal_status", "temperature_c", "battery_percent", "charging")] == [None] * 4
        assert set(state["absent"]) == set(STATE_QUESTIONS)

    def test_the_script_fits_old_daemons(self) -> None:
        assert len(batch(STATE_QUESTIONS)) < 1000


class TestLimits:
    LIMITS = Limits(temperature_c_max=38, battery_percent_min=30, thermal_status_max=0)

    @pytest.mark.parametrize(
        ("state", "words"),
        [
            ({}, None),
            ({"thermal_status": 0, "temperature_c": 38.0, "battery_percent": 30.0}, None),
            ({"thermal_status": 3}, "thermal status 3 (severe), and the limit is 0 (none)"),
            (
                {"temperature_c": 41.35, "temperature_of": "skin"},
                "skin at 41.4 degrees C, and the limit is 38",
            ),
            ({"battery_percent": 12.0}, "battery at 12 %, and the limit is 30 %"),
        ],
    )
    def test_in_words(self, state: Mapping[str, Any], words: str | None) -> None:
        """What is unknown breaks no limit."""
        assert ANDROID.breach(self.LIMITS, state) == words
        assert ANDROID.breach(Limits(), state) is None

    @pytest.mark.parametrize(
        ("limits", "state", "words"),
        [
            (Limits(charging=False), {"charging": True}, "the battery is charging, and limits.charging says false"),
            (Limits(charging=True), {"charging": False}, "the battery is not charging, and limits.charging says true"),
            (Limits(charging=True), {"charging": True}, None),
            (Limits(charging=True), {"charging": None}, None),
            (
                ANDROID.default_limits,
                {"low_power_mode": True},
                "battery saver is on, and limits.low_power_mode says false",
            ),
            (ANDROID.default_limits, {"low_power_mode": False, "thermal_status": 1}, None),
            (ANDROID.default_limits, {"thermal_status": 2}, "thermal status 2 (moderate), and the limit is 1 (light)"),
            (Limits(low_power_mode=True).over(ANDROID.default_limits), {"low_power_mode": True}, None),
        ],
    )
    def test_charger_and_battery_saver(self, limits: Limits, state: Mapping[str, Any], words: str | None) -> None:
        """Battery saver and real throttling are gates on every phone, unless devices.toml says otherwise."""
        assert ANDROID.breach(limits, state) == words


class TestFitness:
    def test_an_ordinary_phone(self) -> None:
        """Worst first: it is throttling now, then what is always so."""
        assert rules(facts_of()) == ["throttled", "charging", "not-rooted"]

    @pytest.mark.parametrize(
        ("changes", "rule", "severity"),
        [
            ({"low_power": "1"}, "low-power-mode", Severity.WARN),
            ({"battery": "(UPDATES STOPPED -- use 'reset' to restart)"}, "battery-overridden", Severity.WARN),
            ({"battery": "USB powered: false\nstatus: 3\n"}, "on-battery", Severity.NOTE),
            ({"props": "[ro.build.type]: [userdebug]"}, "debug-build", Severity.NOTE),
            ({"props": "[ro.hardware]: [ranchu]"}, "emulator", Severity.WARN),
            ({"props": "[sys.boot_completed]: [0]"}, "booting", Severity.WARN),
            ({"thermalservice": "IsStatusOverride: true\nThermal Status: 0"}, "thermal-overridden", Severity.WARN),
            ({"thermalservice": "Can't find service: thermalservice"}, "no-thermal-status", Severity.NOTE),
        ],
    )
    def test_what_is_worth_knowing(self, changes: dict[str, str], rule: str, severity: Severity) -> None:
        found = {finding.rule: finding for finding in ANDROID.fitness(facts_of(**changes))}
        assert found[rule].severity is severity

    def test_a_rooted_phone_is_told_what_it_could_do(self) -> None:
        assert "governor" in rules(facts_of(root="su -c"))

    def test_facts_of_an_older_run(self) -> None:
        """Stored facts without Android's part have nothing to say."""
        assert ANDROID.fitness(replace(facts_of(), raw={})) == ()


class TestAffinity:
    @pytest.mark.parametrize(
        ("affinity", "mask"), [("any", None), ("big", "80"), ("mid", "70"), ("little", "f"), ("0xF0", "f0")]
    )
    def test_masks_by_cluster(self, affinity: str, mask: str | None) -> None:
        """Hexadecimal without 0x, as taskset on phones wants it."""
        assert ANDROID.affinity_mask(affinity, facts_of()) == mask

    def test_a_cpu_that_is_not_there(self) -> None:
        with pytest.raises(ValueError, match="names CPUs this device does not have"):
            ANDROID.affinity_mask("100", facts_of())


class TestGovernor:
    WANTED = Conditions(governor="performance")

    def test_not_rooted(self) -> None:
        """A finding by name, no try."""
        holds, findings = ANDROID.holds(self.WANTED, facts_of())
        assert holds == ()
        assert [finding.reason for finding in findings] == [
            "governor performance was asked for and is not held: this phone is not rooted"
        ]

    def test_an_agent_that_is_root_holds_it(self) -> None:
        """As on Linux, for each CPU and each trial."""
        holds, findings = ANDROID.holds(self.WANTED, facts_of({**PROBED, "uid": 0}))
        assert findings == ()
        assert holds[0] == Hold("/sys/devices/system/cpu/cpu7/cpufreq/scaling_governor", "performance")
        assert len(holds) == 8

    def test_with_su_the_session_holds_it(self, tmp_path: Path) -> None:
        """The agent is not root then; it goes through the journal like everything else."""
        phone = Phone(tmp_path)
        platform = AndroidPlatform(folder=str(phone.folder), cpufreq=str(phone.cpufreq))
        facts = facts_of(root="su -c")
        before = phone.settings()
        assert platform.holds(self.WANTED, facts) == ((), ())
        with platform.session(self.WANTED, facts, phone.ask):
            assert phone.settings()["governor"] == "policy0=performance policy4=performance"
            assert phone.journal()["governor"] == before["governor"]
        assert phone.settings() == before

    def test_a_governor_the_kernel_has_not(self, tmp_path: Path) -> None:
        """One finding, and the session does not try."""
        phone = Phone(tmp_path)
        phone.set({"prop.debug.tflite.trace": ""})
        platform = AndroidPlatform(folder=str(phone.folder), cpufreq=str(phone.cpufreq))
        facts = facts_of(root="su -c")
        wanted = Conditions(governor="warp")
        assert "offers only sched_pixel, performance" in platform.holds(wanted, facts)[1][0].reason
        with platform.session(wanted, facts, phone.ask) as findings:
            assert findings == ()
        assert phone.changes == []

    def test_as_found(self) -> None:
        assert ANDROID.holds(Conditions(), facts_of()) == ((), ())
