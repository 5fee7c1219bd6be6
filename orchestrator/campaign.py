"""The campaign: all devices of a run at once, a thread each, every trial stored before the next one starts."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any, TypeVar

import tenacity

from orchestrator import registry
from orchestrator.cell_passes import Attempt, PassWork
from orchestrator.clock import SYSTEM, Deadline, timestamp
from orchestrator.collecting import collect_passes
from orchestrator.conductor import Conductor, Kept
from orchestrator.cool_down import Pace
from orchestrator.course import Course, conducted
from orchestrator.device_lock import device_lock
from orchestrator.errors import DevbenchError, Interrupted, StoreError, during
from orchestrator.fleet import Device
from orchestrator.grid import unsupported
from orchestrator.lineup import Lineup
from orchestrator.observing import DeviceResult as DeviceResult
from orchestrator.observing import Observer as Observer
from orchestrator.observing import Progress as Progress
from orchestrator.prepare import Prepared, keep_files, with_baseline
from orchestrator.store import SessionRecord, Store
from orchestrator.store.device_record import note_trouble
from orchestrator.trial import Cell, Finding, Outcome, Slot, Trial

T = TypeVar("T")

_TRIES = 4
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 20.0


def measure(
    prepared: Prepared, store: Store, observer: Observer, stop: threading.Event, *, resumed: bool = False
) -> list[DeviceResult]:
    """Measure every device; a device that fails takes no other with it. A store that fails ends everything."""
    if not resumed:
        prepared = keep_files(store, with_baseline(store, prepared))
        store.add_run(prepared.record, [], prepared.tags)
    shared = _Shared(prepared, store, observer, stop)
    works = [_DeviceWork(device, shared) for device in prepared.devices]
    threads = [threading.Thread(target=work.run, name=work.device.name, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)
    shared.raise_broken()
    _close_run(prepared, store, [work.result for work in works], resumed=resumed)
    return [work.result for work in works]


def _close_run(prepared: Prepared, store: Store, results: Sequence[DeviceResult], *, resumed: bool) -> None:
    """Note how the run ended. One that never got a device has failed, or is as it was before it was resumed."""
    if any(isinstance(result.error, Interrupted) for result in results):
        status = "interrupted"
    elif any(result.began for result in results):
        status = "finished"
    elif resumed:
        return
    else:
        status = "failed"
    store.set_status(prepared.record.id, status, timestamp(SYSTEM.now()))


class _Shared:
    """What the devices' threads have in common."""

    def __init__(self, prepared: Prepared, store: Store, observer: Observer, stop: threading.Event) -> None:
        self.prepared = prepared
        self.store = store
        self.observer = observer
        self.stop = stop
        self.speaking = threading.Lock()
        self._broken: BaseException | None = None

    def broke(self, error: BaseException) -> None:
        """Something no device is to blame for: everything ends."""
        self._broken = self._broken or error
        self.stop.set()

    def raise_broken(self) -> None:
        if self._broken:
            raise self._broken


