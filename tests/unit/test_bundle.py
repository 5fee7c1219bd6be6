"""Bundles: what goes in comes out to the last bit, and what is damaged or hostile leaves the store as it was."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.analysis.noise import Noise
from orchestrator.bundle import MANIFEST, gathered, write_bundle
from orchestrator.content_hash import sha256
from orchestrator.errors import ImportRefused, UsageError
from orchestrator.op_profile import OpCost, OpProfile, ProfilePass
from orchestrator.prepare import prepare_resume
from orchestrator.store import Annals, SessionRecord, Standing, Store, open_store
from orchestrator.store.ledger import run_ids
from orchestrator.trial import Outcome, Summary
from orchestrator.unbundle import unbundle
from tests.unit.nights import add_night, night_id
from tests.unit.trial_factory import make_trial


def bundled(
    store: Store,
    run_id: str,
    path: Path,
    *,
    without: tuple[str, ...] = (),
    anonymous: bool = False,
    baseline: bool = True,
) -> Path:
    record = store.find_run(run_id)
    with gathered(store, record, without=without, anonymous=anonymous, with_baseline=baseline) as content:
        write_bundle(content, path)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "möbile net.tflite"
    path.write_bytes(b"model" * 1000)
    return path


@pytest.fixture
def lab(tmp_path: Path, model: Path) -> Store:
    """A store with a judged run of everything, and its baseline."""
    store = open_store(tmp_path / "lab")
    add_night(store, 2, model=model)
    run_id = add_night(store, 1, model=model)
    cell = store.cells(run_id)[0]
    odd = replace(
        make_trial(cell=cell, block=7, run=run_id),
        samples_us=(0.1, 1 / 3, 123456.789012345678),
        summary=Summary(3, median=1.0),
        evidence={"text": 'a "quoted" é \u2028 line'},
    )
    store.add_trials([odd, replace(make_trial(cell=cell, block=8, run=run_id), outcome=Outcome.FAILED, reason="x")])
    profile = OpProfile("proto", ops=(OpCost("conv:0", "CONV_2D", 1.5),), runs=5, total_us=1.5)
    store.add_pass(ProfilePass(run_id, cell, "s", Outcome.MEASURED, None, "2026-11-17", 1.0, 2.0, profile=profile))
    facts = {"raw": {"getprop": {"ro.serialno": "R58M123456"}}, "cores": 8}
    store.add_session(SessionRecord("s2", run_id, "pixel8", "2026-11-17T02:10:00Z", facts))
    store.set_stops(run_id, {cell.id: "precise enough"})
    store.keep_noise(night_id(2), "2026-11-16", [Noise("pixel8", "any", "p50", 0.01, 0.0, None, 1, 8, 1.0)])
    annals = Annals(store)
    annals.note(run_id, "slow again")
    annals.tag(run_id, "good")
    annals.judge(run_id, night_id(2), Standing.BAD, {"cells": []})
    store.keep_log("x", run_id, b"adb -s SERIAL-pixel8 R58M123456 shell\n")
    store.keep_artifact("pixel8-trace", run_id, b"\x00SERIAL-pixel8")
    return store


@pytest.fixture
def elsewhere(tmp_path: Path) -> Store:
    return open_store(tmp_path / "elsewhere")


def test_everything_arrives(lab: Store, elsewhere: Store, model: Path, tmp_path: Path) -> None:
    """Trials to the last bit, sessions, profiles, stops, noise, notes, judgement, files; and the baseline with it."""
    found = unbundle(bundled(lab, night_id(1), tmp_path / "b.zip"), elsewhere)
    assert found.added == (night_id(1), night_id(2))
    for run_id in found.added:
        assert elsewhere.trials(run_id) == lab.trials(run_id)
        assert elsewhere.sessions(run_id) == lab.sessions(run_id)
        assert elsewhere.profiles(run_id) == lab.profiles(run_id)
        assert elsewhere.stops(run_id) == lab.stops(run_id)
        one, other = lab.find_run(run_id), elsewhere.find_run(run_id)
        assert replace(other, host=one.host) == one
        for trial in elsewhere.trials(run_id):
            if trial.log:
                assert (elsewhere.folder / trial.log).read_bytes() == (lab.folder / trial.log).read_bytes()
    assert elsewhere.noise() == lab.noise()
    assert Annals(elsewhere).judgements()[night_id(1)].standing is Standing.BAD
    assert [note.text for note in Annals(elsewhere).notes()[night_id(1)]] == ["slow again"]
    assert Annals(elsewhere).tagged() == {}, "a tag is a name within one store"
    blob = elsewhere.blob(sha256(model))
    assert blob is not None
    assert blob.name == model.name


def test_a_bundle_of_an_unbundled_run_is_the_same_file(lab: Store, elsewhere: Store, tmp_path: Path) -> None:
    first = bundled(lab, night_id(2), tmp_path / "b.zip")
    again = bundled(lab, night_id(2), tmp_path / "b2.zip")
    unbundle(first, elsewhere)
    there = bundled(elsewhere, night_id(2), tmp_path / "b3.zip")
    assert first.read_bytes() == again.read_bytes() == there.read_bytes()


def test_twice_is_once(lab: Store, elsewhere: Store, tmp_path: Path) -> None:
    """Also where a note was added meanwhile: what is said of a run is no part of it."""
    path = bundled(lab, night_id(1), tmp_path / "b.zip")
    unbundle(path, elsewhere)
    Annals(elsewhere).note(night_id(1), "seen here too")
    found = unbundle(path, elsewhere)
    assert (found.added, found.present) == ((), (night_id(1), night_id(2)))
    assert len(Annals(elsewhere).notes()[night_id(1)]) == 2


def test_another_run_of_the_same_id_is_refused(lab: Store, elsewhere: Store, tmp_path: Path) -> None:
    add_night(elsewhere, 1)
    with pytest.raises(ImportRefused, match=r"is in .* already, and differs"):
        unbundle(bundled(lab, night_id(1), tmp_path / "b.zip"), elsewhere)
    assert run_ids(elsewhere) == [night_id(1)], "the baseline in it was not taken either"


def test_an_unbundled_run_cannot_be_resumed(lab: Store, elsewhere: Store, tmp_path: Path) -> None:
    unbundle(bundled(lab, night_id(1), tmp_path / "b.zip"), elsewhere)
    with pytest.raises(UsageError, match="was measured elsewhere"):
        prepare_resume(elsewhere, night_id(1))


def test_parts_can_be_left_out(lab: Store, tmp_path: Path) -> None:
    path = bundled(lab, night_id(1), tmp_path / "b.zip", without=("logs", "traces"), baseline=False)
    names = zipfile.ZipFile(path).namelist()
    assert [name for name in names if name.startswith("artifacts/")] == []
    assert [name for name in names if name.startswith("runs/2")] == []


def test_an_anonymous_bundle_says_no_address(lab: Store, elsewhere: Store, tmp_path: Path) -> None:
    """Serial numbers, addresses and paths are in no member; numbers are untouched, and it can be read all the same."""
    path = bundled(lab, night_id(1), tmp_path / "b.zip", anonymous=True)
    archive = zipfile.ZipFile(path)
    for name in archive.namelist():
        content = archive.read(name)
        for secret in (b"SERIAL-pixel8", b"R58M123456", b"/lab/bench", str(Path.home()).encode() + b"/"):
            assert secret not in content, (name, secret)
    unbundle(path, elsewhere)
    assert elsewhere.find_run(night_id(1)).fleet["devices"][0]["address"] == {}
    assert [trial.samples_us for trial in elsewhere.trials(night_id(1))] == [
        trial.samples_us for trial in lab.trials(night_id(1))
    ]


def test_a_lost_blob_is_told(lab: Store, elsewhere: Store, model: Path, tmp_path: Path) -> None:
    blob = lab.blob(sha256(model))
    assert blob is not None
    blob.unlink()
    found = unbundle(bundled(lab, night_id(1), tmp_path / "b.zip"), elsewhere)
    assert sha256(model) in found.lost


def test_a_link_among_the_artifacts_is_not_followed(lab: Store, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    (lab.folder / "artifacts" / night_id(1).replace(":", "_") / "linked.log").symlink_to(secret)
    names = zipfile.ZipFile(bundled(lab, night_id(1), tmp_path / "b.zip")).namelist()
    assert not any("linked" in name for name in names)


# Damage and malice: each makes another bundle of a sound one


Members = dict[str, bytes]


def members_of(path: Path) -> Members:
    archive = zipfile.ZipFile(path)
    return {name: archive.read(name) for name in archive.namelist()}


def sealed(members: Mapping[str, bytes], **changes: Any) -> Members:
    """With a manifest that fits, as a malicious maker would write it."""
    manifest = json.loads(members[MANIFEST])
    manifest["members"] = [
        {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in members.items()
        if name != MANIFEST
    ]
    return {**members, MANIFEST: json.dumps(manifest | changes).encode()}


def packed(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def with_run(members: Members, change: Callable[[dict[str, Any]], None]) -> Members:
    document = json.loads(members["runs/1/run.json"])
    change(document)
    return sealed(members | {"runs/1/run.json": json.dumps(document).encode()})


def with_trial(members: Members, **changes: Any) -> Members:
    first, *rest = members["runs/1/trials.jsonl"].decode().splitlines()
    line = json.dumps(json.loads(first) | changes)
    return sealed(members | {"runs/1/trials.jsonl": "\n".join([line, *rest]).encode()})


def set_at(*path: Any) -> Callable[[dict[str, Any]], None]:
    """Puts the last word at the place that the others name."""

    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for key in path[:-2]:
            place = place[key]
        place[path[-2]] = path[-1]

    return change


def renamed(members: Members, start: str, name: str) -> Members:
    old = next(found for found in members if found.startswith(start))
    return sealed({(name if found == old else found): content for found, content in members.items()})


BLOB = "blobs/"
HOSTILE: dict[str, tuple[Callable[[Members], Members], str]] = {
    "a changed byte": (
        lambda m: m | {"runs/1/trials.jsonl": m["runs/1/trials.jsonl"] + b" "},
        "not what the manifest says",
    ),
    "a member too many": (lambda m: m | {"artifacts/1/more": b"x"}, "names other members"),
    "a member too few": (lambda m: {k: v for k, v in m.items() if k != "runs/1/said.json"}, "names other members"),
    "no manifest": (lambda m: {k: v for k, v in m.items() if k != MANIFEST}, "it has no manifest"),
    "another manifest": (lambda m: m | {MANIFEST: b"[]"}, "another thing's"),
    "a broken manifest": (lambda m: m | {MANIFEST: b"{"}, "is no JSON"),
    "a deep manifest": (lambda m: m | {MANIFEST: b"[" * 200_000}, "is no JSON"),
    "a newer version": (lambda m: sealed(m, version=2), "written by a newer devbench"),
    "no version": (lambda m: sealed(m, version="x"), "written by a newer devbench"),
    "members that are none": (
        lambda m: m | {MANIFEST: b'{"schema":"devbench.bundle","version":1,"members":[1],"runs":[]}'},
        "damaged",
    ),
    "runs of another name": (lambda m: sealed(m, runs=["a", "b"]), "names other runs"),
    "a run that is not whole": (lambda m: sealed({k: v for k, v in m.items() if k != "runs/2/run.json"}), "not whole"),
    "a path up": (lambda m: renamed(m, BLOB, "../../evil"), "has a member"),
    "a path up in the middle": (lambda m: renamed(m, BLOB, "artifacts/1/../../evil"), "has a member"),
    "an absolute path": (lambda m: renamed(m, BLOB, "/etc/evil"), "has a member"),
    "a hidden file": (lambda m: renamed(m, BLOB, "artifacts/1/.devbench-x"), "has a member"),
    "two dots": (lambda m: renamed(m, BLOB, "artifacts/1/.."), "has a member"),
    "a folder": (lambda m: sealed(m | {"artifacts/1/x/": b""}), "has a member"),
    "a blob of another name": (lambda m: renamed(m, BLOB, f"blobs/{'0' * 64}/model"), "not what its name says"),
    "a run called up": (lambda m: with_run(m, set_at("run", "id", "../x")), "no run is called"),
    "a run that is no object": (lambda m: sealed(m | {"runs/1/run.json": b"[]"}), "cannot be read"),
    "a run without a time": (lambda m: with_run(m, set_at("run", "created_at", None)), "cannot be read|cannot be kept"),
    "a seed beyond": (lambda m: with_run(m, set_at("run", "seed", 10**30)), "cannot be"),
    "a plan that is none": (lambda m: with_run(m, set_at("run", "plan", {"x": 1})), "cannot be read"),
    "a fleet that is none": (lambda m: with_run(m, set_at("run", "fleet", {"devices": "x"})), "cannot be read"),
    "findings that are none": (
        lambda m: with_run(m, set_at("rows", "sessions", 0, "findings", ["x"])),
        "cannot be read",
    ),
    "an unknown table": (lambda m: with_run(m, set_at("rows", "secrets", [{}])), "does not know"),
    "an unknown column": (lambda m: with_run(m, set_at("cells", 0, "x", 1)), "cells has no x"),
    "a row of another run": (lambda m: with_run(m, set_at("cells", 0, "run_id", "other")), "is of another run"),
    "a cell of a wrong kind": (lambda m: with_run(m, set_at("cells", 0, "threads", "many")), "cells.threads is 'many'"),
    "a trial of another run": (lambda m: with_trial(m, run="other"), "trials of another run"),
    "a trial of no cell": (lambda m: with_trial(m, device="other"), "cannot be kept"),
    "a trial twice": (lambda m: with_trial(m, block=1), "cannot be kept"),
    "latencies below zero": (lambda m: with_trial(m, samples_us=[-1.0]), "not a list of positive numbers"),
    "a summary that is none": (lambda m: with_trial(m, summary={"x": 1}), "cannot be read"),
    "no text": (lambda m: sealed(m | {"runs/1/trials.jsonl": b"\xff\xfe"}), "cannot be read"),
    "half a letter": (lambda m: with_run(m, set_at("run", "devbench_version", "\ud800")), "cannot be"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_damaged_or_hostile_bundle_changes_nothing(
    name: str, soundly: Members, untouched: Store, tmp_path: Path
) -> None:
    change, message = HOSTILE[name]
    path = tmp_path / "hostile.zip"
    path.write_bytes(packed(change(dict(soundly))))
    assert_refused(path, untouched, message)


def assert_refused(path: Path, store: Store, message: str) -> None:
    before = set(path.parent.iterdir())
    with pytest.raises(ImportRefused, match=message) as caught:
        unbundle(path, store)
    assert caught.value.remedy
    assert run_ids(store) == []
    assert {found.name for found in store.folder.iterdir() if found.is_dir()} == set(), "not a file was left"
    assert set(path.parent.iterdir()) == before


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all that is refused: each test sees that it is still empty."""
    return open_store(tmp_path_factory.mktemp("untouched"))


