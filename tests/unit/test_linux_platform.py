"""What a Linux device's probe means: clusters, masks, holds, fitness."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.fleet import Limits
from orchestrator.plan import Conditions
from orchestrator.platforms.base import Cluster, Facts, Hold
from orchestrator.platforms.linux import LINUX
from orchestrator.transports.base import Completed
from orchestrator.trial import Finding, Severity

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "agent" / "probe.json").read_text(encoding="utf-8"))
KHZ = {"little": 1_700_000, "mid": 2_370_000, "big": 2_910_000}
CAPACITY = {"little": 282, "mid": 792, "big": 1024}
KINDS = ["little"] * 4 + ["mid"] * 3 + ["big"]


def phone(**changes: Any) -> dict[str, Any]:
    """A probe of an eight-core phone SoC: four little, three mid, one big."""
    cpus = [
        {"id": cpu, "capacity": CAPACITY[kind], "max_khz": KHZ[kind], "governor": "schedutil"}
        for cpu, kind in enumerate(KINDS)
    ]
    return {
        "machine": "aarch64",
        "kernel_release": "6.1.99",
        "os_release": "Board Linux 3",
        "device_tree_model": "ACME Board 8",
        "cpu_model": "ARMv8",
        "cpus": cpus,
        "governors": ["schedutil", "performance", "powersave"],
        "uid": 0,
        "mem_total_kb": 8_000_000,
        "thermal": [{"zone": 0, "name": "cpu-thermal", "temp_mc": 41_000}, {"zone": 1, "name": "off", "temp_mc": None}],
        "hypervisor": {"flag": False, "type": None, "vendor": None, "product": None},
        "cpu_quota": "max",
        "absent": {"boost": "ENOENT"},
        **changes,
    }


def no_question(argv: Sequence[str]) -> Completed:
    """A device that answers nothing beyond the probe."""
    return Completed(127, b"", b"")


def facts_of(probed: Mapping[str, Any]) -> Facts:
    return LINUX.facts(probed, no_question)


def without(key: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in cpu.items() if name != key} for cpu in phone()["cpus"]]


class TestFacts:
    def test_the_recorded_probe_of_a_virtual_machine(self) -> None:
        """What the real agent said on a real machine: two equal CPUs, no cpufreq, no sensors."""
        facts = facts_of(RECORDED)
        assert (facts.machine, facts.cpu_model, facts.cores) == ("x86_64", "AMD EPYC", 2)
        assert facts.clusters == (Cluster("big", (0, 1), None, 1024),)
        assert (facts.governor, facts.sensors, facts.virtualisation) == (None, (), "unnamed")
        assert (facts.os, facts.memory_kb) == ("Debian GNU/Linux 12 (bookworm)", 24_684_100)
        assert facts.absent["governor"] == "ENOENT"

    def test_a_board_is_named_by_its_device_tree(self) -> None:
        """`ARMv8` says nothing; sensors that cannot be read are no sensors."""
        facts = facts_of(phone())
        assert (facts.cpu_model, facts.sensors, facts.governor) == ("ACME Board 8", ("cpu-thermal",), "schedutil")
        assert facts.virtualisation is None

    def test_governors_that_differ_are_all_named(self) -> None:
        """One cluster may have been left on another governor."""
        probed = phone()
        probed["cpus"][7]["governor"] = "performance"
        assert facts_of(probed).governor == "performance, schedutil"

    @pytest.mark.parametrize(
        ("found", "name"),
        [
            ({"flag": True, "type": "kvm", "vendor": "Amazon EC2", "product": None}, "kvm Amazon EC2"),
            ({"flag": True, "type": None, "vendor": None, "product": None}, "unnamed"),
            ({"flag": False, "type": None, "vendor": "Dell", "product": "XPS"}, None),
            (None, None),
        ],
    )
    def test_a_vendor_alone_makes_no_virtual_machine(self, found: dict[str, Any] | None, name: str | None) -> None:
        """Every machine has a vendor; the CPU's flag or a hypervisor's type tells."""
        assert facts_of(phone(hypervisor=found)).virtualisation == name

    def test_an_empty_probe_is_one_unknown_core(self) -> None:
        """A kernel that shows nothing is still a device."""
        facts = facts_of({})
        assert (facts.machine, facts.kernel, facts.cores, facts.clusters) == ("unknown", "unknown", 1, ())

    def test_facts_can_be_stored(self) -> None:
        """They go to the store with the session."""
        assert json.loads(json.dumps(facts_of(phone()).as_json()))["clusters"][0] == {
            "name": "big",
            "cpus": [7],
            "max_khz": 2_910_000,
            "capacity": 1024,
        }


EXPECTED = (("big", (7,)), ("mid", (4, 5, 6)), ("little", (0, 1, 2, 3)))


class TestClusters:
    @pytest.mark.parametrize("missing", ["none", "capacity", "max_khz"])
    def test_capacity_or_else_frequency_tells_the_kinds_apart(self, missing: str) -> None:
        """Fastest first, whichever of the two the kernel shows."""
        facts = facts_of(phone(cpus=without(missing)))
        assert tuple((cluster.name, cluster.cpus) for cluster in facts.clusters) == EXPECTED

    def test_two_kinds_are_big_and_little(self) -> None:
        """There is no mid between two."""
        cpus = [{"id": cpu, "capacity": 1024 if cpu >= 4 else 400} for cpu in range(8)]
        assert [cluster.name for cluster in facts_of(phone(cpus=cpus)).clusters] == ["big", "little"]

    def test_four_kinds_have_two_mids(self) -> None:
        """From the fastest down."""
        cpus = [{"id": cpu, "capacity": 1024 - 100 * cpu} for cpu in range(4)]
        clusters = facts_of(phone(cpus=cpus)).clusters
        assert [(cluster.name, cluster.cpus) for cluster in clusters] == [
            ("big", (0,)),
            ("mid", (1,)),
            ("mid2", (2,)),
            ("little", (3,)),
        ]

    def test_where_the_kernel_tells_capacity_frequency_splits_nothing(self) -> None:
        """A core that may boost a little higher is not another kind of core."""
        cpus = [{"id": cpu, "capacity": 1024, "max_khz": 5_000_000 + 100_000 * (cpu == 3)} for cpu in range(4)]
        assert [cluster.cpus for cluster in facts_of(phone(cpus=cpus)).clusters] == [(0, 1, 2, 3)]

    def test_offline_cpus_leave_holes(self) -> None:
        """CPU numbers are kept, not counted."""
        cpus = [cpu for cpu in phone()["cpus"] if cpu["id"] not in (1, 5)]
        clusters = facts_of(phone(cpus=cpus)).clusters
        assert [cluster.cpus for cluster in clusters] == [(7,), (4, 6), (0, 2, 3)]


class TestAffinity:
    FACTS = facts_of(phone())

    @pytest.mark.parametrize(
        ("affinity", "mask"),
        [("any", None), ("big", "80"), ("mid", "70"), ("little", "f"), ("f0", "f0"), ("0xF0", "f0"), ("01", "1")],
    )
    def test_words_and_masks_become_masks(self, affinity: str, mask: str | None) -> None:
        """As the agent takes them: hexadecimal, no prefix."""
        assert LINUX.affinity_mask(affinity, self.FACTS) == mask

    @pytest.mark.parametrize(
        ("affinity", "facts", "message"),
        [
            ("100", FACTS, "mask 100 names CPUs this device does not have (it has ff)"),
            ("mid", facts_of(RECORDED), "no mid cluster on this device (it has big)"),
        ],
    )
    def test_what_the_device_lacks_is_refused(self, affinity: str, facts: Facts, message: str) -> None:
        """The message says what it has."""
        with pytest.raises(ValueError, match="device") as caught:
            LINUX.affinity_mask(affinity, facts)
        assert str(caught.value) == message


PERFORMANCE = Conditions(governor="performance")
REMEDY = "run as root on a device with cpufreq, or leave governor out of [conditions]"


class TestHolds:
    def test_nothing_asked_is_nothing_held(self) -> None:
        """The governor stays as it was found."""
        assert LINUX.holds(Conditions(), facts_of(phone())) == ((), ())

    def test_root_holds_the_governor_of_every_cpu(self) -> None:
        """One file a CPU."""
        holds, findings = LINUX.holds(PERFORMANCE, facts_of(phone()))
        path = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
        assert set(holds) == {Hold(path.format(cpu), "performance") for cpu in range(8)}
        assert len(holds) == 8
        assert findings == ()

    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            ({"uid": 1000}, "only root may change it"),
            ({"governors": ["schedutil", "powersave"]}, "the kernel offers only schedutil, powersave"),
            ({"cpus": without("governor")}, "this kernel shows no CPU frequency control (no cpufreq)"),
            (
                {"cpus": without("governor"), "absent": {"governor": "EACCES"}},
                "this kernel shows no CPU frequency control (not permitted)",
            ),
            (
                {"cpus": without("governor"), "hypervisor": {"flag": True}},
                "this kernel shows no CPU frequency control (no cpufreq in this virtual machine)",
            ),
        ],
    )
    def test_what_cannot_be_held_is_said(self, changes: dict[str, Any], why: str) -> None:
        """A warning with the reason; nothing is pretended."""
        holds, findings = LINUX.holds(PERFORMANCE, facts_of(phone(**changes)))
        assert holds == ()
        assert findings == (
            Finding(
                "governor-not-held",
                Severity.WARN,
                f"governor performance was asked for and is not held: {why}",
                REMEDY,
            ),
        )


class TestFitness:
    def reasons(self, **changes: Any) -> dict[str, tuple[Severity, str]]:
        found = LINUX.fitness(facts_of(phone(**changes)))
        return {finding.rule: (finding.severity, finding.reason) for finding in found}

    def test_a_board_at_full_clock_with_sensors_is_fit(self) -> None:
        """Nothing to say."""
        cpus = [{**cpu, "governor": "performance"} for cpu in phone()["cpus"]]
        assert self.reasons(cpus=cpus) == {}

    def test_a_governor_that_follows_the_load_is_noted(self) -> None:
        """With the way to hold it."""
        assert self.reasons() == {"governor": (Severity.NOTE, "governor schedutil: the clock follows the load")}

    def test_a_virtual_machine_is_noted_with_all_it_hides(self) -> None:
        """The recorded one: no clock, no sensors, other guests."""
        found = LINUX.fitness(facts_of(RECORDED))
        assert {finding.rule: finding.reason for finding in found} == {
            "virtual": "a virtual machine: other guests may take time away from it",
            "no-cpufreq": ("CPU frequency is neither readable nor controllable (no cpufreq in this virtual machine)"),
            "no-thermal": "no temperature can be read, so throttling cannot be seen",
        }
        assert {finding.severity for finding in found} == {Severity.NOTE}

    def test_a_container_with_a_cpu_quota_is_warned_of(self) -> None:
        """A quota stops the process in the middle of an inference."""
        assert self.reasons(cpu_quota={"quota_us": 150_000, "period_us": 100_000})["cpu-quota"] == (
            Severity.WARN,
            "a cgroup limits this process to 1.50 CPUs: it is stopped when it has used them up",
        )


def test_linux_checks_what_it_can_read() -> None:
    """Thermal status is Android's word."""
    assert LINUX.limits == ("temperature_c_max", "battery_percent_min")


