"""What a run on phones costs the host: time and round trips per trial, and many phones beside one."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench.lab import Lab, cost_of, new_lab
from tests.bench.measuring import Timed, quartiles
from tests.bench.phones import virtual_phones
from tests.devices.adb_server import AdbServer
from tests.devices.build import build
from tests.devices.virtual_phone import VirtualPhone

_FEW, _MANY = 10, 40
_FLEETS = (1, 50, 200)
_BLOCKS = 3
_WORK_MS = 3000
_DEVICE = '[[device]]\nname = "{}"\ntransport = "adb"\nserial = "{}"\nadb_server = "127.0.0.1:{}"\n'
_CONDITIONS = '[conditions]\nother_cpu_percent_max = 100000\ncanary = "{canary}"\n'


@contextmanager
def _phone_lab() -> Iterator[Lab]:
    """A lab with the stand-in benchmark_model."""
    with new_lab() as lab:
        shutil.copy(build("benchmark_model"), lab.folder / "benchmark_model")
        lab.devbench("binaries", "add", "benchmark_model", "--name", "stand-in")
        yield lab


def _run(
    lab: Lab,
    server: AdbServer,
    phones: Sequence[VirtualPhone],
    *,
    blocks: int,
    min_ms: int = 0,
    canary: str = "off",
) -> Timed:
    lab.write("devices.toml", "\n".join(_DEVICE.format(one.serial, one.address, server.port) for one in phones))
    lab.write_plan(blocks=blocks, min_ms=min_ms, conditions=_CONDITIONS.format(canary=canary))
    # 5: on a machine this full a trial may be rejected, and the figure says how many were.
    return lab.devbench("run", "--fleet", "devices.toml", "--plan", "plan.toml", "--quiet", accepted=(0, 5))


def host_time_per_trial() -> None:
    """on a virtual phone: from one trial's start to the next, less the runner's own process; adb services opened"""
    with _phone_lab() as lab, virtual_phones(1) as (server, (phone,)):
        _run(lab, server, [phone], blocks=1)  # everything is on the phone from here on
        for canary, words in (("auto", "as by default "), ("off", "without canary")):
            opened: list[int] = []
            for trials in (_FEW, _MANY):
                before = len(phone.opened)
                _run(lab, server, [phone], blocks=trials, canary=canary)
                opened.append(len(phone.opened) - before)
            cost = cost_of(lab.trials())
            own = f"beside a runner of {statistics.median(cost.runner_ms):.1f} ms"
            each = (opened[1] - opened[0]) / (_MANY - _FEW)
            rest = f"{opened[0] - _FEW * each:.0f} for the rest of a run that pushes nothing"
            print(f"  {words}  {quartiles(cost.beyond_ms, 'ms', 1)}, {own}")
            print(f"  {'':14}  {each:.2f} adb services a trial, {rest}", flush=True)


def many_phones() -> None:
    """the same work for 1, 50 and 200 virtual phones: inferences sleep, but phones, adb and devbench share the CPUs"""
    with _phone_lab() as lab, virtual_phones(max(_FLEETS)) as (server, phones):
        for phone in phones:
            phone.set_load({})  # no phone looks at its own processes, to be warm from them, five times a second
        _run(lab, server, phones, blocks=1)  # everything is on the phones from here on
        alone_s = 0.0
        for count in _FLEETS:
            before = _cpu_ticks()
            done = _run(lab, server, phones[:count], blocks=_BLOCKS, min_ms=_WORK_MS)
            busy, total = (after - earlier for after, earlier in zip(_cpu_ticks(), before, strict=True))
            alone_s = alone_s or done.wall_s
            measured = [trial["outcome"] for trial in lab.trials()].count("measured")
            print(
                f"  {count:>4} phones: {done.wall_s:5.1f} s, {done.wall_s / alone_s:.2f} times one phone's; "
                f"devbench used {done.cpu_s:.1f} s of CPU, all CPUs were {100 * busy / total:.0f} % busy; "
                f"{measured} of {_BLOCKS * count} trials measured",
                flush=True,
            )


def _cpu_ticks() -> tuple[int, int]:
    """What all CPUs of this machine have done so far: work, and everything."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)
