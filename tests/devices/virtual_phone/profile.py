"""What kind of phone a virtual phone is: facts only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

#: What the daemon of a phone of our days offers. No compression: what is not offered is not asked for.
MODERN_FEATURES = (
    *("shell_v2", "cmd", "stat_v2", "ls_v2", "fixed_push_mkdir", "fixed_push_symlink_timestamp"),
    *("apex", "remount_shell", "sendrecv_v2"),
)


@dataclass(frozen=True)
class Cluster:
    """Cores of one kind that share a clock."""

    cpus: tuple[int, ...]
    khz_min: int
    khz_max: int
    #: As in cpu_capacity: the fastest core of the phone has 1024.
    capacity: int
    #: The core's design as /proc/cpuinfo names it.
    part: int
    #: Power of one busy core at full clock.
    core_w: float

    def steps_khz(self, count: int = 8) -> list[int]:
        """The clock frequencies it can have."""
        width = (self.khz_max - self.khz_min) / (count - 1)
        return [round((self.khz_min + width * step) / 1000) * 1000 for step in range(count - 1)] + [self.khz_max]


@dataclass(frozen=True)
class Zone:
    """A thermal zone. `follows` says which part of the phone it measures; "fixed" always shows `fixed_mc`."""

    type: str
    follows: Literal["die", "skin", "battery", "fixed"] = "die"
    fixed_mc: int = 0
    readable: bool = True


@dataclass(frozen=True)
class Heat:
    """The thermal model: power heats the die, the die the skin, the skin the room.

    die_j_per_k · dTdie/dt = P − (Tdie − Tskin)/die_k_per_w
    skin_j_per_k · dTskin/dt = (Tdie − Tskin)/die_k_per_w − (Tskin − ambient)/skin_k_per_w
    """

    ambient_c: float = 25.0
    idle_w: float = 0.3
    die_j_per_k: float = 4.0
    die_k_per_w: float = 6.0
    skin_j_per_k: float = 60.0
    skin_k_per_w: float = 4.0
    #: From here on the die's heat lowers the clock limit, linearly, to `throttle_floor` of the full clock.
    throttle_from_c: float = 70.0
    throttle_full_c: float = 95.0
    throttle_floor: float = 0.45
    #: Skin temperatures at which the status becomes 1 (light) to 6 (shutdown).
    status_from_c: tuple[float, ...] = (39.0, 41.0, 43.0, 46.0, 50.0, 55.0)


@dataclass(frozen=True)
class Battery:
    """The battery at the start."""

    level: int = 85
    voltage_mv: int = 4120
    temperature_dc: int = 280
    charging: bool = True


@dataclass(frozen=True)
class Profile:
    """One kind of phone."""

    name: str
    model: str
    manufacturer: str
    device: str
    soc: str
    release: str
    api: int
    clusters: tuple[Cluster, ...]
    zones: tuple[Zone, ...]
    fingerprint: str
    machine: str = "x86_64"
    abis: tuple[str, ...] = ("x86_64",)
    kernel: str = "5.15.148-android14-11"
    features: tuple[str, ...] = MODERN_FEATURES
    memory_kb: int = 7_800_000
    data_bytes: int = 8 << 30
    heat: Heat = field(default_factory=Heat)
    battery: Battery = field(default_factory=Battery)
    rooted: bool = False
    selinux: str = "Enforcing"
    #: Programs and services that this kind of phone lacks.
    missing_tools: tuple[str, ...] = ()
    missing_services: tuple[str, ...] = ()
    #: Old daemons ran `shell:` on a terminal, so that every newline came as CR LF.
    crlf: bool = False
    maxdata: int = 1 << 20
    extra_props: tuple[tuple[str, str], ...] = ()

    @property
    def cpus(self) -> int:
        return sum(len(cluster.cpus) for cluster in self.clusters)

    def props(self, serial: str) -> dict[str, str]:
        """The system properties at boot."""
        return {
            "ro.serialno": serial,
            "ro.product.name": self.device,
            "ro.product.model": self.model,
            "ro.product.device": self.device,
            "ro.product.manufacturer": self.manufacturer,
            "ro.product.brand": self.manufacturer.lower(),
            "ro.product.board": self.device,
            "ro.hardware": self.device,
            "ro.board.platform": self.soc.lower(),
            "ro.soc.model": self.soc,
            "ro.soc.manufacturer": self.manufacturer,
            "ro.product.cpu.abi": self.abis[0],
            "ro.product.cpu.abilist": ",".join(self.abis),
            "ro.build.version.release": self.release,
            "ro.build.version.sdk": str(self.api),
            "ro.build.fingerprint": self.fingerprint,
            "ro.build.type": "userdebug" if self.rooted else "user",
            "ro.debuggable": "1" if self.rooted else "0",
            "ro.hardware.egl": "mali",
            "ro.boot.serialno": serial,
            "sys.boot_completed": "1",
            "dev.bootcomplete": "1",
            "debug.tflite.trace": "",
            "security.perf_harden": "1",
            "init.svc.traced": "running",
            **dict(self.extra_props),
        }


_FLAGSHIP_ZONES = (
    *(Zone("BIG"), Zone("MID"), Zone("LITTLE"), Zone("G3D")),
    *(Zone("quiet_therm", "skin"), Zone("battery", "battery")),
    *(Zone("TPU", readable=False), Zone("disabled_sensor", "fixed", fixed_mc=-273000)),
)

FLAGSHIP = Profile(
    name="flagship",
    model="Pixel 8",
    manufacturer="Google",
    device="shiba",
    soc="Tensor G3",
    release="14",
    api=34,
    fingerprint="google/shiba/shiba:14/AP2A.240805.005/12025142:user/release-keys",
    clusters=(
        Cluster((0, 1, 2, 3), 324_000, 1_704_000, 193, 0xD46, 0.25),
        Cluster((4, 5, 6), 402_000, 2_367_000, 652, 0xD47, 0.9),
        Cluster((7,), 500_000, 2_914_000, 1024, 0xD4E, 2.2),
    ),
    zones=_FLAGSHIP_ZONES,
)

MID = Profile(
    name="mid",
    model="SM-A546B",
    manufacturer="samsung",
    device="a54x",
    soc="s5e8835",
    release="13",
    api=33,
    fingerprint="samsung/a54xnaxx/a54x:13/TP1A.220624.014/A546BXXS6BWK1:user/release-keys",
    clusters=(
        Cluster((0, 1, 2, 3, 4, 5), 533_000, 2_002_000, 330, 0xD05, 0.3),
        Cluster((6, 7), 533_000, 2_400_000, 1024, 0xD41, 1.3),
    ),
    zones=(
        Zone("BIG"),
        Zone("LITTLE"),
        Zone("G3D"),
        Zone("AP", "skin"),
        Zone("ISP", readable=False),
        Zone("battery", "battery"),
        Zone("cp", "fixed", fixed_mc=-273000),
    ),
    kernel="5.10.177-android12-9",
    memory_kb=5_600_000,
    data_bytes=4 << 30,
    heat=Heat(skin_k_per_w=6.0, throttle_from_c=62.0),
)

OLD = Profile(
    name="old",
    model="Moto G (4)",
    manufacturer="motorola",
    device="athene",
    soc="MSM8952",
    release="7.0",
    api=24,
    fingerprint="motorola/athene/athene:7.0/NPJS25.93-14-18/3:user/release-keys",
    clusters=(
        Cluster((0, 1, 2, 3), 499_000, 1_516_000, 1024, 0xD03, 0.5),
        Cluster((4, 5, 6, 7), 499_000, 1_209_000, 800, 0xD03, 0.35),
    ),
    zones=(
        Zone("tsens_tz_sensor0"),
        Zone("tsens_tz_sensor1"),
        Zone("pm8952_tz", "skin", readable=False),
        Zone("battery", "battery"),
        Zone("xo_therm", "fixed", fixed_mc=-273000),
    ),
    kernel="3.10.84",
    features=("cmd",),
    memory_kb=1_900_000,
    data_bytes=1 << 30,
    heat=Heat(skin_k_per_w=8.0, throttle_from_c=58.0),
    missing_tools=("nproc", "sha256sum", "taskset", "timeout", "perfetto", "simpleperf"),
    missing_services=("thermalservice", "deviceidle"),
    maxdata=256 * 1024,
)
