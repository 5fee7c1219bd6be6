"""A cable between this host and a phone with a network of its own."""

from __future__ import annotations

import secrets
import shutil
import subprocess


class NoNetwork(Exception):
    """This machine lets us make no cable; the message says what failed."""


class Cable:
    """A pair of virtual interfaces. It vanishes with the phone's network, however that ends."""

    def __init__(self, pid: int) -> None:
        """`pid` is a process in the phone's network."""
        # 198.18.0.0/15 is set aside for testing network devices, so that it is nobody's real network.
        number = secrets.randbelow(1 << 14) * 4
        base = f"198.18.{number >> 8}"
        self.address = f"{base}.{(number & 0xFF) + 2}"
        self.name = f"adbd{secrets.token_hex(4)}"
        inside = ["nsenter", "--net", f"--target={pid}", "ip"]
        _ip("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        _ip("address", "add", f"{base}.{(number & 0xFF) + 1}/30", "dev", self.name)
        _run(*inside, "address", "add", f"{self.address}/30", "dev", "eth0")
        for name in ("lo", "eth0"):
            _run(*inside, "link", "set", name, "up")
        self.plug()

    def plug(self) -> None:
        _ip("link", "set", self.name, "up")

    def unplug(self) -> None:
        """Nothing gets through any more, and nobody is told."""
        _ip("link", "set", self.name, "down")


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> None:
    if shutil.which(words[0]) is None:
        raise NoNetwork(f"{words[0]} is not installed")
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    if done.returncode != 0:
        raise NoNetwork(f"`{' '.join(words)}` failed: {done.stderr.strip()}")
