"""The cache of benchmark_model builds on the host: added, fetched over loopback, found for a machine, listed."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.binaries import BENCHMARK_MODEL, Binaries, default_folder
from orchestrator.binary_lock import LOCK, read_lock
from orchestrator.cli.binaries import binaries_app
from orchestrator.clock import Deadline
from orchestrator.content_hash import sha256
from orchestrator.errors import DevbenchError, HostError, UsageError, error_text
from orchestrator.published_binaries import BASE, Wanted, fetch, published
from tests.unit.elf_factory import COMPILED_MODEL_WORDS, make_elf

GET_ONE = "`devbench binaries add FILE` adds a build, `devbench binaries fetch VERSION PLATFORM` gets a published one"


@pytest.fixture(autouse=True)
def in_a_project_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache and a current folder that nobody else has."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("DEVBENCH_BINARIES", str(tmp_path / "cache"))


@pytest.fixture
def cache() -> Binaries:
    return Binaries()


def build(name: str = "benchmark_model", **traits: Any) -> Path:
    path = Path(name)
    path.write_bytes(make_elf(**traits))
    return path


def refusal(kind: type[DevbenchError], action: Callable[[], object]) -> str:
    """What a person reads."""
    with pytest.raises(kind) as caught:
        action()
    return error_text(caught.value)


class TestFolder:
    def test_it_is_in_the_users_data_folder(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Unless DEVBENCH_BINARIES names another."""
        monkeypatch.delenv("DEVBENCH_BINARIES")
        monkeypatch.setenv("XDG_DATA_HOME", "/data")
        assert default_folder() == Path("/data/devbench/binaries")
        monkeypatch.delenv("XDG_DATA_HOME")
        assert default_folder() == Path.home() / ".local/share/devbench/binaries"


