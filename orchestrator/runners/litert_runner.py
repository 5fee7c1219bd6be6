"""The runner `litert_runner`: LiteRT's Python interface, every iteration kept (device_agents/litert_runner.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import device_agents
from orchestrator.delegates import Delegate
from orchestrator.plan import Measure
from orchestrator.runners import litert_lines
from orchestrator.runners.base import NO_FILES, Command, Places, Reading, RunnerError, WithoutProfiles
from orchestrator.trial import Cell

_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "1"}
_CHECK = """\
command -v "$1" >/dev/null 2>&1 && exec "$@"
printf '{"event":"error","kind":"python-missing","message":"there is no %s on the device",' "$1"
printf '"remedy":"measure with --runner litert_native, which needs no Python, or install Python and ai-edge-litert"}\\n'
exit 69
"""
"""Without Python nothing of ours would run that could say so."""


class LitertRunner(WithoutProfiles):
    """Runs CPU delegates with LiteRT for Python; `:zero-copy` reads and writes tensors in place."""

    variants = ("zero-copy",)
    no_profiles = "LiteRT's Python interface exposes none"
    delegates = ("xnnpack", "cpu")
    platforms = ("linux",)
    takes_inputs = True

    def unsupported(self, cell: Cell, delegate: Delegate, facts: Mapping[str, Any]) -> str | None:
        return litert_lines.settings_refused(cell, delegate)

    def files(self, variant: str, machine: str) -> Mapping[str, Path]:
        return {"runner": Path(device_agents.__file__).with_name("litert_runner.py")}

    def check_command(self, python: str, files: Mapping[str, str]) -> Command:
        return Command(("sh", "-c", _CHECK, "sh", python, files["runner"], "--check"))

    def read_check(self, stdout: Sequence[bytes]) -> tuple[Mapping[str, Any], RunnerError | None]:
        return litert_lines.read_check(stdout)

    def command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        program = (places.python, places.files["runner"])
        return Command((*program, *litert_lines.measured_flags(cell, places, measure)), _QUIET)

    def beside_command(self, cell: Cell, places: Places, measure: Measure) -> Command:
        program = (places.python, places.files["runner"])
        return Command((*program, *litert_lines.beside_flags(cell, places, measure)), _QUIET)

    def read(
        self, stdout: Sequence[bytes], stderr: Sequence[bytes], outputs: Mapping[str, bytes] = NO_FILES
    ) -> Reading:
        return litert_lines.read_lines(stdout)


LITERT_RUNNER = LitertRunner()
