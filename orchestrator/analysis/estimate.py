"""What a cell's latency is, with an interval: from trials to one estimate a metric.

The interval of a cell is widened where neighbouring blocks, or the blocks of one session, resemble each other (see
`dependence`). Ratios paired by block need no such thing: what blocks share cancels in them, and verdicts rest on those.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from orchestrator.analysis.dependence import session_reach, width_factors
from orchestrator.analysis.randomisation import Floats, centres, walked_level
from orchestrator.trial import Cell, Outcome, Summary, Trial

Metric = Literal["p50", "mean", "p95"]
METRICS: tuple[Metric, ...] = get_args(Metric)
Block = tuple[str, str, int]
"""A run, a session and the number of a block in it: block 3 of another run is another block."""

LEVEL = 0.95
LATENCY_US_MIN, LATENCY_US_MAX = 1e-6, 1e15
"""A picosecond and thirty years: beyond these a number is a mistake, and ratios of such numbers overflow."""
P95_SAMPLES_MIN = 60
SESSIONS_DIFFER = "sessions differ by more than their blocks do: the interval is over sessions"
METRIC_KEYS = (
    "init_us",
    "first_us",
    "warmup_avg_us",
    "memory_peak_kb",
    "memory_init_mb",
    "memory_overall_mb",
    "process_maxrss_kb",
    "copy_in_us",
    "copy_out_us",
)
"""The figures of a trial that are reported as a plain median over a cell's trials."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval from `n` blocks. `note` says why the interval, or the value, is missing."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: float = LEVEL
    note: str | None = None

    @property
    def half_width(self) -> float | None:
        """Half the interval as a share of the value, which is what `--precision` asks for."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2 / self.value

    @property
    def inverse(self) -> Estimate:
        """The same ratio seen from the other side: a speed-up from a slow-down."""
        low, value, high = (None if end is None else 1 / end for end in (self.high, self.value, self.low))
        return Estimate(value, low, high, self.n, self.level, self.note)

    def as_json(self) -> dict[str, float | int | str | None]:
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n, "note": self.note}


@dataclass(frozen=True)
class CellEstimate:
    """What the trials of one cell say. `by_block` keeps each block's value, for pairing with other cells."""

    cell: Cell
    arm: str | None
    outcomes: Mapping[Outcome, int]
    reasons: tuple[tuple[str, int], ...]
    latency_us: Mapping[Metric, Estimate]
    by_block: Mapping[Metric, Mapping[Block, float]]
    medians: Mapping[str, float | None]
    notes: tuple[str, ...]

    @property
    def half_width(self) -> float | None:
        """How precisely the typical latency is known, relative to itself; None as long as nobody can tell."""
        return self.latency_us["p50"].half_width


def usable(value: float | None) -> bool:
    """Whether a number can be a latency: imported trials may carry anything."""
    return value is not None and LATENCY_US_MIN <= value <= LATENCY_US_MAX


def sorted_samples(trial: Trial) -> Floats:
    """The trial's samples in ascending order; none at all if one of them cannot be a latency."""
    samples = np.sort(np.asarray(trial.samples_us, dtype=np.float64))
    return samples if samples.size and usable(samples[0]) and usable(samples[-1]) else samples[:0]


def quantile(ordered: Floats | Sequence[float], share: float) -> float:
    """The quantile of sorted values, interpolated linearly."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (ordered[above] - ordered[below]) * (position - below))


def trial_latencies_us(trial: Trial) -> dict[Metric, float | None]:
    """All metrics of one trial: from its samples, or from the tool's own summary where there are none."""
    if trial.samples_us:
        ordered = sorted_samples(trial)
        if not ordered.size:
            return dict.fromkeys(METRICS)
        p95 = quantile(ordered, 0.95) if ordered.size >= P95_SAMPLES_MIN else None
        return {"p50": quantile(ordered, 0.5), "mean": float(ordered.mean()), "p95": p95}
    return _summary_latencies_us(trial.summary or Summary(count=0))


def _summary_latencies_us(summary: Summary) -> dict[Metric, float | None]:
    p95 = summary.p95 if summary.count >= P95_SAMPLES_MIN else None
    typical = summary.avg if summary.median is None else summary.median
    stated: dict[Metric, float | None] = {"p50": typical, "mean": summary.avg, "p95": p95}
    return {metric: value if usable(value) else None for metric, value in stated.items()}


def trial_latency_us(trial: Trial, metric: Metric) -> float | None:
    """One metric of one trial, None where the trial cannot give it (a p95 needs 60 samples)."""
    return trial_latencies_us(trial)[metric]


def is_average_for_median(trial: Trial) -> bool:
    """Whether the trial's p50 is really an average, because the tool gave neither samples nor a median."""
    summary = trial.summary
    return not trial.samples_us and summary is not None and summary.median is None and usable(summary.avg)


def estimate(values: Sequence[float], *, level: float = LEVEL, probes: Sequence[float] = ()) -> Estimate:
    """The centre of positive block values on the log scale; see `estimates`."""
    return estimates([values], level=level, probes=probes)[0]


