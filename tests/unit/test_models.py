"""Model files: found, checked and named before any device is touched."""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path

import pytest

from orchestrator.bundled import bundled_models
from orchestrator.errors import ModelError, error_text
from orchestrator.model_files import Model, check_model, find_models
from tests.unit.trial_factory import make_cell

FLOAT, INT8 = (path.read_bytes() for path in bundled_models())
TEST_MODELS = Path(__file__).parents[1] / "data" / "models"


def names(folder: Path, *patterns: str) -> list[str]:
    return [model.name for model in find_models(patterns, folder)[0]]


def refusal(folder: Path, *patterns: str) -> str:
    """What a person reads when a model is refused."""
    with pytest.raises(ModelError) as caught:
        find_models(patterns, folder)
    return error_text(caught.value)


class TestFinding:
    def test_a_model_carries_its_stem_its_place_and_its_hash(self, tmp_path: Path) -> None:
        """Relative paths start at the folder."""
        path = tmp_path / "mobilenet.tflite"
        path.write_bytes(INT8)
        (found,), _ = find_models(["mobilenet.tflite"], tmp_path)
        assert found == Model("mobilenet", path, hashlib.sha256(INT8).hexdigest())
        assert find_models([str(path)], Path("/elsewhere")) == ((found,), ())

    def test_a_glob_finds_every_file_in_order_of_names(self, tmp_path: Path) -> None:
        """Also in folders below, and nothing else that matches."""
        (tmp_path / "deep").mkdir()
        for name, content in (("b.tflite", FLOAT), ("a.tflite", INT8), ("deep/c.tflite", FLOAT + b"\0")):
            (tmp_path / name).write_bytes(content)
        (tmp_path / "folder.tflite").mkdir()
        assert names(tmp_path, "*.tflite") == ["a", "b"]
        assert names(tmp_path, "**/*.tflite") == ["a", "b", "c"]

    def test_a_file_of_exactly_that_name_wins_over_a_glob(self, tmp_path: Path) -> None:
        """Brackets are common in names that tools make."""
        (tmp_path / "net[1].tflite").write_bytes(FLOAT)
        (tmp_path / "net1.tflite").write_bytes(INT8)
        assert names(tmp_path, "net[1].tflite") == ["net[1]"]

    def test_a_model_named_twice_is_measured_once(self, tmp_path: Path) -> None:
        """By path and by glob, or under two names with the same content: the first name stays."""
        for name in ("first.tflite", "second.tflite"):
            (tmp_path / name).write_bytes(INT8)
        assert names(tmp_path, "first.tflite", "*.tflite", "./first.tflite") == ["first"]

    def test_equal_stems_are_told_apart_by_their_folders(self, tmp_path: Path) -> None:
        """As many folders as needed, and only where needed."""
        contents = {"a/x/net": FLOAT, "b/x/net": INT8, "b/x/other": FLOAT + b"\0"}
        for name, content in contents.items():
            path = tmp_path / f"{name}.tflite"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        assert names(tmp_path, "**/*.tflite") == ["a/x/net", "b/x/net", "other"]

    def test_equal_stems_in_one_folder_are_told_apart(self, tmp_path: Path) -> None:
        """Cells of two models may never share a name."""
        (tmp_path / "net.tflite").write_bytes(FLOAT)
        (tmp_path / "net.lite").write_bytes(INT8)
        assert names(tmp_path, "net.*") == ["net.lite", "net.tflite"]

    def test_a_folder_with_brackets_is_no_glob(self, tmp_path: Path) -> None:
        """Only what the user wrote is a pattern."""
        folder = tmp_path / "run[3]"
        folder.mkdir()
        (folder / "net.tflite").write_bytes(INT8)
        assert names(folder, "*.tflite") == ["net"]

    @pytest.mark.parametrize("name", ["-x.tflite", "a b'\"$(reboot).tflite", ".tflite", "no-suffix", "模型.tflite"])
    def test_names_that_would_hurt_a_shell_are_only_names(self, name: str, tmp_path: Path) -> None:
        """Commands are argument lists, so any name will do."""
        (tmp_path / name).write_bytes(INT8)
        (found,), _ = find_models([name], tmp_path)
        assert found.path == tmp_path / name

    @pytest.mark.parametrize("raw", [b"new\nline.tflite", b"\x1b[31mred.tflite", b"\xff.tflite"])
    def test_a_name_can_be_printed_hashed_and_stored(self, raw: bytes, tmp_path: Path) -> None:
        """Whatever the file is called, the cell's name is printable text."""
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + raw)).write_bytes(INT8)
        (found,), _ = find_models([os.fsdecode(raw)], tmp_path)
        assert found.name.isprintable()
        assert make_cell(model=found.name).id


