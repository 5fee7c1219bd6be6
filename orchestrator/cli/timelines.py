"""The command that draws trials in time: timeline."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.options import DEFAULT_STORE, JsonOption, StoreOption, cells_like, opened_store, print_json
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.store import Store
    from orchestrator.timeline import Timeline
    from orchestrator.trial import Trial

_HOW_TO_LOOK = """\
To look at it, "Open trace file" on https://ui.perfetto.dev: the page reads it inside the browser and uploads nothing.
Without a network: Load in chrome://tracing (a new Chrome wants chrome://chrome-urls to allow it), or `npx speedscope
FILE` for the slices alone. What is called reconstructed has its length from the record and its place from us."""


def timeline(
    run: Annotated[str, typer.Argument(help="A run, the start of its id, `last`, or a file of trials.")] = "last",
    device: Annotated[list[str] | None, typer.Option("--device", help="Only this device; may be repeated.")] = None,
    cell: Annotated[
        str | None, typer.Option("--cell", metavar="CELL", help="Only cells of this id, or like this word.")
    ] = None,
    block: Annotated[int | None, typer.Option("--block", min=0, help="Only this block.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file (.json or .json.gz), or a folder for a file per trial."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Write trials as a timeline that Perfetto and chrome://tracing open: inferences, load, clocks, heat, findings."""
    if Path(run).is_file():
        from orchestrator.exchange import read_file

        chosen = _chosen(list(read_file(Path(run))), device, cell, block)
        written = _write(chosen, output, _drawn_alone)
    else:
        with opened_store(store, create=False) as opened:
            record = opened.find_run(run)
            chosen = _chosen(opened.trials(record.id), device, cell, block)
            written = _write(chosen, output, _drawer(opened, record.id))
    left_out = len(chosen) - sum(row["trials"] for row in written)
    if as_json:
        print_json("devbench.timeline", {"files": written, "left_out": left_out})
        return
    for row in written:
        plural = "1 trial" if row["trials"] == 1 else f"{row['trials']} trials"
        print(f"{row['path']}: {plural}, {row['events']} events, {row['bytes'] / 1e6:.1f} MB")
    if left_out:
        print(f"left out: {left_out} that never ran (skipped or not-run)", file=sys.stderr)
    print(_HOW_TO_LOOK, file=sys.stderr)


def _drawn_alone(trial: Trial) -> Timeline:
    from orchestrator.timeline import timeline_of

    return timeline_of(trial)


def _drawer(store: Store, run_id: str) -> Callable[[Trial], Timeline]:
    """Draws trials of a run with what the store has beside them: logs, profiles, the facts of the device."""
    from orchestrator.timeline import timeline_of
    from orchestrator.timeline_files import moments_of

    profiles = {passed.cell.id: passed for passed in store.profiles(run_id)}
    facts = {session.id: session.facts for session in store.sessions(run_id)}

    def draw(trial: Trial) -> Timeline:
        return timeline_of(
            trial,
            moments=moments_of(trial, store.folder),
            profile=profiles.get(trial.cell.id),
            facts=facts.get(trial.session),
        )

    return draw


def _write(chosen: Sequence[Trial], output: Path | None, draw: Callable[[Trial], Timeline]) -> list[dict[str, Any]]:
    from orchestrator.timeline_files import write_trace
    from orchestrator.trial import Outcome

    ran = [trial for trial in chosen if trial.outcome not in (Outcome.SKIPPED, Outcome.NOT_RUN)]
    if not ran:
        reasons = "; ".join(sorted({trial.reason or str(trial.outcome) for trial in chosen})[:3])
        raise UsageError(f"none of the {len(chosen)} chosen trials ran: {reasons}", remedy="choose others, or measure")
    written = []
    for path, group in _files(ran, output):
        events = write_trace(path, [draw(trial) for trial in group])
        written.append({"path": str(path), "trials": len(group), "events": events, "bytes": path.stat().st_size})
    return written


def _files(trials: Sequence[Trial], output: Path | None) -> list[tuple[Path, Sequence[Trial]]]:
    """One file with all trials, or one for each where the output is a folder."""
    if output is None:
        return [(Path(f"timeline-{_safe(trials[0].run)}.json"), trials)]
    if output.is_dir() or (not output.suffix and not output.exists()):
        return [(output / f"{_name(trial)}.json", [trial]) for trial in trials]
    if not output.name.endswith((".json", ".json.gz")):
        raise UsageError(f"{output} is neither a folder nor a .json or .json.gz", remedy="name one of them")
    return [(output, trials)]


def _name(trial: Trial) -> str:
    slot = trial.slot
    arm = f"-{slot.arm}" if slot.arm else ""
    return _safe(f"{trial.cell.device}-b{slot.block:03d}-p{slot.position:03d}-{trial.cell.id}{arm}")


def _safe(name: str) -> str:
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in name)


def _chosen(trials: Sequence[Trial], devices: list[str] | None, word: str | None, block: int | None) -> Sequence[Trial]:
    """The trials that are asked for; a choice that leaves none is refused with what there is."""
    if not trials:
        raise UsageError("no trials to draw", remedy="measure something with `devbench run`")
    known = sorted({trial.cell.device for trial in trials})
    for name in devices or ():
        if name not in known:
            raise UsageError(f'no trial of device "{name}"', remedy=f"there are: {', '.join(known)}")
    chosen = [trial for trial in trials if not devices or trial.cell.device in devices]
    if word is not None:
        cells = {trial.cell.id: trial.cell for trial in chosen}
        named = cells_like(cells.values(), word)
        if not named:
            listed = "; ".join(f"{cell.id} {cell}" for cell in list(cells.values())[:5])
            raise UsageError(f'no trial of a cell like "{word}"', remedy=f"there are: {listed}")
        chosen = [trial for trial in chosen if trial.cell.id in named]
    if block is not None:
        blocks = sorted({trial.slot.block for trial in chosen})
        if block not in blocks:
            raise UsageError(f"no trial of block {block}", remedy=f"blocks are {blocks[0]} to {blocks[-1]}")
        chosen = [trial for trial in chosen if trial.slot.block == block]
    return chosen
