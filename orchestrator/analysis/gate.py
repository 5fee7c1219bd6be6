"""Stage one of the gate: which cells of a night look slower than before, with the pinned reference held beside them.

Two nights were not interleaved, so a difference is only a suspicion: what nights differ by on their own is part of its
error. The reference of the same blocks takes away what the whole device moved by.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from orchestrator.analysis.calibration import SessionNoises
from orchestrator.analysis.comparison import ALPHA, percent
from orchestrator.analysis.gate_words import DeviceNight, Row, Verdict
from orchestrator.analysis.randomisation import BLOCKS_MIN
from orchestrator.analysis.reduction import OBSERVED_KEYS, Reduced
from orchestrator.analysis.sequential import Shift, Side, shift
from orchestrator.analysis.summary import cell_order
from orchestrator.delegates import name_of
from orchestrator.trial import Cell, Outcome

_HELD = ("conditions", "load_placement")
_BUILD = ("build", *OBSERVED_KEYS)
_MISSED = (Outcome.FAILED, Outcome.REJECTED, Outcome.NOT_RUN, Outcome.SKIPPED)

Key = tuple[object, ...]
Block = tuple[str, str, int]


def lasting(cell: Cell) -> Key:
    """What a cell is from night to night, whatever builds and files it was measured with."""
    cache = cell.delegate.rpartition("+")[2] if "+" in cell.delegate else ""
    delegate = f"{name_of(cell.delegate)}+{cache}"
    return cell.device, cell.model, cell.runner, delegate, cell.threads, cell.affinity, cell.load


@dataclass(frozen=True)
class Night:
    """A run as the gate sees it: what was asked, what came of it, what its devices were.

    `lost` says of devices that were asked but never begun with why; `settings` is what the plan says of single trials
    and `held` what it holds steady, where there is a plan.
    """

    run: str
    cells: Sequence[Cell]
    trials: Sequence[Reduced]
    references: frozenset[str] = frozenset()
    devices: frozenset[str] = frozenset()
    systems: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    held: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def by_cell(self) -> Mapping[Cell, list[Reduced]]:
        found: dict[Cell, list[Reduced]] = defaultdict(list)
        for trial in self.trials:
            found[trial.cell].append(trial)
        return found

    @cached_property
    def by_key(self) -> Mapping[Key, Cell]:
        """Every cell by what lasts of it. Of two builds in one run the last counts."""
        return {lasting(cell): cell for cell in self.cells}

    def logs(self, cell: Cell) -> dict[Block, float]:
        """The logarithms of a cell's measured blocks, in time order."""
        return {
            (trial.run, trial.session, trial.block): math.log(value)
            for trial in self.by_cell.get(cell, ())
            if trial.outcome is Outcome.MEASURED and (value := trial.latencies_us["p50"])
        }

    def reference(self, device: str) -> Cell | None:
        return next((cell for cell in self.cells if cell.device == device and cell.id in self.references), None)

    def observed(self, cell: Cell, fields: Sequence[str]) -> dict[str, frozenset[str]]:
        """What the measured trials of a cell say of these fields."""
        ran = {trial.conditions for trial in self.by_cell.get(cell, ()) if trial.outcome is Outcome.MEASURED}
        return {
            field: frozenset(value for conditions in ran for name, value in conditions if name == field)
            for field in fields
        }


def stage_one(
    new: Night, bases: Sequence[Night], *, noises: SessionNoises, threshold: float
) -> tuple[list[Row], list[DeviceNight]]:
    """Every cell of tonight, and those it lacks, against the first of the baselines that measured it well enough."""
    judge = _Judge(new, bases, noises, math.log1p(threshold))
    rows = [judge.row(cell) for cell in new.cells]
    rows += judge.vanished()
    devices = sorted({*new.devices, *(cell.device for cell in new.cells)})
    return sorted(rows, key=lambda row: cell_order(row.cell, None)), [judge.device(name) for name in devices]


@dataclass(frozen=True)
class _Pin:
    """The reference of one device on both nights: its logarithms by block, and how far it moved."""

    base: Mapping[Block, float]
    new: Mapping[Block, float]
    moved: Shift
    has_moved: bool


