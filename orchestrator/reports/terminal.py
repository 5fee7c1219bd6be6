"""Results as tables for a terminal; plain text when it is piped."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.clock import duration_text
from orchestrator.pinned import is_reference
from orchestrator.reports.counting import counted
from orchestrator.reports.judgements import show_recommendations, show_stops, show_sustained, show_trust, show_variance
from orchestrator.reports.run_table import WIDE, Row, run_table, startup_text

if TYPE_CHECKING:
    from orchestrator.analysis.crossover import Crossover, CrossoverAnswer
    from orchestrator.analysis.summary import CellSummary, RunSummary
    from orchestrator.doctor import Examined
    from orchestrator.preview import Preview
    from orchestrator.store import RunRecord, SessionRecord
    from orchestrator.trial import Cell, Finding

_PLAIN_WIDTH = 200
_SEVERITY_STYLE = {"fail": "bold red", "reject": "red", "warn": "yellow", "note": "dim"}
_VERDICT_STYLE = {"wins": "green", "loses": "red"}
_ANSWER_STYLE = {"yes": "bold yellow", "no": "bold green", "unknown": "bold"}
_FINDINGS_SHOWN = 12
_LEGEND = """
p50: the typical trial, a trial being a fresh process and its median; the 95 % interval is over trials. \
mean, p95: the same for each trial's mean and 95th percentile, with p95 over p50 in brackets. """
_WIDE_LEGEND = """\
CV in, CV between: robust spread inside a process and between processes. \
speed-up: p50 against the fewest threads at the same load. against idle: how many times longer p50 is under load. \
Both are paired by block, with 95 % intervals."""
_NARROW_LEGEND = """\
speed-up: p50 against the fewest threads at the same load. vs idle: how many times longer p50 is under load. \
A wider terminal and --json have more: means, spreads, and the intervals of the ratios."""


class _PipeConsole(Console):
    """A console that says so when its reader has gone; rich itself would end the program with 1, a judgement."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, "the reader has gone")


def console_for(stream: TextIO) -> Console:
    """Colours and the terminal's width on a terminal; plain and wide otherwise."""
    return _PipeConsole(file=stream, width=None if stream.isatty() else _PLAIN_WIDTH, highlight=False, soft_wrap=False)


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, justify in columns:
        table.add_column(name, justify=justify, no_wrap=justify == "right")  # type: ignore[arg-type]  # rich wants a literal
    return table


# A run


def show_run(
    console: Console,
    record: RunRecord | None,
    sessions: Sequence[SessionRecord],
    summary: RunSummary,
    stops: Mapping[str, str],
) -> None:
    """A run's header, a table for each model and device, the answers, and what to know about the numbers."""
    if record:
        _show_header(console, record, sessions, summary)
    speedups = {(item.contrast.cell, item.contrast.arm): item for item in _of_p50(summary.crossovers)}
    sensitivities = {(item.cell, item.arm): item.ratio for item in _of_metric(summary.load_sensitivities)}
    for _, group in itertools.groupby(summary.cells, key=_group_key):
        cells = list(group)
        _show_cells(console, cells, speedups, sensitivities)
        key = _group_key(cells[0])
        for answer in summary.answers:
            if _place(answer.cell, answer.arm) == key:
                _show_answer(console, answer, [item for item in summary.crossovers if _is_of(item, answer)])
    fleet = record.fleet if record else {}
    show_recommendations(console, summary, {one.cell.id for one in summary.cells if is_reference(fleet, one.cell)})
    show_sustained(console, summary.sustained, summary.rankings)
    _show_unmeasured(console, summary)
    show_trust(console, summary)
    _show_remarks(console, summary)
    if summary.cells:
        console.print()
        show_stops(console, stops)
        show_variance(console, summary.components)
        legend = _LEGEND + (_WIDE_LEGEND if console.width >= WIDE else _NARROW_LEGEND)
        console.print(Text(legend, style="dim"))


