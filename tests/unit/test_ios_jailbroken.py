"""The stage of a jailbroken iPhone: plain commands on this machine, which plays one. No iPhone was involved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from ios_harness.jailbroken import JailbrokenStage
from ios_harness.platform import JAILBROKEN
from orchestrator.clock import Deadline
from orchestrator.content_hash import sha256
from orchestrator.errors import DeviceError, DeviceUnfit
from orchestrator.fleet import Device
from orchestrator.runners.base import Command
from orchestrator.stage import Report, Trialling
from orchestrator.transports.base import Completed
from orchestrator.transports.local import LocalTransport

TOOLS = {
    "uname": 'case $1 in -s) echo Darwin;; -r) echo 23.3.0;; -p) echo arm64;; *) echo "iPhone14,2";; esac',
    "sysctl": 'case $2 in hw.ncpu) echo 6;; hw.memsize) echo 5900000000;; hw.machine) echo "iPhone14,2";; esac',
    "sw_vers": "case $1 in -productVersion) echo 17.3;; -buildVersion) echo 21D50;; esac",
}
DEVICE = Device("freed", "local", "ios")


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JailbrokenStage:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, script in TOOLS.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    return JailbrokenStage(LocalTransport(), DEVICE, str(tmp_path / "phone"))


def ran(stage: JailbrokenStage, script: str, *, seconds: float = 30.0, stop_after_s: float = 60.0) -> Report:
    stop = Deadline.after(stop_after_s)
    command = Command(("sh", "-c", script), {"LC_ALL": "C"})
    return stage.run(Trialling(command, "idle", None, "other-group", 0, 100, None, (), seconds), lambda: stop.passed)


def test_what_the_phone_is(stage: JailbrokenStage) -> None:
    """As far as the tools of a jailbreak tell."""
    facts = JAILBROKEN.facts(stage.probe(Deadline.after(30)), lambda argv: Completed(1, b"", b""))
    assert (facts.cpu_model, facts.cores, facts.os) == ("iPhone14,2", 6, "iOS 17.3 (21D50)")
    assert (facts.machine, facts.kernel) == ("ios-arm64", "Darwin 23.3.0")


def test_a_linux_board_is_no_iphone(tmp_path: Path) -> None:
    """The platform is set by hand, so it is checked."""
    stage = JailbrokenStage(LocalTransport(), DEVICE, str(tmp_path))
    with pytest.raises(DeviceUnfit, match="freed: Linux runs there, not iOS"):
        stage.probe(Deadline.after(30))


def test_both_streams_are_kept_and_the_status_too(stage: JailbrokenStage) -> None:
    """benchmark_model tells half of its story on standard error."""
    report = ran(stage, "echo out; echo err >&2; exit 3")
    assert report.stdout == [b"out", b"err"]
    assert report.closing == {"reason": "exit", "exit": 3, "lines": 0}
    assert report.is_whole
    assert report.unwatched == "no agent runs on iOS"


def test_a_crash_is_told_by_its_signal(stage: JailbrokenStage) -> None:
    """iOS kills what is not signed with SIGKILL."""
    assert ran(stage, "kill -9 $$").closing == {"reason": "signal", "signal": 9, "lines": 0}


def test_a_deadline_ends_the_program(stage: JailbrokenStage) -> None:
    """Also without an agent."""
    assert ran(stage, "echo begun; sleep 100", seconds=0.5).closing["reason"] == "deadline"


def test_a_stop_ends_the_program(stage: JailbrokenStage) -> None:
    """At once."""
    assert ran(stage, "sleep 100", stop_after_s=0.3).closing["reason"] == "terminated"


def test_files_are_pushed_once_and_verified(stage: JailbrokenStage, tmp_path: Path) -> None:
    """By content; a program stays executable."""
    program = tmp_path / "my program"
    program.write_text("#!/bin/sh\necho hello\n")
    target = Path(stage.ensure(program, executable=True))
    assert target.parent.name == sha256(program)
    assert os.access(target, os.X_OK)
    target.chmod(0o644)
    assert stage.ensure(program, executable=True) == str(target)
    assert os.access(target, os.X_OK)
    target.write_text("other")
    assert sha256(Path(stage.ensure(program))) == sha256(program)
    stage.clean()
    assert not target.exists()


def test_old_files_go(stage: JailbrokenStage, tmp_path: Path) -> None:
    """After a month; what is young stays."""
    for name in ("old", "young"):
        (tmp_path / name).write_text(name)
    old, young = (Path(stage.ensure(tmp_path / name)) for name in ("old", "young"))
    os.utime(old.parent, (1, 1))
    assert stage.prune() == 1
    assert (old.exists(), young.exists()) == (False, True)


def test_a_phone_that_cannot_hash_is_refused(stage: JailbrokenStage, tmp_path: Path) -> None:
    """What was pushed could not be verified, and is not claimed to be."""

    class WithoutTools(LocalTransport):
        def run(self, argv: Sequence[str], *, deadline: Deadline, content: bytes = b"") -> Completed:
            if any("sha256sum" in word for word in argv):
                return Completed(127, b"", b"")
            return super().run(argv, deadline=deadline, content=content)

    (tmp_path / "x").write_text("x")
    bare = JailbrokenStage(WithoutTools(), DEVICE, str(tmp_path / "bare"))
    with pytest.raises(DeviceError, match="no program there can hash files"):
        bare.ensure(tmp_path / "x")
