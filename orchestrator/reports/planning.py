"""What devices can tell apart, and what a plan takes, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.clock import duration_text
from orchestrator.reports.counting import counted

if TYPE_CHECKING:
    from orchestrator.noise_book import Calibration
    from orchestrator.planning import Outlook

_LEGEND = """
noise: how much two neighbours that are the same differ, robustly; bad blocks: beyond three times that. \
between sessions: how much sessions differ beyond that. \
finds: the smallest change that an interleaved comparison of so many blocks finds nine times in ten; \
then the blocks it takes for a change of 1, 2, 5 and 10 %. All for p50; --json has mean and p95."""


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index < 2 else "right", no_wrap=True)
    return table


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _blocks(count: int | None) -> str:
    return "too many" if count is None else str(count)


def show_calibration(console: Console, calibration: Calibration) -> None:
    """The noise of each family of cells, and whether the same thing was ever taken for two."""
    from orchestrator.noise_book import CHANGES

    finds = f"finds ({calibration.blocks} blocks)"
    changes = [f"{100 * change:g} %" for change in CHANGES]
    table = _table("device", "cells", "noise", "bad blocks", "between sessions", finds, *changes)
    for noise in (noise for noise in calibration.noises if noise.metric == "p50"):
        needed = [_blocks(calibration.blocks_for(noise, change)) for change in CHANGES]
        change = _percent(calibration.smallest_change(noise))
        known = _percent(noise.block_sd), _percent(noise.bad_share), _percent(noise.session_sd)
        table.add_row(noise.device, noise.family, *known, change, *needed)
    console.print(table)
    if not calibration.noises:
        console.print("too few blocks were measured to say anything: six pairs of a family are the least")
        return
    for alarm in calibration.alarms:
        text = (
            f"{alarm.device}: the same compared with itself: {alarm.alarms} of {alarm.comparisons} cells called changed"
        )
        console.print(Text(f"{text} ({alarm.significant} by p alone)", style="red" if alarm.alarms else "green"))
    console.print(Text(_LEGEND, style="dim"))


def show_outlook(console: Console, seen: Outlook) -> None:
    """The plan in a line, and a line for each family of cells if a change is to be found."""
    preview = seen.preview
    cells = counted(len(preview.cells), "cell")
    least, most = len(preview.blocks), preview.blocks_max
    blocks = f"{least} blocks" if least == most else f"{least} to {most} blocks"
    times = " to ".join(duration_text(seconds) for seconds in dict.fromkeys(preview.seconds))
    console.print(f"the plan is sound: {cells}, {blocks}, about {times}. No device was touched.")
    if seen.detect is not None:
        console.print()
        wanted = f"a change of {100 * seen.detect:g} %, found in {100 * seen.power:g} % of cases"
        console.print(Text(f"to find {wanted}, both sides interleaved:", style="bold"))
        table = _table("device", "cells", "count", "noise", "from", "blocks", "power", "device time")
        for found in seen.families:
            time = "–" if found.seconds is None else duration_text(found.seconds)
            known = str(found.cells), _percent(found.noise.block_sd), found.source
            table.add_row(found.device, found.family, *known, _blocks(found.blocks), _percent(found.power), time)
        console.print(table)
        for device in dict.fromkeys(found.device for found in seen.families):
            known_s = [found.seconds for found in seen.families if found.device == device and found.seconds is not None]
            console.print(f"{device}: {duration_text(sum(known_s))} of device time in all")
    for note in seen.notes:
        console.print(Text(note, style="yellow"))