def _show_answer(console: Console, answer: CrossoverAnswer, crossovers: Sequence[Crossover]) -> None:
    """The question with its answer by each metric, and under it the verdict at each load: under load they disagree."""
    if answer.threads is None:
        console.print(Text(f"→ {answer.by_metric['p50'].text}"))
        return
    question = f"→ Do {answer.threads} threads win when idle and lose under load?"
    words: list[str | tuple[str, str]] = [question]
    for metric, found in answer.by_metric.items():
        words += [f" by {metric} ", (str(found.answer), _ANSWER_STYLE[str(found.answer)]), ","]
    console.print(Text.assemble(*words[:-1]))
    ours = [item for item in crossovers if item.contrast.cell.threads == answer.threads]
    for load, at_load in itertools.groupby(ours, key=lambda item: item.contrast.cell.load):
        console.print(_verdicts_text(load, list(at_load)))


def _verdicts_text(load: str, crossovers: Sequence[Crossover]) -> Text:
    """`  cpu:1@100  p50 0.96x same · mean 0.62x loses · p95 0.33x loses`."""
    parts: list[str | tuple[str, str]] = [f"    {load:12}"]
    for number, crossover in enumerate(crossovers):
        speedup = crossover.contrast.ratio.inverse.value
        style = _VERDICT_STYLE.get(str(crossover.verdict), "")
        ratio = "–" if speedup is None else f"{speedup:.2f}x"
        parts += [" · " if number else "", f"{crossover.contrast.metric} {ratio} ", (str(crossover.verdict), style)]
    needed = [crossover.blocks_needed for crossover in crossovers if str(crossover.verdict) == "undecided"]
    known = [blocks for blocks in needed if blocks is not None]
    if known:
        parts.append(f" (about {counted(max(known), 'more block')} would decide)")
    return Text.assemble(*parts)


def _of_p50(crossovers: Iterable[Crossover]) -> Iterable[Crossover]:
    return (item for item in crossovers if item.contrast.metric == "p50")


def _of_metric(contrasts: Iterable[Any]) -> Iterable[Any]:
    return (item for item in contrasts if item.metric == "p50")


def _group_key(found: CellSummary) -> tuple[str, ...]:
    return _place(found.cell, found.estimate.arm)


def _place(cell: Cell, arm: str | None) -> tuple[str, ...]:
    return cell.device, cell.model, cell.model_sha256, cell.runner, cell.delegate, arm or ""


def _is_of(crossover: Crossover, answer: CrossoverAnswer) -> bool:
    """Whether a verdict belongs to the sweep that an answer is about."""
    cell, arm = crossover.contrast.cell, crossover.contrast.arm
    return _place(cell, arm) == _place(answer.cell, answer.arm) and cell.affinity == answer.cell.affinity


def _show_header(console: Console, record: RunRecord, sessions: Sequence[SessionRecord], summary: RunSummary) -> None:
    totals: dict[str, int] = {}
    for found in summary.cells:
        for outcome, count in found.estimate.outcomes.items():
            totals[str(outcome)] = totals.get(str(outcome), 0) + count
    counted = ", ".join(f"{count} {outcome}" for outcome, count in totals.items() if count) or _sustained_text(summary)
    state = record.status if record.status != "running" else "running, or killed (then `devbench run --resume` goes on)"
    console.print(Text.assemble(("run ", "dim"), (record.id, "bold"), f" · {state} · {counted} · seed {record.seed}"))
    latest = {session.device: session for session in sessions}
    for session in latest.values():
        console.print(f"{session.device}: {facts_text(session.facts)}")
        for finding in session.findings:
            console.print(Text(f"  {finding.severity}: {finding.reason}", style=_SEVERITY_STYLE[str(finding.severity)]))
        for wait in (wait for wait in summary.waits if wait.device == session.device):
            longest = f", {duration_text(wait.longest_s)} at most" if wait.trials > 1 else ""
            waited = f"waited {duration_text(wait.seconds)} in all before {wait.trials} of {wait.of} trials{longest}"
            console.print(Text(f"  {waited}, until it was fit", style="dim"))
        ending = "" if session.ending in (None, "done") else f" The work ended early: {session.ending}."
        if ending:
            console.print(Text(ending.strip(), style="yellow"))
    pinned = [found.cell for found in summary.cells if is_reference(record.fleet, found.cell)]
    for setting in dict.fromkeys(f"{cell.model} ({cell.setting})" for cell in pinned):
        console.print(Text(f"pinned reference, in every block: {setting}", style="dim"))


