"""What is going on during a run: a live line a device on a terminal, plain lines otherwise."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchestrator.campaign import Progress
from orchestrator.clock import duration_text
from orchestrator.errors import DevbenchError
from orchestrator.op_profile import ProfilePass
from orchestrator.platforms.base import Facts
from orchestrator.reports.run_table import latency_text
from orchestrator.reports.runs_table import size_text
from orchestrator.reports.terminal import facts_text
from orchestrator.trace import TracePass
from orchestrator.trial import Cell, Finding, Outcome, Severity, Slot, Trial

_WIDE = 110


class _Medians:
    """The estimate so far: the median of a cell's trial medians."""

    def __init__(self) -> None:
        self._of_cell: dict[str, list[float]] = {}

    def add(self, trial: Trial) -> None:
        if trial.outcome == Outcome.MEASURED and trial.samples_us:
            self._of_cell.setdefault(trial.cell.id, []).append(statistics.median(trial.samples_us))

    def text(self, cell: Cell) -> str:
        values = self._of_cell.get(cell.id)
        return latency_text(statistics.median(values)) if values else "–"


def _cell_text(cell: Cell) -> str:
    return f"{cell.model} ({cell.setting})"


def _trial_text(trial: Trial) -> str:
    return _cell_text(trial.cell) + (f" {trial.slot.arm}" if trial.slot.arm else "")


def _profile_text(passed: ProfilePass) -> str:
    if passed.outcome != Outcome.MEASURED or passed.profile is None:
        return f"{passed.outcome}: {passed.reason}"
    return f"{len(passed.profile.ops)} operators, {latency_text(passed.profile.time_us)} an inference"


def _trace_text(passed: TracePass) -> str:
    why = f" because it is {passed.why}" if passed.why else ""
    if passed.outcome != Outcome.MEASURED or passed.trace is None:
        return f"{passed.outcome}{why}: {passed.reason}"
    trace = passed.trace
    covered = f" over {trace.duration_s:.1f} s" if trace.duration_s is not None else ""
    return f"{passed.kind}{why}: {trace.events} events{covered}, {size_text(trace.size_bytes)}"


class SilentProgress:
    """Says nothing: for --quiet."""

    def device_ready(self, device: str, facts: Facts, findings: Sequence[Finding], skipped: Sequence[Trial]) -> None:
        pass

    def trial_started(self, slot: Slot, progress: Progress) -> None:
        pass

    def waiting(self, slot: Slot, reason: str) -> None:
        pass

    def trial_done(self, trial: Trial, progress: Progress) -> None:
        pass

    def profiled(self, passed: ProfilePass) -> None:
        pass

    def traced(self, passed: TracePass) -> None:
        pass

    def noted(self, device: str, text: str) -> None:
        pass

    def trouble(self, device: str, error: DevbenchError) -> None:
        pass

    def device_ended(self, device: str, ending: str) -> None:
        pass


