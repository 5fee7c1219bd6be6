"""The host's LiteRT runtimes: added, fetched with the real pip from a folder of wheels, locked, found for a machine."""

from __future__ import annotations

import json
import platform
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.binary_lock import LOCK, read_lock
from orchestrator.cli.binaries import binaries_app
from orchestrator.clock import Deadline
from orchestrator.content_hash import sha256
from orchestrator.errors import DevbenchError, HostError, UsageError, error_text
from orchestrator.litert_runtimes import VERSION, Runtimes, is_library
from orchestrator.litert_wheels import add_wheel, fetch_runtime
from tests.unit.elf_factory import COMPILED_MODEL_WORDS, make_elf

ROOT = Path(__file__).parents[2]
KEY = f"ai-edge-litert-{VERSION} linux-arm64"


@pytest.fixture(autouse=True)
def in_a_project_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache and a current folder that nobody else has; and for pip a registry that is a folder."""
    (tmp_path / "project").mkdir()
    (tmp_path / "registry").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("DEVBENCH_BINARIES", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "registry"))


@pytest.fixture
def runtimes() -> Runtimes:
    return Runtimes()


def library(machine: str = "aarch64", salt: str = "") -> bytes:
    return make_elf(machine=machine, system="any", words=("LiteRtCreateCompiledModel",), salt=salt)


def library_file(machine: str = "aarch64", salt: str = "") -> Path:
    path = Path("libLiteRt.so")
    path.write_bytes(library(machine, salt))
    return path


def wheel(
    folder: Path, *, machine: str = "aarch64", version: str = VERSION, content: bytes | None = None, whole: bool = True
) -> Path:
    """A wheel as pip knows it, with a library that is none but for its name."""
    path = folder / f"ai_edge_litert-{version}-cp311-cp311-manylinux_2_27_{machine}.whl"
    info = f"ai_edge_litert-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: ai-edge-litert\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nTag: cp311-cp311-manylinux_2_27_{machine}\n")
        if whole:
            archive.writestr("ai_edge_litert/libLiteRt.so", content or library(machine))
    return path


def refusal(kind: type[DevbenchError], action: Callable[[], object]) -> str:
    """What a person reads."""
    with pytest.raises(kind) as caught:
        action()
    return error_text(caught.value)


def fetched(runtimes: Runtimes, name: str = "linux-arm64") -> object:
    return fetch_runtime(runtimes, name, Deadline.after(60))


def test_the_release_is_the_one_that_is_installed() -> None:
    """The runner's C declarations, the extra `local` and the fetched runtime are one release."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["optional-dependencies"]["local"] == [f"ai-edge-litert=={VERSION}"]
    header = (ROOT / "device_agents" / "native_runner" / "runner.h").read_text(encoding="utf-8")
    assert f'#define RUNTIME_VERSION "{VERSION}"' in header