def _sustained_text(summary: RunSummary) -> str:
    return f"{counted(len(summary.sustained), 'cell')} sustained" if summary.sustained else "no trials"


def facts_text(facts: Mapping[str, Any]) -> str:
    """`AMD EPYC, 2 cores, 23.5 GiB, Linux 6.18, virtual machine (KVM)`."""
    if not facts:
        return "not reached"
    memory_kb = facts.get("memory_kb")
    parts = [
        facts.get("cpu_model") or facts.get("machine"),
        _cores_text(facts),
        f"{memory_kb / 1048576:.1f} GiB" if memory_kb else None,
        facts.get("os"),
        f"kernel {facts.get('kernel')}" if facts.get("kernel") else None,
        f"governor {facts['governor']}" if facts.get("governor") else None,
        _virtual_text(facts.get("virtualisation")),
    ]
    return ", ".join(str(part) for part in parts if part)


def _virtual_text(hypervisor: str | None) -> str | None:
    if not hypervisor:
        return None
    return "virtual machine" if hypervisor == "unnamed" else f"virtual machine ({hypervisor})"


def _cores_text(facts: Mapping[str, Any]) -> str:
    clusters = facts.get("clusters") or []
    if len(clusters) > 1:
        return (
            "+".join(str(len(cluster["cpus"])) for cluster in clusters)
            + " cores ("
            + ", ".join(cluster["name"] for cluster in clusters)
            + ")"
        )
    cores = facts.get("cores")
    return "1 core" if cores == 1 else f"{cores} cores"


def _show_cells(
    console: Console, cells: Sequence[CellSummary], speedups: Mapping[Any, Any], loads: Mapping[Any, Any]
) -> None:
    first = cells[0].cell
    arm = f" · {cells[0].estimate.arm}" if cells[0].estimate.arm else ""
    console.print()
    console.print(Text.assemble((first.model, "bold"), f" · {first.runner} · {first.delegate} · {first.device}{arm}"))
    affinities = len({found.cell.affinity for found in cells}) > 1
    rows = [
        Row(
            found,
            speedup=speedups.get((found.cell, found.estimate.arm)),
            against_idle=loads.get((found.cell, found.estimate.arm)),
            load=f"{found.cell.load} @{found.cell.affinity}" if affinities else found.cell.load,
        )
        for found in cells
    ]
    console.print(run_table(rows, console.width))
    if startup := startup_text(cells[0]):
        console.print(Text(startup, style="dim"), soft_wrap=True)


def _show_unmeasured(console: Console, summary: RunSummary) -> None:
    """One line a cell: how many trials do not count, and the most common reason."""
    rows = [found for found in summary.cells if found.estimate.reasons]
    if not rows:
        return
    console.print()
    console.print(Text("not measured", style="bold"))
    for found in rows[:_FINDINGS_SHOWN]:
        reasons = found.estimate.reasons
        total = sum(count for _, count in reasons)
        more = "" if len(reasons) == 1 else f" (and {counted(len(reasons) - 1, 'other reason')})"
        console.print(f"  {total} x {found.cell}: {reasons[0][0]}{more}")
    if len(rows) > _FINDINGS_SHOWN:
        console.print(f"  and {len(rows) - _FINDINGS_SHOWN} more cells; --json has them all")


