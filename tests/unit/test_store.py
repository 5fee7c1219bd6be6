"""The store: what goes in comes out, and a store that cannot be used says why."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from orchestrator.analysis.noise import Noise
from orchestrator.content_hash import sha256
from orchestrator.errors import ImportRefused, RunNotFound, StoreError
from orchestrator.op_profile import OpCost, OpProfile, ProfilePass
from orchestrator.store import RunRecord, SessionRecord, Store, open_store
from orchestrator.store.files import keep_file, workroom
from orchestrator.store.schema import VERSION
from orchestrator.trace import TracePass, TraceSummary
from orchestrator.trial import Cell, Finding, Outcome, Pass, Severity, Slot, Summary, Trial
from orchestrator.whole_files import TEMPORARY
from tests.unit.trial_factory import make_cell, make_trial


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store")


def a_run(name: str = "2026-11-18T02:00:00Z-ab12", created_at: str = "2026-11-18T02:00:00Z") -> RunRecord:
    return RunRecord(name, created_at, "running", {"sweep": {}}, {"devices": []}, {}, 7, "0.1.0")


NOW = "2026-11-18T12:00:00.000Z"


def a_trial(cell: Cell, block: int, run: str = "2026-11-18T02:00:00Z-ab12") -> Trial:
    trial = make_trial(cell=cell, block=block, median_us=1000.0, rng=np.random.default_rng(block))
    return replace(trial, run=run)


def test_a_trial_comes_back_as_it_went_in(store: Store) -> None:
    """Samples are kept to the last bit, and every other field unchanged."""
    cell = make_cell()
    finding = Finding("steal", Severity.WARN, "taken away", "look elsewhere")
    trial = replace(
        a_trial(cell, 3),
        samples_us=(0.1, 1 / 3, 1e-300, 123456789.123456789),
        warmup_us=(5.5,),
        summary=Summary(4, median=1.0),
        findings=(finding,),
        evidence={"argv": ["a b", "é\udce4".encode("utf-8", "replace").decode()]},
        log="artifacts/x.log",
    )
    store.add_run(a_run(), [cell])
    store.add_trial(trial)
    assert store.trials(trial.run) == [trial]


def test_a_trial_is_there_when_the_process_dies(store: Store, tmp_path: Path) -> None:
    """A trial is committed when add_trial returns: another process sees it at once."""
    cell = make_cell()
    store.add_run(a_run(), [cell])
    store.add_trial(a_trial(cell, 0))
    assert len(open_store(tmp_path / "store").trials(a_run().id)) == 1


def test_a_slot_cannot_have_two_trials(store: Store) -> None:
    """The database itself refuses to double a trial."""
    cell = make_cell()
    store.add_run(a_run(), [cell])
    store.add_trial(a_trial(cell, 0))
    with pytest.raises(StoreError, match="UNIQUE constraint failed"):
        store.add_trial(a_trial(cell, 0))
    assert len(store.trials(a_run().id)) == 1


def test_threads_can_write_at_the_same_time(store: Store) -> None:
    """Many devices commit trials at once and none is lost."""
    cells = [make_cell(device=f"phone{number}") for number in range(8)]
    store.add_run(a_run(), cells)

    def work(cell: Cell) -> None:
        for block in range(10):
            store.add_trial(a_trial(cell, block))

    threads = [threading.Thread(target=work, args=(cell,)) for cell in cells]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.finished_slots(a_run().id)) == 80


def test_runs_are_found_by_id_start_and_last(store: Store) -> None:
    """A run is found by its id, by an unambiguous start of it, or as the last one."""
    store.add_run(a_run("2026-11-17T02:00:00Z-aaaa", "2026-11-17T02:00:00Z"), [])
    store.add_run(a_run("2026-11-18T02:00:00Z-bbbb", "2026-11-18T02:00:00Z"), [])
    assert store.find_run("last").id.endswith("bbbb")
    assert store.find_run("2026-11-17").id.endswith("aaaa")
    with pytest.raises(RunNotFound, match='"2026-11" may mean several runs'):
        store.find_run("2026-11")
    with pytest.raises(RunNotFound, match='no run "zzz"'):
        store.find_run("zzz")


def test_last_in_an_empty_store(store: Store) -> None:
    """There is no last run, and the remedy says what to do."""
    with pytest.raises(RunNotFound) as caught:
        store.find_run("last")
    assert caught.value.remedy == "the store is empty: measure something with `devbench run`"


def test_sessions_keep_facts_and_findings(store: Store) -> None:
    """What a device was stays with the run; the latest facts can be asked for."""
    store.add_run(a_run(), [])
    finding = Finding("governor", Severity.NOTE, "moves", "hold it")
    store.add_session(SessionRecord("s1", a_run().id, "pixel8", "2026-11-18T02:00:01Z", {"cores": 8}, (finding,)))
    store.end_session("s1", "2026-11-18T03:00:00Z", "done")
    session = store.sessions(a_run().id)[0]
    assert (session.facts, session.findings, session.ending) == ({"cores": 8}, (finding,), "done")
    assert store.last_facts("pixel8") == {"cores": 8}
    assert store.last_facts("other") is None


def test_not_run_notes_can_be_forgotten(store: Store) -> None:
    """Resuming a run drops the notes that slots were not run, and nothing else."""
    cell = make_cell()
    store.add_run(a_run(), [cell])
    store.add_trial(a_trial(cell, 0))
    missing = Trial(a_run().id, Slot(cell, 1, 0), "s", Outcome.NOT_RUN, "budget spent", "2026-11-18T02:00:00Z")
    store.add_trial(missing)
    store.forget_not_run(a_run().id, cell.device)
    assert [trial.outcome for trial in store.trials(a_run().id)] == [Outcome.MEASURED]


def test_many_devices_may_keep_the_same_file_at_once(store: Store, tmp_path: Path) -> None:
    """Whoever asks is given the file under its name, never a copy that another is still making."""
    source = tmp_path / "model.tflite"
    source.write_bytes(b"model" * 100_000)
    copy_under_way = store.folder / "blobs" / sha256(source) / f"{TEMPORARY}another"
    copy_under_way.parent.mkdir(parents=True)
    copy_under_way.write_bytes(source.read_bytes())
    assert store.blob(sha256(source)) is None

    def keep(_: int) -> Path | None:
        store.keep_blob(source)
        return store.blob(sha256(source))

    with ThreadPoolExecutor(16) as devices:
        found = set(devices.map(keep, range(64)))
    assert found == {copy_under_way.with_name("model.tflite")}


def test_blobs_are_kept_by_content(store: Store, tmp_path: Path) -> None:
    """A file is kept once by its hash; one that was damaged since is not given out."""
    source = tmp_path / "model.tflite"
    source.write_bytes(b"weights")
    store.keep_blob(source)
    store.keep_blob(source)
    kept = next((store.folder / "blobs").rglob("model.tflite"))
    digest = kept.parent.name
    assert store.blob(digest) == kept
    kept.write_bytes(b"rotten!")
    assert store.blob(digest) is None
    assert store.blob("0" * 64) is None


def test_log_names_cannot_leave_the_store(store: Store) -> None:
    """A hostile name becomes a harmless one."""
    place = store.keep_log("../../etc/passwd", "../run", b"log")
    assert (store.folder / place).read_bytes() == b"log"
    assert (store.folder / place).resolve().is_relative_to(store.folder.resolve())


def test_an_interrupted_migration_leaves_an_old_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are applied in one transaction: a step that fails leaves the version it began with."""
    open_store(tmp_path).close()

    def broken(connection: sa.Connection) -> None:
        connection.execute(sa.text("CREATE TABLE half (x INTEGER)"))
        raise sa.exc.OperationalError("step", {}, Exception("disk I/O error"))

    monkeypatch.setattr("orchestrator.store.schema.MIGRATIONS", (*([None] * VERSION), broken))
    monkeypatch.setattr("orchestrator.store.schema.VERSION", VERSION + 1)
    with pytest.raises(StoreError):
        open_store(tmp_path)
    monkeypatch.undo()
    assert open_store(tmp_path).runs() == []