class TestAdding:
    def test_a_library_is_kept_for_its_machine(self, runtimes: Runtimes) -> None:
        """Told from its bytes; found there ever after; another takes its place."""
        runtimes.add(library_file(), version=None, source="mine")
        found = runtimes.find("arm64")
        assert found.read_bytes() == library()
        runtimes.add(library_file(salt="newer"), version=None, source="mine")
        assert runtimes.find("aarch64").read_bytes() == library(salt="newer")
        assert [runtime.machine for runtime in runtimes.all()] == ["aarch64"]

    def test_a_library_of_ones_own_serves_machines_that_none_is_published_for(self, runtimes: Runtimes) -> None:
        """Such as 32-bit ARM."""
        told = refusal(HostError, lambda: runtimes.find("armv7l"))
        assert told == (
            f"error: ai-edge-litert {VERSION} is published for x86_64 and aarch64, not for armv7l\n"
            "  try:   measure with benchmark_model, or `devbench binaries add` a libLiteRt.so of your own for armv7l"
        )
        runtimes.add(library_file("armv7l"), version=None, source="mine")
        assert runtimes.find("armv8l").is_file()

    @pytest.mark.parametrize(
        "content",
        [b"", b"<html>", make_elf(), make_elf(system="any", words=COMPILED_MODEL_WORDS), library()[:30]],
        ids=["empty", "page", "benchmark_model", "static benchmark_model", "cut"],
    )
    def test_what_is_no_runtime_is_refused(self, runtimes: Runtimes, content: bytes) -> None:
        """Before anything is kept."""
        Path("file").write_bytes(content)
        assert not is_library(Path("file"))
        told = refusal(UsageError, lambda: runtimes.add(Path("file"), version=None, source="file"))
        assert f"try:   give the libLiteRt.so of ai-edge-litert {VERSION} for Linux" in told
        assert runtimes.all() == []

    def test_a_wheel_gives_its_library(self, runtimes: Runtimes) -> None:
        """For a host without a network."""
        assert add_wheel(runtimes, wheel(Path())).version == VERSION
        assert runtimes.find("aarch64").read_bytes() == library()

    def test_unfit_wheels_are_refused(self, runtimes: Runtimes) -> None:
        """Of another release, without the library, damaged, absent."""
        other = wheel(Path(), version="2.1.0")
        assert f"{other} is of ai-edge-litert 2.1.0, not {VERSION}" in refusal(
            UsageError, lambda: add_wheel(runtimes, other)
        )
        bare = wheel(Path(), whole=False)
        assert "holds no ai_edge_litert/libLiteRt.so" in refusal(UsageError, lambda: add_wheel(runtimes, bare))
        Path("cut.whl").write_bytes(wheel(Path()).read_bytes()[:100])
        assert "cut.whl cannot be read" in refusal(UsageError, lambda: add_wheel(runtimes, Path("cut.whl")))
        assert "no such file" in refusal(UsageError, lambda: add_wheel(runtimes, Path("absent.whl")))
        assert runtimes.all() == []


class TestFinding:
    def test_this_machines_comes_from_the_installed_package(self, runtimes: Runtimes) -> None:
        """Nothing needs to be fetched to measure here."""
        pytest.importorskip("ai_edge_litert", reason="needs the extra `local`")
        found = runtimes.find(platform.machine())
        assert found.name == "libLiteRt.so" and is_library(found)

    def test_another_machines_must_be_fetched(self, runtimes: Runtimes) -> None:
        """And the error says how."""
        other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
        name = {"aarch64": "linux-arm64", "x86_64": "linux-x86-64"}[other]
        assert refusal(HostError, lambda: runtimes.find(other)) == (
            f"error: no LiteRT runtime for {other} on this host\n"
            f"  try:   fetch it once: `devbench binaries fetch runtime {name}`"
        )

    def test_a_harmed_copy_is_never_given_out(self, runtimes: Runtimes) -> None:
        """Nor one whose file is gone, nor one whose record cannot be read."""
        runtimes.add(library_file(), version=None, source="mine")
        kept = runtimes.path("aarch64")
        kept.write_bytes(kept.read_bytes() + b"x")
        assert "is missing or not what was added" in refusal(HostError, lambda: runtimes.find("aarch64"))
        kept.unlink()
        assert "is missing or not what was added" in refusal(HostError, lambda: runtimes.find("aarch64"))
        kept.with_name("runtime.json").write_text("{", encoding="utf-8")
        assert "cannot be read: JSONDecodeError" in refusal(HostError, lambda: runtimes.find("aarch64"))


