"""The runner protocol: which files, which command line, how to read the output. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from orchestrator.delegates import Delegate
from orchestrator.errors import UsageError
from orchestrator.op_profile import OpProfile
from orchestrator.plan import Measure
from orchestrator.trial import Cell, Summary

NO_FILES: Mapping[str, bytes] = MappingProxyType({})


@dataclass(frozen=True)
class Command:
    """What the agent is told to run."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    grace_ms: int = 0
    """How long it may take to undo what the agent cannot, such as an app it started, when it is told to end."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Files that it writes on the device, by role; they are pulled, kept and given to the runner to read."""


@dataclass(frozen=True)
class Places:
    """Where things are on the device."""

    python: str
    files: Mapping[str, str]
    """The runner's own files by role."""
    model: str
    inputs: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the runner's check said of its runtime on this device."""
    delegate: Delegate | None = None
    """What the cell's label stands for; None where it is the runner's own name for it."""
    library: str | None = None
    """The delegate's library, or settings."""
    library_folder: str | None = None
    """Where what was deployed for the delegate lies, all in one folder."""
    cache: str | None = None
    """Where the delegate may keep what it compiles, where the cell states a cache."""
    outputs: str = ""
    """A folder of this trial alone for files that the runner writes."""


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
        """The delegates it can run, by their bases."""

    @property
    def platforms(self) -> Sequence[str]:
        """The platforms it runs on."""

    @property
    def takes_inputs(self) -> bool:
        """Whether it can be given the file that `inputs` under [measure] names."""

    @property
    def no_profiles(self) -> str | None:
        """Why it never gives operator profiles; None where some of its builds do."""

    def unsupported(self, cell: Cell, delegate: Delegate, facts: Mapping[str, Any]) -> str | None:
        """Why it cannot express the cell, beyond delegates and variants; None when it can. `facts` are what its check
        said on the device."""

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

    def read(
        self, stdout: Sequence[bytes], stderr: Sequence[bytes], outputs: Mapping[str, bytes] = NO_FILES
    ) -> Reading:
        """What the output says, and the files it wrote, by role. Never raises: what cannot be read is an error in the
        reading."""

    def unprofiled(self, cell: Cell, facts: Mapping[str, Any]) -> str | None:
        """Why it gives no operator profile of the cell; None when it does."""

    def profile_command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        """The command of a cell with its operators timed; never a measured one. Asked only where `unprofiled` is
        None."""

    def read_profile(
        self, stdout: Sequence[bytes], stderr: Sequence[bytes], outputs: Mapping[str, bytes] = NO_FILES
    ) -> OpProfile | None:
        """What each operator costs; None where the output has no profile. Never raises."""


class WithoutProfiles:
    """The part of a runner that never gives operator profiles; `no_profiles` says why."""

    no_profiles: str

    def unprofiled(self, cell: Cell, facts: Mapping[str, Any]) -> str | None:
        return f"{cell.runner} gives no operator profiles: {self.no_profiles}"

    def profile_command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        raise AssertionError("unprofiled() said no")

    def read_profile(
        self, stdout: Sequence[bytes], stderr: Sequence[bytes], outputs: Mapping[str, bytes] = NO_FILES
    ) -> OpProfile | None:
        return None
