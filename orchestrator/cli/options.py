"""What several commands share: options, the fleet and the store they name, and JSON for machines."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from orchestrator.fleet import Device, Fleet
    from orchestrator.store import Store
    from orchestrator.trial import Cell

DEFAULT_STORE = "devbench-results"
DEFAULT_FLEET = Path("devices.toml")

FleetOption = Annotated[
    Path | None, typer.Option("--fleet", help="The devices; devices.toml if it exists, otherwise this machine.")
]
StoreOption = Annotated[
    str, typer.Option("--store", envvar="DEVBENCH_STORE", help="The folder that keeps runs.", show_default=True)
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
PlanOption = Annotated[Path | None, typer.Option("--plan", help="What to measure (plan.toml).")]
ModelOption = Annotated[list[str] | None, typer.Option("--model", help="A model or a glob; may be repeated.")]
RunnerOption = Annotated[
    str | None, typer.Option("--runner", help="litert_runner, litert_runner:zero-copy, litert_native, benchmark_model")
]
DelegateOption = Annotated[str | None, typer.Option("--delegate", help="xnnpack,cpu,gpu+warm")]
ThreadsOption = Annotated[str | None, typer.Option("--threads", help="1,2,4 or auto")]
AffinityOption = Annotated[str | None, typer.Option("--affinity", help="any,big,mid,little or masks")]
LoadOption = Annotated[str | None, typer.Option("--load", help="idle,cpu:2@50,mem:1,app,model:FILE or auto")]
BudgetOption = Annotated[str | None, typer.Option("--budget", help="Stop cleanly after this long: 20m")]
SeedOption = Annotated[int | None, typer.Option("--seed", min=0, help="The order of the trials.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show cells, order and time; touch no device.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")]
RequireTrustOption = Annotated[bool, typer.Option("--require-trust", help="Exit with 1 unless every cell is trusted.")]
ResumeOption = Annotated[
    str | None, typer.Option("--resume", metavar="[RUN]", help="Go on with a run (the last one if none is named).")
]
ReferenceOption = Annotated[
    bool | None, typer.Option("--reference/--no-reference", help="A pinned reference in every block, for the gate.")
]
DeviceOption = Annotated[list[str] | None, typer.Option("--device", help="Only this device; may be repeated.")]
TagOption = Annotated[list[str] | None, typer.Option("--tag", help="Only devices with this tag; may be repeated.")]
RunTagsOption = Annotated[list[str] | None, typer.Option("--run-tag", help="Tag the run itself; may be repeated.")]
WhereOption = Annotated[str | None, typer.Option("--device", help="Where; the device of the cell if unsaid.")]
WhereFleetOption = Annotated[Path | None, typer.Option("--fleet", help="Take the device from here.")]
DuelBlocksOption = Annotated[
    str | None, typer.Option("--blocks", help="MIN:MAX, looked at after 8, 12, 18, 27 and 40; 8:40 if unsaid.")
]
ThresholdOption = Annotated[
    str | None, typer.Option("--threshold", help="Changes below this do not matter; 3% if unsaid.")
]
MetricOption = Annotated[str | None, typer.Option("--metric", help="What decides: p50 (if unsaid), mean or p95.")]
SustainOption = Annotated[
    str | None, typer.Option("--sustain", help="Run each cell without a rest for this long instead: 10m")
]
BaselineOption = Annotated[
    str | None, typer.Option("--baseline", metavar="RUN", help="With --trace=anomaly: slower than this run is odd.")
]
TraceOption = Annotated[
    str | None,
    typer.Option("--trace", metavar="[anomaly]", help="System traces, in a pass of their own; of odd cells only."),
]
TRACERS_HELP = "Which tracers: perfetto,atrace,simpleperf,perf,ftrace,xctrace; the best of each device if none."
TRACE_SIZE_HELP = "The most a trace may have: 64MB"
TraceWithOption = Annotated[str | None, typer.Option("--trace-with", help=TRACERS_HELP)]
TraceMaxSizeOption = Annotated[str | None, typer.Option("--trace-max-size", help=TRACE_SIZE_HELP)]


def print_json(schema: str, content: dict[str, Any]) -> None:
    """One object; in plain ASCII where the output cannot take every letter."""
    document = {"schema": schema, "version": 1, **content}
    print(json.dumps(document, ensure_ascii=not takes_every_letter(), allow_nan=False, indent=1))


def cells_like(cells: Iterable[Cell], word: str) -> set[str]:
    """The ids of those whose id begins with the word, or else whose name holds it."""
    known = list(cells)
    by_id = {cell.id for cell in known if cell.id.startswith(word)}
    return by_id or {cell.id for cell in known if word in str(cell)}


def share(text: str, option: str) -> float:
    """0.03 for `3%`; what is none is refused with the option's name."""
    from orchestrator.errors import UsageError
    from orchestrator.settings import fraction

    try:
        return fraction(text)
    except ValueError as error:
        problem, _, remedy = str(error).partition(": ")
        raise UsageError(f"{option}: {problem}", remedy=remedy) from error


def seconds(text: str | None, option: str) -> float | None:
    """90.0 for `90s`; None where nothing was said."""
    from orchestrator.errors import UsageError
    from orchestrator.settings import duration_s

    try:
        return None if text is None else duration_s(text)
    except ValueError as error:
        problem, _, remedy = str(error).partition(": ")
        raise UsageError(f"{option}: {problem}", remedy=remedy) from error


def takes_every_letter() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def let_readers_leave() -> None:
    """`devbench show | head` ends quietly when head has seen enough, as other tools do."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _read_fleet(path: Path | None) -> Fleet:
    from orchestrator import registry
    from orchestrator.fleet import Device, Fleet, read_fleet

    if path is None and not DEFAULT_FLEET.exists():
        return Fleet(Path("(this machine)"), (Device("this-machine", "local"),))
    keys = {name: registry.transport(name).address_keys for name in registry.transport_names()}
    return read_fleet(path or DEFAULT_FLEET, keys, registry.platform_names())


def chosen_devices(fleet: Path | None, names: list[str] | None, tags: list[str] | None) -> tuple[Device, ...]:
    return _read_fleet(fleet).select(names or [], tags or [])


def read_fleet_devices(fleet: Path | None) -> tuple[Device, ...]:
    """Every device of the fleet."""
    return _read_fleet(fleet).select([], [])


@contextmanager
def opened_store(place: str, *, create: bool) -> Iterator[Store]:
    from orchestrator.store import open_store

    store = open_store(place, create=create)
    try:
        yield store
    finally:
        store.close()
