"""The cells that a plan means on a device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import UsageError, error_text
from orchestrator.fleet import Device
from orchestrator.grid import Grid, auto_loads, auto_threads, expand, load_label, trial_estimate_s, unsupported
from orchestrator.model_files import Model
from orchestrator.plan import Conditions, Measure, Plan, Sweep
from orchestrator.platforms.base import Facts
from orchestrator.platforms.linux import LINUX
from orchestrator.runners.litert_runner import LITERT_RUNNER
from orchestrator.transports.base import Completed
from orchestrator.trial import Cell
from tests.unit.trial_factory import make_cell

DEVICE = Device("board", "local")
MODELS = (Model("a", Path("/m/a.tflite"), "aa" * 32), Model("b", Path("/m/b.tflite"), "bb" * 32))
EIGHT_CORES = {"cpus": [{"id": cpu, "capacity": 1024 if cpu >= 4 else 400} for cpu in range(8)]}


def facts_of_eight_cores() -> Facts:
    return LINUX.facts(EIGHT_CORES, lambda argv: Completed(1, b"", b""))


def grid(
    sweep: Sweep,
    *,
    device: Device = DEVICE,
    models: tuple[Model, ...] = MODELS,
    cores: int | None = 4,
    measure: Measure | None = None,
    load_models: Mapping[str, Model] | None = None,
) -> Grid:
    plan = Plan(sweep=sweep, measure=measure or Measure())
    return expand(
        plan,
        device,
        models=models,
        load_models=load_models or {},
        cores=cores,
        runners={name: f"hash of {name}" for name in sweep.runners or ("litert_runner",)},
    )


class TestAuto:
    @pytest.mark.parametrize(
        ("cores", "threads"), [(1, (1,)), (2, (1, 2)), (3, (1, 2)), (4, (1, 2, 4)), (64, (1, 2, 4)), (0, (1,))]
    )
    def test_threads_go_up_to_four_as_far_as_there_are_cores(self, cores: int, threads: tuple[int, ...]) -> None:
        """One thread is always there."""
        assert auto_threads(cores) == threads

    @pytest.mark.parametrize(("cores", "load"), [(1, "cpu:1@100"), (2, "cpu:1@100"), (8, "cpu:4@100")])
    def test_loads_are_nothing_half_of_the_cores_and_an_app(self, cores: int, load: str) -> None:
        """Idle, contention, and a foreground app's rhythm."""
        assert auto_loads(cores) == ("idle", load, "app")

    def test_a_plan_that_leaves_it_open_follows_the_cores(self) -> None:
        """Two cores: two thread counts, three loads."""
        found = grid(Sweep(), models=MODELS[:1], cores=2)
        assert {cell.threads for cell in found.cells} == {1, 2}
        assert {cell.load for cell in found.cells} == {"idle", "cpu:1@100", "app"}
        assert not found.cores_assumed

    def test_unknown_cores_are_taken_for_four_and_that_is_said(self) -> None:
        """A preview can be drawn before the device was reached."""
        found = grid(Sweep(), cores=None)
        assert {cell.threads for cell in found.cells} == {1, 2, 4}
        assert found.cores_assumed


class TestProduct:
    def test_every_combination_is_there_once(self) -> None:
        """Models x runners x delegates x threads x affinity x loads."""
        sweep = Sweep(
            runners=("litert_runner", "litert_runner:zero-copy"),
            delegates=("xnnpack", "cpu"),
            threads=(1, 2, 4),
            affinity=("any", "big"),
            loads=("idle", "app"),
        )
        cells = grid(sweep).cells
        assert len(cells) == len(set(cells)) == 2 * 2 * 2 * 3 * 2 * 2
        assert len({cell.id for cell in cells}) == len(cells)

    def test_a_cell_carries_device_model_and_content_hashes(self) -> None:
        """So that a cell of other bytes is another cell."""
        (cell,) = grid(Sweep(threads=(2,), loads=("idle",)), models=MODELS[:1]).cells
        assert cell == Cell(
            device="board",
            model="a",
            model_sha256="aa" * 32,
            runner="litert_runner",
            runner_sha256="hash of litert_runner",
            delegate="xnnpack",
            threads=2,
            affinity="any",
            load="idle",
        )

    def test_what_is_asked_twice_is_measured_once(self) -> None:
        """A repeated value adds no cell."""
        assert len(grid(Sweep(threads=(2, 2, 1), loads=("idle", "idle")), models=MODELS[:1]).cells) == 2

    def test_a_model_as_load_is_labelled_by_name_and_content(self) -> None:
        """A path means nothing in a report a month later."""
        load = "model:/m/b.tflite"
        cells = grid(Sweep(threads=(1,), loads=(load,)), load_models={load: MODELS[1]}).cells
        assert {cell.load for cell in cells} == {"model:b@bbbbbbbb"}
        assert load_label("cpu:2@50", {}) == "cpu:2@50"


