"""A command for a board's login shell, whichever that is, and what comes back before the command speaks: pure.

The login shell is the user's own choice: bash, ash, fish, csh. So it is told only to become a POSIX shell, in words
that all of them read alike, and what its start-up files print is told apart from what the command prints by a nonce.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.transports.posix_shell import becoming, quoted

_DIFFERENT = re.compile(r"[\\!\n]")
"""Inside single quotes a POSIX shell reads these as they stand; fish or csh does not."""
_ENCODED = re.compile(r"[\\!\n']")
_NOISE_KEPT = 2000
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
"""Behind the user's own: some boards give a session that is no login next to nothing."""


def login_line(script: str, shell: str) -> str:
    """What to hand to a login shell so that `shell` runs the script; the only place that quotes for it."""
    if _DIFFERENT.search(script):
        octal = _ENCODED.sub(lambda found: f"\\0{ord(found[0]):03o}", script)
        script = f'eval "$(printf %b {quoted([octal])})"'
    return f"exec {shell} -c {quoted([script])}"


@dataclass(frozen=True)
class Dialect:
    """How a script gets a process group of its own on this board."""

    shell: str = "/bin/sh"
    setsid: bool = False
    """The server starts sessions in its own group, as dropbear does, and the board has `setsid`."""
    leads: bool = True
    """Whether a started command leads a group, which can be killed as one."""

    def line(self, script: str) -> str:
        """The login line for a script that is to lead its group."""
        script = f'PATH="${{PATH:+$PATH:}}{_PATH}"; {script}'
        if self.setsid:
            script = f"exec setsid {self.shell} -c {quoted([script])}"
        return login_line(script, self.shell)


@dataclass
class Opening:
    """The nonce line by which a script begins: what stands before it is the login shell's noise."""

    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    group: int | None = None
    noise: bytearray = field(default_factory=bytearray)

    @property
    def announcement(self) -> str:
        """The command that a script begins with."""
        return f"echo {self.nonce} $$"

    def feed(self, buffer: bytearray) -> None:
        """Take the noise and the line away from the beginning of the output, once it is there whole."""
        mark = self.nonce.encode() + b" "
        at = buffer.find(mark)
        end = buffer.find(b"\n", at) if at >= 0 else -1
        if end >= 0:
            self.group = int(buffer[at + len(mark) : end])
            self.noise += buffer[:at][:_NOISE_KEPT]
            del buffer[: end + 1]

    def noise_text(self, rest: bytes) -> str:
        """The first words of a login shell that never came to our script."""
        text = (bytes(self.noise) + rest).decode("utf-8", "replace").strip()
        return text.splitlines()[0][:200] if text else ""


def program(argv: Sequence[str], opening: Opening, *, leads: bool) -> str:
    """A script that says its group and runs the command. The shell stays, to say by which signal it ended: servers
    say it in a message that paramiko drops. Without a group of its own it becomes the command, to be killed alone."""
    body = becoming(argv, opening.nonce)
    if not leads:
        return f"{opening.announcement}; {body}"
    # The shell's own word on a signal ("Killed") is not the command's, and goes nowhere.
    return f"{opening.announcement}; exec 3>&2 2>/dev/null; ( exec 2>&3 3>&-; {body} ); exit $?"


def kill(group: int, *, leads: bool) -> str:
    """A script that ends a command with all its children, as far as they are in its group."""
    return f"kill -9 -{group}" if leads else f"kill -9 {group}"
