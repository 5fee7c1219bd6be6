"""The gate's verdict for a terminal: the headline, what is unusual, and what to know about the devices."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.analysis.gate_words import Ending, GateResult, Row, worst_first
from orchestrator.reports.gate_text import (
    against,
    change_text,
    counts_text,
    device_lines,
    headline,
    next_step,
    reasons,
    unusual,
)
from orchestrator.reports.run_table import latency_text

_ENDING_STYLE = {
    Ending.REGRESSION: "bold red",
    Ending.SUSPICION: "bold yellow",
    Ending.PARTIAL: "bold yellow",
    Ending.PASSED: "bold green",
    Ending.FIRST: "bold",
}
_VERDICT_STYLE = {"confirmed": "bold red", "suspected": "yellow", "faster": "green", "failed": "red", "rejected": "red"}
_ROWS_SHOWN = 40
_LEGEND = """
change: how much longer a cell takes than in the baseline's night, relative to the pinned reference of the same blocks \
where there is one; from stage two where both builds ran interleaved. Only confirmed fails the night, unless \
--fail-on suspected."""


def show_gate(console: Console, result: GateResult) -> None:
    """Everything a person in the morning needs; `--json` has every cell."""
    console.print(Text(headline(result), style=_ENDING_STYLE[result.ending]))
    console.print(f"{against(result)} · {counts_text(result)}")
    rows = worst_first(unusual(result))
    if rows:
        console.print()
        console.print(_table(rows[:_ROWS_SHOWN]))
        for line in reasons(rows[:_ROWS_SHOWN], result):
            console.print(Text(f"  {line}"), soft_wrap=True)
    if len(rows) > _ROWS_SHOWN:
        console.print(f"  and {len(rows) - _ROWS_SHOWN} more; --json has them all")
    for line in (*device_lines(result), *result.notes):
        console.print(Text(f"  {line}"), soft_wrap=True)
    if command := next_step(result):
        console.print(Text.assemble("next: ", (command, "bold")), soft_wrap=True)
    console.print(Text(f"{_LEGEND} Threshold {100 * result.threshold:g} %.", style="dim"))


def _table(rows: list[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for name in ("verdict", "device", "cell", "before", "now", "change [95 %]"):
        table.add_column(name, no_wrap=name != "cell")
    for row in rows:
        before, now = (latency_text(value) for value in row.latencies_us)
        verdict = Text(str(row.verdict), style=_VERDICT_STYLE.get(str(row.verdict), ""))
        table.add_row(verdict, row.cell.device, f"{row.cell.model} ({row.cell.setting})", before, now, change_text(row))
    return table
