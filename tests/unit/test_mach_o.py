"""Programs for Apple's systems: one kind runs on a jailbroken iPhone, and the others are refused by name."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.binaries import Binaries
from orchestrator.errors import HostError, UsageError
from orchestrator.runners.benchmark_model_fingerprint import Elf, read_program
from orchestrator.runners.mach_o import is_mach_o
from tests.unit.elf_factory import make_elf
from tests.unit.mach_o_factory import make_fat, make_mach_o

IPHONE = Elf("ios-arm64", "ios")


@pytest.mark.parametrize(
    "content",
    [
        make_mach_o(),
        make_mach_o(old=True),
        make_fat(("arm64", make_mach_o())),
        make_fat(("x86_64", make_mach_o(cpu="x86_64", system="simulator")), ("arm64", make_mach_o())),
    ],
    ids=["thin", "before Xcode 10", "fat", "fat with a simulator's"],
)
def test_arm64_for_ios_is_taken(content: bytes) -> None:
    """However it says so."""
    assert read_program(content) == IPHONE


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([make_mach_o(), make_mach_o(old=True), make_fat(("arm64", make_mach_o()))]), st.data())
def test_damaged_programs_are_refused_in_words(content: bytes, data: st.DataObject) -> None:
    """ValueError, and nothing else."""
    damaged = bytearray(content)
    for place in data.draw(st.lists(st.integers(0, min(len(content), 200) - 1), max_size=6)):
        damaged[place] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        read_program(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))


REFUSED = {
    "macos": (
        make_mach_o(system="macos"),
        "a program for macOS on arm64, which no device of ours is (iOS on arm64 is)",
    ),
    "old macos": (make_mach_o(system="macos", old=True), "a program for macOS on arm64, which no device of ours is"),
    "simulator": (make_mach_o(system="simulator"), "a program for the iOS simulator on arm64, which no device"),
    "intel": (make_mach_o(cpu="x86_64", system="macos"), "a program for macOS on x86_64, which no device of ours is"),
    "untold": (make_mach_o(system=None), "a program for an unknown Apple system on arm64"),
    "library": (make_mach_o(kind=6), "a library or an object file for iOS, not a program"),
    "object": (make_mach_o(kind=1), "a library or an object file for iOS, not a program"),
    "old phone": (make_mach_o(cpu="armv7"), "a program for iOS on CPU type 0xc"),
    "fat without ours": (
        make_fat(("x86_64", make_mach_o(cpu="x86_64", system="macos")), ("arm64", make_mach_o(system="macos"))),
        "a program for macOS on arm64",
    ),
    "cut": (make_mach_o()[:40], "cut short"),
    "fat and cut": (make_fat(("arm64", make_mach_o()))[:4096], "cut short"),
    "a Java class": (b"\xca\xfe\xba\xbe\0\0\0\x41" + bytes(64), "not a program for Linux, Android or iOS"),
}


@pytest.mark.parametrize(("content", "what"), REFUSED.values(), ids=REFUSED)
def test_other_programs_of_apples_are_refused_by_name(content: bytes, what: str) -> None:
    """They would be killed at once on the phone, without a word."""
    with pytest.raises(ValueError) as caught:
        read_program(content)
    assert str(caught.value).startswith(what)


@pytest.mark.parametrize("size", range(0, 200, 7))
def test_any_cut_is_noticed(size: int) -> None:
    """No beginning of a file makes the reader stumble."""
    for content in (make_mach_o()[:size], make_fat(("arm64", make_mach_o()))[:size]):
        if is_mach_o(content) and size < 100:
            with pytest.raises(ValueError):
                read_program(content)


def test_builds_for_ios_and_for_others_never_meet(tmp_path: Path) -> None:
    """Each device gets its own kind from the cache, and the other's is refused by name."""
    cache = Binaries(tmp_path / "cache", tmp_path)
    for name, content in (("phone", make_mach_o()), ("board", make_elf(system="linux"))):
        (tmp_path / name).write_bytes(content)
        cache.add(tmp_path / name, name)
    assert cache.find("", "ios-arm64").read_bytes() == make_mach_o()
    assert cache.find("", "aarch64").read_bytes() == make_elf(system="linux")
    with pytest.raises(HostError, match=r'the binary "board" is for aarch64 \(linux\), and the device is ios-arm64'):
        cache.find("board", "ios-arm64")
    with pytest.raises(HostError, match=r'the binary "phone" is for ios-arm64 \(ios\), and the device is aarch64'):
        cache.find("phone", "aarch64")


def test_a_program_for_macos_is_not_added(tmp_path: Path) -> None:
    """The published build for Apple silicon is one."""
    (tmp_path / "mac").write_bytes(make_mach_o(system="macos"))
    with pytest.raises(UsageError, match="is a program for macOS on arm64"):
        Binaries(tmp_path / "cache", tmp_path).add(tmp_path / "mac", None)
