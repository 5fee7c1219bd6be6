"""Which cells of a run are odd: those not to be trusted, and those slower than they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.analysis.compare import compare
from orchestrator.analysis.comparison import Change, Comparison, percent
from orchestrator.analysis.reduction import Reduced, reduced
from orchestrator.analysis.sides import CELL_FIELDS, EVIDENCE_FIELDS, HASH_FIELDS, matched
from orchestrator.analysis.trust import TrustVerdict, trust_of
from orchestrator.noise_book import session_noises
from orchestrator.store import Store
from orchestrator.trial import Cell, Outcome

_SETTING = tuple(field for field in CELL_FIELDS if field not in HASH_FIELDS)
_BAD = (TrustVerdict.NOISY, TrustVerdict.CONTAMINATED)
_SLOWER = (Change.SLOWER, Change.SUSPECTED_SLOWER, Change.UNSTABLE_SLOWER)
_RUNS_LOOKED_AT = 200

Setting = tuple[object, ...]


@dataclass(frozen=True)
class Odd:
    """The odd cells by their id, each with what is odd about it, and all of it in a sentence."""

    why: Mapping[str, str]
    text: str


def odd_cells(store: Store, run_id: str, cells: Sequence[Cell], baseline: str | None) -> Odd:
    """Judged by the trials of this run, and by those of `baseline` or of the newest earlier run that has the cell."""
    of_cell: dict[Cell, list[Reduced]] = {}
    for trial in reduced(store.trials(run_id)):
        of_cell.setdefault(trial.cell, []).append(trial)
    reasons: dict[str, list[str]] = {}
    for cell in cells:
        trust = trust_of(of_cell.get(cell, []))
        if trust.verdict in _BAD:
            causes = [reason.text for reason in trust.reasons if reason.verdict in _BAD]
            reasons.setdefault(cell.id, []).append(f"{trust.verdict}: {causes[0]}")
    compared = 0
    for base_run, ours in _baselines(store, run_id, [cell for cell in cells if cell in of_cell], baseline).items():
        new = [trial for cell in ours for trial in of_cell[cell]]
        rows = _compared(store, base_run, new)
        compared += len({row.cell for row in rows})
        for row in rows:
            if row.verdict in _SLOWER:
                reasons.setdefault(row.cell.id, []).append(_slower_text(row, base_run))
    why = {cell_id: "; ".join(dict.fromkeys(found)) for cell_id, found in reasons.items()}
    return Odd(why, _sentence(len(why), len(cells), compared))


def _sentence(odd: int, cells: int, compared: int) -> str:
    held = f"{compared} of them held against an earlier run" if compared else "and no earlier run has any of them"
    if not odd:
        return f"nothing is odd about {cells} cells, {held}: no trace is made"
    return f"{odd} of {cells} cells are odd and will be traced ({held})"


def _setting(cell: Cell) -> Setting:
    return tuple(getattr(cell, field) for field in _SETTING)


def _baselines(store: Store, run_id: str, cells: Sequence[Cell], baseline: str | None) -> dict[str, list[Cell]]:
    """Which run each cell is held against."""
    if baseline is not None:
        candidates = [store.find_run(baseline)]
    else:
        began = store.find_run(run_id).created_at
        earlier = [record for record in store.runs() if record.created_at < began and record.is_ordinary]
        candidates = earlier[:_RUNS_LOOKED_AT]
    waiting = {_setting(cell): cell for cell in cells}
    found: dict[str, list[Cell]] = {}
    for record in candidates:
        if not waiting or record.id == run_id:
            continue
        if not any(_setting(cell) in waiting for cell in store.cells(record.id)):
            continue
        measured = {_setting(trial.cell) for trial in store.trials(record.id) if trial.outcome == Outcome.MEASURED}
        if common := [waiting.pop(setting) for setting in measured & waiting.keys()]:
            found[record.id] = common
    return found


def _compared(store: Store, base_run: str, new: Sequence[Reduced]) -> list[Comparison]:
    """Whatever else differs, hashes and builds among it: that it got slower is worth a look."""
    wanted = {_setting(trial.cell) for trial in new}
    base = [trial for trial in reduced(store.trials(base_run)) if _setting(trial.cell) in wanted]
    matching = matched(base, new, ignored=(*HASH_FIELDS, *EVIDENCE_FIELDS))
    return compare(matching, is_one_run=False, noises=session_noises(store))


def _slower_text(row: Comparison, base_run: str) -> str:
    change = percent(row.effect)
    by = f" by {change:.1f} %" if change is not None else ""
    return f"slower than run {base_run}: {row.metric}{by} ({row.verdict})"
