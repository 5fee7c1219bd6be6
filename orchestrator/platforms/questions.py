"""Several questions to a device in one script, and each one's answer or why there is none: pure.

Each stands between two lines of its own: a round trip costs more than a question, and on old phones both streams are
one and there is no exit status.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_BEGIN = "@@devbench "
_END = "@@end "
_TROUBLE = (
    ("Can't find service", "no such service"),
    ("Permission Denial", "not permitted"),
    ("Permission denied", "EACCES"),
    ("Operation not permitted", "EPERM"),
    ("No such file or directory", "ENOENT"),
    ("Read-only file system", "EROFS"),
    ("No space left on device", "ENOSPC"),
    ("DUMP TIMEOUT", "the service did not answer in time"),
    ("Failure calling service", "the service did not answer"),
    ("Failed transaction", "the service did not answer"),
    ("DEAD_OBJECT", "the service did not answer"),
    ("inaccessible or not found", "no such command"),
    ("not found", "no such command"),
)
NO_ANSWER = "no answer"


@dataclass(frozen=True)
class Answer:
    """What one question of a batch got: its text, and the status the command ended with (None: cut off)."""

    text: str
    exit: int | None

    @property
    def trouble(self) -> str | None:
        """Why this is no answer, in a word or an errno; None when it is one."""
        if self.exit is None:
            return "the answer was cut off" if self.text else NO_ANSWER
        if self.exit != 0 or len(self.text) < 400:  # a long dump may well quote such words
            for words, reason in _TROUBLE:
                if words in self.text:
                    return reason
        if self.exit == 127:
            return "no such command"
        if not self.text:
            return NO_ANSWER
        return f"status {self.exit}" if self.exit != 0 else None


NOT_ASKED = Answer("", None)


def batch(questions: Mapping[str, str]) -> str:
    """One shell script that asks them all."""
    asked = (
        f'echo "{_BEGIN}{name}"\n{{ {command}\n}} 2>&1\ns=$?; echo; echo "{_END}$s"'
        for name, command in questions.items()
    )
    return "\n".join(asked)


def answers(stdout: bytes) -> dict[str, Answer]:
    """The answers by question; a question without one is missing."""
    found: dict[str, Answer] = {}
    name, said = None, list[str]()
    *lines, unfinished = stdout.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    for line in lines:
        if line.startswith(_BEGIN):
            if name is not None:
                found[name] = Answer("\n".join(said).strip(), None)
            name, said = line.removeprefix(_BEGIN).strip(), []
        elif line.startswith(_END) and name is not None:
            found[name] = Answer("\n".join(said).strip(), whole_number(line.removeprefix(_END)))
            name = None
        elif name is not None:
            said.append(line)
    if name is not None:
        found[name] = Answer("\n".join([*said, unfinished]).strip(), None)
    return found


def whole_number(text: str | None) -> int | None:
    """The whole number that the text is."""
    cleaned = (text or "").strip()
    return int(cleaned) if re.fullmatch(r"-?[0-9]{1,18}", cleaned) else None
