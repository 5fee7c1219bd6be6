"""The Android platform over the real adb server, on virtual phones: facts, conditions, states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from android_harness.adb_transport import ADB
from android_harness.platform import ANDROID
from orchestrator.clock import Deadline
from orchestrator.deploy import Deployment
from orchestrator.errors import DeviceLost
from orchestrator.fleet import Device, Limits
from orchestrator.plan import Conditions
from orchestrator.platforms.base import Ask, Facts
from orchestrator.transports.base import Completed

from ..devices.adb_server import AdbServer
from ..devices.fixtures import StartPhone
from ..devices.virtual_phone import FLAGSHIP, OLD, VirtualPhone
from .android_phone import NO_FACTS

GOVERNORS = "cat /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
JOURNAL = "/data/local/tmp/devbench/journal"
EVERYTHING = Conditions(
    governor="performance", screen="on", airplane=True, fixed_performance=True, doze="off", stop_background_apps=True
)


@contextmanager
def connected(server: AdbServer, one: VirtualPhone) -> Iterator[tuple[Facts, Ask]]:
    """The phone as a conductor has it: agent in place, probed."""
    address = {"serial": one.address, "adb_server": f"127.0.0.1:{server.port}"}
    transport = ADB.open(Device("phone", "adb", address=address), deadline=Deadline.after(30))

    def ask(argv: Sequence[str]) -> Completed:
        return transport.run(argv, deadline=Deadline.after(30))

    try:
        deployment = Deployment(transport, ANDROID, "/data/local/tmp/devbench")
        yield ANDROID.facts(deployment.agent.probe(Deadline.after(30)), ask), ask
    finally:
        transport.close()


def state_of(one: VirtualPhone) -> dict[str, str]:
    """What the phone has set, seen from behind its shell."""
    names = {
        "stay_awake": "settings/global/stay_on_while_plugged_in",
        "airplane": "settings/global/airplane_mode_on",
        "timeout": "settings/system/screen_off_timeout",
        "screen": "wakefulness",
        "doze": "idle_enabled",
    }
    return {name: one.path(f"/dev/.phone/{path}").read_text().strip() for name, path in names.items()}


def test_a_flagship(adb_server: AdbServer, phone: StartPhone) -> None:
    """Its facts, everything held and put back, and its state, with few round trips."""
    one = phone(FLAGSHIP)
    one.set_state("wakefulness", "Asleep")
    before = state_of(one)
    with connected(adb_server, one) as (facts, ask):
        assert facts.cpu_model == "Google Pixel 8, Tensor G3"
        assert facts.os == "Android 14 (API 34), build AP2A.240805.005/12025142"
        assert [cluster.name for cluster in facts.clusters] == ["big", "mid", "little"]
        assert facts.absent["thermal.TPU"] == "EACCES"
        assert "disabled_sensor" not in facts.sensors
        assert facts.raw["android"]["free_kb"] > 1_000_000
        opened = len(one.opened)
        with ANDROID.session(EVERYTHING, facts, ask) as findings:
            assert [finding.rule for finding in findings] == []
            assert state_of(one) == {
                "stay_awake": "7",
                "airplane": "1",
                "timeout": "2147483647",
                "screen": "Awake",
                "doze": "0",
            }
            assert one.path(JOURNAL).is_dir()
        assert len(one.opened) - opened == 3
        assert state_of(one) == before
        assert not one.path(JOURNAL).exists()
        state = ANDROID.state([], ask, NO_FACTS)
        assert (state["thermal_status"], state["battery_percent"], state["temperature_of"]) == (0, 85.0, "skin")
        assert ANDROID.breach(Limits(battery_percent_min=90), state) == "battery at 85 %, and the limit is 90 %"
        assert [finding.rule for finding in ANDROID.holds(EVERYTHING, facts)[1]] == ["governor-not-held"]


def test_a_rooted_phone(adb_server: AdbServer, phone: StartPhone) -> None:
    """The governor goes through `su` and the journal, because the agent is not root."""
    one = phone(replace(FLAGSHIP, rooted=True))
    with connected(adb_server, one) as (facts, ask):
        assert facts.raw["android"]["root"] == "su -c"
        wanted = Conditions(governor="performance")
        assert ANDROID.holds(wanted, facts) == ((), ())
        with ANDROID.session(wanted, facts, ask) as findings:
            assert findings == ()
            assert ask(["sh", "-c", GOVERNORS]).stdout.split() == [b"performance"] * 3
        assert ask(["sh", "-c", GOVERNORS]).stdout.split() == [b"schedutil"] * 3


def test_a_phone_of_2016(adb_server: AdbServer, phone: StartPhone) -> None:
    """No shell_v2, no thermal service, no doze: named, not failed."""
    one = phone(OLD)
    with connected(adb_server, one) as (facts, ask):
        assert facts.absent["android.thermalservice"] == "no such service"
        assert "no-thermal-status" in [finding.rule for finding in ANDROID.fitness(facts)]
        with ANDROID.session(EVERYTHING, facts, ask) as findings:
            assert [finding.rule for finding in findings] == [
                "airplane-not-held",
                "fixed_performance-not-held",
                "doze-not-held",
            ]
        assert ANDROID.state([], ask, NO_FACTS)["thermal_status"] is None


def test_a_host_that_dies(adb_server: AdbServer, phone: StartPhone) -> None:
    """The phone keeps the journal, and the next session puts everything back and says so."""
    one = phone(FLAGSHIP)
    before = state_of(one)
    with connected(adb_server, one) as (facts, ask):
        alive = True

        def dying(argv: Sequence[str]) -> Completed:
            if not alive:
                raise DeviceLost("this host is dead", remedy="none")
            return ask(argv)

        with suppress(DeviceLost), ANDROID.session(Conditions(airplane=True, screen="off"), facts, dying):
            alive = False
        assert state_of(one) != before
        with ANDROID.session(Conditions(), facts, ask) as findings:
            assert [finding.rule for finding in findings] == ["left-over"]
            assert state_of(one) == before


@pytest.mark.parametrize("trace", ["1", ""])
def test_a_trace_left_on(adb_server: AdbServer, phone: StartPhone, trace: str) -> None:
    """Off during the session, as it was afterwards."""
    one = phone(FLAGSHIP)
    one.set_props({"debug.tflite.trace": trace})
    with connected(adb_server, one) as (facts, ask):
        with ANDROID.session(Conditions(), facts, ask):
            assert ask(["getprop", "debug.tflite.trace"]).stdout.strip() == (b"0" if trace else b"")
        assert ask(["getprop", "debug.tflite.trace"]).stdout.strip() == trace.encode()