def test_imported_trials_get_runs_of_their_own(store: Store) -> None:
    """Trials of two runs make two runs, and taking them in again adds nothing."""
    cell = make_cell()
    trials = [a_trial(cell, 0, "2026-01-01T00:00:00Z-aaaa"), a_trial(cell, 0, "2026-01-02T00:00:00Z-bbbb")]
    assert store.take_in(trials, NOW) == 2
    assert store.take_in(trials, NOW) == 0
    assert {record.status for record in store.runs()} == {"imported"}
    assert len(store.runs()) == 2


def test_a_run_that_was_measured_here_takes_no_trials_from_elsewhere(store: Store) -> None:
    """An import may not add to, or change, what was measured; trials that are there already are passed over."""
    cell = make_cell()
    store.add_run(a_run(), [cell])
    store.add_trial(a_trial(cell, 0))
    assert store.take_in([a_trial(cell, 0)], NOW) == 0
    with pytest.raises(ImportRefused, match="was measured here, and 1 trials of the file are not part of it"):
        store.take_in([a_trial(cell, 0), a_trial(cell, 50)], NOW)
    assert len(store.trials(a_run().id)) == 1


def test_a_damaged_copy_of_a_file_is_replaced(store: Store, tmp_path: Path) -> None:
    """A file that rotted in the store, or half a file left there, does not stand in the way of the whole one."""
    source = tmp_path / "model.tflite"
    source.write_bytes(b"weights")
    store.keep_blob(source)
    kept = next((store.folder / "blobs").rglob("model.tflite"))
    kept.write_bytes(b"rotten!")
    (kept.parent / ".half").write_bytes(b"half")
    store.keep_blob(source)
    assert store.blob(kept.parent.name) == kept


