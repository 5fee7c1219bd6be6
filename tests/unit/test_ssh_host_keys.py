"""Reading known_hosts as OpenSSH does."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.transports.ssh_host_keys import known_keys, preferred_types
from orchestrator.transports.ssh_route import Hop

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+3kb4ZyLGVnJ0b8kpEZyMqv6FpeX7AYbG4CX1bXXqb"


def hop(path: Path, known_as: str) -> Hop:
    return Hop("h", 22, "u", (), False, (path,), known_as)


@pytest.mark.parametrize(
    ("line", "name", "is_known"),
    [
        (f"pi {KEY}", "pi", True),
        (f"pi,10.0.0.5 {KEY} comment here", "10.0.0.5", True),
        (f"PI {KEY}", "pi", True),
        (f"pi2 {KEY}", "pi", False),
        (f"[pi]:2222 {KEY}", "[pi]:2222", True),
        (f"[pi]:2222 {KEY}", "pi", False),
        (f"*.lab,!bad.lab {KEY}", "pi.lab", True),
        (f"*.lab,!bad.lab {KEY}", "bad.lab", False),
        (f"p? {KEY}", "pi", True),
        (f"# pi {KEY}", "pi", False),
        (f"@cert-authority * {KEY}", "pi", False),
        ("pi ssh-ed25519 notbase64!", "pi", False),
        ("pi ssh-unheard-of AAAA", "pi", False),
        ("pi", "pi", False),
        ("", "pi", False),
    ],
)
def test_a_line_is_about_those_it_names(tmp_path: Path, line: str, name: str, is_known: bool) -> None:
    """Several names, patterns, exceptions, ports; a line nobody can read is about nobody and spoils no other."""
    path = tmp_path / "known_hosts"
    path.write_text(f"{line}\nother {KEY}\n")
    assert bool(known_keys(hop(path, name))) == is_known
    assert [known.line for known in known_keys(hop(path, "other"))] == [2]


def test_a_revoked_key_is_known_as_such(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_text(f"@revoked * {KEY}\n")
    (known,) = known_keys(hop(path, "pi"))
    assert known.is_revoked
    assert preferred_types([known], ("rsa-sha2-512", "ssh-ed25519")) == ("rsa-sha2-512", "ssh-ed25519")


def test_what_is_known_is_asked_for_first(tmp_path: Path) -> None:
    """The rest stays in its order, so that a changed key is still seen and told."""
    path = tmp_path / "known_hosts"
    path.write_text(f"pi {KEY}\n")
    offered = ("ecdsa-sha2-nistp256", "rsa-sha2-512", "ssh-ed25519")
    assert preferred_types(known_keys(hop(path, "pi")), offered) == (
        "ssh-ed25519",
        "ecdsa-sha2-nistp256",
        "rsa-sha2-512",
    )


def test_a_file_that_is_not_there_knows_nobody(tmp_path: Path) -> None:
    assert known_keys(hop(tmp_path / "none", "pi")) == []
