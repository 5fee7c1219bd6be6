"""The words for background load."""

from __future__ import annotations

import pytest

from orchestrator.load import Load, parse_load


@pytest.mark.parametrize(
    ("text", "load"),
    [
        ("idle", Load("idle")),
        ("app", Load("app", threads=2)),
        ("cpu:2@50", Load("cpu:2@50", threads=2, percent=50)),
        ("cpu:64@100", Load("cpu:64@100", threads=64, percent=100)),
        ("mem:3", Load("mem:3", threads=3)),
        ("model:a b.tflite", Load("model:a b.tflite", model="a b.tflite")),
        ("model:model:x", Load("model:model:x", model="model:x")),
    ],
)
def test_every_form_is_understood(text: str, load: Load) -> None:
    """The forms that the help names."""
    assert parse_load(text) == load


def test_only_idle_is_idle() -> None:
    """`idle` is the one load that starts nothing."""
    assert [parse_load(text).is_idle for text in ("idle", "app", "mem:1")] == [True, False, False]


FORMS = "the forms are idle, cpu:N@P (N threads at P percent), mem:N, app, model:FILE"


@pytest.mark.parametrize(
    "text", ["", "cpu", "cpu:2", "cpu:2@", "cpu:@50", "cpu:-1@50", "cpu:2@5.5", "mem", "model:", "IDLE", "idle "]
)
def test_anything_else_lists_the_forms(text: str) -> None:
    """The message quotes what was written and shows what may be."""
    with pytest.raises(ValueError, match="is no load") as caught:
        parse_load(text)
    assert str(caught.value) == f'"{text}" is no load: {FORMS}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cpu:0@50", 'load "cpu:0@50" asks for 0 threads: use 1 to 64'),
        ("cpu:65@50", 'load "cpu:65@50" asks for 65 threads: use 1 to 64'),
        ("mem:0", 'load "mem:0" asks for 0 threads: use 1 to 64'),
        ("cpu:2@0", 'load "cpu:2@0" asks for 0 %: use 1 to 100 percent of one CPU a thread'),
        ("cpu:2@101", 'load "cpu:2@101" asks for 101 %: use 1 to 100 percent of one CPU a thread'),
    ],
)
def test_numbers_out_of_range_name_the_range(text: str, message: str) -> None:
    """What the agent could not do is refused before it is asked."""
    with pytest.raises(ValueError, match="asks for") as caught:
        parse_load(text)
    assert str(caught.value) == message
