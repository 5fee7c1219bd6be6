"""Which run a user means: an id, the start of one, `last`, `last-good`, a tag or a date."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from orchestrator.errors import RunNotFound
from orchestrator.settings import nearest
from orchestrator.store.rows import RunRecord

LAST = "last"
LAST_GOOD = "last-good"

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def find_run(
    records: Sequence[RunRecord], tagged: Mapping[str, Sequence[str]], reference: str, folder: Path
) -> RunRecord:
    """A run by its id, by a tag (the newest that carries it), by the start of its id, by its date (the newest of that
    day), or `last`. `records` are the newest first."""
    exact = [record for record in records if record.id == reference]
    if exact:
        return exact[0]
    if reference == LAST and records:
        return next((record for record in records if record.is_ordinary), records[0])
    carrying = set(tagged.get(reference, ()))
    of_tag = [record for record in records if record.id in carrying]
    if of_tag:
        return of_tag[0]
    matches = [record for record in records if record.id.startswith(reference)]
    ordinary = [record for record in matches if record.is_ordinary]
    if _DATE.fullmatch(reference) and ordinary:
        return ordinary[0]
    if len(matches) == 1:
        return matches[0]
    if len(matches) > 1:
        listed = ", ".join(record.id for record in matches[:5])
        raise RunNotFound(f'"{reference}" may mean several runs: {listed}', remedy="write more of the id")
    known = [*(record.id for record in records), *tagged]
    raise RunNotFound(f'no run "{reference}" in {folder}', remedy=_suggestion(reference, known))


def find_baseline(
    records: Sequence[RunRecord],
    tagged: Mapping[str, Sequence[str]],
    good: Collection[str],
    reference: str,
    of: RunRecord,
    folder: Path,
) -> RunRecord:
    """The run that `of` is to be held against: as `find_run`, but `last` and `last-good` mean runs before it, and it is
    never its own baseline."""
    earlier = [record for record in records if record.created_at < of.created_at and record.is_ordinary]
    if reference == LAST:
        finished = [record for record in earlier if record.status in ("finished", "imported")]
        if not finished:
            raise RunNotFound(f"no finished run before {of.id} in {folder}", remedy="the next night will have one")
        return finished[0]
    if reference == LAST_GOOD:
        passed = [record for record in earlier if record.id in good]
        if not passed:
            raise RunNotFound(
                f"no run before {of.id} in {folder} is known to be good",
                remedy="name a run as the baseline, or say of one that it is good: `devbench runs tag RUN good`",
            )
        return passed[0]
    return find_run([record for record in records if record.id != of.id], tagged, reference, folder)


def _suggestion(reference: str, known: Sequence[str]) -> str:
    if not known:
        return "the store is empty: measure something with `devbench run`"
    match = nearest(reference, known)
    latest = ", ".join(known[:3])
    return f"did you mean {match}?" if match else f"`last` is the newest; the latest are {latest}"
