"""The files that `devbench init` writes: a fleet of what is at hand, and a commented plan."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.errors import UsageError

DEVICES = """\
# The devices devbench measures. `devbench devices` shows what each is, `devbench doctor` whether it is fit.
# A key under [defaults] holds for every device that does not set it itself: workdir, runner, delegates, tags, limits.

[[device]]
name = "this-machine"
transport = "local"
tags = ["host"]
# workdir = "/var/tmp/devbench"                     # where devbench keeps its files on the device
# limits = { temperature_c_max = 80 }               # wait, then reject a trial, when a sensor is above
"""

PLAN = """\
# What to measure and how carefully. Every key may be left out; the command line wins over this file.
# `devbench run --plan plan.toml --dry-run` shows what this means without touching a device.

[sweep]
# models = ["model.tflite", "models/*.tflite"]      # default: the small bundled models
# runners = ["litert_runner"]                       # also "litert_runner:zero-copy"
delegates = ["xnnpack"]                             # "cpu" is the runtime's plain kernels; "gpu+warm": with caches
threads = "auto"                                    # or a list such as [1, 2, 4]
affinity = ["any"]                                  # any, big, mid, little, or a hexadecimal CPU mask
loads = "auto"                                      # or a list: "idle", "cpu:2@50", "mem:1", "app", "model:FILE"

[measure]
blocks = "8:18"                                     # at least 8 trials a cell, at most 18
precision = "2%"                                    # a cell stops when its interval is this narrow
runs = 50                                           # timed inferences a trial, at least
min_ms = 300                                        # and at least this long
warmup_runs = 5
warmup_min_ms = 300
settle_ms = 300                                     # how long a load runs before the model starts
# budget = "20m"                                    # stop cleanly when this much time is spent
# sustain = "10m"                                   # run each cell without a rest instead: when does it throttle?
# seed = 1                                          # the order of the trials; drawn and stored if left out

[conditions]
# governor = "performance"                          # held during each trial, where permitted
# screen = "on"                                     # phones: on, off, or as-found
# airplane = true                                   # phones: no radio while measuring
# fixed_performance = true                          # phones: Android's fixed performance mode, where there is one
# doze = "off"                                      # phones: no doze while measuring
# stop_background_apps = true                       # phones: stop cached apps before measuring
load_placement = "other-group"                      # the load competes from a session of its own, or "same-group"
# canary = "off"                                    # or "on": a short probe before each trial; phones have it anyway
# cool_down_max = "2m"                              # how long a trial waits for a device to be fit again
# other_cpu_percent_max = 50                        # reject trials beside which other programs used more than this
# require = "full"                                  # reject a delegate that took a part only; or a share: "80%"

[collect]
# profile = true                                    # every cell once more with its operators timed: `show --ops`
# trace = "anomaly"                                 # odd cells once more under a system tracer; true is every cell

# A delegate of your own; README.md has all keys.
# [[delegate]]
#   name = "my-npu"
#   library = "libmy_delegate.so"
"""


def _entries(attached: Sequence[tuple[str, Mapping[str, str | int]]]) -> str:
    """A `[[device]]` for every device that was seen, beyond this machine, which is always there."""
    entries = []
    for transport, address in attached:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(str(value) for value in address.values())).strip("-.")
        keys = "".join(f"{key} = {json.dumps(value)}\n" for key, value in address.items())
        entries.append(f'\n[[device]]\nname = "{transport}-{name[:48]}"\ntransport = "{transport}"\n{keys}')
    return "".join(entries)


def write_starter_files(
    folder: Path, *, overwrite: bool, attached: Sequence[tuple[str, Mapping[str, str | int]]] = ()
) -> list[Path]:
    """Write devices.toml, with what is attached, and plan.toml; refuses to replace what is there unless told to."""
    targets = {folder / "devices.toml": DEVICES + _entries(attached), folder / "plan.toml": PLAN}
    present = [path for path in targets if path.exists()]
    if present and not overwrite:
        listed, several = " and ".join(str(path) for path in present), len(present) > 1
        raise UsageError(
            f"{listed} {'exist' if several else 'exists'} already",
            remedy=f"move {'them' if several else 'it'} away, or say --force to replace {'them' if several else 'it'}",
        )
    for path, content in targets.items():
        try:
            path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}", remedy="choose another folder") from error
    return list(targets)
