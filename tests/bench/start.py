"""How fast the command line starts."""

from __future__ import annotations

import statistics

from tests.bench.measuring import PYTHON, quartiles, timed

_ROUNDS = 21
_HEAVY = ("numpy", "sqlalchemy", "rich", "ai_edge_litert", "tensorflow", "scipy")


def help_against_python() -> None:
    """`devbench --help` against `python -c pass`, interleaved; heavy libraries must stay unloaded"""
    devbench = [PYTHON, "-c", "from orchestrator.cli import main; main()"]
    commands = {
        "python -c pass": [PYTHON, "-c", "pass"],
        "devbench --help": [*devbench, "--help"],
        "devbench run --help": [*devbench, "run", "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(_ROUNDS):
        for name, argv in commands.items():
            times[name].append(1000 * timed(argv).wall_s)
    base = statistics.median(times["python -c pass"])
    for name, values in times.items():
        print(f"  {name:22} {quartiles(values, 'ms', 1)}  {statistics.median(values) / base:.1f}x")
    script = f"import sys, orchestrator.cli; print([name for name in {_HEAVY!r} if name in sys.modules])"
    print(f"  heavy libraries loaded by the command line: {timed([PYTHON, '-c', script]).stdout.decode().strip()}")
