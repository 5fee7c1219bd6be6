"""How hot a phone is and how fast it may run: a clocked model with no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .profile import Cluster, Heat, Profile

_STEP_S = 0.25
_STEPS_MAX = 40_000


@dataclass(frozen=True)
class Reading:
    """The phone's condition at one time."""

    die_c: float
    skin_c: float
    battery_c: float
    #: AOSP's throttling status, 0 (none) to 6 (shutdown).
    status: int
    #: Clock limit and clock by the first CPU of each cluster.
    limit_khz: Mapping[int, int]
    clock_khz: Mapping[int, int]


class ThermalModel:
    """Temperatures that follow the load; `advance` is told the time and the load since the last call."""

    def __init__(self, profile: Profile, *, now_s: float) -> None:
        self._profile = profile
        self._heat: Heat = profile.heat
        self._now_s = now_s
        rest_c = self._heat.ambient_c + self._heat.idle_w * self._heat.skin_k_per_w
        self.skin_c = rest_c
        self.die_c = rest_c + self._heat.idle_w * self._heat.die_k_per_w
        self._busy: dict[int, float] = {}
        #: Total busy seconds per CPU, for /proc/stat.
        self.cpu_busy_s = [0.0] * profile.cpus
        self.uptime_s = 0.0

    def advance(self, *, now_s: float, busy: Mapping[int, float]) -> Reading:
        """The condition at `now_s`; `busy` is how busy each CPU was since the last call, 0 to 1."""
        self._busy = dict(busy)
        elapsed = max(0.0, now_s - self._now_s)
        self._now_s = now_s
        self.uptime_s += elapsed
        for cpu, share in busy.items():
            self.cpu_busy_s[cpu] += share * elapsed
        steps = min(_STEPS_MAX, max(1, round(elapsed / _STEP_S)))
        for _ in range(steps if elapsed else 0):
            self._step(elapsed / steps)
        return self.reading()

    def _step(self, seconds: float) -> None:
        heat = self._heat
        to_skin_w = (self.die_c - self.skin_c) / heat.die_k_per_w
        to_room_w = (self.skin_c - heat.ambient_c) / heat.skin_k_per_w
        self.die_c += seconds * (self._power_w() - to_skin_w) / heat.die_j_per_k
        self.skin_c += seconds * (to_skin_w - to_room_w) / heat.skin_j_per_k

    def _power_w(self) -> float:
        power = self._heat.idle_w
        for cluster in self._profile.clusters:
            cores = sum(self._busy.get(cpu, 0.0) for cpu in cluster.cpus)
            power += cores * cluster.core_w * self._limit() ** 2
        return power

    def _limit(self) -> float:
        """The share of the full clock that the die's heat leaves."""
        heat = self._heat
        over = (self.die_c - heat.throttle_from_c) / (heat.throttle_full_c - heat.throttle_from_c)
        return 1.0 - (1.0 - heat.throttle_floor) * min(1.0, max(0.0, over))

    def reading(self) -> Reading:
        """The condition as it is."""
        limits = {cluster.cpus[0]: self._snap(cluster, cluster.khz_max * self._limit()) for cluster in self._clusters}
        clocks = {}
        for cluster in self._clusters:
            busiest = max(self._busy.get(cpu, 0.0) for cpu in cluster.cpus)
            wanted = cluster.khz_max * busiest * 1.25
            clocks[cluster.cpus[0]] = min(limits[cluster.cpus[0]], self._snap(cluster, wanted))
        status = sum(self.skin_c >= limit for limit in self._heat.status_from_c)
        battery_c = self._heat.ambient_c + 0.8 * (self.skin_c - self._heat.ambient_c)
        return Reading(self.die_c, self.skin_c, battery_c, status, limits, clocks)

    @property
    def _clusters(self) -> tuple[Cluster, ...]:
        return self._profile.clusters

    @staticmethod
    def _snap(cluster: Cluster, khz: float) -> int:
        steps = cluster.steps_khz()
        return max((step for step in steps if step <= khz), default=steps[0])
