"""One run at a time on one device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.device_lock import device_lock
from orchestrator.errors import DeviceBusy, HostError


@pytest.fixture(autouse=True)
def _locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVBENCH_LOCKS", str(tmp_path / "locks"))


def test_a_held_device_is_refused_with_its_holder() -> None:
    """The second one is told which run and process has the device."""
    with (
        device_lock("usb:1", device="pixel8", run="run-1"),
        pytest.raises(DeviceBusy) as caught,
        device_lock("usb:1", device="other-name", run="run-2"),
    ):
        pass
    assert caught.value.fact.startswith("other-name is busy: run run-1 (process ")


def test_another_device_is_free() -> None:
    """Locks of different devices have nothing to do with each other."""
    with device_lock("usb:1", device="a", run="r"), device_lock("usb:2", device="b", run="r"):
        pass


def test_the_lock_is_free_afterwards() -> None:
    """Leaving lets go, also after an error."""
    with pytest.raises(ValueError, match="x"), device_lock("usb:1", device="a", run="r"):
        raise ValueError("x")
    with device_lock("usb:1", device="a", run="r"):
        pass


def test_a_holder_that_was_killed_blocks_nobody() -> None:
    """The kernel lets go of a dead process's lock."""
    script = (
        "import os, signal\nfrom orchestrator.device_lock import device_lock\n"
        "with device_lock('usb:1', device='a', run='r'):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    with device_lock("usb:1", device="a", run="r"):
        pass


def test_a_place_for_locks_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a writable folder the error names the variable that chooses another."""
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("DEVBENCH_LOCKS", str(tmp_path / "file" / "locks"))
    with pytest.raises(HostError) as caught, device_lock("usb:1", device="a", run="r"):
        pass
    assert "DEVBENCH_LOCKS" in caught.value.remedy
