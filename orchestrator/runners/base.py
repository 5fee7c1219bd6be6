"""The runner protocol: which files, which command line, how to read the output. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from orchestrator.errors import UsageError
from orchestrator.plan import Measure
from orchestrator.trial import Cell, Summary


@dataclass(frozen=True)
class Command:
    """What the agent is told to run."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    grace_ms: int = 0
    """How long it may take to undo what the agent cannot, such as an app it started, when it is told to end."""


@dataclass(frozen=True)
class Places:
    """Where things are on the device."""

    python: str
    files: Mapping[str, str]
    """The runner's own files by role."""
    model: str
    inputs: str | None = None


@dataclass(frozen=True)
class RunnerError:
    """What the runner itself says went wrong. `permanent` means that another try cannot help."""

    kind: str
    message: str
    remedy: str
    permanent: bool


@dataclass(frozen=True)
class Reading:
    """What a runner's output says. `observed` is evidence: what actually ran, by the names evidence.py knows.

    Where the command only drives another process that infers, `observed["process"]` has what was seen of that one
    (`threads_max`, `affinity`, `cpu_ticks`, `cpuset`, each where known), and the agent's looks at the command are not
    taken for it.
    """

    samples_us: tuple[float, ...] = ()
    warmup_us: tuple[float, ...] = ()
    summary: Summary | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    observed: Mapping[str, Any] = field(default_factory=dict)
    error: RunnerError | None = None


def inputs_refused(runner: str) -> UsageError:
    """What is raised where `inputs` is set and the runner takes none."""
    remedy = "leave inputs out of [measure], or measure with litert_runner alone"
    return UsageError(f"{runner} cannot be given inputs", remedy=remedy)


class Runner(Protocol):
    """What a runner registers under `devbench.runners`."""

    @property
    def variants(self) -> Sequence[str]:
        """The words that may follow its name after a colon."""

    @property
    def delegates(self) -> Sequence[str]:
        """The delegates it can run."""

    @property
    def platforms(self) -> Sequence[str]:
        """The platforms it runs on."""

    @property
    def takes_inputs(self) -> bool:
        """Whether it can be given the file that `inputs` under [measure] names."""

    def unsupported(self, cell: Cell) -> str | None:
        """Why it cannot express the cell, beyond delegates and variants; None when it can."""

    def files(self, variant: str, machine: str) -> Mapping[str, Path]:
        """Its files on the host for a device whose machine name this is, by role, to be pushed.

        The role `runner` is the program itself: its hash is part of the cell. HostError where there is none.
        """

    def check_command(self, python: str, files: Mapping[str, str]) -> Command:
        """Ends with 0 and a line of facts when the device can run it."""

    def read_check(self, stdout: Sequence[bytes]) -> tuple[Mapping[str, Any], RunnerError | None]:
        """The facts of the runtime on that device, or why it cannot run."""

    def command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        """The measured command of a cell."""

    def beside_command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        """The command that runs `places.model` endlessly on one thread beside the cell, as the load `model:FILE`."""

    def read(self, stdout: Sequence[bytes], stderr: Sequence[bytes]) -> Reading:
        """What the output says. Never raises: what cannot be read is an error in the reading."""
