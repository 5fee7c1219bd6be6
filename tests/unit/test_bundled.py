"""The models that come along are the ones that were written down."""

from __future__ import annotations

import hashlib
import runpy
import sys
from pathlib import Path

import pytest

from orchestrator.bundled import bundled_models

ROOT = Path(__file__).parents[2]


def test_bundled_models_are_the_documented_ones() -> None:
    """Two small files, float first, with the sizes and hashes of the README."""
    files = bundled_models()
    assert [file.name for file in files] == ["mobilenet_v2_035_f32.tflite", "mobilenet_v2_035_int8.tflite"]
    readme = (ROOT / "orchestrator" / "bundled" / "README.md").read_text()
    for file in files:
        content = file.read_bytes()
        assert f"| `{file.name}` | {len(content)} | `{hashlib.sha256(content).hexdigest()}` |" in readme
    assert sum(file.stat().st_size for file in files) < 3_000_000


def test_test_models_are_what_their_script_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The committed test models are, byte for byte, the script's."""
    pytest.importorskip("ai_edge_litert", reason="needs the extra `local`")
    script = ROOT / "tests" / "data" / "make_test_models.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert made == {file.name: file.read_bytes() for file in (script.parent / "models").iterdir()}