class TestAdd:
    def test_a_build_is_kept_by_its_hash_and_told_by_its_bytes(self, cache: Binaries) -> None:
        """Nothing is run: the host seldom could."""
        source = build("android_aarch64_benchmark_model")
        added = cache.add(source, None)
        assert (added.name, added.abi, added.system, added.program) == (
            "android-aarch64",
            "arm64-v8a",
            "android",
            "interpreter",
        )
        assert added.fingerprint.release == "LiteRT 2.1.0 or later"
        assert {"use_gpu", "num_runs"} <= set(added.flags)
        kept = cache.path(added)
        assert kept.read_bytes() == source.read_bytes() and kept.stat().st_mode & 0o111
        assert cache.all() == [added]
        assert list((cache.folder / "arriving").iterdir()) == []

    def test_a_file_whose_name_tells_nothing_is_named_for_what_it_is(self, cache: Binaries) -> None:
        """Every build is called benchmark_model."""
        assert cache.add(build(), None).name == "interpreter-android-aarch64"

    def test_the_same_build_again_is_the_same_entry(self, cache: Binaries) -> None:
        """And mends a copy that was harmed."""
        added = cache.add(build(), "mine")
        cache.path(added).write_bytes(b"harmed")
        assert cache.add(build(), "mine") == added
        assert cache.find("mine", "aarch64").read_bytes() == make_elf()

    def test_a_name_may_stand_for_one_build_a_machine(self, cache: Binaries) -> None:
        """So that one plan serves a mixed fleet."""
        for machine in ("aarch64", "armv7l"):
            cache.add(build(machine=machine), "nightly")
        assert list(cache.names()) == ["nightly"]
        assert cache.find("nightly", "armv8l") != cache.find("nightly", "aarch64")

    def test_a_name_never_changes_its_meaning(self, cache: Binaries) -> None:
        """Nor is anything left of the build that was refused."""
        first = cache.add(build(), "mine")
        message = refusal(UsageError, lambda: cache.add(build(salt="other"), "mine"))
        assert message == (
            f'error: "mine" is already another build for arm64-v8a ({first.sha256[:12]})\n'
            "  try:   choose another name with --name: results must not change their meaning"
        )
        assert [path.name for path in (cache.folder / "blobs").iterdir()] == [first.sha256]

    @pytest.mark.parametrize(
        ("content", "what"),
        [
            (b"", "an empty file"),
            (b"<!DOCTYPE html><html>", "a web page, not a program"),
            (b"#!/bin/sh\n", "a script, not a program"),
            (b"PK\x03\x04", "a damaged archive"),
            (b"MZ\x90", "a program for Windows"),
            (b"\xcf\xfa\xed\xfe\0\0\0\0", "cut short"),
            (b"hello", "not a program for Linux, Android or iOS"),
            (make_elf()[:40], "cut short"),
            (make_elf(words=("hello",)), "a program, but no benchmark_model"),
            (
                make_elf(words=("Summary of All Runs w/ Different Performance Options",)),
                "benchmark_model_performance_options, whose exit status says nothing",
            ),
        ],
    )
    def test_what_is_no_benchmark_model_is_refused(self, cache: Binaries, content: bytes, what: str) -> None:
        """And says what it is instead."""
        Path("file").write_bytes(content)
        assert refusal(UsageError, lambda: cache.add(Path("file"), "mine")) == (
            f"error: file is {what}\n  try:   give a build of TFLite's benchmark_model for Linux, Android or iOS"
        )
        assert cache.all() == [] and not (cache.folder / "blobs").exists()

    def test_a_missing_file_and_a_bad_name_are_refused(self, cache: Binaries) -> None:
        """Before anything is copied."""
        assert refusal(UsageError, lambda: cache.add(Path("nowhere"), None)) == (
            "error: nowhere: no such file\n  try:   name a benchmark_model build"
        )
        assert refusal(UsageError, lambda: cache.add(build(), "My Build")) == (
            'error: "My Build" is no name for a binary\n  try:   use small letters, digits and dashes'
        )

    def test_builds_added_at_once_are_all_listed(self, cache: Binaries) -> None:
        """The index is changed by one at a time."""
        sources = [build(f"b{index}", salt=str(index)) for index in range(8)]
        threads = [threading.Thread(target=cache.add, args=(source, source.name)) for source in sources]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert list(cache.names()) == [source.name for source in sources]

    def test_a_damaged_index_is_told(self, cache: Binaries) -> None:
        """Not taken for an empty one."""
        cache.add(build(), "mine")
        (cache.folder / "index.json").write_text("{", encoding="utf-8")
        assert refusal(HostError, cache.all) == (
            f"error: {cache.folder}/index.json cannot be read: JSONDecodeError\n"
            "  try:   move it away, and add the builds again with `devbench binaries add`"
        )
        (cache.folder / "index.json").write_text('{"version": 2, "binaries": []}', encoding="utf-8")
        assert refusal(HostError, cache.all) == (
            f"error: {cache.folder}/index.json was written by a newer devbench\n  try:   upgrade devbench"
        )


