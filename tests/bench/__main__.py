"""Runs every figure and prints one table: `make bench`, or `python -m tests.bench [NAME…]`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from tests.bench import (
    comparison,
    gate,
    health,
    load,
    native,
    nights,
    overhead,
    phone_files,
    phone_runs,
    profiles,
    report,
    runner,
    ssh,
    start,
    telemetry,
    trust,
)

FIGURES: dict[str, Callable[[], None]] = {
    "start": start.help_against_python,
    "overhead": overhead.host_time_per_trial,
    "ssh": ssh.against_openssh,
    "load": load.offered_against_achieved,
    "runner": runner.runner_against_bare_loop,
    "native": native.native_against_python,
    "telemetry": telemetry.cost_and_effect,
    "phone-files": phone_files.against_adb,
    "phone-trial": phone_runs.host_time_per_trial,
    "phones": phone_runs.many_phones,
    "compare": comparison.wrong_and_found,
    "traces": comparison.contended_traces,
    "families": comparison.families,
    "compare-speed": comparison.speed,
    "gate": gate.suspicions,
    "trust": trust.causes_found,
    "looks": trust.coverage_with_looks,
    "power": trust.power_stated_and_reached,
    "health": health.alarms_and_findings,
    "nights": nights.a_year_of_nights,
    "profiles": profiles.megabytes_a_second,
    "report": report.size_and_time_to_interactive,
}


def main() -> int:
    wanted = sys.argv[1:] or list(FIGURES)
    unknown = [name for name in wanted if name not in FIGURES]
    if unknown:
        print(f"no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}", file=sys.stderr)
        return 2
    load_average = " ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"{os.cpu_count()} CPUs, load average {load_average} at the start: compare within this run only\n")
    for name in wanted:
        print(f"== {name}: {FIGURES[name].__doc__}")
        FIGURES[name]()
        print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
