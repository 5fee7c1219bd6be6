"""A folder in which devbench is run as a user would, and what the trials of a run say of its own cost."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.measuring import PYTHON, TINY, Timed, timed

_PLAN = """\
[sweep]
models = ["{model}"]
threads = [1]
loads = ["idle"]
[measure]
blocks = {blocks}
runs = 5
min_ms = {min_ms}
warmup_runs = 1
warmup_min_ms = 0
"""


@dataclass(frozen=True)
class Lab:
    """A store, a cache and locks of its own."""

    folder: Path
    environment: dict[str, str]

    def devbench(self, *words: str, accepted: Sequence[int] = (0,)) -> Timed:
        command = [PYTHON, "-c", "from orchestrator.cli import main; main()", *words]
        return timed(command, cwd=self.folder, env=self.environment, accepted=accepted)

    def write(self, name: str, content: str) -> None:
        (self.folder / name).write_text(content, encoding="utf-8")

    def write_plan(self, *, blocks: int, min_ms: int = 0, conditions: str = "") -> None:
        """One cell, whose trials take no longer than they must."""
        self.write("plan.toml", _PLAN.format(model=TINY, blocks=blocks, min_ms=min_ms) + conditions)

    def trials(self) -> list[dict[str, Any]]:
        """Those of the last run."""
        return [json.loads(line) for line in self.devbench("export", "last").stdout.splitlines()]


@contextmanager
def new_lab() -> Iterator[Lab]:
    places = {"XDG_CACHE_HOME": "cache", "DEVBENCH_LOCKS": "locks", "DEVBENCH_BINARIES": "binaries"}
    with tempfile.TemporaryDirectory() as name:
        yield Lab(Path(name), os.environ | {key: f"{name}/{place}" for key, place in places.items()})


@dataclass(frozen=True)
class Cost:
    """Of each trial, in milliseconds: from its start to the next one's, and what of it was the runner's process."""

    period_ms: list[float]
    runner_ms: list[float]

    @property
    def beyond_ms(self) -> list[float]:
        return [period - runner for period, runner in zip(self.period_ms, self.runner_ms, strict=False)]


def cost_of(trials: Sequence[Mapping[str, Any]]) -> Cost:
    starts = [datetime.datetime.fromisoformat(trial["started_at"]).timestamp() for trial in trials]
    return Cost(
        period_ms=[1000 * (later - sooner) for sooner, later in itertools.pairwise(starts)],
        runner_ms=[trial["metrics"]["process_wall_ns"] / 1e6 for trial in trials],
    )
