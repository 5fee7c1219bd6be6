"""Tags, notes and judgements of runs, and which run a user means by a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import RunNotFound
from orchestrator.store import Annals, RunRecord, Standing, Store, open_store


def night(day: int, *, status: str = "finished", arms: bool = False) -> RunRecord:
    stamp = f"2026-11-{day:02d}T02:00:00"
    return RunRecord(
        id=f"{stamp}Z-{day:04x}",
        created_at=f"{stamp}.000000Z",
        status=status,
        plan={"measure": {"arms": ["A", "B"]}} if arms else {},
        fleet={"devices": []},
        host={},
        seed=1,
        devbench_version="1",
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = open_store(tmp_path / "store")
    for day in (1, 2, 3, 4):
        opened.add_run(night(day), [])
    return opened


def test_a_tag_names_the_newest_run_that_carries_it(store: Store) -> None:
    annals = Annals(store)
    annals.tag(night(3).id, "v1")
    annals.tag(night(2).id, "v1")
    assert store.find_run("v1").id == night(3).id
    assert annals.untag(night(3).id, "v1")
    assert not annals.untag(night(3).id, "v1")
    assert store.find_run("v1").id == night(2).id


def test_a_tag_given_twice_is_one(store: Store) -> None:
    annals = Annals(store)
    annals.tag(night(1).id, "v1")
    annals.tag(night(1).id, "v1")
    assert annals.tagged() == {"v1": [night(1).id]}


def test_a_date_names_the_newest_ordinary_run_of_that_day(store: Store) -> None:
    assert store.find_run("2026-11-02").id == night(2).id


def test_notes_are_kept_in_order(store: Store) -> None:
    annals = Annals(store)
    annals.note(night(1).id, "the fan was off")
    annals.note(night(1).id, "<b>it</b> is on again")
    assert [note.text for note in annals.notes()[night(1).id]] == ["the fan was off", "<b>it</b> is on again"]


def test_the_newest_judgement_counts(store: Store) -> None:
    annals = Annals(store)
    annals.judge(night(2).id, night(1).id, Standing.BAD, {"cells": []})
    assert annals.good_runs() == set()
    annals.judge(night(2).id, night(1).id, Standing.GOOD, {"cells": []})
    assert annals.good_runs() == {night(2).id}


def test_people_overrule_the_gate(store: Store) -> None:
    annals = Annals(store)
    annals.judge(night(1).id, night(1).id, Standing.GOOD, {})
    annals.tag(night(1).id, "bad")
    annals.tag(night(2).id, "good")
    assert annals.good_runs() == {night(2).id}


def test_last_as_a_baseline_is_the_finished_run_before(store: Store) -> None:
    store.add_run(night(5, status="interrupted"), [])
    store.add_run(night(6, arms=True), [])
    store.add_run(night(7), [])
    assert store.find_baseline("last", night(7)).id == night(4).id


def test_last_good_is_the_newest_before_that_is_known_to_be_good(store: Store) -> None:
    annals = Annals(store)
    annals.judge(night(1).id, "", Standing.GOOD, {})
    annals.judge(night(2).id, "", Standing.BAD, {})
    annals.judge(night(4).id, "", Standing.GOOD, {})
    assert store.find_baseline("last-good", night(4)).id == night(1).id


def test_a_missing_baseline_says_what_to_do(store: Store) -> None:
    with pytest.raises(RunNotFound, match="known to be good"):
        store.find_baseline("last-good", night(4))
    with pytest.raises(RunNotFound, match="before"):
        store.find_baseline("last", night(1))


def test_a_run_is_never_its_own_baseline(store: Store) -> None:
    with pytest.raises(RunNotFound):
        store.find_baseline(night(4).id, night(4))
