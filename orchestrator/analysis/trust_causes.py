"""The causes for which a cell is not trusted. Each check gives a cause, or None where nothing is wrong.

What telemetry and findings say counts first; where a file has neither, the latencies speak alone. Simulated (12 blocks,
noise of 0.5 to 3 % between trials, 80 samples each), all checks together find fault with 0 to 3 % of clean cells.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from orchestrator.analysis.dependence import neighbour_correlations
from orchestrator.analysis.randomisation import (
    BLOCKS_MIN,
    MAD_TO_SD,
    SCORE_CUT,
    Floats,
    student_quantile,
    student_tail,
)
from orchestrator.analysis.reduction import Reduced
from orchestrator.analysis.shape import two_modes
from orchestrator.analysis.trend import trends
from orchestrator.trial import Outcome

SHARE_MAX = 0.2
"""What befalls more than this share of a cell's trials is no accident."""
DRIFT_MAX = 0.03
DRIFT_P = 0.005
HALF_WIDTH_MAX = 0.05
FREQUENCY_MAX = 0.05
LOAD_MISSING_MAX = 0.1
FAR = 0.10
"""Trials that are slower than the rest by this share, and by three standard deviations, were disturbed."""
SLOW_SHARE_MAX = 0.10
"""More inferences than this that take half as long again, with nothing beside them, were interrupted."""
MODES_APART_MIN = 0.03
CORRELATION_MIN = 0.4
_CORRELATION_CHANCE = 2.4
WORTH_MIN = 8.0
_BLOCKS_FOR_MODES = 8
_BLOCKS_FOR_CORRELATION = 12
_MODE_SMALLER_MIN = 0.2
_MODES_INSIDE = (8, 12, 18, 40), (0.037, 0.084, 0.135, 0.205)
"""How little variance a split may leave inside before it is no chance: one clean cell of 500 goes below."""
_REJECTIONS = {
    "the load ": "load-not-achieved",
    "beside the model the load ": "load-not-achieved",
    "other programs used ": "other-cpu",
}
"""The causes behind rejections, by how their reasons begin; others are told in their own words."""
_WARMER_C = 3.0
_CLOCK_STEP_S = 1.0


@dataclass(frozen=True)
class Cause:
    """Something that makes a cell's numbers doubtful, and what to do about it."""

    name: str
    text: str
    remedy: str


@dataclass(frozen=True)
class CellTrials:
    """The trials of one cell and arm: all of them, and the measured ones in the order of their blocks."""

    trials: tuple[Reduced, ...]
    measured: tuple[Reduced, ...]

    @classmethod
    def of(cls, trials: Sequence[Reduced]) -> CellTrials:
        counted = [trial for trial in trials if trial.outcome is Outcome.MEASURED and trial.latencies_us["p50"]]
        counted.sort(key=lambda trial: (trial.run, trial.session, trial.block))
        return cls(tuple(trials), tuple(counted))

    @cached_property
    def logs(self) -> Floats:
        return np.log(np.array([trial.latencies_us["p50"] for trial in self.measured], dtype=np.float64))

    @cached_property
    def spread(self) -> float:
        return MAD_TO_SD * float(np.median(np.abs(self.logs - np.median(self.logs))))

    @property
    def has_enough(self) -> bool:
        return len(self.measured) >= BLOCKS_MIN

    def warned(self, *rules: str) -> list[Reduced]:
        return [trial for trial in self.measured if any(rule in trial.warned for rule in rules)]

    def is_common(self, count: int) -> bool:
        return count > SHARE_MAX * len(self.measured)

    def share(self, count: int) -> str:
        return f"{count} of {len(self.measured)} trials"


Check = Callable[[CellTrials], Cause | None]


# Insufficient


def _too_few(cell: CellTrials) -> Cause | None:
    blocks = len({(trial.run, trial.session, trial.block) for trial in cell.measured})
    if blocks >= BLOCKS_MIN:
        return None
    text = f"{blocks} measured {'block' if blocks == 1 else 'blocks'}, at least {BLOCKS_MIN} are needed"
    return Cause("too-few-trials", text, "measure more blocks: --blocks 8:18")


# Contaminated


def _rejected(cell: CellTrials) -> Cause | None:
    lost = [trial for trial in cell.trials if trial.outcome in (Outcome.REJECTED, Outcome.FAILED)]
    tried = len(lost) + len(cell.measured)
    if not lost or len(lost) <= SHARE_MAX * tried:
        return None
    why = Counter(trial.reason or str(trial.outcome) for trial in lost).most_common(1)[0][0]
    name = next((name for start, name in _REJECTIONS.items() if why.startswith(start)), "rejected")
    return Cause(name, f"{len(lost)} of {tried} trials were rejected or failed: {why}", "mend that, then measure again")


