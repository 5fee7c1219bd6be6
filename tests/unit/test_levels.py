"""Histories from a store: which runs they are made of, and what is known of each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from orchestrator.cli import app
from orchestrator.errors import DevbenchError
from orchestrator.store import Annals, Standing, Store, open_store
from orchestrator.store.levels import levels
from tests.unit.gate_nights import Lab, fleet_cells, put


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store")
    yield opened
    opened.close()


@pytest.fixture
def year(store: Store) -> Store:
    """Twenty-four nights; from the thirteenth on, one cell is 20 % slower on a new system, and the gate said so."""
    lab = Lab(np.random.default_rng(1), cells=fleet_cells(2), blocks=6)
    for number in range(1, 25):
        is_late = number >= 13
        put(store, lab.night(slower={1: 0.2} if is_late else {}, system="Android 16" if is_late else "Android 15"))
    slow = next(cell for cell in store.cells("night-013") if cell.model == "model-1")
    content = {"cells": [{"id": slow.id, "verdict": "confirmed"}]}
    Annals(store).judge("night-013", "night-012", Standing.BAD, content)
    put(store, lab.night(slower={0: 3.0, 1: 3.0}), measure={"arms": ["a", "b"]})
    return store


def history(store: Store, *options: str) -> str:
    done = CliRunner().invoke(app, ["history", "--store", str(store.folder), *options])
    if done.exception:
        raise done.exception
    return done.stdout


def test_runs_that_hold_sides_against_each_other_are_no_part_of_it(year: Store) -> None:
    """Calibrations and duels are not nights."""
    assert {trial.run for trial in levels(year).trials} == {f"night-{number:03d}" for number in range(1, 25)}


def test_a_change_names_run_build_system_and_judgement(year: Store) -> None:
    """Where it began, and what else began there; the reference is marked."""
    text = history(year, "--cell", "model-1")
    assert "since night-013: slower" in text
    assert "runner_sha256 000c000c → 000d000d" in text
    assert "system Android 15, kernel 6.1 → Android 16, kernel 6.1" in text
    assert "slower, says the gate: night-013 (confirmed)" in text
    assert "says the gate" not in history(year, "--cell", "model-0")
    assert "pinned reference" in history(year, "--cell", "pinned")


def test_plot_data_has_a_line_for_each_point(year: Store) -> None:
    """With the level, its interval, and where it moved."""
    rows = list(csv.DictReader(io.StringIO(history(year, "--csv", "-", "--cell", "model-1"))))
    assert [row["run"] for row in rows] == [f"night-{number:03d}" for number in range(1, 25)]
    assert [row["run"] for row in rows if row["change_percent"]] == ["night-013"]
    assert all(float(row["low_us"]) <= float(row["value_us"]) <= float(row["high_us"]) for row in rows)


def test_since_leaves_older_runs_out(year: Store) -> None:
    runs = {trial.run for trial in levels(year, since="2026-01-11").trials}
    assert runs == {f"night-{number:03d}" for number in range(10, 25)}


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        (("--cell", "no-such-model"), 'no cell is like "no-such-model"'),
        (("--since", "yesterday"), '--since: "yesterday" is no time'),
        (("--metric", "p51"), '--metric: "p51" is unknown'),
        (("x.jsonl", "--since", "90d"), "--since is about runs of the store, and this is a file"),
    ],
)
def test_wrong_words_are_refused(year: Store, options: tuple[str, ...], fact: str) -> None:
    with pytest.raises(DevbenchError) as refused:
        history(year, *options)
    assert refused.value.fact == fact
