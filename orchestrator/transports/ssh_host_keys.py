"""Whether a host key is the one that was expected: known_hosts, or a fingerprint in devices.toml."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import paramiko

from orchestrator.errors import DeviceUnfit
from orchestrator.transports.ssh_route import Hop

_RSA = ("rsa-sha2-512", "rsa-sha2-256")


@dataclass(frozen=True)
class KnownKey:
    """One line of a known_hosts file that is about the host."""

    key: paramiko.PKey
    file: Path
    line: int
    is_revoked: bool


def known_keys(hop: Hop) -> list[KnownKey]:
    """What the known_hosts files say of the hop."""
    return [known for path in hop.known_hosts for known in _lines_about(hop.known_as, path)]


def preferred_types(known: list[KnownKey], offered: tuple[str, ...]) -> tuple[str, ...]:
    """The key types to ask for, those that are known first: a server has several keys and shows only one."""
    names = {name for one in known if not one.is_revoked for name in _algorithms(one.key)}
    return tuple(sorted(offered, key=lambda name: name not in names))


def verify(key: paramiko.PKey, hop: Hop, known: list[KnownKey]) -> None:
    """DeviceUnfit unless the key is the one pinned in devices.toml, or one that known_hosts has."""
    if any(one.is_revoked and one.key == key for one in known):
        raise DeviceUnfit(
            f"{hop.address} shows a host key that known_hosts revokes: {_named(key)}",
            remedy="do not connect; find out why the key was revoked",
        )
    if hop.host_key is not None:
        _verify_pinned(key, hop, hop.host_key)
        return
    trusted = [one for one in known if not one.is_revoked]
    if any(one.key == key for one in trusted):
        return
    raise _changed(key, hop, trusted[0]) if trusted else _unknown(key, hop)


def _verify_pinned(key: paramiko.PKey, hop: Hop, pinned: str) -> None:
    if key.fingerprint.rstrip("=") != pinned:
        raise DeviceUnfit(
            f"{hop.address} shows the host key {_named(key)}, and host_key in devices.toml is {pinned}",
            remedy="somebody may stand in between. If the device was installed anew, compare with "
            f"`{_on_the_board(key)}` on it, and change host_key",
        )


def _unknown(key: paramiko.PKey, hop: Hop) -> DeviceUnfit:
    return DeviceUnfit(
        f"{hop.address} shows a host key that is not known here: {_named(key)}",
        remedy=f"compare with `{_on_the_board(key)}` on it; then add host_key = "
        f'"{key.fingerprint}" to its [[device]], or log in once with `{hop.command}`',
    )


def _changed(key: paramiko.PKey, hop: Hop, expected: KnownKey) -> DeviceUnfit:
    return DeviceUnfit(
        f"the host key of {hop.address} has changed: it shows {_named(key)}, and {expected.file} line "
        f"{expected.line} has {_named(expected.key)}",
        remedy="somebody may stand in between. If the device was installed anew, compare with "
        f"`{_on_the_board(key)}` on it, then `ssh-keygen -R '{hop.known_as}'` and log in once with `{hop.command}`",
    )


def _named(key: paramiko.PKey) -> str:
    return f"{key.get_name().removeprefix('ssh-')} {key.fingerprint}"


def _on_the_board(key: paramiko.PKey) -> str:
    kind = key.get_name().removeprefix("ssh-").partition("-")[0]
    return f"ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub"


def _algorithms(key: paramiko.PKey) -> tuple[str, ...]:
    return _RSA if key.get_name() == "ssh-rsa" else (key.get_name(),)


def _lines_about(name: str, path: Path) -> Iterator[KnownKey]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # no file, or none that this user may read: nothing is known from it
        return
    for number, line in enumerate(text.splitlines(), 1):
        marker, _, rest = line.strip().partition(" ") if line.startswith("@") else ("", "", line.strip())
        if not rest or rest.startswith("#") or marker not in ("", "@revoked"):
            continue
        try:
            entry = paramiko.hostkeys.HostKeyEntry.from_line(" ".join(rest.split()), number)
        except (
            paramiko.SSHException,
            paramiko.hostkeys.InvalidHostKey,
            ValueError,
        ):  # a line that nobody can read is about nobody
            continue
        if entry is not None and entry.key is not None and _is_about(name, entry.hostnames or []):
            yield KnownKey(entry.key, path, number, is_revoked=bool(marker))


def _is_about(name: str, patterns: list[str]) -> bool:
    """As OpenSSH reads them: hashed names, `*` and `?`, and `!` for what is left out."""
    is_named = False
    for pattern in patterns:
        if pattern.startswith("|1|"):
            is_named |= paramiko.HostKeys.hash_host(name, pattern) == pattern
        elif pattern.startswith("!"):
            if _matches(name, pattern[1:]):
                return False
        else:
            is_named |= _matches(name, pattern)
    return is_named


def _matches(name: str, pattern: str) -> bool:
    # Brackets stand for themselves here: `[host]:2222`.
    return fnmatchcase(name, pattern.lower().replace("[", "[[]"))
