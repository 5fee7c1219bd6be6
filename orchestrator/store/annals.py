"""What people and the gate say of runs afterwards: tags, notes, judgements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import sqlalchemy as sa

from orchestrator.clock import SYSTEM, timestamp
from orchestrator.store import schema

GOOD_TAG = "good"
"""A run that carries it is good, whatever the gate said."""


class Standing(StrEnum):
    """What the gate, or a person after it, made of a run."""

    GOOD = "good"
    BAD = "bad"
    """A regression stands and is open: nothing that it needs may be pruned."""
    UNDECIDED = "undecided"
    CLOSED = "closed"
    """A person said that its regression was fixed, or is accepted."""


@dataclass(frozen=True)
class Note:
    """A remark of a person about a run."""

    run_id: str
    made_at: str
    text: str


@dataclass(frozen=True)
class Judgement:
    """What was said of a run, against which other, and everything that led to it."""

    run_id: str
    baseline_id: str
    made_at: str
    standing: Standing
    content: Mapping[str, Any]


class Connections(Protocol):
    """What the annals need of a store."""

    def reading(self) -> AbstractContextManager[sa.Connection]: ...

    def writing(self) -> AbstractContextManager[sa.Connection]: ...


class Annals:
    """Tags, notes and judgements of one store."""

    def __init__(self, store: Connections) -> None:
        self._store = store

    # Tags

    def tag(self, run_id: str, tag: str) -> None:
        """Give a run a tag. Several runs may carry one tag; the newest of them is meant when it is named."""
        row = {"run_id": run_id, "tag": tag}
        with self._store.writing() as connection:
            connection.execute(sa.delete(schema.tags).filter_by(**row))
            connection.execute(sa.insert(schema.tags).values(**row, made_at=timestamp(SYSTEM.now())))

    def untag(self, run_id: str, tag: str) -> bool:
        """Whether the run carried it."""
        gone = sa.delete(schema.tags).filter_by(run_id=run_id, tag=tag)
        with self._store.writing() as connection:
            return connection.execute(gone).rowcount > 0

    def tagged(self) -> dict[str, list[str]]:
        """The ids of runs by the tag they carry."""
        found: dict[str, list[str]] = {}
        with self._store.reading() as connection:
            for row in connection.execute(sa.select(schema.tags).order_by(schema.tags.c.made_at)):
                found.setdefault(row.tag, []).append(row.run_id)
        return found

    # Notes

    def note(self, run_id: str, text: str) -> None:
        row = {"run_id": run_id, "made_at": timestamp(SYSTEM.now()), "text": text}
        with self._store.writing() as connection:
            connection.execute(sa.insert(schema.notes).values(**row))

    def notes(self) -> dict[str, list[Note]]:
        """By run, the oldest first."""
        found: dict[str, list[Note]] = {}
        with self._store.reading() as connection:
            for row in connection.execute(sa.select(schema.notes).order_by(schema.notes.c.id)):
                found.setdefault(row.run_id, []).append(Note(row.run_id, row.made_at, row.text))
        return found

    # Judgements

    def judge(self, run_id: str, baseline_id: str, standing: Standing, content: Mapping[str, Any]) -> None:
        """Add a judgement; earlier ones stay, the newest counts."""
        row = {"run_id": run_id, "baseline_id": baseline_id, "standing": str(standing), "content": dict(content)}
        with self._store.writing() as connection:
            connection.execute(sa.insert(schema.judgements).values(**row, made_at=timestamp(SYSTEM.now())))

    def judgements(self) -> dict[str, Judgement]:
        """The newest of every run that was judged."""
        return {judgement.run_id: judgement for judgement in self._judgements()}

    def good_runs(self) -> set[str]:
        """Runs that the gate let pass, and those that a person tagged `good`; one tagged `bad` never is."""
        tagged = self.tagged()
        passed = {run for run, judgement in self.judgements().items() if judgement.standing is Standing.GOOD}
        return (passed | set(tagged.get(GOOD_TAG, ()))) - set(tagged.get("bad", ()))

    def _judgements(self) -> Iterator[Judgement]:
        with self._store.reading() as connection:
            for row in connection.execute(sa.select(schema.judgements).order_by(schema.judgements.c.id)):
                yield Judgement(row.run_id, row.baseline_id, row.made_at, Standing(row.standing), row.content)
