"""APKs told by their bytes: the benchmark app's, other people's, and what only looks like one."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.binaries import APP, Binaries
from orchestrator.errors import HostError, UsageError, error_text
from orchestrator.published_binaries import BASE, published
from orchestrator.runners.benchmark_model_apk import package_in, read_apk
from tests.unit.apk_factory import LIBRARY, make_apk, make_manifest
from tests.unit.elf_factory import COMPILED_MODEL_WORDS, make_elf

BOTH = {"arm64-v8a": make_elf(system="any"), "armeabi-v7a": make_elf(machine="armv7l", system="any")}


@pytest.fixture
def apk(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(content: bytes) -> Path:
        path = tmp_path / "android_aarch64_benchmark_model.apk"
        path.write_bytes(content)
        return path

    return write


@pytest.fixture
def cache(tmp_path: Path) -> Binaries:
    return Binaries(tmp_path / "cache", tmp_path, form=APP)


class TestReading:
    def test_the_benchmark_app_is_known(self, apk: Callable[[bytes], Path]) -> None:
        """For which CPUs, and with which flags, from the libraries in it; others in it do not matter."""
        found = read_apk(apk(make_apk(BOTH, extra={"lib/arm64-v8a/libc++_shared.so": make_elf(words=("hello",))})))
        assert (found.elf.machine, found.elf.abi) == ("aarch64,armv7l", "arm64-v8a,armeabi-v7a")
        assert "use_gpu" in found.fingerprint.flags

    def test_only_flags_that_all_its_libraries_have_count(self, apk: Callable[[bytes], Path]) -> None:
        """A phone may run either."""
        poor = make_elf(machine="armv7l", system="any", words=("Explicitly applied ", "num_threads"))
        found = read_apk(apk(make_apk(BOTH | {"armeabi-v7a": poor})))
        assert found.fingerprint.flags == {"num_threads"}

    @pytest.mark.parametrize("is_utf8", [True, False])
    def test_a_manifest_names_its_package(self, is_utf8: bool) -> None:
        """In both of its encodings."""
        assert package_in(make_manifest("com.example.mail", is_utf8=is_utf8)) == "com.example.mail"

    @settings(max_examples=200, deadline=None)
    @given(st.integers(0, 400), st.binary(min_size=1, max_size=8), st.integers(0, 400))
    def test_a_damaged_manifest_is_an_error_and_no_crash(self, at: int, patch: bytes, cut: int) -> None:
        """Whatever bytes are wrong in it."""
        content = make_manifest()
        content = (content[:at] + patch + content[at + len(patch) :])[: len(content) - cut]
        try:
            package_in(content)
        except ValueError as error:
            assert "manifest" in str(error)


def bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("AndroidManifest.xml", bytes(5 << 20))
    return out.getvalue()


def encrypted() -> bytes:
    content = bytearray(make_apk())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(mark)
        content[at + place] |= 1
    return bytes(content)


def without_manifest() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("readme.txt", "hello")
    return out.getvalue()


class TestAdding:
    @pytest.mark.parametrize(
        ("content", "what"),
        [
            (make_apk()[:200], "a damaged archive"),
            (encrypted(), "a damaged archive"),
            (without_manifest(), "an archive, not an APK"),
            (bomb(), "an archive whose AndroidManifest.xml is larger than 4194304 bytes"),
            (make_apk(manifest=b"<manifest/>"), "an APK whose manifest is damaged"),
            (make_apk(manifest=b""), "an APK whose manifest is damaged"),
            (
                make_apk(manifest=make_manifest("com.example.mail")),
                "the APK of com.example.mail, not of TFLite's benchmark app (org.tensorflow.lite.benchmark)",
            ),
            (make_apk({}), "the benchmark app without its native library"),
            (
                make_apk({"arm64-v8a": make_elf(system="any", words=COMPILED_MODEL_WORDS)}),
                "the benchmark app without its native library",
            ),
            (
                make_apk({"arm64-v8a": make_elf(machine="x86_64", system="any")}),
                f"an APK whose {LIBRARY.format('arm64-v8a')} is for x86_64",
            ),
        ],
    )
    def test_what_is_no_benchmark_app_is_refused(
        self, cache: Binaries, apk: Callable[[bytes], Path], content: bytes, what: str
    ) -> None:
        """And says what it is instead; nothing of it is kept."""
        path = apk(content)
        with pytest.raises(UsageError) as caught:
            cache.add(path, None)
        assert error_text(caught.value) == (
            f"error: {path} is {what}\n  try:   give a build of TFLite's benchmark_model for Linux, Android or iOS"
        )
        assert cache.all() == []

    def test_an_apk_and_a_program_may_share_a_name(
        self, cache: Binaries, apk: Callable[[bytes], Path], tmp_path: Path
    ) -> None:
        """Each runner finds its own, and only its own."""
        app = cache.add(apk(make_apk()), "nightly")
        (tmp_path / "program").write_bytes(make_elf())
        program = cache.add(tmp_path / "program", "nightly")
        assert (app.runner, program.runner) == ("benchmark_app:nightly", "benchmark_model:nightly")
        assert cache.find("nightly", "aarch64") == cache.path(app)
        assert Binaries(cache.folder, tmp_path).find("nightly", "aarch64") == cache.path(program)
        assert cache.path(app).name == "benchmark_app.apk"

    def test_an_apk_for_two_cpus_serves_both_and_keeps_its_name_for_both(
        self, cache: Binaries, apk: Callable[[bytes], Path]
    ) -> None:
        """Another for one of them is refused under that name."""
        app = cache.add(apk(make_apk(BOTH)), "nightly")
        assert cache.find("nightly", "armv8l") == cache.find("", "aarch64") == cache.path(app)
        with pytest.raises(UsageError, match="already another build"):
            cache.add(apk(make_apk()), "nightly")

    def test_a_wrong_cpu_is_refused_before_any_push(self, cache: Binaries, apk: Callable[[bytes], Path]) -> None:
        """By name, with where to get another."""
        cache.add(apk(make_apk()), None)
        with pytest.raises(HostError) as caught:
            cache.find("", "x86_64")
        assert error_text(caught.value) == (
            "error: the builds of benchmark_app in the cache are for arm64-v8a (android), and the device is x86_64\n"
            "  try:   `devbench binaries add FILE.apk` adds one, "
            "`devbench binaries fetch tf-nightly-app android-arm64` gets one"
        )

    def test_an_index_from_before_there_were_apks_is_read(self, cache: Binaries, tmp_path: Path) -> None:
        """Its builds are programs."""
        (tmp_path / "program").write_bytes(make_elf())
        cache.add(tmp_path / "program", "old")
        index = cache.folder / "index.json"
        index.write_text(index.read_text().replace('"form": "program",', ""))
        assert [binary.form for binary in cache.all()] == ["program"]


def test_the_published_apk() -> None:
    """Where Google has it; for phones only."""
    wanted = published("tf-nightly-app", "android-arm64")
    nightly = "tensorflow-nightly-public/prod/tensorflow/release/lite/tools/nightly/latest"
    assert wanted.url == f"{BASE}/{nightly}/android_aarch64_benchmark_model.apk"
    with pytest.raises(UsageError, match="no build of version tf-nightly-app"):
        published("tf-nightly-app", "linux-x86-64")
