"""What a tool says of itself against what was asked: flags, delegates and threads in its own words. Pure."""

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


def _delegate(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """A delegate that could not be made is only a warning, or nothing at all: the CPU does the work."""
    wanted, observed = asked.cell.delegate, reading.observed
    applied, fallbacks = observed.get("delegates_applied"), observed.get("fallbacks") or []
    if (echo := observed.get("delegate_echo")) is not None and echo != wanted:
        yield reject("delegate", f"{wanted} was asked for, and the runner speaks of {echo}", "see the trial's log")
        return
    if wanted == "cpu":
        if observed.get("xnnpack_created") or applied:
            yield reject("delegate", "plain CPU kernels were asked for, and XNNPACK was made", "use a newer build")
        return
    if applied is not None and wanted not in applied and observed.get("nodes_delegated") != 0:
        why = f": {fallbacks[0]}" if fallbacks else ""
        yield reject("delegate", f"{wanted} was not applied{why}", "see whether device and build have this delegate")
    elif fallbacks:
        yield reject("delegate-fallback", f"not all ran on {wanted}: {fallbacks[0]}", "see the trial's log")
    elif observed.get("delegation") == "partial" and observed.get("nodes_delegated") is None:
        yield warn(
            "delegate-partial",
            f"{wanted} took a part of the model, in {observed.get('partitions')} pieces",
            "look at the operators that are left on the CPU",
        )
    if wanted == "gpu" and observed.get("gpu_backend") == "opengl":
        yield reject("gpu-backend", "OpenCL was asked for, and OpenGL ran", "see whether the device has OpenCL")


def _threads(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """The tool's echo of the count, and the kernel's: XNNPACK's pool is the calling thread and the others."""
    echo, wanted = reading.observed.get("threads_echo"), asked.cell.threads
    if echo is None:
        return
    if echo != wanted:
        yield reject("threads", f"{wanted} threads were asked for, and the tool speaks of {echo}", "see the log")
    seen = threads_seen(report, reading)
    has_looked = (report.closing.get("wall_ns") or 0) >= _LOOKS_NEEDED * 1e6 * asked.measure.sample_ms > 0
    if asked.cell.delegate == "xnnpack" and seen is not None and seen < wanted and has_looked:
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


WORD_RULES = (_flags, _delegate, _threads, _foreground)
