"""The models that come with devbench, so that a fresh checkout has something to measure."""

from __future__ import annotations

from pathlib import Path


def bundled_models() -> list[Path]:
    """The bundled .tflite files, sorted by name: the float model, then the int8 one."""
    return sorted(Path(__file__).parent.glob("*.tflite"))
