"""Which cells of two sides belong together, and a refusal by name where they are not the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.analysis.reduction import CONDITION_KEYS, OBSERVED_KEYS, Reduced
from orchestrator.errors import ComparisonRefused, UsageError
from orchestrator.settings import suggestion
from orchestrator.trial import Cell, Outcome

CELL_FIELDS = (
    "device", "model", "model_sha256", "runner", "runner_sha256", "delegate", "threads", "affinity", "load",
)  # fmt: skip
HASH_FIELDS = ("model_sha256", "runner_sha256")
EVIDENCE_FIELDS = (*CONDITION_KEYS, *OBSERVED_KEYS)
ARMS_MAY_DIFFER = (*HASH_FIELDS, *OBSERVED_KEYS, "build")
"""Arms say which side a trial is on, so that they may be different builds; each must be one build, though."""
IGNORABLE = (*CELL_FIELDS, *EVIDENCE_FIELDS)

_BASE_NAMES = ("baseline", "base", "control", "reference", "before", "old", "main", "a")
_NEW_NAMES = ("candidate", "new", "treatment", "experiment", "after", "changed", "b")

Key = tuple[object, ...]


@dataclass(frozen=True)
class Matched:
    """One cell as both sides measured it. `differs` names what an arm may differ in, or what was ignored."""

    base: tuple[Reduced, ...]
    new: tuple[Reduced, ...]
    differs: tuple[str, ...]

    @property
    def cell(self) -> Cell:
        return self.new[0].cell


@dataclass(frozen=True)
class Matching:
    """The cells that both sides have, and those that only one has."""

    cells: tuple[Matched, ...]
    only_base: tuple[Cell, ...]
    only_new: tuple[Cell, ...]


def checked_ignored(fields: Sequence[str]) -> tuple[str, ...]:
    """The fields a user wants ignored; an unknown one is an error with the nearest right one."""
    for field in fields:
        if field not in IGNORABLE:
            raise UsageError(f"--ignore {field}: no such field in a comparison", remedy=suggestion(field, IGNORABLE))
    return tuple(dict.fromkeys(fields))


def arms_of(trials: Iterable[Reduced], *, base: str | None, new: str | None, source: str) -> tuple[str, str]:
    """Which arm of a file is the base and which is new.

    As the user says; otherwise by what the arms are called (baseline, control, … against candidate, treatment, …); and
    where no name tells, the first in the alphabet is the base.
    """
    arms = sorted({trial.arm for trial in trials if trial.arm is not None})
    for wanted in (base, new):
        if wanted is not None and wanted not in arms:
            raise ComparisonRefused(f'{source} has no arm "{wanted}"', remedy=suggestion(wanted, arms or ["none"]))
    if base is not None and base == new:
        raise ComparisonRefused(f'both sides are arm "{base}"', remedy="give two different arms")
    if len(arms) < 2:
        have = f'only one arm ("{arms[0]}")' if arms else "no arms"
        raise ComparisonRefused(
            f"{source} has {have}: there is nothing to compare it with",
            remedy="give two runs or files, BASE and NEW, or a file whose trials carry `arm`",
        )
    left = [arm for arm in arms if arm not in (base, new)]
    if len(left) + (base is not None) + (new is not None) > 2 and not (base and new):
        raise ComparisonRefused(
            f"{source} has {len(arms)} arms: {', '.join(arms)}", remedy="choose two with --base-arm and --new-arm"
        )
    if base is None and new is None:
        base = _likely_base(left)
    base = base or next(arm for arm in left if arm != new)
    return base, new or next(arm for arm in left if arm != base)


def only_arm(trials: Sequence[Reduced], arm: str | None, source: str, option: str) -> list[Reduced]:
    """The trials of one side; where it has several arms the user must say which."""
    arms = sorted({trial.arm for trial in trials if trial.arm is not None})
    if arm is None and len(arms) > 1:
        raise ComparisonRefused(
            f"{source} has {len(arms)} arms: {', '.join(arms)}",
            remedy=f"choose one with {option}, or give this file alone to compare its arms",
        )
    if arm is not None and arm not in arms:
        raise ComparisonRefused(f'{source} has no arm "{arm}"', remedy=suggestion(arm, arms or ["none"]))
    return [trial for trial in trials if arm is None or trial.arm == arm]


def _likely_base(arms: Sequence[str]) -> str:
    lower = {arm.lower(): arm for arm in arms}
    for name in _BASE_NAMES:
        if name in lower:
            return lower[name]
    for name in _NEW_NAMES:
        if name in lower:
            return next(arm for arm in arms if arm != lower[name])
    return min(arms)


def matched(
    base: Sequence[Reduced], new: Sequence[Reduced], *, ignored: Sequence[str], may_differ: Sequence[str] = ()
) -> Matching:
    """The cells of both sides, paired by their fields. What is `ignored`, or `may_differ` because the arms say which
    side a trial is on, does not keep two cells apart; any other difference in hash, build, runner or condition is
    refused with its name."""
    of_base, of_new = _by_key(base, ignored), _by_key(new, ignored)
    common = [key for key in of_base if key in of_new]
    cells = [_checked(of_base[key], of_new[key], ignored, may_differ) for key in common]
    only_base = [of_base[key][0].cell for key in of_base if key not in of_new]
    only_new = [of_new[key][0].cell for key in of_new if key not in of_base]
    _refuse_other_runner(only_base, only_new)
    if not cells:
        _refuse_nothing_common(only_base, only_new)
    return Matching(tuple(cells), tuple(only_base), tuple(only_new))


def _by_key(trials: Sequence[Reduced], ignored: Sequence[str]) -> dict[Key, list[Reduced]]:
    """Trials by the fields that name a cell; hashes are checked, not matched."""
    named = [field for field in CELL_FIELDS if field not in HASH_FIELDS and field not in ignored]
    keys: dict[Cell, Key] = {}
    found: dict[Key, list[Reduced]] = {}
    for trial in trials:
        key = keys.get(trial.cell)
        if key is None:
            key = keys[trial.cell] = tuple(getattr(trial.cell, field) for field in named)
        found.setdefault(key, []).append(trial)
    return found


def _checked(
    base: Sequence[Reduced], new: Sequence[Reduced], ignored: Sequence[str], may_differ: Sequence[str]
) -> Matched:
    differs = [field for field in ignored if field in CELL_FIELDS and _values(base, field) != _values(new, field)]
    for field in (*HASH_FIELDS, *EVIDENCE_FIELDS):
        values = _values(base, field), _values(new, field)
        either = values[0] | values[1]
        if len(either) < 2:
            continue
        if field in ignored or (field in may_differ and max(map(len, values)) < 2):
            differs.append(field)
            continue
        raise _refusal(field, base[0].cell, values)
    return Matched(tuple(base), tuple(new), tuple(dict.fromkeys(differs)))


def _values(trials: Sequence[Reduced], field: str) -> set[str]:
    """What the trials that ran say of a field; what they do not say is no difference."""
    if field in CELL_FIELDS:
        return {str(value) for cell in {trial.cell for trial in trials} if (value := getattr(cell, field)) is not None}
    ran = {trial.conditions for trial in trials if trial.outcome is Outcome.MEASURED}
    return {value for conditions in ran for name, value in conditions if name == field}


def _refusal(field: str, cell: Cell, values: tuple[set[str], set[str]]) -> ComparisonRefused:
    shown = [", ".join(sorted(_short(value) for value in side)) or "unknown" for side in values]
    if values[0] == values[1]:
        fact = f"{field} is not one and the same within a side for {cell}: {shown[0]}"
    else:
        fact = f"{field} differs for {cell}: {shown[0]} against {shown[1]}"
    return ComparisonRefused(fact, remedy=f"compare like with like, or say that it is meant: --ignore {field}")


def _short(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:12]}…"


def _refuse_other_runner(only_base: Sequence[Cell], only_new: Sequence[Cell]) -> None:
    """A cell that the other side measured with another runner is a difference, not a missing cell."""
    rest = [field for field in CELL_FIELDS if field not in (*HASH_FIELDS, "runner")]
    runners = {tuple(getattr(cell, field) for field in rest): cell for cell in only_new}
    for cell in only_base:
        other = runners.get(tuple(getattr(cell, field) for field in rest))
        if other is not None and other.runner != cell.runner:
            raise _refusal("runner", cell, ({cell.runner}, {other.runner}))


def _refuse_nothing_common(only_base: Sequence[Cell], only_new: Sequence[Cell]) -> None:
    """Name the fields in which the nearest two cells differ."""
    if not only_base or not only_new:
        side = "BASE" if not only_base else "NEW"
        raise ComparisonRefused(f"{side} has no trials", remedy="give a run or file with measured trials")
    nearest = min(
        (_differences(one, other) for one in only_base[:50] for other in only_new[:50]), key=lambda fields: len(fields)
    )
    named = ", ".join(f"{field} ({one} against {other})" for field, (one, other) in nearest.items())
    raise ComparisonRefused(
        f"the two sides have no cell in common; the nearest differ in {named}",
        remedy="compare like with like, or say that it is meant: " + " ".join(f"--ignore {field}" for field in nearest),
    )


def _differences(one: Cell, other: Cell) -> Mapping[str, tuple[object, object]]:
    fields = [field for field in CELL_FIELDS if getattr(one, field) != getattr(other, field)]
    return {field: (getattr(one, field), getattr(other, field)) for field in fields}