class TestFind:
    def test_an_empty_cache_says_how_to_fill_it(self, cache: Binaries) -> None:
        """Both ways."""
        assert refusal(HostError, lambda: cache.find("", "aarch64")) == (
            f"error: no build of benchmark_model in {cache.folder}\n  try:   {GET_ONE}"
        )

    def test_a_name_that_is_not_there_says_which_are(self, cache: Binaries) -> None:
        """In the order of the alphabet."""
        cache.add(build(), "mine")
        assert refusal(HostError, lambda: cache.find("yours", "aarch64")) == (
            f'error: no binary "yours" in {cache.folder}\n  try:   there are: mine; {GET_ONE}'
        )

    def test_a_wrong_abi_is_refused_before_any_push(self, cache: Binaries) -> None:
        """With and without a name."""
        cache.add(build(), "mine")
        assert refusal(HostError, lambda: cache.find("mine", "x86_64")) == (
            f'error: the binary "mine" is for arm64-v8a (android), and the device is x86_64\n  try:   {GET_ONE}'
        )
        assert refusal(HostError, lambda: cache.find("", "armv7l")) == (
            "error: the builds of benchmark_model in the cache are for arm64-v8a (android), and the device is "
            f"armv7l\n  try:   {GET_ONE}"
        )

    def test_without_a_name_the_newest_for_the_machine_is_taken(self, cache: Binaries) -> None:
        """Whatever came after it for others."""
        cache.add(build(), "old")
        newer = cache.add(build(salt="newer"), "newer")
        cache.add(build(machine="x86_64", system="any"), "pc")
        for entry in ("old", "newer"):
            assert cache.find(entry, "arm64-v8a").is_file()
        index = json.loads((cache.folder / "index.json").read_text(encoding="utf-8"))
        times = {"old": "2026-01-01T00:00:00.000Z", "newer": "2026-01-02T00:00:00.000Z"}
        for row in index["binaries"]:
            row["added_at"] = times.get(row["name"], "2026-01-03T00:00:00.000Z")
        (cache.folder / "index.json").write_text(json.dumps(index), encoding="utf-8")
        assert sha256(cache.find("", "aarch64")) == newer.sha256

    def test_builds_for_two_systems_are_not_guessed_between(self, cache: Binaries) -> None:
        """A machine name does not tell Android from Linux."""
        cache.add(build(system="linux"), "board")
        cache.add(build(system="android"), "phone")
        message = refusal(HostError, lambda: cache.find("", "aarch64"))
        assert "several builds of benchmark_model suit aarch64, for different systems: " in message
        assert "give each system a name of its own, and choose one, like benchmark_model:" in message
        assert cache.find("board", "aarch64").is_file()

    def test_a_harmed_copy_is_never_given_out(self, cache: Binaries) -> None:
        """By content, not by size or date."""
        added = cache.add(build(), "mine")
        cache.path(added).write_bytes(b"x" * added.size)
        assert refusal(HostError, lambda: cache.find("mine", "aarch64")) == (
            f"error: {cache.path(added)} is missing or not what was added\n"
            f"  try:   add it again: `devbench binaries add FILE --name mine`; it came from {added.source}"
        )

    def test_a_hash_that_the_cache_has_lost_is_told(self, cache: Binaries) -> None:
        """A resumed run has its binary in the store, but not what is known of it."""
        assert refusal(HostError, lambda: cache.fingerprint("ab" * 32)) == (
            f"error: the cache {cache.folder} does not know the benchmark_model abababababab\n"
            "  try:   add that build again with `devbench binaries add FILE`; a run keeps it in its store under blobs"
        )

    def test_the_registered_runner_uses_the_cache(self, cache: Binaries) -> None:
        """Its variants are the names in it, now."""
        assert list(BENCHMARK_MODEL.variants) == []
        added = cache.add(build(), "mine")
        assert list(BENCHMARK_MODEL.variants) == ["mine"]
        assert BENCHMARK_MODEL.files("mine", "aarch64") == {"runner": cache.path(added)}


