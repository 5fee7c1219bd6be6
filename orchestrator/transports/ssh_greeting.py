"""The first words with a board: how to run commands there, and which hardware it is."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from orchestrator.clock import Deadline
from orchestrator.errors import DeviceUnfit
from orchestrator.transports.remote_commands import run_to_end
from orchestrator.transports.ssh_link import SshLink
from orchestrator.transports.ssh_process import SshProcess
from orchestrator.transports.ssh_shell import Dialect

_SHELLS = ("/bin/sh", "sh")
"""The second for systems that keep it elsewhere, if the login shell knows where."""

_QUESTIONS = """\
if read -r a b c d group rest </proc/self/stat; then :; else group=$(ps -o pgid= -p $$); fi 2>/dev/null
echo group $group
command -v setsid >/dev/null 2>&1 && echo setsid yes
echo serial $(tr -d '\\0' </sys/firmware/devicetree/base/serial-number 2>/dev/null)
echo machine $(cat /etc/machine-id 2>/dev/null)
for card in /sys/class/net/*; do [ -e "$card/device" ] && echo card $(cat "$card/address" 2>/dev/null); done
[ -n "$1" ] && [ -e "$1" ] && { [ -O "$1" ] || echo foreign yes; }
true
"""


@dataclass(frozen=True)
class Greeting:
    """What a board that answers says of itself."""

    hardware_id: str | None
    workdir_is_foreign: bool
    """The folder that was asked about belongs to somebody else."""


def greet(link: SshLink, workdir: str, deadline: Deadline) -> Greeting:
    """Learn the board's ways, from now on used by the link."""
    for shell in _SHELLS:
        link.dialect = Dialect(shell)
        process = SshProcess(link, ["sh", "-c", _QUESTIONS, "sh", workdir], deadline)
        try:
            said = run_to_end(process, b"", deadline).stdout
        except DeviceUnfit:
            if shell == _SHELLS[-1]:
                raise
            continue
        answers = [line.partition(" ") for line in said.decode("utf-8", "replace").splitlines()]
        return _understood(link, process.group, [(key, value.strip()) for key, _, value in answers])
    raise AssertionError("the last shell returns or raises")


def _understood(link: SshLink, own_group: int | None, answers: list[tuple[str, str]]) -> Greeting:
    facts = dict(answers)
    leads = facts.get("group") in (str(own_group), "")
    has_setsid = facts.get("setsid") == "yes"
    link.dialect = Dialect(link.dialect.shell, setsid=not leads and has_setsid, leads=leads or has_setsid)
    cards = sorted(value for key, value in answers if key == "card" and value.strip("0:"))
    return Greeting(_hardware_id(facts, cards), workdir_is_foreign=facts.get("foreign") == "yes")


def _hardware_id(facts: dict[str, str], cards: list[str]) -> str | None:
    """The serial number of the board; else its network cards with the machine's id, which a cloned disk shares."""
    if facts.get("serial", "").strip("0"):
        return f"serial {facts['serial']}"
    if not facts.get("machine"):
        return None
    return "machine " + hashlib.sha256(" ".join([facts["machine"], *cards]).encode()).hexdigest()[:32]
