"""The pinned reference: how a plan says it, which cell it becomes, and that every block has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.bundled import bundled_models
from orchestrator.errors import DevbenchError
from orchestrator.fleet import Device
from orchestrator.overrides import Overrides, apply_overrides
from orchestrator.pinned import Reference, is_reference
from orchestrator.plan import Measure, Plan, Sweep, plan_from_json, read_plan
from orchestrator.prepare import keep_files, prepare, prepare_resume
from orchestrator.schedule import Schedule
from orchestrator.store import open_store
from orchestrator.trial import Cell
from tests.unit.trial_factory import make_cell

TINY = Path(__file__).parents[1] / "data" / "models" / "tiny_add.tflite"
HERE = Device("this-machine", "local")


def plan_of(tmp_path: Path, text: str) -> Plan:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    return read_plan(path)


class TestThePlan:
    def test_it_has_none_unless_it_says_so(self, tmp_path: Path) -> None:
        """And `false` is more than nothing: a night leaves it out, too."""
        assert (plan_of(tmp_path, "").reference, plan_of(tmp_path, "").has_no_reference) == (None, False)
        assert plan_of(tmp_path, "[reference]").reference == Reference()
        assert plan_of(tmp_path, "reference = true").reference == Reference()
        refused = plan_of(tmp_path, "reference = false")
        assert (refused.reference, refused.has_no_reference) == (None, True)

    def test_everything_can_be_said_and_survives_the_store(self, tmp_path: Path) -> None:
        text = '[reference]\nmodel = "a.tflite"\nrunner = "benchmark_model:pinned"\ndelegate = "cpu"\nthreads = 2'
        plan = plan_of(tmp_path, text)
        assert plan.reference == Reference("a.tflite", "benchmark_model:pinned", "cpu", 2)
        assert plan_from_json(plan.as_json()).reference == plan.reference

    @pytest.mark.parametrize(
        ("text", "fact"),
        [
            ("[reference]\nthreads = 0", "[reference] threads: 0 is out of range"),
            ("[reference]\nmodle = 'x'", "[reference] modle: is not a key here"),
            ("[reference]\ndelegate = 'gpuu'", '[reference] delegate: "gpuu" is'),
            ("[reference]\nrunner = 'a b'", '[reference] runner: "a b" is no runner name'),
            ("reference = 'x'", "reference: 'x' is not a table [reference]"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path: Path, text: str, fact: str) -> None:
        with pytest.raises(DevbenchError) as refused:
            plan_of(tmp_path, text)
        assert fact in refused.value.fact

    def test_the_command_line_wins(self) -> None:
        said = apply_overrides(Plan(), Overrides(reference=True), Path())
        assert said.reference == Reference()
        assert apply_overrides(said, Overrides(reference=False), Path()).reference is None


class TestTheCell:
    PLAN = Plan(sweep=Sweep(models=(str(TINY),), threads=(1, 2), loads=("idle",)), reference=Reference())

    def test_it_is_added_to_the_grid_and_known_by_the_record(self) -> None:
        """The first bundled model on one thread, alone."""
        prepared = prepare(self.PLAN, [HERE])
        cells = prepared.grid(HERE, 2, {"litert_runner": "cd" * 32}).cells
        (pinned,) = prepared.pinned_among(cells)
        assert len(cells) == 3
        assert (pinned.model, pinned.threads, pinned.load) == (bundled_models()[0].stem, 1, "idle")
        assert is_reference(prepared.record.fleet, pinned)
        assert not is_reference({}, pinned)

    def test_it_is_there_again_when_the_run_is_resumed(self, tmp_path: Path) -> None:
        """From the store's own copy of its model."""
        store = open_store(tmp_path / "store")
        prepared = keep_files(store, prepare(self.PLAN, [HERE]))
        store.add_run(prepared.record, [])
        again = prepare_resume(store, prepared.record.id)
        cells = again.grid(HERE, 2, {"litert_runner": None}).cells
        assert len(again.pinned_among(cells)) == 1
        assert again.inventory.files().models.keys() == prepared.inventory.files().models.keys()
        store.close()

    @pytest.mark.parametrize(
        ("reference", "measure", "fact"),
        [
            (Reference(), Measure(sustain_s=60), "a sustained run has no blocks, and so no reference"),
            (Reference(model="none.tflite"), Measure(), "none.tflite: no such"),
            (Reference(model=f"{bundled_models()[0].parent}/*.tflite"), Measure(), "the reference is one model"),
            (Reference(runner="no_such_runner"), Measure(), 'no runner "no_such_runner" is installed'),
        ],
    )
    def test_what_cannot_be_is_refused(self, reference: Reference, measure: Measure, fact: str) -> None:
        plan = Plan(sweep=self.PLAN.sweep, measure=measure, reference=reference)
        with pytest.raises(DevbenchError) as refused:
            prepare(plan, [HERE])
        assert fact in refused.value.fact


class TestTheSchedule:
    CELLS = (make_cell(model="a"), make_cell(model="b"))
    PINNED = make_cell(model="pinned")

    def blocks(self, *, tight: tuple[Cell, ...], measured: int = 100) -> list[list[str]]:
        """The models of each block, where these cells are tight from the start."""
        schedule = Schedule([*self.CELLS, self.PINNED], Measure(blocks_min=8, blocks_max=12), 1, None, [self.PINNED])
        found: list[list[str]] = []
        while slots := schedule.next_block(
            len(found), lambda _, block: min(block, measured), lambda cell, _: cell in tight, lambda *_: False
        ):
            found.append(sorted(slot.cell.model for slot in slots))
        return found

    def test_it_accompanies_the_others_to_the_last_block(self) -> None:
        """However well it is known itself; and it goes no further than they do."""
        assert self.blocks(tight=(*self.CELLS, self.PINNED)) == [["a", "b", "pinned"]] * 8
        assert self.blocks(tight=(self.CELLS[0], self.PINNED)) == [["a", "b", "pinned"]] * 8 + [["b", "pinned"]] * 4
        assert self.blocks(tight=self.CELLS) == [["a", "b", "pinned"]] * 8