class PlainProgress:
    """One line an event, for pipes, logs and nightly jobs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._medians = _Medians()
        self._waits_told: set[str] = set()

    def _line(self, text: str) -> None:
        with suppress(OSError):  # whoever listened may have gone; the run goes on
            print(text, file=self._stream, flush=True)

    def device_ready(self, device: str, facts: Facts, findings: Sequence[Finding], skipped: Sequence[Trial]) -> None:
        self._line(f"{device}: {facts_text(facts.as_json())}")
        for finding in findings:
            self._line(f"{device}: {finding.severity}: {finding.reason}")
        for trial in skipped:
            self._line(f"{device}: skipped {_cell_text(trial.cell)}: {trial.reason}")

    def trial_started(self, slot: Slot, progress: Progress) -> None:
        self._waits_told.discard(slot.cell.device)

    def waiting(self, slot: Slot, reason: str) -> None:
        if slot.cell.device not in self._waits_told:
            self._waits_told.add(slot.cell.device)
            self._line(f"{slot.cell.device}: waiting: {reason}")

    def trial_done(self, trial: Trial, progress: Progress) -> None:
        self._medians.add(trial)
        place = f"{trial.cell.device}: block {progress.block} [{progress.done}/{progress.done + progress.missing}]"
        left = f", {duration_text(progress.left_s)} left" if progress.missing else ""
        if trial.outcome == Outcome.MEASURED:
            latency = latency_text(statistics.median(trial.samples_us)) if trial.samples_us else "summary only"
            so_far = self._medians.text(trial.cell)
            self._line(f"{place} {_trial_text(trial)}: {latency} (so far {so_far}){left}")
        else:
            self._line(f"{place} {_trial_text(trial)}: {trial.outcome}: {trial.reason}{left}")

    def profiled(self, passed: ProfilePass) -> None:
        self._line(f"{passed.cell.device}: profile of {_cell_text(passed.cell)}: {_profile_text(passed)}")

    def traced(self, passed: TracePass) -> None:
        self._line(f"{passed.cell.device}: trace of {_cell_text(passed.cell)}: {_trace_text(passed)}")

    def noted(self, device: str, text: str) -> None:
        self._line(f"{device}: {text}")

    def trouble(self, device: str, error: DevbenchError) -> None:
        self._line(f"{device}: {error.fact}; try: {error.remedy}")

    def device_ended(self, device: str, ending: str) -> None:
        self._line(f"{device}: {ending}")


class LiveProgress:
    """A line a device that changes in place, and lines that stay for what deserves attention."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._medians = _Medians()
        self._rows: dict[str, tuple[str, str, str, str]] = {}
        self._live = Live(console=console, refresh_per_second=8, transient=True, get_renderable=self._table)

    def __enter__(self) -> LiveProgress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _table(self) -> Table:
        """A line a device; on a narrow terminal the cell's text gives way first."""
        table = Table.grid(padding=(0, 2), expand=True)
        for overflow in ("fold", "fold", "fold", "ellipsis", "fold"):
            table.add_column(no_wrap=True, overflow=overflow, ratio=1 if overflow == "ellipsis" else None)
        for device, (block, bar, cell, left) in self._rows.items():
            table.add_row(Text(device, style="bold"), block, Text(bar, style="green"), cell, Text(left, style="cyan"))
        return table

    def device_ready(self, device: str, facts: Facts, findings: Sequence[Finding], skipped: Sequence[Trial]) -> None:
        self._console.print(Text.assemble((device, "bold"), f": {facts_text(facts.as_json())}"))
        for finding in findings:
            style = "yellow" if finding.severity != Severity.NOTE else "dim"
            self._console.print(Text(f"  {finding.severity}: {finding.reason}", style=style))
        for trial in skipped:
            self._console.print(Text(f"  skipped {_cell_text(trial.cell)}: {trial.reason}", style="yellow"))
        self._rows[device] = ("ready", "", "", "")

    def trial_started(self, slot: Slot, progress: Progress) -> None:
        self._rows[slot.cell.device] = self._row(slot.cell, progress)

    def waiting(self, slot: Slot, reason: str) -> None:
        block, bar, _, left = self._rows[slot.cell.device]
        self._rows[slot.cell.device] = (block, bar, f"waiting: {reason}", left)

    def trial_done(self, trial: Trial, progress: Progress) -> None:
        self._medians.add(trial)
        self._rows[trial.cell.device] = self._row(trial.cell, progress)
        if trial.outcome != Outcome.MEASURED:
            text = f"{trial.cell.device}: {_cell_text(trial.cell)}: {trial.outcome}: {trial.reason}"
            self._console.print(Text(text, style="red"))

    def _row(self, cell: Cell, progress: Progress) -> tuple[str, str, str, str]:
        total = progress.done + progress.missing
        filled = round(20 * progress.done / total) if total else 20
        bar = "━" * filled + "╌" * (20 - filled)
        left = f"{duration_text(progress.left_s)} left" if progress.missing else "refining"
        return (
            f"block {progress.block}, trial {progress.done} of {total}",
            bar if self._console.width >= _WIDE else "",
            f"{self._medians.text(cell)} {_cell_text(cell)}",
            left,
        )

    def profiled(self, passed: ProfilePass) -> None:
        self._rows[passed.cell.device] = ("profiles", "", _cell_text(passed.cell), "")
        if passed.outcome != Outcome.MEASURED:
            text = f"{passed.cell.device}: profile of {_cell_text(passed.cell)}: {_profile_text(passed)}"
            self._console.print(Text(text, style="yellow"))

    def traced(self, passed: TracePass) -> None:
        self._rows[passed.cell.device] = ("traces", "", _cell_text(passed.cell), "")
        if passed.outcome != Outcome.MEASURED or passed.why:
            text = f"{passed.cell.device}: trace of {_cell_text(passed.cell)}: {_trace_text(passed)}"
            self._console.print(Text(text, style="yellow"))

    def noted(self, device: str, text: str) -> None:
        self._console.print(Text(f"{device}: {text}"))

    def trouble(self, device: str, error: DevbenchError) -> None:
        self._console.print(Text(f"{device}: {error.fact}; try: {error.remedy}", style="red"))

    def device_ended(self, device: str, ending: str) -> None:
        self._rows[device] = (ending, "", "", "")
