"""How much a cell's latency varies: inside a process, between processes, and in the tail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from orchestrator.analysis.estimate import P95_SAMPLES_MIN, quantile, sorted_samples, trial_latencies_us
from orchestrator.analysis.randomisation import MAD_TO_SD, Floats
from orchestrator.trial import Trial

P99_SAMPLES_MIN = 500
SLOW = 1.5
"""An iteration that takes this many times the cell's typical latency is one that a user notices."""
TRIALS_FOR_BETWEEN = 3
_SAMPLES_FOR_WITHIN = 5
_WINDOW = 5
_RELATIVE_BAND = 0.01


@dataclass(frozen=True)
class Variability:
    """The spread of one cell. What could not be computed is None, and `notes` says why."""

    within_cv: float | None
    between_cv: float | None
    p95_over_p50: float | None
    p99_over_p50: float | None
    slow_fraction: float | None
    samples: int
    trials_checked_steady: int
    trials_not_steady: int
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"notes": list(self.notes)}


def variability(counted: Sequence[Trial], *, p50_us: float | None) -> Variability:
    """The spread of the measured trials of one cell whose typical latency is `p50_us`."""
    sorted_trials = [ordered for trial in counted if (ordered := sorted_samples(trial)).size]
    typical = [value for trial in counted if (value := trial_latencies_us(trial)["p50"]) is not None]
    within = [robust_cv(ordered) for ordered in sorted_trials if ordered.size >= _SAMPLES_FOR_WITHIN]
    pooled = np.sort(np.concatenate([ordered / quantile(ordered, 0.5) for ordered in sorted_trials] or [np.empty(0)]))
    steady = [reached for trial in counted if (reached := reaches_steady_state(trial)) is not None]
    return Variability(
        within_cv=quantile(np.sort(np.array(within)), 0.5) if within else None,
        between_cv=robust_cv(np.sort(np.array(typical))) if len(typical) >= TRIALS_FOR_BETWEEN else None,
        p95_over_p50=_tail(pooled, 0.95, needed=P95_SAMPLES_MIN),
        p99_over_p50=_tail(pooled, 0.99, needed=P99_SAMPLES_MIN),
        slow_fraction=_slow_fraction(sorted_trials, p50_us=p50_us),
        samples=int(pooled.size),
        trials_checked_steady=len(steady),
        trials_not_steady=steady.count(False),
        notes=_notes(trials=len(typical), samples=int(pooled.size), steady=steady),
    )


def robust_cv(ordered: Floats) -> float:
    """The coefficient of variation of sorted positive values, from medians: wild values do not move it."""
    middle = quantile(ordered, 0.5)
    return MAD_TO_SD * quantile(np.sort(np.abs(ordered - middle)), 0.5) / middle


def reaches_steady_state(trial: Trial) -> bool | None:
    """Whether the samples settle within their first half; None where there are too few to tell.

    The second half is the reference. Settled means five rolling medians in a row at most a band above its
    median. Nothing is ever cut: a trial that does not settle is counted, and the reader decides. A trace that
    falls evenly to its end passes, as its reference falls too: `trend` sees that.
    """
    samples = np.asarray(trial.samples_us, dtype=np.float64)
    if samples.size < 4 * _WINDOW or not np.isfinite(samples).all():
        return None
    reference = np.sort(samples[samples.size // 2 :])
    middle = quantile(reference, 0.5)
    deviation = MAD_TO_SD * quantile(np.sort(np.abs(reference - middle)), 0.5)
    band = max(3 * deviation / math.sqrt(_WINDOW), _RELATIVE_BAND * middle)
    windows = np.sort(np.lib.stride_tricks.sliding_window_view(samples, _WINDOW), axis=1)
    calm = windows[:, _WINDOW // 2] <= middle + band
    runs = np.lib.stride_tricks.sliding_window_view(calm, _WINDOW)
    return bool(runs[: samples.size // 2].all(axis=1).any())


def _tail(pooled: Floats, share: float, *, needed: int) -> float | None:
    return quantile(pooled, share) if pooled.size >= needed else None


def _slow_fraction(sorted_trials: Sequence[Floats], *, p50_us: float | None) -> float | None:
    if p50_us is None or not sorted_trials:
        return None
    slow = sum(ordered.size - int(np.searchsorted(ordered, SLOW * p50_us, "right")) for ordered in sorted_trials)
    return slow / sum(ordered.size for ordered in sorted_trials)


def _notes(*, trials: int, samples: int, steady: Sequence[bool]) -> tuple[str, ...]:
    notes = []
    if samples < P95_SAMPLES_MIN:
        notes.append(f"a p95 needs {P95_SAMPLES_MIN} samples, there are {samples}")
    if samples < P99_SAMPLES_MIN:
        notes.append(f"a p99 needs {P99_SAMPLES_MIN} samples, there are {samples}")
    if trials < TRIALS_FOR_BETWEEN:
        notes.append(f"the spread between trials needs {TRIALS_FOR_BETWEEN} of them, there are {trials}")
    if not all(steady):
        share = f"{steady.count(False)} of {len(steady)} trials"
        notes.append(f"{share} did not settle in their first half: more warm-up may help")
    return tuple(notes)