def _load_not_achieved(cell: CellTrials) -> Cause | None:
    missing = [
        trial.witness.load_missing for trial in cell.measured if (trial.witness.load_missing or 0) > LOAD_MISSING_MAX
    ]
    if not cell.is_common(len(missing)):
        return None
    worst = max(share for share in missing if share is not None)
    text = f"the load missed what was asked in {cell.share(len(missing))}, by {100 * worst:.0f} % of a CPU at worst"
    return Cause("load-not-achieved", text, "stop other programs, or ask for less load")


def _other_cpu(cell: CellTrials) -> Cause | None:
    """What findings say; failing that, trials far slower than the rest, or inferences that were interrupted."""
    remedy = "stop other programs on the device and measure again"
    seen = cell.warned("other-cpu", "steal")
    if cell.is_common(len(seen)):
        return Cause("other-cpu", f"other programs used the CPUs during {cell.share(len(seen))}", remedy)
    if not cell.has_enough:
        return None
    slow = int(np.count_nonzero(cell.logs > np.median(cell.logs) + max(SCORE_CUT * cell.spread, FAR)))
    if slow > 1 and slow > 0.15 * len(cell.measured):
        return Cause("other-cpu", f"{cell.share(slow)} were far slower than the rest, as under a burst of work", remedy)
    shares = [trial.slow_share for trial in cell.measured if trial.slow_share is not None]
    typical = float(np.median(shares)) if shares else 0.0
    if cell.measured[0].cell.load == "idle" and typical > SLOW_SHARE_MAX:
        text = f"{100 * typical:.0f} % of the inferences took half as long again, with no load beside them"
        return Cause("other-cpu", text, remedy)
    return None


def _tailed(cell: CellTrials) -> Cause | None:
    """A tool's own summary tells of interruptions by an average far above its median."""
    tailed = [
        trial
        for trial in cell.measured
        if not trial.samples and (trial.latencies_us["mean"] or 0) > 1.05 * (trial.latencies_us["p50"] or math.inf)
    ]
    if not cell.is_common(len(tailed)) or cell.measured[0].cell.load != "idle":
        return None
    text = f"the average lies over 5 % above the median in {cell.share(len(tailed))}: inferences were interrupted"
    return Cause("other-cpu", text, "stop other programs on the device, or use a runner that gives samples")


def _thermal_drift(cell: CellTrials) -> Cause | None:
    remedy = "let the device cool, or reach a steady temperature, before it is measured"
    hot = cell.warned("not-cool")
    if cell.is_common(len(hot)):
        return Cause("thermal-drift", f"the device was slower than it can be in {cell.share(len(hot))}", remedy)
    inside = [trial.drift for trial in cell.measured if trial.drift is not None]
    if inside and max(sum(drift > 0 for drift in inside), sum(drift < 0 for drift in inside)) > len(cell.measured) / 3:
        typical = float(np.median(inside))
        text = f"latency drifts within {cell.share(len(inside))}, by {100 * typical:+.0f} % typically"
        return Cause("thermal-drift", text, f"{remedy}; a longer warm-up may do")
    if not cell.has_enough or not (change := _drift(cell.logs)):
        return None
    text = f"latency drifts by {100 * math.expm1(change):+.0f} % over the run{_warmth(cell)}"
    return Cause("thermal-drift", text, remedy)


def _drift(logs: Floats) -> float:
    """The change of the logarithms from start to end, 0 where it may be chance or too small to matter."""
    count = len(logs)
    time = np.arange(count) - (count - 1) / 2
    ranks = np.argsort(np.argsort(logs)) - (count - 1) / 2
    rho = min(abs(float(ranks @ time) / float(time @ time)), 1 - 1e-9)
    p = 2 * float(student_tail(np.array(rho * math.sqrt((count - 2) / (1 - rho**2))), count - 2))
    change = float(trends(logs[None, :]).change[0])
    return change if p < DRIFT_P and abs(change) > DRIFT_MAX else 0.0