class TestFetching:
    def test_it_is_fetched_and_locked(self, runtimes: Runtimes, tmp_path: Path) -> None:
        """By the library's hash; what is locked and kept needs no registry any more."""
        source = wheel(tmp_path / "registry")
        fetched(runtimes)
        locked = read_lock(Path())[KEY]
        assert (locked.sha256, locked.url) == (sha256(runtimes.find("aarch64")), source.name)
        source.unlink()
        fetched(runtimes, "linux-aarch64")

    def test_what_changed_is_refused(self, runtimes: Runtimes, tmp_path: Path) -> None:
        """Whether it comes from the registry, from a file, or lies in the cache."""
        wheel(tmp_path / "registry")
        fetched(runtimes)
        runtimes.path("aarch64").unlink()
        wheel(tmp_path / "registry", content=library(salt="other"))
        told = refusal(HostError, lambda: fetched(runtimes))
        assert f"{sha256_of(library(salt='other'))[:12]}, and {LOCK} has {sha256_of(library())[:12]}" in told
        own = library_file(salt="mine")
        assert LOCK in refusal(HostError, lambda: runtimes.add(own, version=None, source="mine"))
        Path(LOCK).write_text(Path(LOCK).read_text().replace(sha256_of(library()), "0" * 64), encoding="utf-8")
        Runtimes(project=tmp_path).add(library_file(), version=None, source="mine")
        assert LOCK in refusal(HostError, lambda: runtimes.find("aarch64"))

    def test_a_wheel_with_another_machines_library_is_refused(self, runtimes: Runtimes, tmp_path: Path) -> None:
        """Whatever its name promises; what is kept for that machine stays."""
        wheel(tmp_path / "registry", content=library("x86_64"))
        assert "is for x86_64, not for aarch64" in refusal(HostError, lambda: fetched(runtimes))
        assert runtimes.all() == []

    def test_a_registry_without_it_says_how_to_do_it_by_hand(self, runtimes: Runtimes) -> None:
        """As a host without a network does."""
        told = refusal(HostError, lambda: fetched(runtimes))
        assert told.startswith(f"error: pip cannot get ai-edge-litert=={VERSION} for aarch64: ERROR: ")
        assert "then here: `devbench binaries add FILE.whl`" in told
        assert not Path(LOCK).exists()

    def test_a_registry_that_does_not_answer(self, runtimes: Runtimes, tmp_path: Path) -> None:
        """The deadline is pip's too."""
        told = refusal(HostError, lambda: fetch_runtime(runtimes, "linux-arm64", Deadline.after(0)))
        assert f"pip did not get ai-edge-litert=={VERSION} for aarch64 in time" in told

    def test_what_is_not_published_is_refused_by_name(self, runtimes: Runtimes) -> None:
        """There is no wheel for 32-bit ARM, nor for Android."""
        for name in ("linux-arm", "android-arm64"):
            told = refusal(UsageError, lambda name=name: fetched(runtimes, name))  # type: ignore[misc]  # bound early
            assert told.startswith(f'error: ai-edge-litert {VERSION} is not published for "{name}"')


class TestCommands:
    def test_add_list_and_fetch(self, runtimes: Runtimes, tmp_path: Path) -> None:
        """The words of `devbench binaries` serve runtimes too."""
        wheel(tmp_path / "registry")
        run = CliRunner()
        done = run.invoke(binaries_app, ["fetch", "runtime", "linux-arm64"], catch_exceptions=False)
        assert done.stdout.startswith(f"litert_native runtime for aarch64  ai-edge-litert {VERSION}\n")
        own = run.invoke(binaries_app, ["add", str(library_file("armv7l"))], catch_exceptions=False)
        assert own.stdout.startswith("litert_native runtime for armv7l  of your own\n")
        run.invoke(binaries_app, ["add", str(wheel(Path(), machine="x86_64"))], catch_exceptions=False)
        listed = json.loads(run.invoke(binaries_app, ["list", "--json"], catch_exceptions=False).stdout)
        assert [row["machine"] for row in listed["runtimes"]] == ["aarch64", "armv7l", "x86_64"]
        assert listed["binaries"] == []
        assert run.invoke(binaries_app, ["list"], catch_exceptions=False).stdout.count("litert_native runtime") == 3

    def test_a_runtime_has_no_name(self) -> None:
        """There is one for each kind of machine."""
        done = CliRunner().invoke(binaries_app, ["fetch", "runtime", "linux-arm64", "--name", "x"])
        assert isinstance(done.exception, UsageError)


def sha256_of(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()