@pytest.fixture(scope="module")
def soundly(tmp_path_factory: pytest.TempPathFactory) -> Members:
    folder = tmp_path_factory.mktemp("sound")
    model = folder / "model.tflite"
    model.write_bytes(b"model")
    store = open_store(folder / "lab")
    add_night(store, 2, model=model)
    add_night(store, 1, model=model)
    Annals(store).judge(night_id(1), night_id(2), Standing.BAD, {})
    return members_of(bundled(store, night_id(1), folder / "b.zip"))


def test_the_sound_one_is_taken(soundly: Members, elsewhere: Store, tmp_path: Path) -> None:
    """Otherwise the tests above would prove nothing."""
    path = tmp_path / "sound.zip"
    path.write_bytes(packed(sealed(soundly)))
    assert unbundle(path, elsewhere).added == (night_id(1), night_id(2))


def test_a_bundle_cut_off_anywhere_is_refused(soundly: Members, untouched: Store, tmp_path: Path) -> None:
    whole = packed(soundly)
    path = tmp_path / "cut.zip"
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert_refused(path, untouched, "no bundle, or a damaged one|is damaged")


def test_damage_inside_is_refused(soundly: Members, untouched: Store, tmp_path: Path) -> None:
    """Any byte of the packed content."""
    whole = packed(soundly)
    path = tmp_path / "damaged.zip"
    for place in range(60, len(whole) - 400, len(whole) // 12):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with pytest.raises(ImportRefused):
            unbundle(path, untouched)
    assert run_ids(untouched) == []


def test_links_and_twins_are_refused(soundly: Members, untouched: Store, tmp_path: Path) -> None:
    path = tmp_path / "odd.zip"
    linked = zipfile.ZipInfo("artifacts/1/link")
    linked.external_attr = (stat.S_IFLNK | 0o777) << 16
    for entry, message in ((linked, "no plain file"), (zipfile.ZipInfo("runs/1/run.json"), "two members")):
        path.write_bytes(packed(soundly))
        with zipfile.ZipFile(path, "a") as archive:
            if message == "two members":
                with pytest.warns(UserWarning, match="Duplicate name"):
                    archive.writestr(entry, b"/etc/passwd")
            else:
                archive.writestr(entry, b"/etc/passwd")
        assert_refused(path, untouched, message)


def test_a_bomb_is_refused_before_it_grows(soundly: Members, untouched: Store, tmp_path: Path) -> None:
    """By what it declares; and what declares less than it is fails by its size and checksum."""
    path = tmp_path / "bomb.zip"
    path.write_bytes(packed(sealed(soundly | {"artifacts/1/zeros": bytes(70 << 20)})))
    assert_refused(path, untouched, "would grow to")
    lying = packed(sealed(soundly | {"artifacts/1/zeros": bytes(1 << 20)}))
    size = (1 << 20).to_bytes(4, "little")
    path.write_bytes(lying.replace(size, (1000).to_bytes(4, "little")))
    assert_refused(path, untouched, "not what the manifest says|damaged")


def test_what_is_no_zip_is_refused(untouched: Store, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    assert_refused(path, untouched, "no such file")
    path.write_text("hello")
    assert_refused(path, untouched, "no bundle, or a damaged one")
    with pytest.raises(ImportRefused):
        unbundle(tmp_path, untouched)
