"""What a trial costs beyond the runner's own time."""

from __future__ import annotations

from tests.bench.lab import Lab, cost_of, new_lab
from tests.bench.measuring import quartiles

_TRIALS = 50


def host_time_per_trial() -> None:
    """from one trial's start to the next, less the runner's own process time: agent, pipes, judgement, two commits"""
    with new_lab() as lab:
        report_trials(lab)


def report_trials(lab: Lab, *options: str) -> None:
    lab.write_plan(blocks=_TRIALS, conditions="[conditions]\nother_cpu_percent_max = 100000\n")
    lab.devbench("run", "--plan", "plan.toml", "--quiet", *options, accepted=(0, 5))
    cost = cost_of(lab.trials())
    print(f"  a trial, start to start      {quartiles(cost.period_ms, 'ms', 1)}")
    print(f"  the runner's own process     {quartiles(cost.runner_ms, 'ms', 1)}")
    print(f"  host time beyond the runner  {quartiles(cost.beyond_ms, 'ms', 1)}")
