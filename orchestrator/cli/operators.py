"""What `devbench show --ops` prints: a run's operator profiles, or where those of two runs differ."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from orchestrator.cli.options import cells_like, print_json
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.analysis.operators import CellOps
    from orchestrator.store import RunRecord, Store


def show_profiles(store: Store, record: RunRecord, *, as_json: bool) -> None:
    """The profiles of a run, all of them."""
    show_ops(store, record, cell=None, against=None, as_json=as_json)


def show_ops(store: Store, record: RunRecord, *, cell: str | None, against: str | None, as_json: bool) -> None:
    """The profiles of a run, or of the cells that a word names; with another run, where the two differ."""
    found = _chosen(_profiles(store, record), cell, record.id)
    if against is not None:
        _compare(store, found, store.find_run(against), record, as_json=as_json)
        return
    if as_json:
        content = {"run": record.id, "profiles": [one.as_json() for one in found]}
        print_json("devbench.ops", content)
        return
    from orchestrator.reports.operators import show_ops as print_ops
    from orchestrator.reports.terminal import console_for

    print_ops(console_for(sys.stdout), found)


def _profiles(store: Store, record: RunRecord) -> list[CellOps]:
    from orchestrator.analysis.operators import cell_ops

    passes = store.profiles(record.id)
    if not passes:
        raise UsageError(
            f"run {record.id} has no operator profiles", remedy="make them with `devbench run --profile`, or `profile`"
        )
    return [cell_ops(passed, store.unprofiled_trials(passed.run, passed.cell.id)) for passed in passes]


def _chosen(profiles: list[CellOps], word: str | None, run: str) -> list[CellOps]:
    if word is None:
        return profiles
    named = cells_like((one.cell for one in profiles), word)
    found = [one for one in profiles if one.cell.id in named]
    if not found:
        listed = "; ".join(f"{one.cell.id} {one.cell}" for one in profiles[:5])
        raise UsageError(f'no profile of "{word}" in run {run}', remedy=f"there are: {listed}")
    return found


def _compare(store: Store, new: list[CellOps], base: RunRecord, record: RunRecord, *, as_json: bool) -> None:
    """Cells of the two runs are the same where everything but the hashes is."""
    from orchestrator.analysis.operators import compare_ops

    before = {_setting(one): one for one in _profiles(store, base) if one.profile}
    pairs = [(before[_setting(one)], one) for one in new if one.profile and _setting(one) in before]
    if not pairs:
        raise UsageError(
            f"runs {base.id} and {record.id} have no profile of the same setting",
            remedy="profile the same models, delegates, threads and loads in both",
        )
    found = [compare_ops(one, other) for one, other in pairs]
    if as_json:
        content = {"base": base.id, "new": record.id, "comparisons": [one.as_json() for one in found]}
        print_json("devbench.ops-comparison", content)
        return
    from orchestrator.reports.operators import show_ops_comparison
    from orchestrator.reports.terminal import console_for

    show_ops_comparison(console_for(sys.stdout), found)


def _setting(found: CellOps) -> tuple[str, ...]:
    cell = found.cell
    return (
        cell.device,
        cell.model,
        cell.runner.partition(":")[0],
        cell.delegate,
        str(cell.threads),
        cell.affinity,
        cell.load,
    )
