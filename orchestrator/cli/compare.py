"""Commands that hold measurements against each other: compare, history."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.keeping import moment_of
from orchestrator.cli.options import (
    DEFAULT_STORE,
    JsonOption,
    StoreOption,
    let_readers_leave,
    opened_store,
    print_json,
    share,
)
from orchestrator.errors import UsageError
from orchestrator.settings import suggestion

if TYPE_CHECKING:
    from orchestrator.analysis.calibration import SessionNoises
    from orchestrator.analysis.comparison import Comparison
    from orchestrator.analysis.estimate import Metric
    from orchestrator.analysis.history import Circumstances, History
    from orchestrator.analysis.reduction import Reduced
    from orchestrator.analysis.sides import Matching

_REGRESSION = 1
_STANDARD_OUTPUT = Path("-")


def compare(
    base: Annotated[str, typer.Argument(help="A run, the start of its id, `last`, or a file of trials.")],
    new: Annotated[
        str | None, typer.Argument(help="The same; left out, the arms of BASE are compared, paired by block.")
    ] = None,
    threshold: Annotated[str, typer.Option(help="Changes below this do not matter.")] = "3%",
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", help="Compare although this field differs; may be repeated.")
    ] = None,
    base_arm: Annotated[str | None, typer.Option(help="The arm that is the base.")] = None,
    new_arm: Annotated[str | None, typer.Option(help="The arm that is new.")] = None,
    session_noise: Annotated[
        str | None, typer.Option(help="Noise between sessions, instead of the calibrated or assumed one.")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Is NEW slower than BASE? A verdict for each cell with effect, interval and p; exit 1 if any is slower."""
    let_readers_leave()
    from orchestrator.analysis.compare import compare as compared
    from orchestrator.analysis.comparison import ALPHA, FAILING
    from orchestrator.analysis.sides import checked_ignored

    margin = share(threshold, "--threshold")
    noise = None if session_noise is None else share(session_noise, "--session-noise")
    ignored = checked_ignored(ignore or [])
    matching, arms = _matching(base, new, (base_arm, new_arm), ignored, store)
    alpha = _alpha(base, store) if new is None else ALPHA
    rows = compared(matching, is_one_run=new is None, noises=_noises(store, noise), threshold=margin, alpha=alpha)
    if as_json:
        head = {"base": base, "new": new or base, "base_arm": arms[0], "new_arm": arms[1]}
        settings = {"threshold_percent": 100 * margin, "ignored": list(ignored)}
        print_json("devbench.compare", head | settings | _as_json(matching, rows))
    else:
        from orchestrator.reports.compare_table import show_comparison
        from orchestrator.reports.terminal import console_for

        names = (arms[0] or base, arms[1] or new or base)
        show_comparison(console_for(sys.stdout), rows, matching, names=names, ignored=ignored, threshold=margin)
    if any(row.verdict in FAILING for row in rows):
        raise typer.Exit(_REGRESSION)


def _as_json(matching: Matching, rows: Iterable[Comparison]) -> dict[str, Any]:
    listed = list(rows)
    return {
        "verdicts": dict(Counter(str(row.verdict) for row in listed)),
        "cells": [row.as_json() for row in listed],
        "only_base": [cell.as_json() for cell in matching.only_base],
        "only_new": [cell.as_json() for cell in matching.only_new],
    }


def _matching(
    base: str, new: str | None, arms: tuple[str | None, str | None], ignored: tuple[str, ...], store: str
) -> tuple[Matching, tuple[str | None, str | None]]:
    """The cells of both sides, and the arms they are, if they are arms."""
    from orchestrator.analysis.sides import ARMS_MAY_DIFFER, arms_of, matched, only_arm

    trials = read_reduced(base, store)
    if new is None:
        chosen = arms_of(trials, base=arms[0], new=arms[1], source=base)
        sides = [[trial for trial in trials if trial.arm == arm] for arm in chosen]
        return matched(*sides, ignored=ignored, may_differ=ARMS_MAY_DIFFER), chosen
    against = read_reduced(new, store)
    one, other = only_arm(trials, arms[0], base, "--base-arm"), only_arm(against, arms[1], new, "--new-arm")
    return matched(one, other, ignored=ignored), arms


def read_reduced(reference: str, store: str) -> list[Reduced]:
    """The trials of a file, or of a run in the store, without their samples."""
    from orchestrator.analysis.reduction import reduced
    from orchestrator.exchange import read_file

    if _is_file(reference):
        return list(reduced(read_file(Path(reference))))
    with opened_store(store, create=False) as opened:
        return list(reduced(opened.trials(opened.find_run(reference).id)))