class TestRefusals:
    def refused(self, **changes: Any) -> str:
        with pytest.raises(UsageError) as caught:
            grid(**changes)
        return error_text(caught.value)

    def test_no_model_is_an_empty_grid(self) -> None:
        """There is nothing to measure."""
        assert self.refused(sweep=Sweep(), models=()) == (
            "error: the plan's grid is empty: it names no model\n  try:   add models under [sweep], or --model FILE"
        )

    def test_an_absurd_number_of_cells_is_refused_with_the_sum(self) -> None:
        """The factors show which axis is too long."""
        sweep = Sweep(threads=tuple(range(1, 1001)), loads=tuple(f"cpu:{count}@50" for count in range(1, 11)))
        assert self.refused(sweep=sweep, models=MODELS) == (
            "error: the plan asks for 20,000 cells on board (2 x 1 x 1 x 1000 x 1 x 10), 360,000 trials at the most; "
            "the limit is 10,000 cells and 1,000,000 trials\n"
            "  try:   narrow [sweep], lower [measure] blocks, or split the plan into several"
        )

    def test_an_absurd_number_of_trials_is_refused_too(self) -> None:
        """Few cells, but for years."""
        sweep, measure = Sweep(threads=tuple(range(1, 102)), loads=("idle",)), Measure(blocks_max=10_000)
        assert "101 cells on board (1 x 1 x 1 x 101 x 1 x 1), 1,010,000 trials at the most" in self.refused(
            sweep=sweep, models=MODELS[:1], measure=measure
        )

    def test_it_is_refused_before_the_cells_are_made(self) -> None:
        """Ten to the twelve cells must not fill the memory first."""
        many = tuple(range(1, 1025))
        sweep = Sweep(threads=many, loads=("idle",) * 1000, affinity=("any",) * 1000, delegates=("cpu",) * 1000)
        assert "1,024,000,000,000 cells" in self.refused(sweep=sweep, models=MODELS[:1])

    def test_the_limit_itself_is_allowed(self) -> None:
        """10,000 cells at 100 blocks are exactly the limit."""
        sweep, measure = Sweep(threads=tuple(range(1, 1001)), loads=("idle",)), Measure(blocks_max=100)
        ten = tuple(Model(str(number), Path("/m"), f"{number:064x}") for number in range(10))
        assert len(grid(sweep, models=ten, measure=measure).cells) == 10_000


UNSUPPORTED = {
    "more threads than cores": (make_cell(threads=9), "9 threads on a device with 8 cores"),
    "a delegate the runner lacks": (
        make_cell(delegate="gpu"),
        "litert_runner cannot run delegate gpu (it can: xnnpack, cpu)",
    ),
    "a variant the runner lacks": (
        make_cell(runner="litert_runner:fast"),
        "litert_runner has no variant fast (it has: zero-copy)",
    ),
    "a cluster the device lacks": (make_cell(affinity="mid"), "no mid cluster on this device (it has big, little)"),
    "CPUs the device lacks": (
        make_cell(affinity="fff"),
        "mask fff names CPUs this device does not have (it has ff)",
    ),
    "as many threads as cores": (make_cell(threads=8), None),
    "a known variant": (make_cell(runner="litert_runner:zero-copy", delegate="cpu"), None),
    "a known cluster": (make_cell(affinity="little"), None),
}


@pytest.mark.parametrize(("cell", "reason"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_what_a_device_cannot_run_is_known_beforehand(cell: Cell, reason: str | None) -> None:
    """The reason is stored with the skipped cell."""
    found = unsupported(
        cell,
        device=DEVICE,
        facts=facts_of_eight_cores(),
        platform=LINUX,
        runner=LITERT_RUNNER,
        conditions=Conditions(),
    )
    assert found == reason


def test_delegates_of_the_device_are_a_limit() -> None:
    """devices.toml may know that a delegate is broken there."""
    device = Device("board", "local", delegates=("cpu",))
    facts = facts_of_eight_cores()
    reasons = [
        unsupported(
            make_cell(delegate=delegate),
            device=device,
            facts=facts,
            platform=LINUX,
            runner=LITERT_RUNNER,
            conditions=Conditions(),
        )
        for delegate in ("xnnpack", "cpu")
    ]
    assert reasons == ["devices.toml lists no delegate xnnpack for board", None]


def test_a_trials_estimate_counts_settling_only_beside_a_load() -> None:
    """Idle cells do not settle."""
    measure = Measure(settle_ms=1000, warmup_min_ms=200, min_ms=300)
    idle, loaded = (trial_estimate_s(make_cell(load=load), measure) for load in ("idle", "app"))
    assert idle == pytest.approx(1.1)
    assert loaded - idle == pytest.approx(1.0)