def _show_remarks(console: Console, summary: RunSummary) -> None:
    if not summary.remarks:
        return
    console.print()
    console.print(Text("worth knowing", style="bold"))
    for remark in summary.remarks:
        share = f"in {remark.trials} of {remark.of} trials, such as: {remark.example}"
        style = _SEVERITY_STYLE[str(remark.severity)]
        console.print(Text.assemble("  ", (str(remark.severity), style), f": {share}; {remark.remedy}"))


# Findings, devices, dry runs


def show_findings(console: Console, findings: Iterable[Finding], indent: str = "  ") -> None:
    for finding in findings:
        style = _SEVERITY_STYLE[str(finding.severity)]
        console.print(Text.assemble(indent, (str(finding.severity), style), f": {finding.reason}"))
        console.print(Text(f"{indent}      try: {finding.remedy}", style="dim"))


def show_devices(console: Console, examined: Sequence[Examined]) -> None:
    for found in examined:
        mark = ("fit", "green") if found.is_fit else ("not fit", "bold red")
        console.print(Text.assemble((found.device.name, "bold"), f" · {found.device.transport} · ", mark))
        if found.facts:
            _show_facts(console, found)
        show_findings(console, found.findings)


def _show_facts(console: Console, found: Examined) -> None:
    assert found.facts
    console.print(f"  {facts_text(found.facts.as_json())}")
    if text := _board_text(found.facts.raw.get("board") or {}):
        console.print(f"  {text}")
    for cluster in found.facts.clusters:
        speed = f", up to {cluster.max_khz / 1000:.0f} MHz" if cluster.max_khz else ""
        console.print(f"  {cluster.name}: CPU {', '.join(str(cpu) for cpu in cluster.cpus)}{speed}")
    sensors = ", ".join(found.facts.sensors) or "none"
    console.print(f"  temperature sensors: {sensors}")
    for name, facts in found.runners.items():
        console.print(f"  {name}: {facts.get('runtime')} {facts.get('runtime_version')}")
    if found.facts.absent:
        absent = ", ".join(f"{key} ({why})" for key, why in found.facts.absent.items())
        console.print(Text(f"  not readable: {absent}", style="dim"))


def _board_text(board: Mapping[str, Any]) -> str:
    """`SoC brcm,bcm2711, userland of 64 bits, glibc 2.36, power mode MAXN`: as much as is known."""
    libc = board.get("libc") or {}
    parts = [f"SoC {board['soc']}"] if board.get("soc") else []
    parts += [f"userland of {board['userland_bits']} bits"] if board.get("userland_bits") else []
    parts += [f"{libc['name']} {libc.get('version', '')}".strip()] if libc else []
    parts += [f"power mode {board['power_mode']}"] if board.get("power_mode") else []
    return ", ".join(parts)


def _range(low: int, high: int, noun: str) -> str:
    return counted(low, noun) if low == high else f"{low} to {high} {noun}s"


def show_dry_run(console: Console, seen: Preview) -> None:
    """The cells, the first blocks in their order, and how long it would take."""
    cells, least = len(seen.cells), len(seen.blocks)
    drawn = " (drawn; --seed fixes it)" if seen.is_seed_drawn else ""
    work = [
        counted(cells, "cell"),
        _range(least, seen.blocks_max, "block"),
        _range(cells * least, cells * seen.blocks_max, "trial"),
    ]
    times = [duration_text(seconds) for seconds in dict.fromkeys(seen.seconds)]
    summary = f"{', '.join(work)}, seed {seen.seed}{drawn}; about {' to '.join(times)}."
    console.print(f"{summary} No device was touched.", soft_wrap=True)
    for note in seen.notes:
        console.print(Text(note, style="yellow"))
    table = _table(
        ("block", "right"), ("position", "right"), ("device", "left"), ("model", "left"), ("setting", "left")
    )
    for slot in itertools.chain.from_iterable(seen.blocks[:2]):
        cell = slot.cell
        table.add_row(str(slot.block), str(slot.position), cell.device, cell.model, cell.setting)
    console.print(table)
    if least > 2:
        console.print(f"and so on, each block in an order of its own, to block {least - 1}; --json lists all")