def _alpha(reference: str, store: str) -> float:
    """How often a verdict may err: less where the run was looked at several times before it stopped."""
    from orchestrator.analysis.comparison import ALPHA
    from orchestrator.duel import looks_alpha

    if _is_file(reference):
        return ALPHA
    with opened_store(store, create=False) as opened:
        record = opened.find_run(reference)
        return looks_alpha(record) if record.duel is not None else ALPHA


def _is_file(reference: str) -> bool:
    """What exists as a file, or is written as one: a run is never called so."""
    return Path(reference).is_file() or reference.endswith((".jsonl", ".json")) or "/" in reference


def _noises(place: str, override: float | None) -> SessionNoises:
    """The noise between sessions: what the user says, or what was calibrated."""
    from orchestrator.analysis.calibration import SessionNoises
    from orchestrator.noise_book import session_noises
    from orchestrator.store import has_store

    if override is not None or not has_store(place):
        return SessionNoises(override=override)
    with opened_store(place, create=False) as opened:
        return session_noises(opened)


def history(
    file: Annotated[str | None, typer.Argument(help="A file of trials of many runs; left out, all runs kept.")] = None,
    metric: Annotated[str, typer.Option(help="p50, mean or p95.")] = "p50",
    threshold: Annotated[str, typer.Option(help="Steps below this are not reported.")] = "3%",
    device: Annotated[list[str] | None, typer.Option("--device", help="Only this device; may be repeated.")] = None,
    cell: Annotated[
        str | None, typer.Option("--cell", help="Only cells of this id, or like these words: `mobilenet 2 threads`.")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", help="Only runs since then: 90d, 12w or 2026-11-18.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write what a plot needs; - is standard output.")] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Each cell over its runs, and the runs at which its latency changed."""
    let_readers_leave()
    from orchestrator.analysis.history import histories

    margin = share(threshold, "--threshold")
    if file is not None and since is not None:
        raise UsageError("--since is about runs of the store, and this is a file", remedy="leave one of them out")
    trials, circumstances = _of_store(store, device, since) if file is None else (read_reduced(file, store), {})
    wanted = _like(cell, [trial for trial in trials if not device or trial.cell.device in device])
    found = histories(wanted, metric=metric_named(metric), threshold=margin, circumstances=circumstances)
    if csv is not None:
        _write_csv(found, csv)
    if as_json:
        content = {"source": file or store, "metric": metric, "threshold_percent": 100 * margin}
        print_json("devbench.history", content | {"cells": [item.as_json() for item in found]})
    elif csv != _STANDARD_OUTPUT:
        from orchestrator.reports.history_table import show_histories
        from orchestrator.reports.terminal import console_for

        show_histories(console_for(sys.stdout), found)


def _of_store(
    place: str, devices: list[str] | None, since: str | None
) -> tuple[list[Reduced], Mapping[tuple[str, str], Circumstances]]:
    """The trials of ordinary runs, the oldest run first, and what the runs were."""
    from orchestrator.store.levels import levels

    moment = None if since is None else moment_of(since, "--since")
    with opened_store(place, create=False) as opened:
        found = levels(opened, devices=devices or (), since=moment)
    return found.trials, found.circumstances


def _like(words: str | None, trials: list[Reduced]) -> list[Reduced]:
    """The trials of cells that are meant: by the start of an id, or because all words fit."""
    if words is None:
        return trials
    cells = dict.fromkeys(trial.cell for trial in trials)
    meant = {one for one in cells if one.id.startswith(words)}
    meant = meant or {one for one in cells if all(word in str(one).lower() for word in words.lower().split())}
    if not meant:
        known = list(dict.fromkeys(str(one) for one in cells))
        raise UsageError(f'no cell is like "{words}"', remedy=suggestion(words, known[:8]) if known else "measure some")
    return [trial for trial in trials if trial.cell in meant]


def _write_csv(found: Sequence[History], place: Path) -> None:
    from orchestrator.cli.gate import write_file
    from orchestrator.reports.history_data import history_csv

    text = history_csv(found)
    if place == _STANDARD_OUTPUT:
        print(text, end="")
    else:
        write_file(place, text)


def metric_named(text: str) -> Metric:
    """The metric of that name; what is none is refused."""
    from orchestrator.analysis.estimate import METRICS

    for metric in METRICS:
        if text == metric:
            return metric
    raise UsageError(f'--metric: "{text}" is unknown', remedy=suggestion(text, METRICS))
