"""What can be said of a trace pass: what tracing cost, and how to look at what it brought. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.analysis.operators import Distortion, distortion_of
from orchestrator.trace import TracePass
from orchestrator.trial import Trial

_PERFETTO_UI = "open https://ui.perfetto.dev in a browser and choose `Open trace file`: the file stays on this host"
VIEWERS = {
    "perfetto": _PERFETTO_UI,
    "atrace": f"{_PERFETTO_UI}; or load it in chrome://tracing",
    "ftrace": f"{_PERFETTO_UI}; or read it, it is text",
    "perf": "`perf report -i FILE`; `perf sched timehist -i FILE`; "
    "or `perf script -i FILE > out.txt`, which speedscope and profiler.firefox.com load",
    "simpleperf": "`simpleperf report -i FILE`, or report_html.py of the NDK's simpleperf folder",
    "xctrace": "`tar xzf FILE`, then `open NAME.trace` on a Mac: Instruments shows it",
}


@dataclass(frozen=True)
class CellTrace:
    """A trace pass with what tracing cost."""

    passed: TracePass
    distortion: Distortion | None

    @property
    def path(self) -> str | None:
        """The trace inside the store."""
        return self.passed.artifacts.get("trace")

    @property
    def viewer(self) -> str | None:
        return VIEWERS.get(self.passed.kind or "", "look at it with what its tracer brings") if self.path else None

    def as_json(self, folder: str) -> dict[str, Any]:
        passed, distortion = self.passed, self.distortion
        return {
            **passed.cell.as_json(),
            "id": passed.cell.id,
            "kind": passed.kind,
            "outcome": str(passed.outcome),
            "reason": passed.reason,
            "why": passed.why,
            "started_at": passed.started_at,
            "duration_s": passed.duration_s,
            "latency_us": passed.latency_us,
            "distortion": distortion
            and {
                "ratio": distortion.ratio,
                "traced_us": distortion.profiled_us,
                "untraced_us": distortion.unprofiled_us,
                "untraced_run": distortion.run,
            },
            "trace": passed.trace.as_json() if passed.trace else None,
            "path": self.path,
            "file": f"{folder}/{self.path}" if self.path else None,
            "look": self.viewer,
            "findings": [finding.as_json() for finding in passed.findings],
            "log": passed.log,
        }


def cell_trace(passed: TracePass, untraced: Sequence[Trial]) -> CellTrace:
    """A trace pass with the measured trials of its cell, from one run, whichever."""
    return CellTrace(passed, distortion_of(passed, untraced))