class _Judge:
    def __init__(self, new: Night, bases: Sequence[Night], noises: SessionNoises, edge: float) -> None:
        self._new = new
        self._bases = bases
        self._noises = noises
        self._edge = edge
        self._pins: dict[tuple[str, str], _Pin | str] = {}

    def row(self, cell: Cell) -> Row:
        """One cell of tonight. A reference whose bytes changed is a cell like any other."""
        if cell.id in self._new.references and (pinned := self._reference_row(cell)):
            return pinned
        measured = len(self._new.logs(cell))
        found = self._base_of(cell)
        if measured == 0:
            return self._unmeasured(cell, found)
        if found is None:
            return Row(cell, Verdict.NEW, "no earlier run measured it", blocks=(0, measured))
        base, base_cell = found
        row = self._compared(cell, base, base_cell)
        return self._with_systems(row, base)

    def _base_of(self, cell: Cell) -> tuple[Night, Cell] | None:
        """The first baseline with enough blocks of the cell; failing that, the first that has any."""
        known = [(night, before) for night in self._bases if (before := night.by_key.get(lasting(cell)))]
        measured = [pair for pair in known if pair[0].logs(pair[1])]
        enough = [pair for pair in measured if len(pair[0].logs(pair[1])) >= BLOCKS_MIN]
        return next(iter(enough or measured), None)

    def _unmeasured(self, cell: Cell, found: tuple[Night, Cell] | None) -> Row:
        """What was not measured, by the worst that happened to it."""
        trials = self._new.by_cell.get(cell, ())
        outcome = next((one for one in _MISSED if any(trial.outcome is one for trial in trials)), Outcome.NOT_RUN)
        reasons = Counter(trial.reason for trial in trials if trial.outcome is outcome and trial.reason)
        reason = reasons.most_common(1)[0][0] if reasons else "no reason was recorded"
        lost = outcome is not Outcome.SKIPPED or found is not None
        baseline = found[0].run if found else None
        return Row(cell, Verdict(str(outcome)), str(reason), baseline, found[1] if found else None, lost=lost)

    def _compared(self, cell: Cell, base: Night, base_cell: Cell) -> Row:
        before, now = base.logs(base_cell), self._new.logs(cell)
        blank = Row(
            cell,
            Verdict.UNDECIDED,
            "",
            baseline=base.run,
            base_cell=base_cell,
            blocks=(len(before), len(now)),
            latencies_us=(_median_us(before), _median_us(now)),
            changed=self._changed(cell, base, base_cell),
        )
        if min(blank.blocks) < BLOCKS_MIN:
            reason = f"each night needs {BLOCKS_MIN} blocks, there are {blank.blocks[0]} and {blank.blocks[1]}"
            return replace(blank, reason=reason, lost=blank.blocks[1] < BLOCKS_MIN)
        differs = _differing(base.observed(base_cell, _HELD), self._new.observed(cell, _HELD))
        if differs := [*differs, *_unlike(base.held, self._new.held)]:
            return replace(
                blank, verdict=Verdict.INCOMPARABLE, reason=f"not measured alike: {', '.join(differs)} differ"
            )
        return self._judged(blank, before, now, base)

    def _judged(self, row: Row, before: Mapping[Block, float], now: Mapping[Block, float], base: Night) -> Row:
        sd, source = self._noises.sd_log(row.cell)
        left_sd, left_source = self._noises.left_log(row.cell)
        raw = _shift(before, now, sd)
        pin = self._pin(row.cell.device, base)
        relative = None
        if isinstance(pin, _Pin):
            sides = _relative(before, pin.base), _relative(now, pin.new)
            if min(map(len, sides)) >= BLOCKS_MIN:
                relative = _shift(*sides, left_sd)
        row = replace(row, raw=raw, judged=relative or raw, reason=f"noise between sessions {_noise(sd, source)}")
        if relative is None or not isinstance(pin, _Pin):
            return self._without_reference(row)
        row = replace(row, reference=pin.moved)
        against = f"over the reference; noise between sessions {_noise(left_sd, left_source)}"
        if self._is_beyond(relative):
            return self._slower_or_faster(replace(row, reason=against), relative)
        if self._is_beyond(raw) and pin.has_moved and raw.location * pin.moved.location > 0:
            reason = f"so did the reference, by {_signed(pin.moved.location)}: the device moved, not the build"
            return replace(row, verdict=Verdict.DEVICE_MOVED, reason=reason)
        return replace(row, verdict=Verdict.STEADY, reason=against)

    def _without_reference(self, row: Row) -> Row:
        assert row.raw is not None
        if self._is_beyond(row.raw):
            return self._slower_or_faster(row, row.raw)
        return replace(row, verdict=Verdict.STEADY)

    def _is_beyond(self, found: Shift) -> bool:
        """A change that matters and that noise seldom makes; one-sided, as stage two looks at every suspect again."""
        return abs(found.location) >= self._edge and found.p <= 2 * ALPHA

    def _slower_or_faster(self, row: Row, found: Shift) -> Row:
        """A change beyond the noise; where the very same bytes ran, it is the device's and no build's."""
        if not row.changed:
            word = "slower" if found.location > 0 else "faster"
            reason = f"{word}, with the same model, runner and settings as before: the device moved"
            return replace(row, verdict=Verdict.DEVICE_MOVED, reason=reason)
        return replace(row, verdict=Verdict.SUSPECTED if found.location > 0 else Verdict.FASTER)

    def _changed(self, cell: Cell, base: Night, base_cell: Cell) -> tuple[str, ...]:
        """What is not as it was: hashes, the runtime, the plan's settings for a trial."""
        fields = [
            field
            for field in ("model_sha256", "runner_sha256", "delegate")
            if getattr(cell, field) != getattr(base_cell, field)
        ]
        fields += _differing(base.observed(base_cell, _BUILD), self._new.observed(cell, _BUILD))
        fields += [f"[measure] {key}" for key in _unlike(base.settings, self._new.settings)]
        return tuple(fields)

    def _with_systems(self, row: Row, base: Night) -> Row:
        """A device that got a new system is named where that may be the reason."""
        before, now = (night.systems.get(row.cell.device) for night in (base, self._new))
        if before == now or None in (before, now) or row.verdict in (Verdict.STEADY, Verdict.UNDECIDED):
            return row
        return replace(row, reason=f"{row.reason}; its system changed from {before} to {now}")

    # The reference

    def _reference_row(self, cell: Cell) -> Row | None:
        base = next((night for night in self._bases if night.reference(cell.device)), None)
        pin = self._pin(cell.device, base) if base else None
        if base is None or not isinstance(pin, _Pin):
            return None
        now = pin.new
        sizes, levels = (len(pin.base), len(now)), (_median_us(pin.base), _median_us(now))
        moved = f"{'moved' if pin.has_moved else 'stayed'}: {_signed(pin.moved.location)}"
        row = Row(cell, Verdict.REFERENCE, moved, base.run, cell, pin.moved, pin.moved, pin.moved, sizes, levels)
        return self._with_systems(row, base)

    def _pin(self, device: str, base: Night) -> _Pin | str:
        """The reference of a device on both nights, or why it is of no use."""
        key = device, base.run
        if key not in self._pins:
            self._pins[key] = self._new_pin(device, base)
        return self._pins[key]

    def _new_pin(self, device: str, base: Night) -> _Pin | str:
        cell, before = self._new.reference(device), base.reference(device)
        if cell is None or before is None:
            return f"{'tonight' if cell is None else base.run} has no pinned reference"
        if differs := [field for field in vars(cell) if getattr(cell, field) != getattr(before, field)]:
            return f"it is not the same as in {base.run}: {', '.join(differs)} differ"
        if differs := _differing(base.observed(before, _BUILD), self._new.observed(cell, _BUILD)):
            return f"it did not run on the same runtime as in {base.run}: {', '.join(differs)} differ"
        sides = base.logs(before), self._new.logs(cell)
        if min(map(len, sides)) < BLOCKS_MIN:
            return f"it needs {BLOCKS_MIN} blocks a night, there are {len(sides[0])} and {len(sides[1])}"
        now = _shift(*sides, 0.0)
        moved = _shift(*sides, self._noises.sd_log(cell)[0])
        return _Pin(*sides, moved, has_moved=self._is_beyond(now))

    # What tonight lacks

    def vanished(self) -> list[Row]:
        """What the baseline measured and tonight was not asked for, or could not be begun with."""
        if not self._bases:
            return []
        base = self._bases[0]
        present = {lasting(cell) for cell in self._new.cells}
        rows = []
        for key, cell in base.by_key.items():
            if key in present or not base.logs(cell):
                continue
            row = Row(cell, Verdict.VANISHED, "tonight's plan does not ask for it", base.run, cell)
            if cell.device in self._new.lost:
                reason = self._new.lost[cell.device]
                row = replace(row, verdict=Verdict.DEVICE_VANISHED, reason=reason, lost=True)
            elif cell.device not in self._new.devices:
                row = replace(row, verdict=Verdict.DEVICE_VANISHED, reason="tonight's fleet does not have this device")
            rows.append(replace(row, blocks=(len(base.logs(cell)), 0)))
        return rows

    def device(self, name: str) -> DeviceNight:
        base = next((night for night in self._bases if name in night.systems), None)
        pin = self._pin(name, base) if base else "no earlier run has this device"
        return DeviceNight(
            name,
            lost=self._new.lost.get(name),
            system_before=base.systems.get(name) if base else None,
            system=self._new.systems.get(name),
            reference=pin.moved if isinstance(pin, _Pin) else None,
            has_moved=isinstance(pin, _Pin) and pin.has_moved,
            unpinned=pin if isinstance(pin, str) else None,
        )