class _DeviceWork:
    """The work on one device, in its own thread."""

    def __init__(self, device: Device, shared: _Shared) -> None:
        self.device = device
        self.result = DeviceResult(device.name)
        self._shared = shared
        self._run_id = shared.prepared.record.id
        self._session = secrets.token_hex(6)
        self._measure = conducted(shared.prepared.plan.measure)
        self._files = shared.prepared.inventory.files()
        self._lineup = Lineup(shared.prepared, device, shared.store)
        self._tally = self._lineup.tally(self._measure)
        self._cells: list[Cell] = []
        self._conductor: Conductor | None = None
        self._pace = Pace()
        self._has_session = False

    def run(self) -> None:
        """Thread entry: nothing escapes, everything is recorded."""
        try:
            self._measure_device()
        except StoreError as error:
            self.result.ending, self.result.error = "store", error
            self._shared.broke(error)
        except Interrupted as error:
            self.result.ending, self.result.error = "interrupted", error
        except DevbenchError as error:
            self.result.ending, self.result.error = "lost", error
            self._report_trouble(error)
        except BaseException as error:  # noqa: BLE001 - a bug must end the run loudly, not one thread silently
            self._shared.broke(error)
        finally:
            self._tell(lambda observer: observer.device_ended(self.device.name, self.result.ending))

    def _tell(self, say: Callable[[Observer], None]) -> None:
        with self._shared.speaking:
            say(self._shared.observer)

    def _measure_device(self) -> None:
        identity = registry.transport(self.device.transport).identity(self.device)
        with self._lock(identity):
            try:
                with during(f"getting {self.device.name} ready"):
                    conductor = self._persist(self._open)
                self._begin_session(conductor)
                collect = self._shared.prepared.plan.collect
                self.result.ending = self._work_through() if collect.latency else "done"
                if collect.profile or collect.trace:
                    self._collect()
                self._make_room()
                self._end_session(self.result.ending)
            except StoreError:
                raise
            except DevbenchError as error:
                self._end_session("interrupted" if isinstance(error, Interrupted) else f"lost: {error.fact}")
                raise
            finally:
                self._close()

    def _make_room(self) -> None:
        """Old files on the device go when the work is done; if that fails, the next run does it."""
        with suppress(DevbenchError):
            if self._conductor:
                self._conductor.prune()

    def _open(self) -> Conductor:
        prepared = self._shared.prepared
        self._conductor = Conductor(
            self.device,
            measure=self._measure,
            conditions=prepared.plan.conditions,
            files=self._files,
            lock=self._lock,
            pace=self._pace,
        )
        return self._conductor

    def _lock(self, identity: str) -> AbstractContextManager[None]:
        return device_lock(identity, device=self.device.name, run=self._run_id)

    def _close(self) -> None:
        if self._conductor:
            self._conductor.close()
            self._conductor = None

    # Beginning and end

    def _begin_session(self, conductor: Conductor) -> None:
        """Find out which cells this device runs, and note which it cannot run."""
        store = self._shared.store
        cells = self._lineup.ready(conductor)
        self._add_session(conductor.facts.as_json() | {"runners": self._lineup.runners}, conductor.findings)
        store.forget_not_run(self._run_id, self.device.name)
        store.set_status(self._run_id, "running", None)
        self.result.began = True
        store.add_cells(self._run_id, self._lineup.everyone(cells))
        for trial in store.trials(self._run_id):
            if trial.cell.device == self.device.name:
                self._tally.add(self._lineup.counted(trial))
        self._cells, skipped = self._sort_out(conductor, cells)
        store.add_trials([trial for trial in skipped if not self._tally.has(trial.slot)])
        self._tell(
            lambda observer: observer.device_ready(self.device.name, conductor.facts, conductor.findings, skipped)
        )

    def _add_session(self, facts: Mapping[str, Any], findings: tuple[Finding, ...]) -> None:
        record = SessionRecord(
            id=self._session,
            run_id=self._run_id,
            device=self.device.name,
            started_at=timestamp(SYSTEM.now()),
            facts=facts,
            findings=findings,
        )
        self._shared.store.add_session(record)
        self._has_session = True

    def _sort_out(self, conductor: Conductor, cells: Sequence[Cell]) -> tuple[list[Cell], list[Trial]]:
        runnable, skipped = [], []
        troubles = dict[str, str | None]()
        for cell in cells:
            taking = self._lineup.cells_of(cell)
            reason = next((why for one, facts in taking if (why := self._unsupported(conductor, one, facts))), None)
            if reason is None and cell.delegate not in troubles:
                troubles[cell.delegate] = conductor.delegate_trouble(cell.delegate)
            reason = reason or troubles.get(cell.delegate)
            if reason is None:
                runnable.append(cell)
            else:
                skipped.append(self._unmeasured(Slot(cell, 0, 0), Outcome.SKIPPED, reason))
        return runnable, skipped

    def _unsupported(self, conductor: Conductor, cell: Cell, runner_facts: Mapping[str, Any]) -> str | None:
        prepared = self._shared.prepared
        return unsupported(
            cell,
            device=self.device,
            facts=conductor.facts,
            platform=conductor.platform,
            runner=registry.runner(cell.runner),
            conditions=prepared.plan.conditions,
            delegate=self._files.delegate(cell.delegate),
            runner_facts=runner_facts,
            is_brought=prepared.duel is not None,
        )

    def _unmeasured(self, slot: Slot, outcome: Outcome, reason: str) -> Trial:
        return Trial(self._run_id, slot, self._session, outcome, reason, timestamp(SYSTEM.now()))

    def _end_session(self, ending: str) -> None:
        """Note why it ended, and which slots were not run for it. A device that could not be made ready is part of
        the run's story too."""
        if not self._has_session:
            self._add_session({}, ())
        self.result.measured = self._tally.measured
        if self._shared.prepared.plan.collect.latency:
            self.result.incomplete = [cell for cell in self._cells if not self._tally.is_complete(cell)]
        missing = [
            self._unmeasured(self._lineup.taken(slot), Outcome.NOT_RUN, self._tally.given_up(slot.cell) or ending)
            for cell in self.result.incomplete
            for slot in self._tally.missing(cell)
        ]
        self._shared.store.add_trials(missing)
        self._shared.store.end_session(self._session, timestamp(SYSTEM.now()), ending)

    # The work

    def _work_through(self) -> str:
        """Everything there is to do; gives the reason for ending."""
        prepared = self._shared.prepared
        pinned = prepared.pinned_among(self._cells)
        course = Course(self._cells, self._measure, prepared.record.seed, self._tally, self, pinned)
        ending = course.run()
        self._shared.store.set_stops(self._run_id, course.stops())
        return ending

    def renew_session(self) -> None:
        """Let go of the device and make it ready anew, as if on another day."""
        self._shared.store.end_session(self._session, timestamp(SYSTEM.now()), "another session follows")
        self._close()
        self._session = secrets.token_hex(6)
        conductor = self._persist(self._open)
        self._add_session(conductor.facts.as_json() | {"runners": self._lineup.runners}, conductor.findings)

    def _budget(self) -> Deadline | None:
        budget_s = self._shared.prepared.plan.measure.budget_s
        return Deadline.after(max(0.0, budget_s - self._tally.used_s)) if budget_s else None

    def _collect(self) -> None:
        """The cells once more in passes of their own, when all latencies are in."""
        work = PassWork(
            run=self._run_id,
            session=self._session,
            store=self._shared.store,
            lineup=self._lineup,
            attempt=Attempt(self._persist, lambda: self._conductor or self._open()),
            stopped=self._shared.stop.is_set,
            budget=self._budget(),
        )
        everyone = self._lineup.everyone(self._cells)
        collect_passes(work, everyone, self._shared.prepared.plan, self.result, self._tell)

    def do(self, slot: Slot, *, waits: bool) -> Trial:
        """One slot's trial, stored and counted; `waits` says whether the device is waited for."""
        slot = self._lineup.taken(slot)
        before = self._progress(slot.block)
        self._tell(lambda observer: observer.trial_started(slot, before))
        trial = self._persist(lambda: self._try(slot, waits=waits))
        self._tally.add(self._lineup.counted(trial))
        after = self._progress(slot.block)
        self._tell(lambda observer: observer.trial_done(trial, after))
        return trial

    def _progress(self, block: int) -> Progress:
        missing, left_s = self._tally.slots_left(self._cells)
        return Progress(block=block, done=self._tally.trials, missing=missing, left_s=left_s)

    def _try(self, slot: Slot, *, waits: bool) -> Trial:
        """One trial, committed. A connection that breaks is made anew a few times."""
        conductor = self._conductor or self._open()
        self._lineup.use(conductor, slot.cell, slot.arm)
        trial, kept = conductor.conduct(
            slot,
            run=self._run_id,
            session=self._session,
            stopped=self._shared.stop.is_set,
            waiting=(lambda reason: self._tell(lambda observer: observer.waiting(slot, reason))) if waits else None,
        )
        return self._keep(trial, kept)

    def _persist(self, action: Callable[[], T]) -> T:
        """Do it, again after a while where the kind of error gives hope, and let go of the device in between."""
        tries = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, DevbenchError) and error.retryable),
            stop=tenacity.stop_after_attempt(_TRIES) | tenacity.stop_when_event_set(self._shared.stop),
            wait=tenacity.wait_exponential(multiplier=_FIRST_WAIT_S, max=_LONGEST_WAIT_S),
            sleep=self._pause,
            before_sleep=self._before_retry,
            reraise=True,
        )
        try:
            return tries(action)
        except DevbenchError as error:
            self._close_quietly()
            if self._shared.stop.is_set() and not isinstance(error, StoreError):
                raise Interrupted("stopped", remedy="`devbench run --resume` goes on where it was") from error
            raise

    def _pause(self, seconds: float) -> None:
        """Wait before another try, unless the run is being stopped."""
        self._shared.stop.wait(seconds)

    def _before_retry(self, state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        assert isinstance(error, DevbenchError)
        self._close_quietly()
        name, store = self.device.name, self._shared.store
        note_trouble(store, run=self._run_id, session=self._session, device=name, fact=error.fact)
        self._report_trouble(error)

    def _close_quietly(self) -> None:
        """Let go of a device that may no longer answer; what could not be undone there is in its journal."""
        with suppress(DevbenchError):
            self._close()
        self._conductor = None

    def _report_trouble(self, error: DevbenchError) -> None:
        self._tell(lambda observer: observer.trouble(self.device.name, error))

    def _keep(self, trial: Trial, kept: Kept) -> Trial:
        store, name = self._shared.store, f"{self.device.name}-b{trial.slot.block:03d}"
        log = store.keep_log(f"{name}-p{trial.slot.position:03d}-{trial.cell.id}", self._run_id, kept.transcript)
        files = {
            role: store.keep_artifact(f"{self.device.name}-{trial.cell.id}-{role}", self._run_id, content)
            for role, content in kept.outputs.items()
        }
        whole = replace(trial, log=log, evidence={**trial.evidence, "artifacts": files})
        store.add_trial(whole)
        return whole
