"""What a trial costs beyond the runner's own time."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import subprocess
import tempfile
from pathlib import Path

from tests.bench.measuring import PYTHON, TINY, quartiles

_TRIALS = 50
_PLAN = """\
[sweep]
models = ["{model}"]
threads = [1]
loads = ["idle"]
[measure]
blocks = {trials}
runs = 5
min_ms = 0
warmup_runs = 1
warmup_min_ms = 0
"""


def host_time_per_trial() -> None:
    """from one trial's start to the next, less the runner's own process time: agent, pipes, judgement, two commits"""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.toml"
        plan.write_text(_PLAN.format(model=TINY, trials=_TRIALS), encoding="utf-8")
        env = os.environ | {"XDG_CACHE_HOME": f"{folder}/cache", "DEVBENCH_LOCKS": f"{folder}/locks"}
        devbench = [PYTHON, "-c", "from orchestrator.cli import main; main()"]
        subprocess.run(
            [*devbench, "run", "--plan", plan, "--quiet"], cwd=folder, env=env, check=True, capture_output=True
        )
        done = subprocess.run([*devbench, "export"], cwd=folder, env=env, check=True, capture_output=True)
    trials = [json.loads(line) for line in done.stdout.splitlines()]
    starts = [datetime.datetime.fromisoformat(trial["started_at"]).timestamp() for trial in trials]
    runner_s = [trial["metrics"]["process_wall_ns"] / 1e9 for trial in trials]
    periods = [later - sooner for sooner, later in itertools.pairwise(starts)]
    beyond = [1000 * (period - runner) for period, runner in zip(periods, runner_s, strict=False)]
    print(f"  a trial, start to start      {quartiles([1000 * period for period in periods], 'ms', 1)}")
    print(f"  the runner's own process     {quartiles([1000 * seconds for seconds in runner_s], 'ms', 1)}")
    print(f"  host time beyond the runner  {quartiles(beyond, 'ms', 1)}")
