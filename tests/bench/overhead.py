"""What a trial costs beyond the runner's own time."""

from __future__ import annotations

from tests.bench.lab import cost_of, new_lab
from tests.bench.measuring import quartiles

_TRIALS = 50


def host_time_per_trial() -> None:
    """from one trial's start to the next, less the runner's own process time: agent, pipes, judgement, two commits"""
    with new_lab() as lab:
        lab.write_plan(blocks=_TRIALS)
        lab.devbench("run", "--plan", "plan.toml", "--quiet", accepted=(0, 5))
        cost = cost_of(lab.trials())
    print(f"  a trial, start to start      {quartiles(cost.period_ms, 'ms', 1)}")
    print(f"  the runner's own process     {quartiles(cost.runner_ms, 'ms', 1)}")
    print(f"  host time beyond the runner  {quartiles(cost.beyond_ms, 'ms', 1)}")