def _relative(logs: Mapping[Block, float], reference: Mapping[Block, float]) -> dict[Block, float]:
    return {block: value - reference[block] for block, value in logs.items() if block in reference}


def _shift(before: Mapping[Block, float], now: Mapping[Block, float], sd: float) -> Shift:
    return shift(_side(before), _side(now), session_sd=sd)


def _side(logs: Mapping[Block, float]) -> Side:
    return Side(list(logs.values()), max(1, len({block[:2] for block in logs})))


def _median_us(logs: Mapping[Block, float]) -> float | None:
    ordered = sorted(logs.values())
    middle = len(ordered) // 2
    return math.exp((ordered[middle] + ordered[~middle]) / 2) if ordered else None


def _differing(one: Mapping[str, frozenset[str]], other: Mapping[str, frozenset[str]]) -> list[str]:
    """The fields that both say something of, and not the same."""
    return [field for field in one if one[field] and other[field] and one[field] != other[field]]


def _unlike(one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """The keys in which two plans differ; an imported run has no plan."""
    return [key for key in one if key in other and one[key] != other[key]]


def _noise(sd: float, source: str) -> str:
    return f"{100 * math.expm1(sd):.1f} % ({source})"


def _signed(effect: float) -> str:
    return f"{percent(effect) or 0.0:+.1f} %"