def test_the_run_to_go_on_with_is_the_newest_with_work_left(store: Store) -> None:
    """Not one that never got its device, and not one that was imported."""
    for name, status in (("a", "interrupted"), ("b", "finished"), ("c", "failed"), ("d", "imported")):
        store.add_run(replace(a_run(f"run-{name}", f"2026-11-18T0{ord(name) - 96}:00:00Z"), status=status), [])
    assert store.last_resumable().id == "run-a"
    store.set_status("run-a", "finished", NOW)
    assert store.last_resumable().id == "run-b"


def test_a_store_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    """Its trials are ordinary ones, its cells stopped for no reason that was noted, and it can keep noise."""
    cell = make_cell()
    with_trial = open_store(tmp_path)
    with_trial.add_run(a_run(), [cell])
    with_trial.add_trial(a_trial(cell, 0))
    with_trial.close()
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'devbench.sqlite'}")
    with engine.begin() as connection:
        for statement in (
            "ALTER TABLE trials DROP COLUMN purpose",
            "ALTER TABLE cells DROP COLUMN stopped",
            "DROP TABLE noise",
            "UPDATE schema_version SET version = 1",
        ):
            connection.execute(sa.text(statement))
    engine.dispose()
    migrated = open_store(tmp_path)
    assert [trial.slot.purpose for trial in migrated.trials(a_run().id)] == [Pass.LATENCY]
    assert migrated.stops(a_run().id) == {}
    assert migrated.noise() == []


def test_why_cells_stopped_is_kept(store: Store) -> None:
    """Only for the cells it was noted of."""
    one, two = make_cell(threads=1), make_cell(threads=2)
    store.add_run(a_run(), [one, two])
    store.set_stops(a_run().id, {one.id: "tight"})
    assert store.stops(a_run().id) == {one.id: "tight"}


def test_a_sustained_trial_comes_back_as_one(store: Store) -> None:
    """The mark that keeps it out of ordinary estimates survives."""
    cell = make_cell()
    trial = replace(a_trial(cell, 0), slot=Slot(cell, 0, 0, purpose=Pass.SUSTAIN))
    store.add_run(a_run(), [cell])
    store.add_trial(trial)
    assert store.trials(trial.run) == [trial]


def test_the_newest_noise_of_each_family_counts(store: Store) -> None:
    """A second calibration replaces the first where they speak of the same, and a run's own noise is kept once."""
    first = Noise("pixel8", "any", "p50", 0.01, 0.1, 0.03, 4, 32, 1.5)
    other = replace(first, family="xnnpack, threads 1, load idle")
    later = replace(first, block_sd=0.02, session_sd=None)
    for name, made_at, found in (("run-1", "2026-01-01", [first, other]), ("run-2", "2026-02-01", [later])):
        store.add_run(a_run(name), [])
        store.keep_noise(name, made_at, found)
        store.keep_noise(name, made_at, found)
    assert sorted(store.noise(), key=lambda noise: noise.family) == [later, other]


def test_last_is_not_a_calibration_unless_there_is_nothing_else(store: Store) -> None:
    """`devbench show` after `devbench calibrate` shows the last run that measured something."""
    calibration = replace(a_run("run-c", "2026-11-18T03:00:00Z"), plan={"measure": {"arms": ["a", "b"]}})
    store.add_run(calibration, [])
    assert store.find_run("last").id == "run-c"
    store.add_run(a_run("run-m", "2026-11-18T02:00:00Z"), [])
    assert store.find_run("last").id == "run-m"


