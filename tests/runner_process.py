"""A LiteRT runner as a process, for tests: its command lines, what it printed, how it ended."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MODELS = ROOT / "tests" / "data" / "models"
TINY = MODELS / "tiny_add.tflite"
FLOAT = ROOT / "orchestrator" / "bundled" / "mobilenet_v2_035_f32.tflite"
INT8 = ROOT / "orchestrator" / "bundled" / "mobilenet_v2_035_int8.tflite"
ORDINARY = {
    "threads": "1",
    "delegate": "xnnpack",
    "copy": "copy",
    "warmup_runs": "2",
    "warmup_min_ms": "0",
    "runs": "5",
    "min_ms": "0",
    "max_ms": "5000",
    "seed": "7",
}

Event = dict[str, Any]


@dataclass(frozen=True)
class Ran:
    """What one process printed and how it ended."""

    events: list[Event]
    exit_code: int
    stderr: str

    @property
    def kinds(self) -> list[str]:
        return [event["event"] for event in self.events]

    def all(self, name: str) -> list[Event]:
        return [event for event in self.events if event["event"] == name]

    def one(self, name: str) -> Event:
        """The only event of that name."""
        (found,) = self.all(name)
        return found

    @property
    def error(self) -> tuple[int, str, str]:
        """Exit code, kind and message of the error, which is the last line."""
        last = self.events[-1]
        assert last["event"] == "error" and last["remedy"], self
        return self.exit_code, last["kind"], last["message"]


def flags(model: Path | str, changes: dict[str, str | None]) -> list[str]:
    """A full command line; a change to None leaves the flag out, one to "" gives it without a value."""
    chosen = {"model": str(model), **ORDINARY, **changes}
    given = [("--" + name.replace("_", "-"), value) for name, value in chosen.items() if value is not None]
    return [name if value == "" else f"{name}={value}" for name, value in given]


def run_program(argv: Sequence[str], timeout_s: float = 60) -> Ran:
    """Run it to its end."""
    done = subprocess.run(list(argv), capture_output=True, timeout=timeout_s, check=False)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return Ran(events, done.returncode, done.stderr.decode(errors="replace"))


@dataclass(frozen=True)
class Runner:
    """A program that measures, and the words before its flags."""

    program: tuple[str, ...]

    def run(self, model: Path | str = TINY, /, **changes: str | None) -> Ran:
        """With ordinary flags but for the changes: `max_ms="5"` means --max-ms 5."""
        return run_program([*self.program, *flags(model, changes)])

    def measured(self, model: Path | str = TINY, /, **changes: str | None) -> Ran:
        """As `run`, and it must have gone well."""
        ran = self.run(model, **changes)
        assert ran.exit_code == 0, ran
        return ran
