"""Which slot runs when: seeded blocks, neighbours, looks, making up, and going on after a break."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.plan import Measure
from orchestrator.schedule import LOOKS, Ration, Schedule, Stop, block_limit, block_slots, is_look
from orchestrator.trial import Cell, Slot
from tests.unit.trial_factory import make_cell

LOADS = ("idle", "cpu:1@100", "app", "mem:1")


def cells_of(models: int, threads: int, loads: int) -> list[Cell]:
    return [
        make_cell(model=f"model-{model}", model_sha256=f"{model:064x}", threads=count, load=load)
        for model in range(models)
        for count in range(1, threads + 1)
        for load in LOADS[:loads]
    ]


grids = st.builds(cells_of, st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))
seeds = st.integers(0, 2**31)
blocks = st.integers(0, 50)


class TestBlock:
    @given(cells=grids, block=blocks, seed=seeds)
    @settings(max_examples=40, deadline=None)
    def test_every_cell_has_exactly_one_slot(self, cells: list[Cell], block: int, seed: int) -> None:
        """Nothing is left out and nothing doubled; positions count from 0."""
        slots = block_slots(cells, block=block, seed=seed)
        assert Counter(slot.cell for slot in slots) == Counter(cells)
        assert [slot.position for slot in slots] == list(range(len(cells)))
        assert {slot.block for slot in slots} == {block}

    @given(cells=grids, block=blocks, seed=seeds)
    @settings(max_examples=40, deadline=None)
    def test_arms_of_a_contrast_and_cells_of_a_load_are_neighbours(
        self, cells: list[Cell], block: int, seed: int
    ) -> None:
        """What is compared is measured within moments; a load is set up once a block."""
        slots = block_slots(cells, block=block, seed=seed)
        for key in ("contrast", "load"):
            runs = [value for value, _ in itertools.groupby(getattr(slot.cell, key) for slot in slots)]
            assert len(runs) == len(set(runs)), key

    @given(cells=grids, block=blocks, seed=seeds, mix=st.randoms(use_true_random=False))
    @settings(max_examples=40, deadline=None)
    def test_the_seed_alone_decides_the_order(self, cells: list[Cell], block: int, seed: int, mix: object) -> None:
        """Same seed, same order, in whatever order the cells are handed in."""
        mixed = list(cells)
        mix.shuffle(mixed)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
        assert block_slots(mixed, block=block, seed=seed) == block_slots(cells, block=block, seed=seed)

    def test_another_seed_and_another_block_give_another_order(self) -> None:
        """24 cells: that two orders agree by chance is out of the question."""
        cells = cells_of(2, 3, 4)
        orders = [
            tuple(slot.cell for slot in block_slots(cells, block=block, seed=seed))
            for block, seed in ((0, 1), (0, 2), (2, 1), (1, 1))
        ]
        assert len(set(orders)) == 4

    def test_every_load_comes_first_about_equally_often(self) -> None:
        """Idle is not always measured on a cool device."""
        cells = cells_of(1, 1, 4)
        first = Counter(block_slots(cells, block=block, seed=3)[0].cell.load for block in range(400))
        assert set(first) == set(LOADS)
        assert min(first.values()) > 60

    @given(arms=st.integers(2, 4), pair=st.integers(0, 30), seed=seeds)
    @settings(max_examples=40, deadline=None)
    def test_over_two_blocks_each_of_two_arms_comes_first_once(self, arms: int, pair: int, seed: int) -> None:
        """AB then BA: coming first is no advantage, however many arms there are."""
        orders = [
            [slot.cell.threads for slot in block_slots(cells_of(1, arms, 1), block=block, seed=seed)]
            for block in (2 * pair, 2 * pair + 1)
        ]
        for one, other in itertools.combinations(range(1, arms + 1), 2):
            assert sorted(order.index(one) < order.index(other) for order in orders) == [False, True]

    def test_the_first_of_a_pair_of_blocks_is_random(self) -> None:
        """AB/BA everywhere would put A first in every even block."""
        cells = cells_of(1, 2, 1)
        firsts = {block_slots(cells, block=block, seed=7)[0].cell.threads for block in range(0, 40, 2)}
        assert firsts == {1, 2}

    @given(cells=grids, block=blocks, seed=seeds)
    @settings(max_examples=40, deadline=None)
    def test_the_order_within_a_contrast_does_not_depend_on_the_others(
        self, cells: list[Cell], block: int, seed: int
    ) -> None:
        """A contrast that stops early does not unbalance those that go on."""
        chosen = cells[0].contrast
        alone = block_slots([cell for cell in cells if cell.contrast == chosen], block=block, seed=seed)
        among = [slot for slot in block_slots(cells, block=block, seed=seed) if slot.cell.contrast == chosen]
        assert [slot.cell for slot in among] == [slot.cell for slot in alone]

    def test_no_cells_are_no_slots(self) -> None:
        """An empty block is the end."""
        assert block_slots([], block=0, seed=1) == []


class TestLooks:
    def test_cells_may_stop_at_the_least_number_and_at_planned_looks_after_it(self) -> None:
        """Looking after every block would spoil the intervals."""
        measure = Measure(blocks_min=10, blocks_max=90)
        assert [count for count in range(100) if is_look(count, measure)] == [10, 12, 18, 27, 40, 60, 90]

    def test_looks_are_far_enough_apart(self) -> None:
        """Each is at least a third more than the one before: few looks, little correction."""
        assert all(later >= 4 * earlier / 3 for earlier, later in itertools.pairwise(LOOKS))

    @pytest.mark.parametrize(("blocks_max", "limit"), [(18, 27), (1, 2), (9, 14)])
    def test_rejected_trials_are_made_up_for_by_half_as_many_blocks(self, blocks_max: int, limit: int) -> None:
        """A device that rejects everything ends nevertheless."""
        assert block_limit(Measure(blocks_min=1, blocks_max=blocks_max)) == limit


class Bench:
    """Runs a schedule the way a campaign does: what happens to each slot is decided by `measures`."""

    def __init__(
        self,
        cells: Sequence[Cell],
        measure: Measure,
        *,
        measures: Callable[[Slot], bool] = lambda slot: True,
        tight: Callable[[Cell, int], bool] = lambda cell, block: False,
        seed: int = 5,
    ) -> None:
        self._seed = seed
        self._cells, self._measure, self._measures, self._tight = cells, measure, measures, tight
        self.done: list[Slot] = []
        self._measured: set[tuple[Cell, int]] = set()

    def measured(self, cell: Cell, block: int) -> int:
        return sum(1 for found, at in self._measured if found == cell and at < block)

    def run(self, given_up: Collection[str] = ()) -> list[list[Slot]]:
        schedule, made, block = Schedule(self._cells, self._measure, self._seed), [], 0
        while slots := schedule.next_block(block, self.measured, self._tight, lambda cell, at: cell.id in given_up):
            made.append(slots)
            for slot in slots:
                if self._measures(slot):
                    self._measured.add((slot.cell, block))
            block += 1
            assert block < 1000, "the schedule does not end"
        return made


class TestSchedule:
    def test_what_never_gets_tight_runs_to_the_most_blocks(self) -> None:
        """`blocks = 8:18` and a noisy device: 18 blocks, each with every cell."""
        made = Bench(cells_of(2, 2, 2), Measure(blocks_min=8, blocks_max=18)).run()
        assert [len(slots) for slots in made] == [8] * 18

    def test_what_is_tight_stops_at_the_first_look(self) -> None:
        """Not before the least number, however tight."""
        made = Bench(cells_of(1, 2, 1), Measure(blocks_min=8, blocks_max=18), tight=lambda cell, block: True).run()
        assert len(made) == 8

    def test_nothing_stops_between_looks(self) -> None:
        """Tight from block 9 on: the next look is 12."""
        made = Bench(
            cells_of(1, 1, 1), Measure(blocks_min=8, blocks_max=18), tight=lambda cell, block: block >= 9
        ).run()
        assert len(made) == 12

    def test_a_contrast_stops_as_a_whole(self) -> None:
        """One noisy arm keeps its partners; other contrasts stop without them."""
        cells = cells_of(1, 2, 2)
        made = Bench(
            cells,
            Measure(blocks_min=8, blocks_max=12),
            tight=lambda cell, block: cell.load == "idle" or cell.threads == 1,
        ).run()
        count = Counter(slot.cell for slots in made for slot in slots)
        assert {count[cell] for cell in cells if cell.load == "idle"} == {8}
        assert {count[cell] for cell in cells if cell.load != "idle"} == {12}

    def test_a_contrast_that_stopped_does_not_come_back(self) -> None:
        """Also when its interval is no longer tight at a later look."""
        made = Bench(
            cells_of(1, 1, 2),
            Measure(blocks_min=8, blocks_max=18),
            tight=lambda cell, block: cell.load == "idle" and block == 8,
        ).run()
        assert [len(slots) for slots in made] == [2] * 8 + [1] * 10

    def test_rejected_trials_are_made_up_for(self) -> None:
        """Three rejections: three more blocks, though the least number is also the most."""
        made = Bench(cells_of(1, 2, 1), Measure(blocks_min=8, blocks_max=8), measures=lambda slot: slot.block > 2).run()
        assert len(made) == 11

    def test_one_arms_rejections_keep_its_partner(self) -> None:
        """The make-up block holds the whole contrast: pairs stay pairs."""
        made = Bench(
            cells_of(1, 2, 1),
            Measure(blocks_min=8, blocks_max=8),
            measures=lambda slot: not (slot.cell.threads == 2 and slot.block == 0),
        ).run()
        assert [len(slots) for slots in made] == [2] * 9

    def test_a_cell_that_is_always_rejected_ends_at_the_limit(self) -> None:
        """27 blocks for `8:18`, and no more."""
        made = Bench(cells_of(1, 1, 1), Measure(blocks_min=8, blocks_max=18), measures=lambda slot: False).run()
        assert len(made) == 27

    def test_a_cell_that_was_given_up_gets_no_slot(self) -> None:
        """Its partners go on without it."""
        cells = cells_of(1, 3, 1)
        made = Bench(cells, Measure(blocks_min=2, blocks_max=2)).run(given_up={cells[1].id})
        assert [{slot.cell.threads for slot in slots} for slots in made] == [{1, 3}, {1, 3}]

    def test_everything_given_up_is_the_end(self) -> None:
        """No empty blocks are made."""
        cells = cells_of(1, 2, 1)
        assert Bench(cells, Measure()).run(given_up={cell.id for cell in cells}) == []


class TestGoingOn:
    @given(
        seed=seeds, lost=st.sets(st.tuples(st.integers(1, 2), st.integers(0, 12)), max_size=8), calm=st.integers(4, 14)
    )
    @settings(max_examples=40, deadline=None)
    def test_asking_again_from_block_0_gives_the_same_slots(
        self, seed: int, lost: set[tuple[int, int]], calm: int
    ) -> None:
        """A run is resumed by replaying: with all trials known, every decision is the same as it was without them."""
        bench = Bench(
            cells_of(1, 2, 2),
            Measure(blocks_min=4, blocks_max=12),
            measures=lambda slot: (slot.cell.threads, slot.block) not in lost,
            tight=lambda cell, block: cell.load == "idle" and block >= calm,
            seed=seed,
        )
        assert bench.run() == bench.run()

    def test_a_cell_given_up_late_does_not_change_what_was_decided_before(self) -> None:
        """At block 8 the noisy arm kept its partner running; it was given up after block 9; a resume must not
        find that the partner was done at block 8."""
        calm, noisy = cells_of(1, 2, 1)
        measure = Measure(blocks_min=8, blocks_max=18)

        def given_up(cell: Cell, at: int) -> bool:
            return cell == noisy and at > 9

        schedule, blocks_of_calm = Schedule([calm, noisy], measure, 1), 0
        for block in range(18):
            slots = schedule.next_block(block, lambda cell, at: at, lambda cell, at: cell == calm, given_up)
            blocks_of_calm += calm in {slot.cell for slot in slots}
        assert blocks_of_calm == 12


class Purse:
    """A budget as a tally would tell of it: every block of a cell costs a second."""

    def __init__(self, budget_s: float, widths: dict[Cell, float | None]) -> None:
        self._budget_s = budget_s
        self._widths = widths

    def ration(self) -> Ration:
        count = len(self._widths)
        return Ration(
            left_s=lambda block: self._budget_s - count * block,
            half_width=lambda cell, block: self._widths[cell],
            block_s=lambda cell, block: 1.0,
        )


def rationed(budget_s: float, widths: dict[Cell, float | None]) -> dict[Cell, int]:
    """How many blocks each cell gets when none is ever tight."""
    measure = Measure(blocks_min=8, blocks_max=18)
    schedule = Schedule(list(widths), measure, 1, Purse(budget_s, widths).ration())
    blocks: Counter[Cell] = Counter()
    for block in range(30):
        slots = schedule.next_block(block, lambda cell, at: at, lambda cell, at: False, lambda cell, at: False)
        blocks.update(slot.cell for slot in slots)
    return dict(blocks)


class TestBudget:
    def test_what_is_left_goes_to_the_widest_intervals(self) -> None:
        """After 8 blocks of three cells 5 s are left: the widest cell gets the four blocks to the next look."""
        narrow, wide, middle = cells_of(3, 1, 1)
        blocks = rationed(29.0, {narrow: 0.03, wide: 0.30, middle: 0.10})
        assert blocks[narrow] == blocks[middle] == 8
        assert blocks[wide] > 8

    def test_a_cell_whose_interval_nobody_knows_is_the_widest(self) -> None:
        """Nothing is known of it yet, so that it has most to gain."""
        known, unknown = cells_of(2, 1, 1)
        blocks = rationed(21.0, {known: 0.5, unknown: None})
        assert blocks[known] < blocks[unknown]

    def test_a_budget_that_reaches_changes_nothing(self) -> None:
        """All cells run to the most blocks."""
        one, two = cells_of(2, 1, 1)
        assert rationed(1000.0, {one: 0.1, two: 0.2}) == {one: 18, two: 18}

    def test_the_least_number_of_blocks_is_never_rationed(self) -> None:
        """A cell without it has no interval; the campaign ends when the money does."""
        one, two = cells_of(2, 1, 1)
        assert set(rationed(1.0, {one: 0.1, two: 0.2}).values()) >= {8}

    def test_the_reason_for_stopping_is_known(self) -> None:
        """Tight, at the most blocks, by the budget, or still going on."""
        tight, wide, other = cells_of(3, 1, 1)
        widths: dict[Cell, float | None] = {tight: 0.01, wide: 0.3, other: 0.1}
        schedule = Schedule(list(widths), Measure(blocks_min=8, blocks_max=12), 1, Purse(28.0, widths).ration())
        for block in range(9):
            assert schedule.stop_of(wide) is None
            schedule.next_block(block, lambda cell, at: at, lambda cell, at: cell == tight, lambda cell, at: False)
        assert [schedule.stop_of(cell) for cell in (tight, wide, other)] == [Stop.TIGHT, None, Stop.BUDGET]
        schedule.next_block(12, lambda cell, at: at, lambda cell, at: False, lambda cell, at: False)
        assert schedule.stop_of(wide) is Stop.MAX_BLOCKS


class TestArms:
    @given(cells=grids, pair=st.integers(0, 20), seed=seeds)
    @settings(max_examples=30, deadline=None)
    def test_arms_of_a_cell_are_neighbours_in_either_order(self, cells: list[Cell], pair: int, seed: int) -> None:
        """Each cell runs as a and as b, back to back; over two blocks each comes first once."""
        firsts: dict[Cell, list[str | None]] = {}
        for block in (2 * pair, 2 * pair + 1):
            slots = block_slots(cells, block=block, seed=seed, arms=("a", "b"))
            assert len(slots) == 2 * len(cells)
            for one, other in zip(slots[::2], slots[1::2], strict=True):
                assert one.cell == other.cell
                assert {one.arm, other.arm} == {"a", "b"}
                firsts.setdefault(one.cell, []).append(one.arm)
        assert all(sorted(arm or "" for arm in first) == ["a", "b"] for first in firsts.values())