def a_profile(cell: Cell, *, latency_us: float = 1070.0) -> ProfilePass:
    ops = (
        OpCost("[a, é]:0", "CONV_2D", 12.5, 2.0, 1, memory_kb=0.0),
        OpCost("Delegate/Add:1", "Add", 0.0, is_delegated=True),
    )
    profile = OpProfile("proto", ops=ops, inner=ops[:1], init=ops[1:], runs=50, total_us=12.5, notes=("a note",))
    finding = Finding("steal", Severity.WARN, "taken away", "look elsewhere")
    return ProfilePass(
        "2026-11-18T02:00:00Z-ab12", cell, "s", Outcome.MEASURED, None, NOW, 1.5, latency_us,
        {"argv": ["x"]}, (finding,), "artifacts/x.log", {"profile": "artifacts/x.pb"}, profile,
    )  # fmt: skip


def test_a_profile_comes_back_as_it_went_in_and_is_no_trial(store: Store) -> None:
    """It stands beside the trials, where no reader of trials can meet it."""
    cell = make_cell()
    store.add_run(a_run(), [cell])
    store.add_pass(a_profile(cell, latency_us=1.0))
    store.add_pass(a_profile(cell))
    assert store.profiles(a_run().id) == [a_profile(cell)]
    assert store.trials(a_run().id) == []
    assert store.finished_slots(a_run().id) == set()


def test_a_trace_comes_back_as_it_went_in_and_each_tracer_has_its_own(store: Store) -> None:
    """One that could not be made is stored with its reason too."""
    cell = make_cell()
    store.add_run(a_run(), [cell])
    summary = TraceSummary(12, 3, 0.5, {"sched_switch": 3}, 0, None, ("a note",))
    made = TracePass(
        a_run().id, cell, "s", Outcome.MEASURED, None, NOW, kind="perfetto", trace=summary, why="noisy: it is"
    )
    skipped = TracePass(a_run().id, cell, "s", Outcome.SKIPPED, "no tracer", NOW)
    for passed in (made, replace(made, kind="simpleperf"), skipped, made):
        store.add_pass(passed)
    assert store.traces(a_run().id) == [replace(made, kind="simpleperf"), skipped, made]
    assert store.profiles(a_run().id) == []


def test_a_large_file_is_moved_in_whole(store: Store) -> None:
    """Its suffixes stay, so that viewers know it; what else was brought goes with the room."""
    with workroom(store.folder) as room:
        (room / "trace.perf.data").write_bytes(b"content")
        (room / "other").write_bytes(b"left")
        place = keep_file(store.folder, "pixel/8 trace", "run", room / "trace.perf.data")
    assert place.startswith("artifacts/run/pixel_8_trace-") and place.endswith(".perf.data")
    assert (store.folder / place).read_bytes() == b"content"
    assert [path.name for path in (store.folder / "artifacts").iterdir()] == ["run"]


def test_latency_without_a_profiler_is_found_in_this_run_or_the_newest(store: Store) -> None:
    """A cell's id is its content, so that another run's trials of it are about the same."""
    cell = make_cell()
    for number, name in enumerate(("a-run", "b-run", "c-run")):
        store.add_run(a_run(name, f"2026-11-1{number}T00:00:00Z"), [cell])
    assert store.unprofiled_trials("a-run", cell.id) == []
    store.add_trials([a_trial(cell, block, run) for run in ("a-run", "b-run") for block in (0, 1)])
    assert {trial.run for trial in store.unprofiled_trials("a-run", cell.id)} == {"a-run"}
    assert {trial.run for trial in store.unprofiled_trials("c-run", cell.id)} == {"b-run"}


def test_a_store_of_before_profiles_is_brought_up_to_date(tmp_path: Path) -> None:
    """Its trials stay, and profiles can be added."""
    store, cell = open_store(tmp_path / "old"), make_cell()
    store.add_run(a_run(), [cell])
    store.add_trial(a_trial(cell, 0))
    with sa.create_engine(f"sqlite:///{tmp_path / 'old' / 'devbench.sqlite'}").begin() as connection:
        connection.execute(sa.text("DROP TABLE passes"))
        connection.execute(sa.text("UPDATE schema_version SET version = 2"))
    store.close()
    again = open_store(tmp_path / "old")
    again.add_pass(a_profile(cell))
    assert len(again.profiles(a_run().id)) == len(again.trials(a_run().id)) == 1


def test_equal_artifacts_are_kept_once(store: Store) -> None:
    """What the runtime says of a cell is the same for each of its trials."""
    places = {store.keep_artifact("pixel/8 runtime", "run", b"content") for _ in range(3)}
    assert len(places) == 1
    assert (store.folder / places.pop()).read_bytes() == b"content"
    assert len(list((store.folder / "artifacts").rglob("*"))) == 2
