"""Everything that a trial needs, put in place on its device: files, libraries, caches, and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from orchestrator import registry
from orchestrator.delegate_files import Deployed, library_on_device, unsuited
from orchestrator.delegates import Delegate, delegate_of
from orchestrator.errors import StoreError, during
from orchestrator.plan import Conditions, Measure
from orchestrator.platforms.base import Ask, Facts, Hold, Platform
from orchestrator.runners.base import Command, Places
from orchestrator.stage import Stage, Trialling
from orchestrator.trial import Cell
from orchestrator.trial_files import TrialFiles


@dataclass(frozen=True)
class Files:
    """The host files behind the names that cells carry."""

    models: Mapping[str, Path]
    """By SHA-256."""
    load_models: Mapping[str, Path]
    """By the load's label, such as `model:detector@1f2e3d4c`."""
    inputs: Path | None = None
    delegates: Mapping[str, Delegate] = field(default_factory=dict)
    """By the label of cells, where the label alone does not say it."""

    def delegate(self, label: str) -> Delegate:
        return self.delegates.get(label) or delegate_of(label)


Ready = Callable[[Cell, Places], Command]
"""Makes the command line of a cell, all else being known."""


class Arranger:
    """Puts in place what the trials of one device need."""

    def __init__(
        self,
        stage: Stage,
        written: TrialFiles,
        *,
        platform: Platform,
        facts: Facts,
        holds: Sequence[Hold],
        python: str,
        measure: Measure,
        conditions: Conditions,
        files: Files,
        ask: Ask,
    ) -> None:
        self._stage = stage
        self._written = written
        self._platform = platform
        self._facts = facts
        self._holds = holds
        self.python = python
        self._measure = measure
        self._conditions = conditions
        self._files = files
        self._ask = ask
        self.runner_files: dict[str, Mapping[str, Path]] = {}
        self.runner_facts: dict[str, Mapping[str, Any]] = {}
        self._warm_caches: dict[str, str] = {}

    def delegate_trouble(self, label: str) -> str | None:
        """Why the libraries of a cell's delegate cannot be loaded here; None when they can, as far as files tell."""
        delegate = self._files.delegate(label)
        with _store_to_blame(Path(next(iter(delegate.deployed.values()), label))):
            return unsuited(delegate, self._facts.machine, self._ask)

    def trialling(
        self, cell: Cell, make: Ready, folder: str, stopped: Callable[[], bool]
    ) -> tuple[Trialling, str | None]:
        """What the agent is to do, everything it needs being in place; and where the cell's cache is."""
        delegate = self._files.delegate(cell.delegate)
        deployed = self._deployed(delegate)
        places = Places(
            python=self.python,
            files=self.runner_places(cell.runner),
            model=self._push(self._files.models[cell.model_sha256]),
            inputs=self._push(self._files.inputs) if self._files.inputs else None,
            facts=self.runner_facts.get(cell.runner, {}),
            delegate=delegate,
            library=deployed.library,
            library_folder=deployed.folder,
            outputs=folder,
        )
        cache = f"{folder}/cache" if delegate.cache == "cold" else None
        if delegate.cache == "warm":
            cache = self._warm_caches.get(cell.id) or self._warm_up_cache(cell, places, stopped)
        places = replace(places, cache=cache)
        command = make(cell, places)
        if command.outputs or cache:
            self._written.make(folder)
        return self._agent_command(cell, command, self._beside(cell, places)), cache

    def _agent_command(self, cell: Cell, command: Command, beside: Command | None) -> Trialling:
        return Trialling(
            command=command,
            load=cell.load,
            beside=beside,
            placement=self._conditions.load_placement,
            settle_ms=self._measure.settle_ms,
            sample_ms=self._measure.sample_ms,
            affinity=self._platform.affinity_mask(cell.affinity, self._facts),
            holds=self._holds,
            deadline_s=self._measure.trial_timeout_s,
        )

    def _beside(self, cell: Cell, places: Places) -> Command | None:
        """The load, where it is a model of its own."""
        if cell.load not in self._files.load_models:
            return None
        beside = replace(
            places, model=self._push(self._files.load_models[cell.load]), inputs=None, cache=None, outputs=""
        )
        return registry.runner(cell.runner).beside_command(cell, beside, self._measure)

    def _warm_up_cache(self, cell: Cell, places: Places, stopped: Callable[[], bool]) -> str:
        """Fill the cell's cache by a process that is not measured, once a session."""
        cache = self._written.warm_cache(cell.id)
        once = replace(self._measure, runs=1, min_ms=0, warmup_runs=1, warmup_min_ms=0)
        places = replace(places, cache=cache, outputs="")
        command = registry.runner(cell.runner).command(cell, places, once)
        with during("filling the cache"):
            self._stage.run(self._agent_command(replace(cell, load="idle"), command, None), stopped)
        self._warm_caches[cell.id] = cache
        return cache

    def _deployed(self, delegate: Delegate) -> Deployed:
        """The delegate's files on the device, pushed if they are not there yet."""
        if not delegate.host_files:
            return Deployed(library_on_device(delegate, self._ask))
        placed = self._push_together({name: Path(path) for name, path in delegate.deployed.items()})
        library = placed[0] if delegate.library else library_on_device(delegate, self._ask)
        return Deployed(library, str(PurePosixPath(placed[0]).parent))

    def runner_places(self, name: str) -> dict[str, str]:
        return {role: self._push(path, executable=True) for role, path in self.runner_files[name].items()}

    def _push(self, path: Path, *, executable: bool = False) -> str:
        """Where the file is on the device. The host's copy is in the store: if it is gone, that is the store's loss."""
        with _store_to_blame(path):
            return self._stage.ensure(path, executable=executable)

    def _push_together(self, files: Mapping[str, Path]) -> tuple[str, ...]:
        with _store_to_blame(next(iter(files.values()))):
            return self._stage.ensure_together(files)


@contextmanager
def _store_to_blame(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = "see whether the store was moved or deleted"
        raise StoreError(f"cannot read {path}: {error.strerror}", remedy=remedy) from error
