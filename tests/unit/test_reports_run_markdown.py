"""A run as Markdown: short, with tables and folds, and names that stay names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.reports.run_content import gather
from orchestrator.reports.run_markdown import escaped, run_markdown
from tests.bench.synthetic_store import Shape, filled

SMALL = Shape(models=("mobilenet_v2_f32",), threads=(1, 4), loads=("idle", "cpu:2@50"), blocks=6)


def markdown(folder: Path, shape: Shape, *, with_baseline: bool = False) -> str:
    store = filled(folder, shape)
    runs = store.runs()
    text = run_markdown(gather(store, runs[0], baseline=runs[1] if with_baseline else None))
    store.close()
    return text


def test_the_answer_comes_first_and_all_cells_are_behind_a_fold(tmp_path: Path) -> None:
    """Every table has as many fields in each row as in its head."""
    text = markdown(tmp_path, SMALL)
    assert text.startswith("## devbench: mobilenet_v2_f32 on 2 devices\n")
    assert text.index("### What to use") < text.index("### Not measured") < text.index("<details>")
    assert "<summary>All 12 cells</summary>\n\n| device" in text
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({row.count(" | ") for row in table.splitlines()}) == 1
    assert text.count("<details>") == text.count("</details>") == 1


def test_a_baseline_is_compared_before_anything_else(tmp_path: Path) -> None:
    """Verdicts in one line; every cell behind a fold."""
    text = markdown(tmp_path, SMALL, with_baseline=True)
    assert text.index("### Against the baseline") < text.index("### What to use")
    assert "2026-11-11T02:00:00Z-0001 against 2026-11-10T02:00:00Z-0000: by p50 " in text
    assert "cells compared</summary>" in text


def test_nothing_measured_is_said(tmp_path: Path) -> None:
    """An empty run gives a short text, not an error."""
    assert "Nothing was measured" in markdown(tmp_path, Shape(devices=(), earlier_runs=0))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("mobilenet_v2", "mobilenet_v2"),
        ("_x_", "\\_x\\_"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("a|b", "a\\|b"),
        ("[a](javascript:x)", "\\[a\\](javascript:x)"),
        ("`code`", "\\`code\\`"),
        ("cpu:2@50", "cpu:2@50"),
        ("@everyone", "@\u200beveryone"),
        ("#12", "#\u200b12"),
        ("https://x.example", "https:\u200b//x.example"),
        ("www.x.example", "w\u200bww.x.example"),
        ("&amp;", "&amp;amp;"),
        ("a\nb\tc", "a b c"),
        ("\u202eelbon", "�elbon"),
        ("$x$", "\\$x\\$"),
    ],
)
def test_names_stay_names(name: str, shown: str) -> None:
    """No markup, no link, nobody called, no row ended."""
    assert escaped(name) == shown


def test_a_name_without_end_is_cut(tmp_path: Path) -> None:
    """A pull request has room for 60 thousand characters, and a row for fewer."""
    assert len(escaped("m" * 10_000)) == 80
    shape = Shape(devices=("<script>", "d" * 10_000), models=("</details>|",), threads=(1,), loads=("idle",), blocks=1)
    text = markdown(tmp_path, shape)
    assert len(text) < 5_000
    assert "<script>" not in text and "&lt;/details&gt;\\|" in text
