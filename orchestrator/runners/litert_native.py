"""The runner `litert_native`: LiteRT's C interface, for devices without Python (device_agents/native_runner)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import device_agents
from orchestrator.delegates import Delegate
from orchestrator.errors import HostError
from orchestrator.op_profile import OpProfile
from orchestrator.plan import Measure
from orchestrator.runners import litert_lines
from orchestrator.runners.base import NO_FILES, Command, Places, Reading, RunnerError
from orchestrator.runners.litert_profile import read_op_lines
from orchestrator.trial import Cell

_CHECK = """\
"$1" --check "--runtime=$2"
status=$?
[ $status = 126 ] || [ $status = 127 ] || exit $status
why='it cannot be executed there' remedy='set workdir in devices.toml to a folder that is not mounted noexec'
if [ $status = 127 ]; then
  why='there is no glibc for its CPU' remedy='measure with a static benchmark_model: its userland may be 32-bit'
fi
for loader in "$3"/ld-musl-*; do
  [ -e "$loader" ] && why="its libc is musl ($loader), and LiteRT needs glibc"
done
printf '{"event":"error","kind":"libc-unsupported",'
printf '"message":"the native runner does not start on the device: %s",' "$why"
printf '"remedy":"%s"}\\n' "$remedy"
exit 69
"""
"""A program whose loader is missing cannot say so itself."""


class RuntimeCache(Protocol):
    """The runtimes of this host, as the runner needs them."""

    def find(self, machine: str) -> Path:
        """The libLiteRt.so for such a machine. HostError where there is none."""


class LitertNative:
    """Runs CPU delegates with LiteRT for C, and brings the runtime along; `:zero-copy` leaves tensors in place."""

    variants = ("zero-copy",)
    delegates = ("xnnpack", "cpu")
    platforms = ("linux",)
    takes_inputs = True
    no_profiles = None

    def __init__(self, runtimes: RuntimeCache) -> None:
        self._runtimes = runtimes

    def unsupported(self, cell: Cell, delegate: Delegate, facts: Mapping[str, Any]) -> str | None:
        if delegate.base == "cpu" and cell.threads > 1:
            return f"{cell.runner} runs plain kernels on one thread only (litert_runner can use more)"
        return litert_lines.settings_refused(cell, delegate)

    def files(self, variant: str, machine: str) -> Mapping[str, Path]:
        runner = device_agents.native_runner_binary(machine)
        if runner is None:
            raise HostError(
                f'no native runner for machine "{machine}" in this installation',
                remedy="build it with `make agents`, or install devbench from a wheel",
            )
        return {"runner": runner, "runtime": self._runtimes.find(machine)}

    def check_command(self, python: str, files: Mapping[str, str]) -> Command:
        return Command(("sh", "-c", _CHECK, "sh", files["runner"], files["runtime"], "/lib"))

    def read_check(self, stdout: Sequence[bytes]) -> tuple[Mapping[str, Any], RunnerError | None]:
        return litert_lines.read_check(stdout)

    def command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        return Command((*_program(places), *litert_lines.measured_flags(cell, places, measure)))

    def profile_command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        """The command of a cell's operator profile: its lines are described in device_agents/PROTOCOL.md."""
        return Command((*self.command(cell, places, measure).argv, "--profile"))

    def beside_command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        return Command((*_program(places), *litert_lines.beside_flags(cell, places, measure)))

    def read(
        self, stdout: Sequence[bytes], stderr: Sequence[bytes], outputs: Mapping[str, bytes] = NO_FILES
    ) -> Reading:
        return litert_lines.read_lines(stdout)

    def unprofiled(self, cell: Cell, facts: Mapping[str, Any]) -> str | None:
        return None

    def read_profile(
        self, stdout: Sequence[bytes], stderr: Sequence[bytes], outputs: Mapping[str, bytes] = NO_FILES
    ) -> OpProfile | None:
        return read_op_lines(stdout)


def _program(places: Places) -> tuple[str, str]:
    return places.files["runner"], f"--runtime={places.files['runtime']}"