class TestLimits:
    SAMPLES = (
        {"temp_mc": [41_000, -273_000], "battery": [{"percent": 80}]},
        {"temp_mc": [52_500, None], "battery": [{"percent": 79}]},
    )

    def test_the_state_is_the_hottest_sensor_and_the_lowest_charge(self) -> None:
        """Readings no sensor can give are left out."""
        assert LINUX.state(self.SAMPLES, no_question, facts_of(phone())) == {
            "temperature_c": 52.5,
            "battery_percent": 79.0,
        }

    @pytest.mark.parametrize(
        ("limits", "broken"),
        [
            (Limits(), None),
            (Limits(temperature_c_max=53), None),
            (Limits(temperature_c_max=50), "52.5 degrees C, and the limit is 50"),
            (Limits(battery_percent_min=79), None),
            (Limits(battery_percent_min=90), "battery at 79 %, and the limit is 90 %"),
        ],
    )
    def test_a_broken_limit_is_told_in_words(self, limits: Limits, broken: str | None) -> None:
        """What holds is None."""
        assert LINUX.breach(limits, LINUX.state(self.SAMPLES, no_question, facts_of(phone()))) == broken

    def test_what_cannot_be_read_breaks_no_limit(self) -> None:
        """That it cannot be read is another finding."""
        assert (
            LINUX.breach(
                Limits(temperature_c_max=1, battery_percent_min=99), LINUX.state((), no_question, facts_of(phone()))
            )
            is None
        )


class TestSession:
    def test_nothing_is_held_and_nothing_said_by_default(self) -> None:
        """A plan that asks for nothing gets no finding."""
        with LINUX.session(Conditions(), facts_of(phone()), no_question) as findings:
            assert findings == ()

    def test_conditions_of_phones_are_said_not_to_be_held(self) -> None:
        """A setting that means nothing here is never dropped silently."""
        with LINUX.session(Conditions(screen="on", airplane=True), facts_of(phone()), no_question) as findings:
            assert [finding.reason for finding in findings] == [
                "screen was asked for, and Linux has no such thing",
                "airplane was asked for, and Linux has no such thing",
            ]
