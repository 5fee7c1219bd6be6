"""A place to run the real command line in: its own store, cache, locks and working folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[1] / "data" / "models"
TINY = DATA / "tiny_add.tflite"

QUICK_PLAN = """\
[sweep]
models = ["{model}"]
threads = {threads}
loads = {loads}

[measure]
blocks = "{blocks}"
runs = 5
min_ms = 0
warmup_runs = 1
warmup_min_ms = 0
settle_ms = 20
seed = 7

[conditions]
load_tolerance_points = 100
other_cpu_percent_max = 100000
"""


@dataclass
class Done:
    """A command that ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


@dataclass
class Workplace:
    """A folder in which devbench is run as a user would."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", "from orchestrator.cli import main; main()", *map(str, arguments)]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def devbench(self, *arguments: str | Path, timeout_s: float = 120.0) -> Done:
        process = self.start(*arguments)
        stdout, stderr = process.communicate(timeout=timeout_s)
        return Done(process.returncode, stdout, stderr)

    def write(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.write_text(content, encoding="utf-8")
        return path

    def quick_plan(
        self, *, blocks: str = "2:2", threads: str = "[1]", loads: str = '["idle"]', model: Path = TINY
    ) -> Path:
        """A plan whose trials take a few tenths of a second."""
        return self.write("plan.toml", QUICK_PLAN.format(model=model, blocks=blocks, threads=threads, loads=loads))

    def exported(self) -> list[dict[str, Any]]:
        done = self.devbench("export", "last")
        assert done.status == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def a_workplace(around: Path) -> Workplace:
    folder = around / "work"
    folder.mkdir()
    env = {key: value for key, value in os.environ.items() if not key.startswith("DEVBENCH_")}
    env |= {"XDG_CACHE_HOME": str(around / "cache"), "DEVBENCH_LOCKS": str(around / "locks"), "COLUMNS": "200"}
    return Workplace(folder, env)


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return a_workplace(tmp_path)
