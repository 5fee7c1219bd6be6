"""A command for a POSIX shell, and what the shell's status says of it: pure."""

from __future__ import annotations

from collections.abc import Sequence

CANNOT_START = (126, 127)
"""The statuses by which a shell says that it could not start a program."""
_SIGNALS_MAX = 64


def quoted(argv: Sequence[str]) -> str:
    """The command line that a shell takes apart into exactly these arguments. The only place that quotes."""
    for argument in argv:
        assert "\0" not in argument, "no argument of any program can hold a NUL"
    return " ".join("'" + argument.replace("'", "'\\''") + "'" for argument in argv)


def exit_of(status: int) -> int:
    """The contract's exit: a shell says 128 + n for signal n. A program that itself exits so looks the same."""
    return 128 - status if 128 < status <= 128 + _SIGNALS_MAX else status


def becoming(argv: Sequence[str], nonce: str) -> str:
    """A script that becomes the command. The trap speaks, on standard error, only when exec did not."""
    return f"trap 'echo {nonce} >&2' 0; exec {quoted(argv)}"
