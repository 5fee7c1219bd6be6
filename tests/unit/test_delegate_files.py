"""A delegate's libraries: seen to suit the device before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.clock import Deadline
from orchestrator.delegate_files import library_on_device, unsuited
from orchestrator.delegates import BUILT_IN, Delegate
from orchestrator.deploy import Deployment
from orchestrator.platforms.linux import LINUX
from orchestrator.transports.base import Completed
from orchestrator.transports.local import LocalTransport
from tests.unit.elf_factory import make_elf


def ask(argv: Sequence[str]) -> Completed:
    return LocalTransport().run(list(argv), deadline=Deadline.after(10))


def a_library(folder: Path, machine: str = "aarch64", name: str = "libmine.so") -> Path:
    path = folder / name
    path.write_bytes(make_elf(machine=machine))
    return path


def own(*paths: str, library: str | None = None, libraries: tuple[str, ...] = ()) -> Delegate:
    return Delegate("mine", "external", paths=paths, library=library, libraries=libraries, is_own=True)


class TestOnTheDevice:
    def test_the_first_that_can_be_read_is_used(self, tmp_path: Path) -> None:
        """Vendors put them in different places."""
        path = str(a_library(tmp_path))
        assert library_on_device(own("/nowhere/lib.so", path), ask) == path
        assert unsuited(own("/nowhere/lib.so", path), "arm64-v8a", ask) is None

    def test_one_that_is_not_there_is_told(self) -> None:
        """An external delegate that cannot be loaded says nothing at all."""
        reason = unsuited(own("/nowhere/lib.so", "/nowhere/lib2.so"), "aarch64", ask)
        assert reason == "the device has no readable /nowhere/lib.so or /nowhere/lib2.so for delegate mine"

    def test_one_for_another_cpu_is_told(self, tmp_path: Path) -> None:
        """By its own header."""
        path = a_library(tmp_path, "x86_64")
        assert unsuited(own(str(path)), "aarch64", ask) == (
            f"{path} of delegate mine is for x86_64, and the device is aarch64"
        )

    def test_what_is_no_library_is_told(self, tmp_path: Path) -> None:
        """A text file, an empty one, a folder."""
        for name, content in (("text.so", b"not a library\n"), ("empty.so", b"")):
            (tmp_path / name).write_bytes(content)
            reason = unsuited(own(str(tmp_path / name)), "aarch64", ask)
            assert reason is not None and reason.endswith("is no library for Linux or Android")


class TestOnTheHost:
    def test_what_is_deployed_must_suit_the_device(self, tmp_path: Path) -> None:
        """The library itself, and those beside it."""
        fits, other = a_library(tmp_path), a_library(tmp_path, "armv7l", "libother.so.1")
        assert unsuited(own(library=str(fits)), "aarch64", ask) is None
        reason = unsuited(own(library=str(fits), libraries=(str(other),)), "aarch64", ask)
        assert reason == "libother.so.1 of delegate mine is for armv7l, and the device is aarch64"

    def test_files_that_are_no_libraries_are_left_alone(self, tmp_path: Path) -> None:
        """A settings file, a model of the vendor's."""
        (tmp_path / "settings.json").write_text("{}")
        stable = Delegate("mine", "stable", library=str(tmp_path / "settings.json"), is_own=True)
        assert unsuited(stable, "aarch64", ask) is None

    @pytest.mark.parametrize("name", ["external", "stable"])
    def test_a_base_alone_is_no_delegate(self, name: str) -> None:
        """What to do is said."""
        reason = unsuited(BUILT_IN[name], "aarch64", ask)
        assert reason == f"delegate {name} has no library; define one of your own in the plan with [[delegate]]"


def test_libraries_are_deployed_into_one_folder_known_by_content(tmp_path: Path) -> None:
    """So that they find each other; another set has another folder."""
    one, two = a_library(tmp_path, name="libone.so"), a_library(tmp_path, "x86_64", "libtwo.so")
    deployment = Deployment(LocalTransport(), LINUX, str(tmp_path / "device"))
    files = {"libone.so": one, "libtwo.so": two, "libtwo.so.1": two}
    placed = [Path(place) for place in deployment.ensure_together(files)]
    assert [place.name for place in placed] == list(files)
    assert placed[0].parent == placed[1].parent
    assert placed[1].read_bytes() == two.read_bytes()
    assert Path(deployment.ensure_together({"libone.so": one})[0]).parent != placed[0].parent
