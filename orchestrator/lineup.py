"""The line-up of one device: its runners made ready, its cells, and which build of a runner takes which slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator import registry
from orchestrator.analysis.ends import END_ARMS
from orchestrator.conductor import Conductor, runner_trouble
from orchestrator.content_hash import sha256
from orchestrator.contest import Contest, Seat
from orchestrator.duel_tally import DuelTally, EndsTally
from orchestrator.errors import DeviceUnfit, during
from orchestrator.fleet import Device
from orchestrator.plan import Measure
from orchestrator.prepare import Prepared, runner_files
from orchestrator.store import Store
from orchestrator.tally import Tally
from orchestrator.trial import Cell, Slot, Trial


@dataclass(frozen=True)
class _Build:
    """One build of a runner on the device: its files on the host, and what it said of itself there."""

    runner: str
    files: Mapping[str, Path]
    facts: Mapping[str, Any]


class Lineup:
    """Ordinarily a slot is taken by its own cell with the one build of its runner; in a duel, by the arm's side."""

    def __init__(self, prepared: Prepared, device: Device, store: Store) -> None:
        self._prepared = prepared
        self._device = device
        self._store = store
        self._builds: dict[str, _Build] = {}
        duel = prepared.duel
        contests = [one for one in duel.contests if one.cell.device == device.name] if duel else []
        self._seats: dict[tuple[str, str | None], Seat] = {
            (contest.cell.id, arm): seat for contest in contests for arm, seat in contest.seats.items()
        }
        self._contests: dict[tuple[str, str | None], Contest] = {
            (seat.cell.id, arm): contest for contest in contests for arm, seat in contest.seats.items()
        }

    def tally(self, measure: Measure) -> Tally:
        duel = self._prepared.duel
        if duel is None:
            return Tally(measure)
        metrics = {contest.cell.id: contest.metric for contest in duel.contests}
        if duel.arms == END_ARMS:
            return EndsTally(measure, metrics)
        return DuelTally(measure, metrics, duel.threshold)

    @property
    def runners(self) -> dict[str, dict[str, Any]]:
        """What each build said, its files by their hash: part of a session's facts."""
        return {
            key: {**build.facts, "files": {role: sha256(path) for role, path in build.files.items()}}
            for key, build in self._builds.items()
        }

    def ready(self, conductor: Conductor) -> tuple[Cell, ...]:
        """Put the runners in place and ask what they are; gives the cells to be scheduled."""
        if self._prepared.duel:
            for seat in self._seats.values():
                if seat.build not in self._builds:
                    self._builds[seat.build] = self._ready(conductor, seat.cell.runner, seat.files, f" of {seat.name}")
                self._refuse_another(seat)
            return tuple(dict.fromkeys(contest.cell for contest in self._contests.values()))
        for name in self._prepared.runner_names(self._device):
            self._builds[name] = self._ready(conductor, name, None, "")
        hashes = {
            name: facts["files"].get("runner", facts.get("runner_sha256")) for name, facts in self.runners.items()
        }
        return self._prepared.grid(self._device, conductor.facts.cores, hashes).cells

    def _ready(self, conductor: Conductor, name: str, files: Mapping[str, Path] | None, of: str) -> _Build:
        """A runner put in place and asked what it is. One that does not run on this platform is left out here and
        skipped with the reason later."""
        if conductor.platform.name not in registry.runner(name).platforms:
            return _Build(name, {}, {})
        with during(f"checking {name}{of} on {self._device.name}"):
            if files is None:
                earlier = self._store.runner_hashes(self._prepared.record.id, self._device.name).get(name)
                files = runner_files(self._store, name, conductor.facts.machine, earlier)
            conductor.use_runner(name, files)
            facts, error = conductor.runner_facts(name)
            if error is None:
                return _Build(name, files, facts)
            raise runner_trouble(self._device, error)

    def _refuse_another(self, seat: Seat) -> None:
        """A runner that is installed on the device, and not brought, must still be the one that was measured."""
        found = self._builds[seat.build].facts.get("runner_sha256")
        if not seat.files and found and found != seat.cell.runner_sha256:
            raise DeviceUnfit(
                f"{seat.cell.runner} on {self._device.name} is {found[:12]}, and {seat.name} was measured with "
                f"{(seat.cell.runner_sha256 or 'an unknown one')[:12]}",
                remedy="install that build there again",
            )

    def cells_of(self, cell: Cell) -> Iterator[tuple[Cell, Mapping[str, Any]]]:
        """Who takes the slots of a scheduled cell, with what the runner of each said of itself."""
        seats = [seat for (cell_id, _), seat in self._seats.items() if cell_id == cell.id]
        for seat in seats:
            yield seat.cell, self._builds[seat.build].facts
        if not seats:
            yield cell, self._builds[cell.runner].facts

    def everyone(self, cells: Iterable[Cell]) -> list[Cell]:
        """All cells that take slots of these; two sides may be one and the same."""
        return list(dict.fromkeys(one for cell in cells for one, _ in self.cells_of(cell)))

    def taken(self, slot: Slot) -> Slot:
        """The slot with the cell that takes it."""
        seat = self._seats.get((slot.cell.id, slot.arm))
        return replace(slot, cell=seat.cell) if seat else slot

    def counted(self, trial: Trial) -> Trial:
        """The trial under the cell that it was scheduled for."""
        contest = self._contests.get((trial.cell.id, trial.slot.arm))
        return replace(trial, slot=replace(trial.slot, cell=contest.cell)) if contest else trial

    def use(self, conductor: Conductor, cell: Cell, arm: str | None) -> Mapping[str, Any]:
        """Have the conductor run this cell with the build of its side; gives what that build said of itself."""
        build = self._builds[self._build_key(cell, arm)]
        conductor.use_runner(build.runner, build.files, build.facts)
        return build.facts

    def facts_of(self, cell: Cell) -> Mapping[str, Any]:
        return self._builds[self._build_key(cell, None)].facts

    def _build_key(self, cell: Cell, arm: str | None) -> str:
        for (cell_id, of_arm), contest in self._contests.items():
            if cell_id == cell.id and arm in (None, of_arm):
                assert of_arm is not None
                return contest.seats[of_arm].build
        return cell.runner
