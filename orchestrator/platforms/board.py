"""What a Linux board is beyond its kernel: userland, libc, SoC, power mode, and whether it slows itself down. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.platforms.base import Ask, Facts
from orchestrator.platforms.questions import NOT_ASKED, Answer, answers, batch
from orchestrator.trial import Finding, Severity

_MACHINE_OF_32_BITS = {"aarch64": "armv7l", "arm64": "armv7l", "x86_64": "i686"}

_FIRMWARE = "vcgencmd get_throttled 2>/dev/null || cat /sys/devices/platform/soc/soc:firmware/get_throttled"
_COOLING = """\
for d in /sys/class/thermal/cooling_device*; do
  [ -r "$d/cur_state" ] && echo "$(cat "$d/cur_state") $(cat "$d/max_state") $(cat "$d/type")"
done; true"""
_QUESTIONS = {
    # The fifth byte of a program says for how many bits it was made.
    "bits": r"""c=$(head -c 5 /bin/sh | tail -c 1)
if [ "$c" = "$(printf '\001')" ]; then echo 32; elif [ "$c" = "$(printf '\002')" ]; then echo 64; fi""",
    "libc": """\
if v=$(getconf GNU_LIBC_VERSION 2>/dev/null) && [ -n "$v" ]; then echo "$v"; else
  for f in /lib/ld-musl-*.so.1; do [ -x "$f" ] && "$f" 2>&1 | head -n 2; done
  for f in /lib/libc.so.6 /lib/*/libc.so.6 /lib64/libc.so.6; do [ -x "$f" ] && "$f" | head -n 1 && break; done
fi""",
    "soc": "cat /sys/devices/soc0/family /sys/devices/soc0/soc_id",
    "power_mode": "nvpmodel -q",
    "firmware_throttling": _FIRMWARE,
    "cooling": _COOLING,
}
_OPTIONAL = ("power_mode", "firmware_throttling", "soc")
"""Tools and files of some makers only: not having them is no gap."""

_THROTTLE_BITS = ("under-voltage", "frequency capped", "throttled", "soft temperature limit")
_SINCE_BOOT = 16


@dataclass(frozen=True)
class BoardFacts:
    """What could be learnt, and what could not with the reason."""

    machine: str
    """The architecture that programs there are made for: on a 64-bit kernel the userland may have 32 bits."""
    facts: Mapping[str, Any]
    absent: dict[str, str]


def ask_board(probed: Mapping[str, Any], ask: Ask) -> BoardFacts:
    """One question to the board for everything that the agent's probe does not tell."""
    found = answers(ask(["sh", "-c", batch(_QUESTIONS)]).stdout)
    said = {name: found.get(name, NOT_ASKED) for name in _QUESTIONS}
    kernel_machine = str(probed.get("machine", "unknown"))
    bits = int(said["bits"].text) if said["bits"].text in ("32", "64") else None
    facts = {
        "kernel_machine": kernel_machine,
        "userland_bits": bits,
        "libc": libc(said["libc"].text),
        "soc": _soc(said["soc"], probed),
        "power_mode": _power_mode(said["power_mode"]),
        "throttling": firmware_throttling(said["firmware_throttling"].text),
        "cooling": cooling(said["cooling"].text),
    }
    reasons = {name: answer.trouble or "not understood" for name, answer in said.items() if name not in _OPTIONAL}
    keys = {"bits": "userland_bits", "libc": "libc", "cooling": "cooling"}
    absent = {keys[name]: why for name, why in reasons.items() if not facts[keys[name]]}
    machine = _MACHINE_OF_32_BITS.get(kernel_machine, kernel_machine) if bits == 32 else kernel_machine
    return BoardFacts(machine, facts, absent)


def libc(text: str) -> dict[str, str] | None:
    """`glibc 2.36`, the first line of glibc itself, or the two of musl."""
    if "musl" in text:
        found = re.search(r"Version (\d+(?:\.\d+)+)", text)
        return {"name": "musl", "version": found[1]} if found else {"name": "musl"}
    found = re.search(r"glibc (\d+\.\d+)", text) or re.search(r"release version (\d+\.\d+)", text)
    return {"name": "glibc", "version": found[1]} if found else None


def _soc(answer: Answer, probed: Mapping[str, Any]) -> str | None:
    """As the kernel's driver calls it, else the most general name in the device tree."""
    named = " ".join(line.strip() for line in answer.text.splitlines() if not answer.trouble and line.strip())
    compatible = probed.get("device_tree_compatible") or []
    return named or (str(compatible[-1]) if compatible else None)


def _power_mode(answer: Answer) -> str | None:
    """Jetson: `NV Power Mode: MAXN`."""
    found = re.search(r"NV Power Mode: *(\S+)", answer.text)
    return found[1] if found else None


def firmware_throttling(text: str) -> dict[str, list[str]] | None:
    """What Raspberry Pi's firmware says: what it does now, and what it has done since it started."""
    found = re.fullmatch(r"(?:throttled=)?(?:0x)?([0-9a-fA-F]{1,8})", text.strip())
    if not found:
        return None
    value = int(found[1], 16)
    return {
        "now": [name for bit, name in enumerate(_THROTTLE_BITS) if value >> bit & 1],
        "since_boot": [name for bit, name in enumerate(_THROTTLE_BITS) if value >> (_SINCE_BOOT + bit) & 1],
    }


def cooling(text: str) -> list[dict[str, Any]]:
    """The kernel's means of cooling by slowing down or blowing, with how far each is used."""
    rows = (re.fullmatch(r"(-?\d+) (\d+) (.+)", line.strip()) for line in text.splitlines())
    return [{"type": row[3], "state": int(row[1]), "max": int(row[2])} for row in rows if row]


def _slows_cpus(device: Mapping[str, Any]) -> bool:
    return bool(re.search(r"cpu|processor", str(device["type"]), re.I))


def throttling(facts: Facts, ask: Ask) -> dict[str, Any]:
    """Whether the board holds itself back now; asked only where it was able to say so at the beginning."""
    known = facts.raw.get("board") or {}
    questions = {}
    if known.get("throttling") is not None:
        questions["firmware"] = _FIRMWARE
    if any(_slows_cpus(device) for device in known.get("cooling") or ()):
        questions["cooling"] = _COOLING
    if not questions:
        return {}
    found = answers(ask(["sh", "-c", batch(questions)]).stdout)
    firmware = firmware_throttling(found.get("firmware", NOT_ASKED).text) or {"now": [], "since_boot": []}
    slowed = [device for device in cooling(found.get("cooling", NOT_ASKED).text) if _slows_cpus(device)]
    steps = [
        f"{device['type']} at step {device['state']} of {device['max']}" for device in slowed if device["state"] > 0
    ]
    return {"throttled": [*firmware["now"], *steps], "throttled_since_boot": firmware["since_boot"]}


def fitness_of(facts: Facts) -> list[Finding]:
    """What about this board makes its numbers harder to trust."""
    known = facts.raw.get("board") or {}
    findings = []
    if known.get("userland_bits") == 32 and facts.machine != known.get("kernel_machine"):
        reason = f"a 32-bit userland on a 64-bit kernel ({known.get('kernel_machine')})"
        remedy = "programs there run in 32 bits, and slower: install a 64-bit system to measure the hardware"
        findings.append(Finding("userland-32", Severity.NOTE, reason, remedy))
    throttled = known.get("throttling") or {}
    if happened := dict.fromkeys([*throttled.get("now", ()), *throttled.get("since_boot", ())]):
        reason = f"the firmware reports {', '.join(happened)} since the board was started"
        remedy = "use a stronger power supply or a better cooler, then restart the board"
        findings.append(Finding("throttled", Severity.WARN, reason, remedy))
    return findings
