"""A phone's body: keeps the files that show its load, heat and clocks in step with the thermal model."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from .profile import Profile
from .rootfs import replace_text, stat_text
from .sandbox import Process
from .thermal import Reading, ThermalModel

#: AOSP's type numbers of temperatures.
_HAL_TYPES = {"die": 0, "skin": 3, "battery": 2}
_LOAD_CORES_MIN = 0.1


class Body:
    """The load is forced by `force`, or else what the phone's processes use and what stand-ins declare.

    A stand-in for a heavy program declares its load without burning the host's time: it writes "MASK THREADS" (the
    mask in hexadecimal) to /dev/.phone/busy/PID for as long as it runs.
    """

    def __init__(
        self, phone_dir: Path, profile: Profile, *, clock: Callable[[], float], look: Callable[[], list[Process]]
    ) -> None:
        self._phone_dir = phone_dir
        self._profile = profile
        self._clock = clock
        self._look = look
        self.model = ThermalModel(profile, now_s=clock())
        self._forced: dict[int, float] | None = None
        self._cpu_s: dict[int, float] = {}
        self._others_cores = 0.0
        self._looked_s = time.monotonic()
        self._written: dict[str, str] = {}
        self._fast_first = sorted(
            range(profile.cpus), key=lambda cpu: -next(c.capacity for c in profile.clusters if cpu in c.cpus)
        )
        self.show(self.model.reading())

    def force(self, busy: dict[int, float] | None) -> None:
        """Fixes how busy each CPU is, or lets the processes decide again."""
        self.beat()
        self._forced = busy

    def beat(self) -> Reading:
        """Brings model and files up to now."""
        busy = self._measured() if self._forced is None else self._forced
        reading = self.model.advance(now_s=self._clock(), busy=busy)
        self.show(reading)
        return reading

    def _measured(self) -> dict[int, float]:
        now_s = time.monotonic()
        elapsed = max(1e-3, now_s - self._looked_s)
        processes = self._look()
        used = sum(max(0.0, p.cpu_s - self._cpu_s.get(p.pid, 0.0)) for p in processes) / elapsed
        self._cpu_s = {process.pid: process.cpu_s for process in processes}
        self._looked_s = now_s
        # Stand-ins read this as the load beside them; what a shell uses to start a program is none.
        self._others_cores = used if used > _LOAD_CORES_MIN else 0.0
        busy: dict[int, float] = {}
        for cpu in self._declared({process.pid for process in processes}):
            busy[cpu] = 1.0
        for cpu in self._fast_first:
            share = min(used, 1.0 - busy.get(cpu, 0.0))
            busy[cpu] = busy.get(cpu, 0.0) + share
            used -= share
        return busy

    def _declared(self, alive: set[int]) -> set[int]:
        cpus: set[int] = set()
        for file in (self._phone_dir / "state/busy").iterdir():
            with contextlib.suppress(OSError, ValueError):  # ended, or not yet written
                if int(file.name) not in alive:
                    file.unlink()
                    continue
                mask, threads = file.read_text().split()
                allowed = [cpu for cpu in self._fast_first if int(mask, 16) >> cpu & 1]
                cpus |= set(allowed[: int(threads)])
        return cpus

    def show(self, reading: Reading) -> None:
        """Writes what a reading looks like in sysfs, /proc and the thermal service."""
        by_part = {"die": reading.die_c, "skin": reading.skin_c, "battery": reading.battery_c}
        hal = []
        for number, zone in enumerate(self._profile.zones):
            if zone.follows == "fixed":
                continue
            celsius = by_part[zone.follows]
            self._write(f"sys/class/thermal/thermal_zone{number}/temp", f"{round(celsius * 1000)}\n")
            status = reading.status if zone.follows == "skin" else 0
            kind = _HAL_TYPES[zone.follows]
            hal.append(f"\tTemperature{{mValue={celsius:.3f}, mType={kind}, mName={zone.type}, mStatus={status}}}\n")
        for cluster in self._profile.clusters:
            policy = f"sys/devices/system/cpu/cpufreq/policy{cluster.cpus[0]}"
            self._write(f"{policy}/scaling_cur_freq", f"{reading.clock_khz[cluster.cpus[0]]}\n")
            self._write(f"{policy}/scaling_max_freq", f"{reading.limit_khz[cluster.cpus[0]]}\n")
        self._write("state/load_cores", f"{self._others_cores:.2f}\n")
        self._write("state/thermal_hal", "".join(hal))
        self._write("state/thermal_status", f"{reading.status}\n")
        self._write("state/battery_temperature", f"{round(reading.battery_c * 10)}\n")
        self._write("sys/class/power_supply/battery/temp", f"{round(reading.battery_c * 10)}\n")
        uptime_s = 100.0 + self.model.uptime_s
        self._write("proc/stat", stat_text(self.model.cpu_busy_s, uptime_s=uptime_s))

    def _write(self, name: str, text: str) -> None:
        if self._written.get(name) != text:
            self._written[name] = text
            replace_text(self._phone_dir / name, text)