class Server(http.server.ThreadingHTTPServer):
    """A publisher on loopback."""

    files: dict[str, bytes]
    asked: list[str]
    promised: int | None


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(self.server.promised or len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing on the test's output."""


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        server.files, server.asked, server.promised = {}, [], None
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("DEVBENCH_BINARIES_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield server
        server.shutdown()
        thread.join()


LITERT = "/litert/binaries/2.2.0/android_arm64/benchmark_model"
COMPILED = make_elf(words=COMPILED_MODEL_WORDS)


def got(cache: Binaries, version: str = "2.2.0", platform: str = "android-arm64", name: str | None = None) -> Any:
    return fetch(cache, published(version, platform), name=name, deadline=Deadline.after(30))


class TestPublished:
    @pytest.mark.parametrize(
        ("version", "platform", "path"),
        [
            ("2.2.0", "android-arm64", "litert/binaries/2.2.0/android_arm64/benchmark_model"),
            ("latest", "linux_x86_64", "litert/binaries/latest/linux_x86_64/benchmark_model"),
            ("nightly", "linux-aarch64", "litert/binaries/nightly/linux_arm64/benchmark_model"),
            (
                "tf-nightly",
                "android_arm",
                "tensorflow-nightly-public/prod/tensorflow/release/lite/tools/nightly/latest/android_arm_benchmark_model",
            ),
        ],
    )
    def test_addresses(self, version: str, platform: str, path: str) -> None:
        """As Google publishes; a platform may be spelled in any of the usual ways."""
        assert published(version, platform).url == f"{BASE}/{path}"

    def test_what_is_not_published_is_refused(self) -> None:
        """Before the network is asked."""
        assert refusal(UsageError, lambda: published("../x", "android-arm64")) == (
            'error: "../x" is no published version\n'
            "  try:   use tf-nightly (Interpreter program), tf-nightly-app (the same as an APK), "
            "or latest, nightly or a number such as 2.2.0 (CompiledModel)"
        )
        message = refusal(UsageError, lambda: published("2.2.0", "android-arm"))
        assert message.startswith('error: no build of version 2.2.0 is published for "android-arm"\n  try:   ')
        assert "android-arm64" in message


class TestFetch:
    def test_a_fetched_build_is_locked(self, cache: Binaries, publisher: Server) -> None:
        """In the project's folder, by its hash."""
        publisher.files[LITERT] = COMPILED
        binary = got(cache)
        assert (binary.name, binary.program) == ("2-2-0-android", "compiled-model")
        locked = read_lock(Path())["2.2.0 android-arm64"]
        assert (locked.name, locked.sha256, locked.size) == (binary.name, binary.sha256, len(COMPILED))
        assert locked.url.endswith(LITERT)

    def test_what_is_locked_and_kept_is_not_fetched_again(self, cache: Binaries, publisher: Server) -> None:
        """Nor needs it a network."""
        publisher.files[LITERT] = COMPILED
        assert got(cache) == got(cache)
        assert publisher.asked == [LITERT]

    def test_a_file_that_changed_is_refused(self, tmp_path: Path, publisher: Server) -> None:
        """`latest` moves; a colleague's project must not move with it unseen."""
        publisher.files[LITERT] = COMPILED
        first = got(Binaries())
        publisher.files[LITERT] = make_elf(words=COMPILED_MODEL_WORDS, salt="moved")
        other = Binaries(tmp_path / "other-host")
        message = refusal(HostError, lambda: got(other))
        moved = Wanted("2.2.0", "android-arm64", first.program, first.source)
        assert message.startswith(f"error: {moved.url} has changed: it is ")
        assert f"and {LOCK} has {first.sha256[:12]}\n" in message
        assert f'remove "2.2.0 android-arm64" from {LOCK}' in message
        assert other.all() == []

    def test_a_build_at_odds_with_the_lock_is_not_used(self, tmp_path: Path, publisher: Server) -> None:
        """Though another project's cache has it under the same name."""
        publisher.files[LITERT] = COMPILED
        got(Binaries())
        other = Binaries(tmp_path / "other-host")
        Path("file").write_bytes(make_elf(words=COMPILED_MODEL_WORDS, salt="moved"))
        added = other.add(Path("file"), "2-2-0-android")
        locked = read_lock(Path())["2.2.0 android-arm64"]
        assert refusal(HostError, lambda: other.find("2-2-0-android", "aarch64")) == (
            f"error: the binary 2-2-0-android is {added.sha256[:12]}, and this project has locked "
            f"{locked.sha256[:12]} for 2.2.0 android-arm64\n"
            "  try:   get the locked file from a colleague and add it under another name, or remove the lock"
        )

    def test_what_is_not_there_says_how_to_do_it_by_hand(self, cache: Binaries, publisher: Server) -> None:
        """Nothing is locked by a failure."""
        url = published("2.2.0", "android-arm64").url
        assert refusal(HostError, lambda: got(cache)) == (
            f"error: {url}: the server says 404 Not Found\n"
            f"  try:   download {url} where there is a network, then `devbench binaries add FILE`"
        )
        assert not Path(LOCK).exists()

    def test_no_network_says_how_to_do_it_by_hand(self, cache: Binaries, monkeypatch: pytest.MonkeyPatch) -> None:
        """The address to open elsewhere is in the remedy."""
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setenv("DEVBENCH_BINARIES_URL", "http://127.0.0.1:9")
        message = refusal(HostError, lambda: got(cache))
        assert message.startswith(f"error: http://127.0.0.1:9{LITERT} cannot be fetched: ")
        assert f"download http://127.0.0.1:9{LITERT} where there is a network, then `devbench binaries add" in message

    def test_half_a_file_is_refused(self, cache: Binaries, publisher: Server) -> None:
        """A torn download is never used."""
        publisher.files[LITERT], publisher.promised = COMPILED, len(COMPILED) + 100
        message = refusal(HostError, lambda: got(cache))
        assert f"arrived in part: {len(COMPILED)} of {len(COMPILED) + 100} bytes" in message
        assert cache.all() == [] and not Path(LOCK).exists()

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (b"<html>log in to this network</html>", "is a web page, not a program"),
            (make_elf(), "is the interpreter program for arm64-v8a (android), not what was asked for"),
            (
                make_elf(words=COMPILED_MODEL_WORDS, machine="x86_64", system="linux"),
                "is the compiled-model program for x86_64 (linux), not what was asked for",
            ),
        ],
    )
    def test_something_else_is_refused(self, cache: Binaries, publisher: Server, content: bytes, told: str) -> None:
        """A captive portal, the other program, another machine: neither kept nor locked."""
        publisher.files[LITERT] = content
        assert told in refusal(HostError, lambda: got(cache))
        assert cache.all() == [] and not Path(LOCK).exists()

    def test_a_damaged_lock_is_told(self, cache: Binaries) -> None:
        """It belongs to version control."""
        Path(LOCK).write_text("{", encoding="utf-8")
        assert refusal(UsageError, lambda: got(cache)) == (
            f"error: {LOCK} cannot be read: JSONDecodeError\n  try:   restore it from version control"
        )


