"""What the gate found, in sentences that every form of its report shares."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis.comparison import percent
from orchestrator.analysis.gate_words import JUDGED, DeviceNight, Ending, GateResult, Row, Verdict
from orchestrator.reports.counting import counted

_UNUSUAL = tuple(verdict for verdict in Verdict if verdict not in (Verdict.STEADY, Verdict.REFERENCE, Verdict.NEW))

_NAMES_SHOWN = 3


def headline(result: GateResult) -> str:
    """The verdict in a few words: what comes first in every form."""
    failing, suspects = len(result.failing), len(result.of(Verdict.SUSPECTED))
    lost = sum(row.lost for row in result.rows)
    if result.ending is Ending.REGRESSION:
        word = "confirmed" if result.of(Verdict.CONFIRMED) else "suspected"
        more = f", {suspects} more suspected" if suspects and result.fail_on == "confirmed" else ""
        return f"REGRESSION: {counted(failing, 'cell')} slower, {word}{more}"
    if not any(row.blocks[1] for row in result.rows):
        return f"NOTHING MEASURED: {', '.join(device.name for device in result.lost_devices) or counts_text(result)}"
    parts = [f"{counted(suspects, 'cell')} suspected of being slower, not confirmed"] if suspects else []
    if result.is_partial:
        devices = [device.name for device in result.lost_devices]
        parts += [f"not measured: {', '.join(devices)}"] if devices else []
        parts += [f"{counted(lost, 'cell')} not measured"] if lost else []
        return f"PARTIAL: no regression found, but {'; '.join(parts)}"
    if parts:
        return f"SUSPICION: {parts[0]}"
    if result.ending is Ending.FIRST:
        measured = sum(row.blocks[1] > 0 for row in result.rows)
        return f"FIRST NIGHT: {counted(measured, 'cell')} measured, nothing to compare with yet"
    judged = len(result.of(*JUDGED))
    apart = len(result.rows) - judged - len(result.of(Verdict.REFERENCE))
    return f"PASSED: no regression in {counted(judged, 'cell')}" + (f"; {apart} not compared" if apart else "")


def against(result: GateResult) -> str:
    return f"run {result.run}" + (f" against {result.baseline}" if result.baseline else "")


def change_text(row: Row) -> str:
    """`+7.2 % [+5.9, +8.4]`, or nothing where nothing was compared."""
    effect, interval = percent(row.effect), row.interval
    if effect is None or interval is None:
        return ""
    low, high = (percent(end) or 0.0 for end in interval)
    return f"{effect:+.1f} % [{low:+.1f}, {high:+.1f}]"


def counts_text(result: GateResult) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in result.counts.items()) or "no cells"


def unusual(result: GateResult) -> list[Row]:
    """What a reader must see: everything but what is as it was."""
    return result.of(*_UNUSUAL)


def why_text(row: Row, result: GateResult) -> str:
    """What a row rests on."""
    parts = [row.reason]
    found = row.confirmation
    if found:
        parts.insert(0, f"interleaved in {found.blocks} blocks of {found.run}: {found.verdict} by {found.metric}")
    if row.cell.id in result.unconfirmed:
        parts.append(f"not run again: {result.unconfirmed[row.cell.id]}")
    if row.changed and row.verdict in (Verdict.CONFIRMED, Verdict.SUSPECTED):
        parts.append(f"changed: {', '.join(row.changed)}")
    return "; ".join(part for part in parts if part)


def reasons(rows: Sequence[Row], result: GateResult) -> list[str]:
    """What rows rest on, in their order; what holds for several is said once."""
    said: dict[str, list[Row]] = {}
    for row in rows:
        said.setdefault(why_text(row, result), []).append(row)
    return [f"{found[0].cell}{_and_more(len(found) - 1)}: {words}" for words, found in said.items()]


def _and_more(count: int) -> str:
    return f" and {counted(count, 'more cell')}" if count else ""


def device_lines(result: GateResult) -> list[str]:
    """What is to be said of devices: lost, of a new system, moved, or without a reference; what is to be said of
    several, once."""
    said: dict[str, list[str]] = {}
    for device in result.devices:
        for words in _device_words(device, has_baseline=bool(result.baseline)):
            said.setdefault(words, []).append(device.name)
    return [f"{_names(names)} {words}" for words, names in said.items()]


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more devices:"


def _device_words(device: DeviceNight, *, has_baseline: bool) -> list[str]:
    if device.lost:
        return [f"not measured: {device.lost}"]
    words = []
    if device.has_new_system:
        words.append(f"has a new system: {device.system_before} → {device.system}")
    if device.has_moved and device.reference:
        words.append(f"moved: its pinned reference takes {percent(device.reference.location):+.1f} %")
    if device.unpinned and has_baseline:
        pin = (
            '; pin a build: `[reference] runner = "benchmark_model:NAME"`' if "runner_sha256" in device.unpinned else ""
        )
        words.append(f"judged without the pinned reference: {device.unpinned}{pin}")
    return words


def next_step(result: GateResult) -> str | None:
    """The command that goes on from the worst cell."""
    worst = result.failing or result.of(Verdict.SUSPECTED)
    if not worst:
        return None
    row = max(worst, key=lambda found: found.effect or 0.0)
    return f"devbench reproduce {result.run} {row.cell.id} --device {row.cell.device}"
