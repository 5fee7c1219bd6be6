"""Duels before their first trial: whose bytes, under which conditions, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.content_hash import sha256
from orchestrator.contest import Pair, Side
from orchestrator.duel import duel_measure, prepare_duel, resume_duel
from orchestrator.errors import RunNotFound, StoreError, UsageError
from orchestrator.fleet import Device
from orchestrator.kept_sides import side_from_json, side_json
from orchestrator.model import Model
from orchestrator.plan import Conditions, Measure, Plan
from orchestrator.prepare import Prepared, kept_blob, prepare_resume
from orchestrator.store import Store, open_store
from orchestrator.trial import Cell

HERE = Device("here", "local")
PLAN = Plan(measure=Measure(runs=7, sustain_s=60.0), conditions=Conditions(governor="performance"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store")


def side(store: Store, folder: Path, runner: str, model: str = "m", **changes: object) -> Side:
    """A side whose runner and model are files of this content."""
    paths = {name: folder / f"{name}-{text}" for name, text in (("runner", runner), ("model", model))}
    for path in paths.values():
        path.write_text(path.name)
        store.keep_blob(path)
    runner_sha, model_sha = sha256(paths["runner"]), sha256(paths["model"])
    cell = Cell("there", "net", model_sha, "litert_runner", runner_sha, "xnnpack", 2, "any", "idle")
    return Side(
        cell=replace(cell, **changes),  # type: ignore[arg-type]  # fields of a cell
        model=Model("net", kept_blob(store, model_sha), model_sha),
        runner_files={"runner": kept_blob(store, runner_sha)},
        plan=PLAN,
        run="r",
        name=runner,
    )


def prepared(store: Store, *pairs: tuple[Side, Side], blocks: tuple[int, int] = (8, 40)) -> Prepared:
    listed = [Pair(HERE, base, new) for base, new in pairs]
    measure = duel_measure(PLAN, blocks=blocks, budget_s=60.0)
    return prepare_duel(store, listed, measure=measure, seed=3, origin={"command": "reproduce"})


def test_a_duel_is_measured_as_the_suspect_was(store: Store, tmp_path: Path) -> None:
    """Its conditions and trials, on the device that is asked for; arms make it no ordinary run."""
    made = prepared(store, (side(store, tmp_path, "old"), side(store, tmp_path, "new")))
    measure = made.plan.measure
    assert (measure.runs, measure.arms, measure.sustain_s, measure.budget_s) == (
        7,
        ("baseline", "candidate"),
        None,
        60.0,
    )
    assert made.plan.conditions.governor == "performance"
    assert not made.record.is_ordinary and made.record.seed == 3
    assert made.duel is not None
    assert [seat.cell.device for seat in made.duel.contests[0].seats.values()] == ["here", "here"]


def test_a_stored_duel_goes_on_with_the_same_bytes(store: Store, tmp_path: Path) -> None:
    """And only the command that began it goes on with it; `run --resume` says which that is."""
    made = prepared(store, (side(store, tmp_path, "old"), side(store, tmp_path, "new", "n")))
    store.add_run(made.record, [])
    again = resume_duel(store, "last")
    assert (again.duel, again.inventory) == (made.duel, made.inventory)
    with pytest.raises(UsageError, match="was not begun by bisect") as caught:
        resume_duel(store, made.record.id, "bisect")
    assert f"devbench reproduce --resume {made.record.id}" in caught.value.remedy
    with pytest.raises(UsageError, match="holds two sides against each other"):
        prepare_resume(store, made.record.id)
    with pytest.raises(RunNotFound, match="no run to go on with"):
        prepare_resume(store, "last")
    with pytest.raises(RunNotFound, match="no run of bisect"):
        resume_duel(store, "last", "bisect")


def test_lost_bytes_are_named(store: Store, tmp_path: Path) -> None:
    """Before any device is touched."""
    made = prepared(store, (side(store, tmp_path, "old"), side(store, tmp_path, "new")))
    store.add_run(made.record, [])
    next((store.folder / "blobs").glob("*/runner-new")).unlink()
    with pytest.raises(StoreError, match="has lost the file"):
        resume_duel(store, made.record.id)


def test_only_bytes_may_differ(store: Store, tmp_path: Path) -> None:
    """Another thread count is another question; one question is asked once; few blocks answer none."""
    old, new = side(store, tmp_path, "old"), side(store, tmp_path, "new")
    with pytest.raises(UsageError, match="the two sides differ in threads: 2 against 4"):
        prepared(store, (old, side(store, tmp_path, "new", threads=4)))
    with pytest.raises(UsageError, match="two pairs have the same baseline"):
        prepared(store, (old, new), (old, side(store, tmp_path, "newer")))
    with pytest.raises(UsageError, match="nothing to hold against each other"):
        prepared(store)
    with pytest.raises(UsageError, match="3 blocks decide nothing"):
        prepared(store, (old, new), blocks=(2, 3))
    inputs = tmp_path / "inputs"
    inputs.write_text("1")
    with pytest.raises(UsageError, match="different inputs"):
        prepared(store, (replace(old, inputs=inputs), replace(new, inputs=old.model.path)))


def test_a_runner_that_is_not_brought_cannot_be_two(store: Store, tmp_path: Path) -> None:
    """An app that is installed on the phone has no bytes here."""
    old, new = (replace(side(store, tmp_path, name), runner_files={}) for name in ("old", "new"))
    with pytest.raises(UsageError, match="two builds of it cannot run there in turns"):
        prepared(store, (old, new))
    same = replace(new, cell=replace(new.cell, runner_sha256=old.cell.runner_sha256))
    assert prepared(store, (old, same)).duel is not None


def test_a_side_can_be_written_down(store: Store, tmp_path: Path) -> None:
    """And read again, with the store's copies of its bytes."""
    one = replace(side(store, tmp_path, "old"), load_model=None)
    loaded = replace(one, load_model=("model:x.tflite", one.model), inputs=one.model.path)
    for written in (one, loaded):
        assert side_from_json(store, side_json(written)) == replace(written, runner_facts={})