class TestCommands:
    def test_add_and_list(self, cache: Binaries) -> None:
        """A table for people."""
        source = build("android_aarch64_benchmark_model")
        added = CliRunner().invoke(binaries_app, ["add", str(source)], catch_exceptions=False)
        assert added.exit_code == 0
        assert added.stdout.startswith("benchmark_model:android-aarch64  interpreter program, LiteRT 2.1.0 or later\n")
        listed = CliRunner().invoke(binaries_app, ["list"], catch_exceptions=False)
        head, row = listed.stdout.splitlines()
        assert head.split() == ["name", "program", "release", "system", "ABI", "bytes", "SHA-256", "added", "form"]
        assert row.startswith("android-aarch64  interpreter  LiteRT 2.1.0 or later  android  arm64-v8a  ")

    def test_list_for_machines(self, cache: Binaries) -> None:
        """One object, with everything."""
        binary = cache.add(build(), "mine")
        listed = CliRunner().invoke(binaries_app, ["list", "--json"], catch_exceptions=False)
        document = json.loads(listed.stdout)
        assert (document["schema"], document["version"]) == ("devbench.binaries", 1)
        assert document["binaries"] == [binary.as_json() | {"path": str(cache.path(binary))}]

    def test_an_empty_list_says_what_to_do(self, cache: Binaries) -> None:
        """On standard error: there is no result."""
        listed = CliRunner().invoke(binaries_app, ["list"], catch_exceptions=False)
        assert listed.stdout == ""
        assert listed.stderr == f"none in {cache.folder}; `devbench binaries add FILE` adds one\n"

    def test_fetch(self, cache: Binaries, publisher: Server) -> None:
        """Under a name of one's own, if one wants."""
        publisher.files[LITERT] = COMPILED
        done = CliRunner().invoke(
            binaries_app, ["fetch", "2.2.0", "android-arm64", "--name", "release"], catch_exceptions=False
        )
        assert done.stdout.startswith("benchmark_model:release  compiled-model program, LiteRT 2.1.5 or later\n")
        assert read_lock(Path())["2.2.0 android-arm64"].name == "release"