def _warmth(cell: CellTrials) -> str:
    degrees = [trial.witness.temperature_c for trial in cell.measured if trial.witness.temperature_c is not None]
    third = max(1, len(degrees) // 3)
    if len(degrees) < BLOCKS_MIN:
        return ""
    warmer = float(np.median(degrees[-third:]) - np.median(degrees[:third]))
    return f", while the device became {warmer:+.0f} degrees warmer" if abs(warmer) >= _WARMER_C else ""


def _frequency(cell: CellTrials) -> Cause | None:
    remedy = "hold the governor if permitted ([conditions] governor), or let the device cool"
    moved = cell.warned("frequency")
    if cell.is_common(len(moved)):
        return Cause("frequency-change", f"the CPU clock moved during {cell.share(len(moved))}", remedy)
    clocks = np.array([trial.witness.clock_khz for trial in cell.measured if trial.witness.clock_khz is not None])
    if len(clocks) < BLOCKS_MIN:
        return None
    top = float(np.quantile(clocks, 0.9))
    off = int(np.count_nonzero(clocks < (1 - FREQUENCY_MAX) * top))
    if off <= SHARE_MAX * len(clocks):
        return None
    worst = 1 - float(clocks.min()) / top
    text = f"the CPU clock was lower by over 5 % in {cell.share(off)}, by {100 * worst:.0f} % at worst"
    return Cause("frequency-change", text, remedy)


def _clock_jump(cell: CellTrials) -> Cause | None:
    remedy = "do not set the device's or the host's clock while measuring, then measure again"
    for trial in cell.measured:
        if trial.witness.clock_trouble:
            return Cause("clock-jump", f"block {trial.block}: {trial.witness.clock_trouble}", remedy)
    sittings = itertools.groupby(cell.measured, key=lambda trial: (trial.run, trial.session))
    for _, group in sittings:
        timed = [trial for trial in group if trial.started_s is not None]
        for earlier, later in itertools.pairwise(timed):
            assert earlier.started_s is not None and later.started_s is not None
            if later.started_s < earlier.started_s - _CLOCK_STEP_S:
                back_s = earlier.started_s - later.started_s
                text = f"block {later.block} began {back_s:.0f} s before block {earlier.block}: a clock was set back"
                return Cause("clock-jump", text, remedy)
    return None


def _otherwise_warned(cell: CellTrials) -> Cause | None:
    """Warnings of other kinds, such as evidence that nobody could check."""
    known = {"other-cpu", "steal", "not-cool", "frequency"}
    rules = Counter(rule for trial in cell.measured for rule in set(trial.warned) - known if not _is_harmless(rule))
    if not rules or not cell.is_common(rules.most_common(1)[0][1]):
        return None
    rule, count = rules.most_common(1)[0]
    return Cause("warned", f"{cell.share(count)} carry a warning: {rule}", "see the findings of the trials")


def _is_harmless(rule: str) -> bool:
    """What a runner does not report, or a delegate leaves out, does not disturb a latency."""
    return rule.endswith(("-unverified", "-unread")) or rule in ("delegate-partial", "count-capped")


# Noisy


def _wide(cell: CellTrials) -> Cause | None:
    count = len(cell.measured)
    if not cell.has_enough:
        return None
    half_width = float(student_quantile(0.975, count - 1)) * cell.spread / math.sqrt(count)
    if half_width <= HALF_WIDTH_MAX:
        return None
    known = f"after {count} blocks the latency is known to about ±{100 * half_width:.0f} %"
    text = f"trials spread by {100 * cell.spread:.0f} %: {known}"
    return Cause("spread", text, "hold the device steadier, or measure more blocks")


def _bimodal(cell: CellTrials) -> Cause | None:
    remedy = "pin the CPUs (--affinity), and look at what differs between the groups"
    split = [trial.mode_gap for trial in cell.measured if (trial.mode_gap or 0) > FAR]
    if len(split) > len(cell.measured) / 2:
        typical = float(np.median([gap for gap in split if gap is not None]))
        groups = f"inferences fall into two groups {100 * typical:.0f} % apart"
        text = f"{groups} in {cell.share(len(split))}: p50 may be in either"
        return Cause("bimodal", text, "look at mean and p95 too; pin the CPUs (--affinity)")
    count = len(cell.measured)
    if count < _BLOCKS_FOR_MODES:
        return None
    modes = two_modes(cell.logs[None, :], smaller_min=_MODE_SMALLER_MIN)
    limit = float(np.interp(count, _MODES_INSIDE[0], _MODES_INSIDE[1]))
    apart = float(modes.apart[0])
    if modes.left_inside[0] >= limit or apart < MODES_APART_MIN:
        return None
    return Cause("bimodal", f"trials fall into two groups {100 * math.expm1(apart):.0f} % apart", remedy)


def _autocorrelated(cell: CellTrials) -> Cause | None:
    worth = [trial.worth for trial in cell.measured if trial.worth is not None]
    if worth and float(np.median(worth)) < WORTH_MIN:
        samples = int(np.median([trial.samples for trial in cell.measured]))
        known = f"worth about {float(np.median(worth)):.0f}"
        text = f"the {samples} inferences of a trial are {known}: neighbours resemble each other"
        return Cause("autocorrelation", text, "make trials longer (min_ms), or measure more blocks")
    if len(cell.measured) < _BLOCKS_FOR_CORRELATION:
        return None
    chance = max(CORRELATION_MIN, _CORRELATION_CHANCE / math.sqrt(len(cell.measured)))
    if float(neighbour_correlations(cell.logs[None, :])[0]) <= chance or _drift(cell.logs):
        return None
    text = "neighbouring blocks resemble each other: the device changes slowly"
    return Cause("autocorrelation", text, "measure for longer, or in several sessions")


INSUFFICIENT: tuple[Check, ...] = (_too_few,)
CONTAMINATING: tuple[Check, ...] = (
    _rejected,
    _load_not_achieved,
    _other_cpu,
    _tailed,
    _thermal_drift,
    _frequency,
    _clock_jump,
    _otherwise_warned,
)
SPREADING: tuple[Check, ...] = (_wide, _bimodal, _autocorrelated)
