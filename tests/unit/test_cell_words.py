"""Which cell a user means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.cell_words import cell_meant, same_setting, setting_differences
from orchestrator.errors import UsageError
from orchestrator.trial import Cell

ONE = Cell("pixel", "mobilenet_v2", "a" * 64, "benchmark_model", "b" * 64, "xnnpack", 1, "any", "idle")
CELLS = [
    ONE,
    replace(ONE, threads=4),
    replace(ONE, threads=4, load="cpu:4@50"),
    replace(ONE, model="pose", delegate="gpu"),
]


@pytest.mark.parametrize(
    ("text", "index"),
    [
        (CELLS[1].id, 1),
        (CELLS[1].id[:6], 1),
        ("pose", 3),
        ("gpu", 3),
        ("cpu:4@50", 2),
        ("mobilenet 1 thread", 0),
        ("mobilenet, threads=4, load=idle", 1),
    ],
)
def test_the_start_of_an_id_or_words_that_fit_one(text: str, index: int) -> None:
    """Parts of the model's name, whole words of the rest, or FIELD=VALUE."""
    assert cell_meant(CELLS, text, "run x") == CELLS[index]


def test_several_that_fit_are_listed() -> None:
    """With their ids, so that one can be named."""
    with pytest.raises(UsageError, match='"4 threads" may mean 2 cells of run x') as caught:
        cell_meant(CELLS, "4 threads", "run x")
    assert (
        CELLS[1].id in caught.value.remedy and CELLS[2].id in caught.value.remedy and ONE.id not in caught.value.remedy
    )


@pytest.mark.parametrize("text", ["resnet", "2 threads", "threads=2", "@50", "  "])
def test_what_fits_none_says_what_there_is(text: str) -> None:
    """A part of a word other than the model's is no word."""
    with pytest.raises(UsageError) as caught:
        cell_meant(CELLS, text, "run x")
    assert ONE.id in caught.value.remedy


def test_a_setting_is_all_but_the_hashes() -> None:
    """Another build of the same thing is the same setting."""
    other = replace(ONE, runner_sha256="c" * 64, model_sha256="d" * 64)
    assert same_setting([other, *CELLS[1:]], ONE) == [other]
    assert setting_differences(ONE, CELLS[2]) == ["threads", "load"]
