"""A run as CSV: one row a cell, numbers as numbers, and no formula of anybody's."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from orchestrator.reports.run_content import gather
from orchestrator.reports.run_csv import run_csv
from tests.bench.synthetic_store import Shape, filled


def rows_of(folder: Path, shape: Shape) -> list[dict[str, str]]:
    store = filled(folder, shape)
    text = run_csv(gather(store, store.find_run("last")))
    store.close()
    return list(csv.DictReader(io.StringIO(text)))


def test_every_cell_has_a_row_with_estimates_and_outcomes(tmp_path: Path) -> None:
    """What was not measured is empty, not zero."""
    rows = rows_of(tmp_path, Shape(devices=("pixel8",), blocks=6, earlier_runs=0))
    assert len(rows) == 36
    measured = next(row for row in rows if row["delegate"] == "xnnpack" and row["threads"] == "4")
    assert float(measured["p50_us_low"]) < float(measured["p50_us"]) < float(measured["p50_us_high"])
    assert float(measured["speedup"]) > 1 and measured["speedup_verdict"] == "wins"
    for row in rows:
        assert (row["p50_us"] == "") == (row["trials_measured"] == "0")
    skipped = [row for row in rows if row["trials_skipped"] == "6"]
    assert all(row["not_measured"] == "6 x the device has no GPU delegate" for row in skipped)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_a_name_is_never_a_formula(tmp_path: Path, start: str) -> None:
    """A spreadsheet that opens the file runs nothing; quotes, commas and line ends stay inside their field."""
    name = f"{start}cmd|'/c calc'!A1, \"x\"\ny"
    rows = rows_of(
        tmp_path, Shape(devices=(name,), models=("m",), threads=(1,), loads=("idle",), blocks=1, earlier_runs=0)
    )
    assert {row["device"] for row in rows} == {f"'{name}"}


def test_a_run_without_cells_has_a_head_only(tmp_path: Path) -> None:
    """And is no reason to fail."""
    assert rows_of(tmp_path, Shape(devices=(), earlier_runs=0)) == []
