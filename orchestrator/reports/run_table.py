"""The table of a run's cells: every column on a wide terminal, the ones that matter most on a narrow one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.table import Table
from rich.text import Text

from orchestrator.trial import Outcome

if TYPE_CHECKING:
    from orchestrator.analysis.crossover import Crossover
    from orchestrator.analysis.estimate import Estimate
    from orchestrator.analysis.summary import CellSummary

WIDE = 170
TRUST_STYLE = {"trusted": "green", "noisy": "yellow", "contaminated": "red", "insufficient": "yellow"}
_TRUST_SHORT = {"contaminated": "contam.", "insufficient": "too few"}


@dataclass(frozen=True)
class Row:
    """A cell with its ratios, where there are any."""

    found: CellSummary
    speedup: Crossover | None
    against_idle: Estimate | None
    load: str


@dataclass(frozen=True)
class Column:
    """What a column is called, and what it shows of a row."""

    name: str
    text: Callable[[Row], str | Text]
    justify: Literal["left", "right"] = "right"


def latency_text(latency_us: float | None) -> str:
    """Three digits with the unit that suits them."""
    if latency_us is None:
        return "–"
    if latency_us < 1000:
        return f"{latency_us:.0f} us" if latency_us >= 100 else f"{latency_us:.1f} us"
    return f"{latency_us / 1000:.2f} ms" if latency_us < 100_000 else f"{latency_us / 1000:.0f} ms"


def _interval(row: Row) -> str:
    """The interval, or why there is none."""
    p50 = row.found.estimate.latency_us["p50"]
    if p50.low is None or p50.high is None:
        return p50.note or ""
    low, high = latency_text(p50.low), latency_text(p50.high)
    same_unit = low.split()[-1] == high.split()[-1]
    return f"[{low.split()[0] if same_unit else low}, {high}]"


def _p50(row: Row) -> str:
    return latency_text(row.found.estimate.latency_us["p50"].value)


def _p50_with_half_width(row: Row) -> str:
    half_width = row.found.estimate.half_width
    return f"{_p50(row)} " + ("± ?" if half_width is None else f"±{100 * half_width:.1f} %")


def _tail(row: Row) -> str:
    """The slow inferences: the trials' p95, and how many times the typical one that is."""
    p50, p95 = (row.found.estimate.latency_us[metric].value for metric in ("p50", "p95"))
    return latency_text(p95) if p50 is None or p95 is None else f"{latency_text(p95)} ({p95 / p50:.1f}x)"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _ratio(estimate: Estimate | None) -> str:
    return "" if estimate is None or estimate.value is None else f"{estimate.value:.2f}x"


def _ratio_with_interval(estimate: Estimate | None) -> str:
    if estimate is None or estimate.low is None or estimate.high is None:
        return _ratio(estimate)
    return f"{_ratio(estimate)} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _speedup(row: Row, ratio: Callable[[Estimate | None], str]) -> str | Text:
    if row.speedup is None:
        return ""
    style = {"wins": "green", "loses": "red"}.get(str(row.speedup.verdict), "")
    return Text(f"{ratio(row.speedup.contrast.ratio.inverse)} {row.speedup.verdict}", style=style)


def _trust(row: Row) -> Text:
    verdict = str(row.found.trust.verdict)
    return Text(verdict, style=TRUST_STYLE[verdict])


def _trust_in_short(row: Row) -> Text:
    verdict = str(row.found.trust.verdict)
    return Text(_TRUST_SHORT.get(verdict, verdict), style=TRUST_STYLE[verdict])


_WIDE_COLUMNS = (
    Column("load", lambda row: row.load, "left"),
    Column("threads", lambda row: str(row.found.cell.threads)),
    Column("p50", _p50),
    Column("95 % interval", _interval, "left"),
    Column("mean", lambda row: latency_text(row.found.estimate.latency_us["mean"].value)),
    Column("p95", _tail),
    Column("CV in", lambda row: _share(row.found.variability.within_cv)),
    Column("CV between", lambda row: _share(row.found.variability.between_cv)),
    Column("speed-up", lambda row: _speedup(row, _ratio_with_interval), "left"),
    Column("against idle", lambda row: _ratio_with_interval(row.against_idle), "left"),
    Column("trials", lambda row: str(row.found.estimate.outcomes.get(Outcome.MEASURED, 0))),
    Column("trust", _trust, "left"),
)
_NARROW_COLUMNS = (
    Column("load", lambda row: row.load, "left"),
    Column("threads", lambda row: str(row.found.cell.threads)),
    Column("p50", _p50_with_half_width),
    Column("p95", _tail),
    Column("speed-up", lambda row: _speedup(row, _ratio), "left"),
    Column("vs idle", lambda row: _ratio(row.against_idle)),
    Column("trust", _trust_in_short, "left"),
)


def startup_text(found: CellSummary) -> str | None:
    """What comes before the steady state, and the memory; None where the runner tells none of it."""
    medians = found.estimate.medians
    times = (("init", "init_us"), ("first inference", "first_us"), ("warm-up", "warmup_avg_us"))
    parts = [f"{name} {latency_text(medians[key])}" for name, key in times if medians.get(key) is not None]
    peak_kb = medians.get("memory_peak_kb") or medians.get("process_maxrss_kb")
    if not parts:
        return None
    parts.append(f"steady {latency_text(found.estimate.latency_us['p50'].value)}")
    if medians.get("memory_overall_mb") is not None:
        parts.append(f"model and runtime {medians['memory_overall_mb']:.1f} MB")
    if peak_kb:
        parts.append(f"process {peak_kb / 1024:.1f} MB at most")
    threads = "1 thread" if found.cell.threads == 1 else f"{found.cell.threads} threads"
    return f"start-up ({found.cell.load}, {threads}): {', '.join(parts)}"


def run_table(rows: Sequence[Row], width: int) -> Table:
    """The rows as a table that fits so many columns of text."""
    columns = _WIDE_COLUMNS if width >= WIDE else _NARROW_COLUMNS
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for column in columns:
        table.add_column(column.name, justify=column.justify, no_wrap=True)
    for row in rows:
        table.add_row(*(column.text(row) for column in columns))
    return table