class TestRefusals:
    def test_a_missing_file(self, tmp_path: Path) -> None:
        """The path as it was looked for."""
        assert refusal(tmp_path, "none.tflite") == (
            f"error: {tmp_path}/none.tflite: no such model file\n"
            "  try:   check the path given by --model or in the plan"
        )

    def test_a_glob_without_a_match(self, tmp_path: Path) -> None:
        """And where it was looked for."""
        assert refusal(tmp_path, "*.tflite") == (
            f"error: no model matches *.tflite\n  try:   check the pattern; it was looked for in {tmp_path.resolve()}"
        )

    def test_a_glob_that_matches_only_folders(self, tmp_path: Path) -> None:
        """No file matches, so no model does."""
        (tmp_path / "saved.tflite").mkdir()
        assert refusal(tmp_path, "*.tflite").startswith("error: no model matches *.tflite\n")

    def test_a_folder(self, tmp_path: Path) -> None:
        """The remedy is to name the files in it."""
        assert refusal(tmp_path, ".") == (
            f"error: {tmp_path}: a folder, not a model file\n  try:   name the files in it: {tmp_path}/*.tflite"
        )

    def test_a_path_no_file_can_have(self, tmp_path: Path) -> None:
        r"""TOML can spell "a\u0000b"."""
        assert "no such model file" in refusal(tmp_path, "a\0b.tflite")

    def test_an_empty_file(self, tmp_path: Path) -> None:
        """An interrupted download."""
        (tmp_path / "net.tflite").touch()
        assert refusal(tmp_path, "net.tflite") == (
            f"error: {tmp_path}/net.tflite: the file is empty\n  try:   export or copy the model again"
        )

    def test_something_else(self, tmp_path: Path) -> None:
        """A web page saved under the name of a model."""
        (tmp_path / "net.tflite").write_bytes(b"<!DOCTYPE html><html>")
        assert refusal(tmp_path, "net.tflite") == (
            f"error: {tmp_path}/net.tflite: not a TFLite model (no TFL3 identifier)\n"
            "  try:   convert the model to .tflite first"
        )

    def test_a_model_cut_short(self, tmp_path: Path) -> None:
        """The place where it ends is told."""
        (tmp_path / "net.tflite").write_bytes(INT8[:100_000])
        assert refusal(tmp_path, "net.tflite") == (
            f"error: {tmp_path}/net.tflite: a damaged TFLite model: it points past its end at 100000 bytes, "
            "so it was cut short or overwritten\n"
            "  try:   export or copy the model again"
        )

    def test_a_model_without_a_subgraph(self, tmp_path: Path) -> None:
        """An identifier and nothing behind it."""
        (tmp_path / "net.tflite").write_bytes(b"\x0c\0\0\0TFL3" + b"\x04\0\x04\0" + b"\x04\0\0\0" + bytes(8))
        assert refusal(tmp_path, "net.tflite") == (
            f"error: {tmp_path}/net.tflite: a damaged TFLite model: it has no subgraph\n"
            "  try:   export or copy the model again"
        )

    def test_weights_that_reach_past_the_end(self, tmp_path: Path) -> None:
        """Every table is whole, but a tensor claims more bytes than the file has."""
        length = struct.pack("<I", 143_360)
        assert INT8.count(length) == 1, "the one tensor of that size"
        (tmp_path / "net.tflite").write_bytes(INT8.replace(length, struct.pack("<I", 2**31)))
        assert "a damaged TFLite model: it points past its end" in refusal(tmp_path, "net.tflite")

    def test_one_bad_model_refuses_all(self, tmp_path: Path) -> None:
        """Better now than after an hour of measuring the others."""
        (tmp_path / "a.tflite").write_bytes(INT8)
        (tmp_path / "b.tflite").write_bytes(INT8[:5000])
        assert f"{tmp_path}/b.tflite" in refusal(tmp_path, "*.tflite")


@pytest.mark.parametrize("sixteenth", range(16))
@pytest.mark.parametrize("content", [FLOAT, INT8], ids=["float", "int8"])
def test_a_real_model_cut_at_any_sixteenth_is_refused(content: bytes, sixteenth: int, tmp_path: Path) -> None:
    """Copies are torn anywhere."""
    path = tmp_path / "net.tflite"
    path.write_bytes(content[: len(content) * sixteenth // 16])
    with pytest.raises(ModelError):
        check_model(path)


SOUND = sorted(TEST_MODELS.glob("*.tflite"))
DAMAGED = {"empty", "not_a_model", "truncated", "far_buffer", "no_subgraph"}


@pytest.mark.parametrize("path", [*bundled_models(), *(path for path in SOUND if path.stem not in DAMAGED)], ids=str)
def test_a_sound_model_passes(path: Path) -> None:
    """However odd: dynamic shapes, custom operators, several inputs."""
    check_model(path)


@pytest.mark.parametrize("path", [path for path in SOUND if path.stem in DAMAGED], ids=str)
def test_a_damaged_model_is_refused(path: Path) -> None:
    """The same files that the runner on the device refuses."""
    with pytest.raises(ModelError):
        check_model(path)
