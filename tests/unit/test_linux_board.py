"""What a Linux board is beyond its kernel, from texts as its tools print them; no board was at hand."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from orchestrator.platforms import board
from orchestrator.platforms.linux import LINUX
from orchestrator.transports.base import Completed
from orchestrator.trial import Severity

PROBED: dict[str, Any] = {"machine": "aarch64", "cpus": [{"id": 0}], "kernel_release": "6.6"}


def answering(**texts: str) -> Any:
    """A board that gives these answers, and finds no command for any other question."""

    def ask(argv: Sequence[str]) -> Completed:
        script = argv[2]
        names = [line.split()[2].rstrip('"') for line in script.splitlines() if "@@devbench " in line]
        out = ""
        for name in names:
            said, status = (texts[name], 0) if name in texts else ("sh: tool: not found", 127)
            out += f"@@devbench {name}\n{said}\n@@end {status}\n"
        return Completed(0, out.encode(), b"")

    return ask


def test_a_32_bit_userland_decides_what_programs_are_brought() -> None:
    """Raspberry Pi OS for 32 bits boots a 64-bit kernel: uname says aarch64, and Python there is armv7."""
    facts = LINUX.facts(PROBED, answering(bits="32", libc="glibc 2.31"))
    assert facts.machine == "armv7l"
    assert facts.raw["board"]["kernel_machine"] == "aarch64"
    (finding,) = [finding for finding in LINUX.fitness(facts) if finding.rule == "userland-32"]
    assert "32-bit userland on a 64-bit kernel (aarch64)" in finding.reason


@pytest.mark.parametrize(("bits", "kernel", "machine"), [("64", "aarch64", "aarch64"), ("32", "armv7l", "armv7l")])
def test_other_userlands_are_what_the_kernel_says(bits: str, kernel: str, machine: str) -> None:
    assert LINUX.facts(PROBED | {"machine": kernel}, answering(bits=bits)).machine == machine


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("glibc 2.36", "glibc", "2.36"),
        ("GNU C Library (Debian GLIBC 2.36-9+deb12u14) stable release version 2.36.", "glibc", "2.36"),
        ("musl libc (aarch64)\nVersion 1.2.4\nDynamic Program Loader", "musl", "1.2.4"),
    ],
)
def test_the_libc_is_told_by_its_own_words(text: str, name: str, version: str) -> None:
    assert board.libc(text) == {"name": name, "version": version}


def test_what_cannot_be_told_is_absent_with_the_reason() -> None:
    """But a maker's own tools are not missed on another maker's board."""
    facts = LINUX.facts(PROBED, answering(bits="64"))
    assert facts.raw["board"]["libc"] is None
    assert facts.absent["libc"] == "no such command"
    assert not {"power_mode", "soc", "firmware_throttling"} & set(facts.absent)


@pytest.mark.parametrize(
    ("text", "now", "since_boot"),
    [
        ("throttled=0x0", [], []),
        ("throttled=0x50005", ["under-voltage", "throttled"], ["under-voltage", "throttled"]),
        ("throttled=0xe0000", [], ["frequency capped", "throttled", "soft temperature limit"]),
        ("50000", [], ["under-voltage", "throttled"]),
    ],
)
def test_the_firmwares_bits_are_decoded(text: str, now: list[str], since_boot: list[str]) -> None:
    assert board.firmware_throttling(text) == {"now": now, "since_boot": since_boot}


@pytest.mark.parametrize("text", ["", "VCHI initialization failed", 'error=1 error_msg="Command not registered"'])
def test_a_firmware_that_says_something_else_says_nothing(text: str) -> None:
    assert board.firmware_throttling(text) is None


def test_a_power_supply_that_was_too_weak_is_a_warning() -> None:
    facts = LINUX.facts(PROBED, answering(firmware_throttling="throttled=0x50000"))
    (finding,) = [finding for finding in LINUX.fitness(facts) if finding.rule == "throttled"]
    assert finding.severity == Severity.WARN
    assert "under-voltage, throttled since the board was started" in finding.reason


def test_soc_and_power_mode_come_from_where_the_maker_puts_them() -> None:
    """The driver's name, else the device tree's most general one."""
    facts = LINUX.facts(PROBED, answering(soc="i.MX\ni.MX8MP", power_mode="NV Power Mode: 15W\n2"))
    assert (facts.raw["board"]["soc"], facts.raw["board"]["power_mode"]) == ("i.MX i.MX8MP", "15W")
    tree = PROBED | {"device_tree_compatible": ["raspberrypi,4-model-b", "brcm,bcm2711"]}
    assert LINUX.facts(tree, answering()).raw["board"]["soc"] == "brcm,bcm2711"


def test_a_board_that_can_say_so_is_asked_whether_it_slows_down() -> None:
    """Cooling devices of CPUs count, fans do not; a board that could not say it is not asked again."""
    asked = answering(cooling="0 4 cpufreq-cpu0\n1 4 pwm-fan", firmware_throttling="throttled=0x0")
    facts = LINUX.facts(PROBED, asked)
    later = answering(cooling="2 4 cpufreq-cpu0\n4 4 pwm-fan", firmware="throttled=0x80008")
    state = LINUX.state((), later, facts)
    assert state["throttled"] == ["soft temperature limit", "cpufreq-cpu0 at step 2 of 4"]
    assert state["throttled_since_boot"] == ["soft temperature limit"]
    quiet = LINUX.facts(PROBED, answering(bits="64"))
    assert "throttled" not in LINUX.state((), refuse, quiet)


def refuse(argv: Sequence[str]) -> Completed:
    raise AssertionError(f"asked {argv}")


def test_this_machine_answers_the_questions() -> None:
    """The script itself, in this machine's shell."""

    def ask(argv: Sequence[str]) -> Completed:
        done = subprocess.run(argv, capture_output=True, check=False)
        return Completed(done.returncode, done.stdout, done.stderr)

    found = board.ask_board({"machine": "x86_64"}, ask)
    assert found.facts["userland_bits"] in (32, 64)
    assert found.facts["libc"]["name"] in ("glibc", "musl")
