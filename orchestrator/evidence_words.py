"""What a tool says of itself against what was asked: flags, files and threads in its own words. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.evidence_terms import Asked, process_elsewhere, reject, threads_seen, warn
from orchestrator.runners.base import Reading
from orchestrator.stage import Report
from orchestrator.trial import Finding

_LOOKS_NEEDED = 3
_BACKGROUND = ("background", "system-background", "restricted")
"""Android's cpusets for what is not on the screen."""


def _flags(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """An unknown flag is only a warning to the tool: it measures something else and ends well."""
    unconsumed = reading.observed.get("unconsumed_flags")
    if unconsumed:
        yield reject(
            "flags",
            f"the binary does not know {', '.join(unconsumed[:5])}, and ran without",
            "use a build that has them: `devbench binaries list`",
        )


def _files(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """What the tool wrote against what it printed; a file that did not arrive is told, and costs nothing else."""
    told = reading.observed.get("result_proto", "")
    if told.startswith("contradicts"):
        yield reject("result-file", f"the result file {told}", "see the trial's log and its artifacts")
    for role, why in asked.lost_outputs.items():
        yield warn(f"{role}-file-lost", f"the {role} file did not arrive: {why}", "see whether the device has room")
    for role in reading.observed.get("unreadable_files") or ():
        yield warn(f"{role}-file-unreadable", f"the {role} file cannot be read", "see the trial's artifacts")


def _threads(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """The tool's echo of the count, and the kernel's: XNNPACK's pool is the calling thread and the others."""
    echo, wanted = reading.observed.get("threads_echo"), asked.cell.threads
    if echo is None:
        return
    if echo != wanted:
        yield reject("threads", f"{wanted} threads were asked for, and the tool speaks of {echo}", "see the log")
    seen = threads_seen(report, reading)
    has_looked = (report.closing.get("wall_ns") or 0) >= _LOOKS_NEEDED * 1e6 * asked.measure.sample_ms > 0
    if asked.delegate.base == "xnnpack" and seen is not None and seen < wanted and has_looked:
        yield reject(
            "threads",
            f"{wanted} threads were asked for, and the kernel shows {seen}",
            "this build ignores the thread count: use another",
        )


def _foreground(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """An app that Android holds for a background one gets other cores and less of them."""
    cpuset = (process_elsewhere(reading) or {}).get("cpuset") or ""
    if cpuset.rpartition("/")[2] in _BACKGROUND:
        yield reject(
            "foreground",
            f"the app ran in the background (cpuset {cpuset})",
            'wake and unlock the phone: screen = "on" under [conditions]',
        )


WORD_RULES = (_flags, _files, _threads, _foreground)
