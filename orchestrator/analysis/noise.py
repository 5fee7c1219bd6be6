"""What the noise of a device is, from the same thing measured twice: between neighbours, and between sessions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from orchestrator.analysis.calibration import ANY_FAMILY, SessionNoise, cell_family
from orchestrator.analysis.comparison import ALPHA
from orchestrator.analysis.estimate import METRICS, Metric, trial_latencies_us
from orchestrator.analysis.paired import paired_p
from orchestrator.analysis.randomisation import BLOCKS_MIN, MAD_TO_SD, SCORE_CUT, biweight_locations
from orchestrator.trial import Cell, Outcome, Trial

ARMS = ("a", "b")
"""The two names of the same thing."""
DEFAULT_IDLE_SD, DEFAULT_LOADED_SD = 0.01, 0.04
"""Block noise assumed of a device that was never calibrated: alone, and beside a load."""
DEFAULT_BAD_SHARE = 0.15
_SD_MIN = 1e-4
SESSION_TRIALS_MIN = 3
_MEDIAN_OF_DIFFERENCE = 0.954
"""The median distance of two normal values, in standard deviations of one."""
_MEDIAN_LOSS = 1.57
"""How much larger the variance of a median is than that of a mean."""


@dataclass(frozen=True)
class Noise:
    """The noise of one family of cells on one device, on the log scale.

    `block_sd` is the robust spread of log-ratios of neighbours that are the same, `bad_share` the share of blocks
    beyond three of it, `session_sd` the spread between sessions beyond what their trials explain; None from one.
    """

    device: str
    family: str
    metric: Metric
    block_sd: float
    bad_share: float
    session_sd: float | None
    sessions: int
    blocks: int
    trial_s: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def of_sessions(self) -> SessionNoise | None:
        """What a comparison of two runs needs of it."""
        if self.session_sd is None:
            return None
        return SessionNoise(self.device, self.family, self.session_sd, self.sessions)


@dataclass(frozen=True)
class FalseAlarms:
    """What the test of `compare` says of a device whose two sides are the same."""

    device: str
    comparisons: int
    significant: int
    alarms: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def default_noise(cell: Cell) -> Noise:
    """What is assumed of a cell whose device was never calibrated."""
    sd = DEFAULT_IDLE_SD if cell.load == "idle" else DEFAULT_LOADED_SD
    return Noise(cell.device, cell_family(cell), "p50", sd, DEFAULT_BAD_SHARE, None, 0, 0, 0.0)


def noises(trials: Iterable[Trial]) -> list[Noise]:
    """The noise of each device by family of cells, and of the device as a whole, by metric."""
    of_cell = _by_cell(trials)
    families: dict[tuple[str, str], list[_Twice]] = defaultdict(list)
    for cell, twice in of_cell.items():
        families[cell.device, cell_family(cell)].append(twice)
        families[cell.device, ANY_FAMILY].append(twice)
    return [
        noise
        for (device, family), members in sorted(families.items())
        for metric in METRICS
        if (noise := _noise(device, family, metric, members))
    ]


@dataclass(frozen=True)
class _Twice:
    """The trials of one cell: by session and block, the latencies of either arm."""

    blocks: Mapping[tuple[str, str, int], Mapping[str, Mapping[Metric, float | None]]]
    durations_s: Sequence[float]

    def ratios(self, metric: Metric) -> list[float]:
        pairs = [(arms[ARMS[0]][metric], arms[ARMS[1]][metric]) for arms in self.blocks.values() if len(arms) == 2]
        return [math.log(b) - math.log(a) for a, b in pairs if a and b]

    def levels(self, metric: Metric) -> list[list[float]]:
        """The logarithms of each session that has enough of them."""
        of_session: dict[tuple[str, str], list[float]] = defaultdict(list)
        for (run, session, _), arms in self.blocks.items():
            of_session[run, session] += [math.log(value) for arm in arms.values() if (value := arm[metric])]
        return [logs for logs in of_session.values() if len(logs) >= SESSION_TRIALS_MIN]


def _by_cell(trials: Iterable[Trial]) -> dict[Cell, _Twice]:
    blocks: dict[Cell, dict[tuple[str, str, int], dict[str, Mapping[Metric, float | None]]]] = {}
    durations: dict[Cell, list[float]] = defaultdict(list)
    for trial in trials:
        if trial.outcome is Outcome.MEASURED and trial.slot.arm in ARMS:
            key = trial.run, trial.session, trial.slot.block
            blocks.setdefault(trial.cell, {}).setdefault(key, {})[trial.slot.arm] = trial_latencies_us(trial)
            durations[trial.cell].append(trial.duration_s + trial.waited_s)
    return {cell: _Twice(found, durations[cell]) for cell, found in blocks.items()}


def _noise(device: str, family: str, metric: Metric, members: Sequence[_Twice]) -> Noise | None:
    ratios = np.array([ratio for twice in members for ratio in twice.ratios(metric)])
    if ratios.size < BLOCKS_MIN:
        return None
    sd = max(MAD_TO_SD * float(np.median(np.abs(ratios))), _SD_MIN)
    levels = [twice.levels(metric) for twice in members]
    durations = [seconds for twice in members for seconds in twice.durations_s]
    return Noise(
        device=device,
        family=family,
        metric=metric,
        block_sd=sd,
        bad_share=float(np.mean(np.abs(ratios) > SCORE_CUT * sd)),
        session_sd=session_spread(levels),
        sessions=max((len(sessions) for sessions in levels), default=0),
        blocks=int(ratios.size),
        trial_s=sum(durations) / len(durations),
    )


def session_spread(levels: Sequence[Sequence[Sequence[float]]]) -> float | None:
    """The spread of sessions about each other, cells pooled; what trials explain of it is taken off."""
    distances: list[float] = []
    explained: list[float] = []
    for sessions in levels:
        middles = [float(np.median(logs)) for logs in sessions]
        distances += [abs(one - other) for index, one in enumerate(middles) for other in middles[:index]]
        for logs, middle in zip(sessions, middles, strict=True):
            spread = MAD_TO_SD * float(np.median(np.abs(np.array(logs) - middle)))
            explained.append(_MEDIAN_LOSS * spread**2 / len(logs))
    if not distances:
        return None
    variance = (float(np.median(distances)) / _MEDIAN_OF_DIFFERENCE) ** 2 - float(np.median(explained))
    return math.sqrt(max(variance, 0.0))


def false_alarms(trials: Iterable[Trial], *, threshold: float) -> list[FalseAlarms]:
    """How often the same thing differs from itself by p50, for each device: one comparison a cell, all blocks in it."""
    of_device: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for cell, twice in _by_cell(trials).items():
        ratios = np.array([twice.ratios("p50")])
        if ratios.size >= BLOCKS_MIN:
            p = paired_p(ratios, is_order_mixed=np.array([True]))
            of_device[cell.device].append((float(p.joint[0]), abs(float(biweight_locations(ratios)[0]))))
    return [
        FalseAlarms(
            device,
            comparisons=len(found),
            significant=sum(p <= ALPHA for p, _ in found),
            alarms=sum(p <= ALPHA and effect >= math.log1p(threshold) for p, effect in found),
        )
        for device, found in sorted(of_device.items())
    ]
