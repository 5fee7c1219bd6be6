"""What iPhones let us do, and what is skipped there by name."""

from __future__ import annotations

from typing import Any

import pytest

from ios_harness.app_runner import IOS_APP, IosApp
from ios_harness.platform import IOS, JAILBROKEN
from orchestrator.fleet import Device, Limits
from orchestrator.grid import expand, unsupported
from orchestrator.plan import Conditions, Plan, Sweep
from orchestrator.platforms.base import Facts, Platform
from orchestrator.transports.base import Completed
from tests.unit.test_grid import MODELS
from tests.unit.trial_factory import make_cell

PLATFORMS: tuple[Platform, ...] = (IOS, JAILBROKEN)
PROBED = {"system": "Darwin", "kernel": "23.3.0", "product": "iPhone14,2", "cores": "6", "memory_bytes": "5900000000"}


def nothing(argv: Any) -> Completed:
    return Completed(1, b"", b"")


def facts() -> Facts:
    return JAILBROKEN.facts(PROBED, nothing)


def why_not(platform: Platform, conditions: Conditions | None = None, **cell: Any) -> str | None:
    made = make_cell(**{"runner": "ios_app", **cell})
    device = Device("iphone", "ssh")
    conditions = conditions or Conditions()
    runner = IOS_APP if platform is IOS else _Everywhere()
    return unsupported(made, device=device, facts=facts(), platform=platform, runner=runner, conditions=conditions)


class _Everywhere(IosApp):
    platforms = ("ios", "ios-jailbroken")


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.name)
class TestSettings:
    """The same on every iPhone."""

    def test_plain_cells_run(self, platform: Platform) -> None:
        """Threads and delegates are the runner's business."""
        assert why_not(platform, threads=4) is None

    @pytest.mark.parametrize("load", ["cpu:2@50", "mem:1", "app", "model:tracker@1f2e3d4c"])
    def test_loads_are_skipped_by_name(self, platform: Platform, load: str) -> None:
        """Never dropped: the cell is stored as skipped."""
        reason = why_not(platform, load=load)
        assert reason == f"no load {load} on iOS: no agent runs there, and iOS suspends apps in the background"

    @pytest.mark.parametrize("affinity", ["big", "little", "f0"])
    def test_affinity_is_skipped_by_name(self, platform: Platform, affinity: str) -> None:
        """There is no way to ask for it."""
        assert why_not(platform, affinity=affinity) == (
            f"no affinity {affinity} on iOS: it lets no program choose its CPUs"
        )

    @pytest.mark.parametrize(
        ("key", "value", "reason"),
        [
            ("governor", "performance", 'governor = "performance" cannot be had: iOS lets nobody choose the CPU'),
            ("airplane", True, "airplane = true cannot be had: iOS lets no program switch airplane mode"),
            ("fixed_performance", True, "fixed_performance = true cannot be had: iOS has no fixed performance mode"),
            ("doze", "off", 'doze = "off" cannot be had: iOS has no doze'),
            ("stop_background_apps", True, "stop_background_apps = true cannot be had: iOS lets no program end others"),
            ("screen", "off", 'screen = "off" cannot be had: iOS runs the app only in front'),
        ],
    )
    def test_conditions_that_cannot_be_held_skip_the_cell(
        self, platform: Platform, key: str, value: Any, reason: str
    ) -> None:
        """A number measured without the condition would not be what was asked."""
        found = why_not(platform, Conditions(**{key: value}))
        assert found is not None
        assert found.startswith(reason)

    def test_too_many_threads_and_foreign_delegates(self, platform: Platform) -> None:
        """As everywhere."""
        assert why_not(platform, threads=16) == "16 threads on a device with 6 cores"
        assert why_not(platform, delegate="nnapi") == (
            "ios_app cannot run delegate nnapi (it can: xnnpack, cpu, gpu, coreml)"
        )

    def test_loads_that_nobody_asked_for_are_left_out(self, platform: Platform) -> None:
        """`devbench run` without --load measures what suits the device."""
        plan, device = Plan(sweep=Sweep(threads=(1,))), Device("iphone", "ssh")
        grid = expand(
            plan,
            device,
            models=MODELS[:1],
            load_models={},
            cores=6,
            runners={"ios_app": None},
            has_loads=platform.has_loads,
        )
        assert [cell.load for cell in grid.cells] == ["idle"]


def test_runners_are_told_apart() -> None:
    """The app needs a Mac, and a program needs a freed phone."""
    reason = unsupported(
        make_cell(runner="ios_app"),
        device=Device("iphone", "ssh"),
        facts=facts(),
        platform=JAILBROKEN,
        runner=IOS_APP,
        conditions=Conditions(),
    )
    assert reason == "ios_app does not run on ios-jailbroken (it runs on ios)"


@pytest.mark.parametrize(
    ("limits", "state", "reason"),
    [
        (
            Limits(thermal_status_max=0),
            {"thermal_status": 2},
            "thermal state 2 (serious), and the limit is 0 (nominal)",
        ),
        (Limits(battery_percent_min=50), {"battery_percent": 20.0}, "battery at 20 %, and the limit is 50 %"),
        (Limits(charging=False), {"charging": True}, "the phone is charging, and limits.charging says false"),
        (Limits(charging=True), {"charging": False}, "the phone is not charging, and limits.charging says true"),
        (
            Limits(low_power_mode=False),
            {"low_power_mode": True},
            "the phone is in low-power mode, and limits.low_power_mode says false",
        ),
        (Limits(thermal_status_max=1, battery_percent_min=50), {}, None),
    ],
)
def test_limits(limits: Limits, state: dict[str, Any], reason: str | None) -> None:
    """What is not told breaks nothing; the judge says that nobody could check it."""
    assert IOS.breach(limits, state) == reason


def test_the_state_is_the_worst_that_was_seen() -> None:
    """Before and after the inferences."""
    samples = [
        {"thermal_status": 0, "battery_percent": 80.0, "charging": True, "low_power_mode": False},
        {"thermal_status": 2, "battery_percent": 79.0, "charging": False, "low_power_mode": None},
    ]
    assert IOS.state(samples, nothing, facts()) == {
        "thermal_status": 2,
        "battery_percent": 79.0,
        "charging": False,
        "low_power_mode": None,
    }
    assert IOS.state([], nothing, facts())["thermal_status"] is None


@pytest.mark.parametrize("probed", [{"system": "Darwin"}, {"system": "Darwin", "cores": "x", "memory_bytes": "-"}])
def test_a_phone_that_tells_nothing(probed: dict[str, Any]) -> None:
    """Jailbreaks lack all sorts of programs."""
    found = JAILBROKEN.facts(probed, nothing)
    assert (found.cores, found.memory_kb, found.machine) == (1, None, "ios-arm64")