def estimates(
    series: Sequence[Sequence[float]], *, level: float = LEVEL, probes: Sequence[float] = ()
) -> list[Estimate]:
    """An estimate of each series, in order. `probes` are values that a verdict turns on (see `centres`).

    Series of one length are worked on together, which is several times as fast as one by one.
    """
    found: list[Estimate] = [Estimate(None, None, None, 0, level, "nothing was measured")] * len(series)
    of_length: dict[int, list[int]] = defaultdict(list)
    for index, values in enumerate(series):
        of_length[len(values)].append(index)
    log_probes = [math.log(probe) for probe in probes]
    for length, indices in of_length.items():
        if length == 0:
            continue
        rows = np.log(np.array([series[index] for index in indices], dtype=np.float64))
        for index, row in zip(indices, centres(rows, level=walked_level(level), probes=log_probes), strict=True):
            low = None if row.low is None else math.exp(row.low)
            high = None if row.high is None else math.exp(row.high)
            found[index] = Estimate(math.exp(row.location), low, high, length, level, row.note)
    return found


def widened(found: Estimate, by_block: Mapping[Block, float]) -> Estimate:
    """The estimate with an interval that allows for blocks and sessions that resemble each other."""
    if found.value is None or found.low is None or found.high is None:
        return found
    middle, logs = math.log(found.value), np.log(np.array([list(by_block.values())]))
    factor = float(width_factors(logs)[0])
    low, high = (middle + (math.log(end) - middle) * factor for end in (found.low, found.high))
    reach = session_reach(logs[0].tolist(), [block[:2] for block in by_block], level=found.level)
    if reach is None or reach < min(middle - low, high - middle):
        return replace(found, low=math.exp(low), high=math.exp(high))
    low, high = min(low, middle - reach), max(high, middle + reach)
    return replace(found, low=math.exp(low), high=math.exp(high), note=SESSIONS_DIFFER)


def entering(trials: Sequence[Trial]) -> dict[Block, Trial]:
    """The trials of one cell that count, by block: the measured ones, the last where a block was repeated."""
    last = {
        (trial.run, trial.session, trial.slot.block): trial for trial in trials if trial.outcome is Outcome.MEASURED
    }
    return dict(sorted(last.items()))


def estimate_cell(trials: Sequence[Trial], *, level: float = LEVEL) -> CellEstimate:
    """What all trials of one cell (and one arm), in the order in which they were made, say about it."""
    return estimate_cells([trials], level=level)[0]


def estimate_cells(cells: Sequence[Sequence[Trial]], *, level: float = LEVEL) -> list[CellEstimate]:
    """The estimates of many cells, which together cost little more than a few."""
    counted = [entering(trials) for trials in cells]
    by_block = [latencies_by_block(trials) for trials in counted]
    found = iter(estimates([list(one[metric].values()) for one in by_block for metric in METRICS], level=level))
    latencies = [{metric: widened(next(found), one[metric]) for metric in METRICS} for one in by_block]
    return [
        _cell_estimate(trials, counted[index], by_block[index], latencies[index]) for index, trials in enumerate(cells)
    ]


def _cell_estimate(
    trials: Sequence[Trial],
    counted: Mapping[Block, Trial],
    by_block: Mapping[Metric, Mapping[Block, float]],
    latency_us: Mapping[Metric, Estimate],
) -> CellEstimate:
    assert trials, "a cell without trials has no estimate"
    assert len({(trial.cell, trial.slot.arm) for trial in trials}) == 1, "trials of different cells"
    outcomes = Counter(trial.outcome for trial in trials)
    return CellEstimate(
        cell=trials[0].cell,
        arm=trials[0].slot.arm,
        outcomes={outcome: outcomes[outcome] for outcome in Outcome},
        reasons=_reasons(trials),
        latency_us=latency_us,
        by_block=by_block,
        medians={key: _median_of(key, list(counted.values())) for key in METRIC_KEYS},
        notes=_notes(list(counted.values()), by_block),
    )


def latencies_by_block(counted: Mapping[Block, Trial]) -> dict[Metric, dict[Block, float]]:
    """The latency of each block, by metric; a block whose trial cannot give the metric is absent."""
    by_block: dict[Metric, dict[Block, float]] = {metric: {} for metric in METRICS}
    for block, trial in counted.items():
        for metric, value in trial_latencies_us(trial).items():
            if value is not None:
                by_block[metric][block] = value
    return by_block


def _reasons(trials: Sequence[Trial]) -> tuple[tuple[str, int], ...]:
    """Why trials were not measured, the most common reason first."""
    missed = Counter(
        trial.reason or f"{trial.outcome}, no reason recorded"
        for trial in trials
        if trial.outcome is not Outcome.MEASURED
    )
    return tuple(sorted(missed.items(), key=lambda item: (-item[1], item[0])))


def _median_of(key: str, counted: Sequence[Trial]) -> float | None:
    found = [value for trial in counted if (value := _figure(trial.metrics.get(key))) is not None]
    return quantile(np.sort(np.array(found)), 0.5) if found else None


def _figure(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= LATENCY_US_MAX else None


def _notes(counted: Sequence[Trial], by_block: Mapping[Metric, Mapping[Block, float]]) -> tuple[str, ...]:
    """What a reader must know about the numbers of a cell before believing them."""
    of_all = f"of {len(counted)} measured trials"
    notes = []
    if unusable := len(counted) - len(by_block["p50"]):
        notes.append(f"{unusable} {of_all} carry no usable latency")
    if summary_only := sum(not trial.samples_us for trial in counted):
        notes.append(f"{summary_only} {of_all} have the tool's own summary only, no samples")
    if averages := sum(is_average_for_median(trial) for trial in counted):
        notes.append(f"{averages} {of_all} have no median: their average stands in, with 2 to 6 times its noise")
    if short := len(by_block["p50"]) - len(by_block["p95"]):
        notes.append(f"{short} {of_all} give no p95: it needs {P95_SAMPLES_MIN} samples")
    return tuple(notes)
