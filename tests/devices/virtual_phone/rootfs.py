"""Writes the files of which a phone's root is made: sysfs, /proc, /etc, /system and the state behind its commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from ..build import build
from .profile import Cluster, Profile

SCRIPTS = Path(__file__).parent / "scripts"
_CPU = "sys/devices/system/cpu"

#: What a phone's toybox offers and devbench or its tests may want; taken from toybox if the host has it, else from
#: the host's own tools.
TOOLS = (
    *(
        "[",
        "awk",
        "base64",
        "basename",
        "cat",
        "chmod",
        "cmp",
        "comm",
        "cp",
        "cut",
        "date",
        "dd",
        "df",
        "dirname",
        "du",
    ),
    *("echo", "env", "expr", "false", "find", "flock", "free", "grep", "gzip", "head", "hostname", "id", "kill", "ln"),
    *("ls", "md5sum", "mkdir", "mkfifo", "mktemp", "mount", "mv", "nice", "nohup", "nproc", "od", "paste", "pgrep"),
    *("pidof", "pkill", "printf", "ps", "pwd", "readlink", "realpath", "renice", "rm", "rmdir", "sed", "seq", "setsid"),
    *("sha1sum", "sha256sum", "sleep", "sort", "split", "stat", "sync", "tail", "tar", "taskset", "tee", "test"),
    *("time", "timeout", "top", "touch", "tr", "true", "truncate", "tty", "uniq", "wc", "which", "whoami", "xargs"),
    *("xxd", "yes"),
)
_HOST_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
#: Android's shell is mksh.
_SHELLS = ("mksh", "dash", "sh")


def write_system(system_dir: Path, profile: Profile) -> None:
    """/system of all phones that have this profile."""
    bin_dir = system_dir / "bin"
    bin_dir.mkdir(parents=True)
    toybox = shutil.which("toybox")
    in_toybox: list[str] = []
    if toybox is not None:
        shutil.copy(toybox, bin_dir / "toybox")
        in_toybox = subprocess.run([toybox], capture_output=True, text=True, check=False).stdout.split()
    for tool in TOOLS:
        found = "toybox" if tool in in_toybox else shutil.which(tool, path=_HOST_PATH)
        if found is not None and tool not in profile.missing_tools:
            (bin_dir / tool).symlink_to(found)
    shell = next(path for name in _SHELLS if (path := shutil.which(name, path=_HOST_PATH)) is not None)
    (bin_dir / "sh").symlink_to(shell)
    for script in SCRIPTS.iterdir():
        if script.name in profile.missing_tools or (script.name == "su" and not profile.rooted):
            continue
        target = bin_dir / script.name
        target.unlink(missing_ok=True)
        shutil.copyfile(script, target)
        target.chmod(0o755)
    shutil.copy(build("app_world"), bin_dir / "app_world")
    for name in ("log", "logcat", "zygote"):
        (bin_dir / name).symlink_to("app_world")
    shutil.copy(build("tracer"), bin_dir / "tracer")
    for name in ("perfetto", "atrace", "simpleperf"):
        if name not in profile.missing_tools:
            (bin_dir / name).symlink_to("tracer")
    lines = [f"{name}={value}" for name, value in profile.props("").items()]
    (system_dir / "build.prop").write_text("\n".join(lines) + "\n")


def write_phone(phone_dir: Path, profile: Profile, serial: str) -> None:
    """Everything that is one phone's own."""
    for name in (
        "root",
        "state/settings/global",
        "state/settings/system",
        "state/settings/secure",
        "state/busy",
        "state/app",
    ):
        (phone_dir / name).mkdir(parents=True)
    write_files(phone_dir, _sysfs(profile) | _proc(profile) | _etc() | _state(profile, serial))
    for number, zone in enumerate(profile.zones):
        if not zone.readable:
            (phone_dir / f"sys/class/thermal/thermal_zone{number}/temp").chmod(0)
    for cluster in profile.clusters:
        for cpu in cluster.cpus:
            (phone_dir / f"{_CPU}/cpu{cpu}/cpufreq").symlink_to(f"../cpufreq/policy{cluster.cpus[0]}")
        policy = phone_dir / f"{_CPU}/cpufreq/policy{cluster.cpus[0]}"
        (policy / "cpuinfo_cur_freq").chmod(0)
        if profile.rooted:
            for name in ("scaling_governor", "scaling_min_freq", "scaling_max_freq"):
                (policy / name).chmod(0o644)


def write_files(base: Path, files: Mapping[str, str]) -> None:
    """Files that a shell user can read and, outside of the state, not write."""
    for name, text in files.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o666 if name.startswith("state/") else 0o444)


def replace_text(path: Path, text: str) -> None:
    """New content for a file that programs on the phone may read at any time.

    In place: a file bound over /proc/stat would not be seen any more if it were renamed over. The old tail is cut
    off last, so that a reader never sees an empty file.
    """
    mode = path.stat().st_mode
    if not mode & 0o200:
        path.chmod(mode | 0o200)
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        raw = text.encode()
        os.pwrite(fd, raw, 0)
        os.ftruncate(fd, len(raw))
    finally:
        os.close(fd)
        if not mode & 0o200:
            path.chmod(mode)


def _cpufreq(cluster: Cluster) -> dict[str, str]:
    policy = f"{_CPU}/cpufreq/policy{cluster.cpus[0]}"
    cpus = " ".join(map(str, cluster.cpus))
    values = {
        "affected_cpus": cpus,
        "related_cpus": cpus,
        "cpuinfo_cur_freq": cluster.khz_min,
        "cpuinfo_min_freq": cluster.khz_min,
        "cpuinfo_max_freq": cluster.khz_max,
        "scaling_cur_freq": cluster.khz_min,
        "scaling_min_freq": cluster.khz_min,
        "scaling_max_freq": cluster.khz_max,
        "scaling_governor": "schedutil",
        "scaling_driver": "virtual-cpufreq",
        "scaling_available_governors": "conservative powersave performance schedutil",
        "scaling_available_frequencies": " ".join(map(str, cluster.steps_khz())),
    }
    return {f"{policy}/{name}": f"{value}\n" for name, value in values.items()}


def _sysfs(profile: Profile) -> dict[str, str]:
    last = profile.cpus - 1
    files = {f"{_CPU}/{name}": f"0-{last}\n" for name in ("online", "present", "possible")} | {f"{_CPU}/isolated": "\n"}
    for number, cluster in enumerate(profile.clusters):
        files |= _cpufreq(cluster)
        for cpu in cluster.cpus:
            place = f"{_CPU}/cpu{cpu}"
            files[f"{place}/cpu_capacity"] = f"{cluster.capacity}\n"
            files[f"{place}/online"] = "1\n"
            files[f"{place}/topology/core_id"] = f"{cpu}\n"
            files[f"{place}/topology/cluster_id"] = f"{number}\n"
            files[f"{place}/topology/physical_package_id"] = "0\n"
    for number, zone in enumerate(profile.zones):
        files[f"sys/class/thermal/thermal_zone{number}/type"] = f"{zone.type}\n"
        files[f"sys/class/thermal/thermal_zone{number}/temp"] = f"{zone.fixed_mc}\n"
    battery = profile.battery
    supply = {
        "type": "Battery",
        "present": 1,
        "capacity": battery.level,
        "status": "Charging" if battery.charging else "Discharging",
        "health": "Good",
        "temp": battery.temperature_dc,
        "voltage_now": battery.voltage_mv * 1000,
        "current_now": 450_000 if battery.charging else -320_000,
    }
    files |= {f"sys/class/power_supply/battery/{name}": f"{value}\n" for name, value in supply.items()}
    files["sys/class/power_supply/usb/type"] = "USB\n"
    files["sys/class/power_supply/usb/online"] = f"{int(battery.charging)}\n"
    files["sys/firmware/devicetree/base/model"] = f"{profile.manufacturer} {profile.model}\0"
    files["sys/fs/selinux/enforce"] = "1" if profile.selinux == "Enforcing" else "0"
    return files


def _proc(profile: Profile) -> dict[str, str]:
    blocks = []
    for cluster in profile.clusters:
        for cpu in cluster.cpus:
            blocks.append(
                f"processor\t: {cpu}\nBogoMIPS\t: 49.15\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics"
                f" fphp asimdhp asimdrdm asimddp\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\n"
                f"CPU part\t: {cluster.part:#x}\nCPU revision\t: 0\n\n"
            )
    available = profile.memory_kb * 55 // 100
    meminfo = {
        "MemTotal": profile.memory_kb,
        "MemFree": available // 4,
        "MemAvailable": available,
        "SwapTotal": 2097148,
    }
    return {
        "proc/cpuinfo": "".join(blocks) + f"Hardware\t: {profile.soc}\n",
        "proc/meminfo": "".join(f"{name + ':':<16}{value:>8} kB\n" for name, value in meminfo.items()),
        "proc/version": f"Linux version {profile.kernel} (build@android) #1 SMP PREEMPT\n",
        "proc/stat": stat_text([0.0] * profile.cpus, uptime_s=100.0),
        "proc/loadavg": "0.10 0.12 0.09 1/980 4242\n",
    }


def stat_text(cpu_busy_s: list[float], *, uptime_s: float) -> str:
    """/proc/stat with ticks of 10 ms."""
    rows = [(round(busy * 100), max(0, round((uptime_s - busy) * 100))) for busy in cpu_busy_s]
    total = (sum(row[0] for row in rows), sum(row[1] for row in rows))
    lines = [f"cpu{name} {busy} 0 0 {idle} 0 0 0 0 0 0" for name, (busy, idle) in [(" ", total), *enumerate(rows)]]
    return "\n".join([*lines, "intr 0", "ctxt 0", f"btime {_boot_time_s()}", "processes 4242", ""])


def _boot_time_s() -> int:
    # The host's, because the start times of the phone's processes count from there.
    return round(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME))


def _etc() -> dict[str, str]:
    groups = {"shell": 2000, "log": 1007, "adb": 1011, "sdcard_rw": 1015, "inet": 3003, "readproc": 3009}
    return {
        "etc/passwd": "root:x:0:0::/:/system/bin/sh\nshell:x:2000:2000::/:/system/bin/sh\n",
        "etc/group": "root:x:0:\n" + "".join(f"{name}:x:{number}:\n" for name, number in groups.items()),
        "etc/hosts": "127.0.0.1 localhost\n",
    }


def _state(profile: Profile, serial: str) -> dict[str, str]:
    battery = profile.battery
    return {
        "state/props": "".join(f"{name}={value}\n" for name, value in profile.props(serial).items()),
        "state/machine": f"{profile.machine}\n",
        "state/kernel": f"{profile.kernel}\n",
        "state/api": f"{profile.api}\n",
        "state/selinux": f"{profile.selinux}\n",
        "state/missing_services": "".join(f"{name}\n" for name in profile.missing_services),
        "state/battery_level": f"{battery.level}\n",
        "state/battery_usb": f"{'true' if battery.charging else 'false'}\n",
        "state/battery_temperature": f"{battery.temperature_dc}\n",
        "state/battery_voltage": f"{battery.voltage_mv}\n",
        "state/thermal_status": "0\n",
        "state/thermal_hal": "",
        "state/wakefulness": "Awake\n",
        "state/idle_enabled": "1\n",
        "state/load": "0\n",
        "state/load_cores": "0\n",
        "state/benchmark": "",
        "state/tracer": "",
        "state/packages": "android\ncom.android.settings\ncom.android.systemui\ncom.android.shell\n",
        "state/log": "",
        "state/settings/global/stay_on_while_plugged_in": "0\n",
        "state/settings/global/low_power": "0\n",
        "state/settings/global/airplane_mode_on": "0\n",
        "state/settings/system/screen_brightness": "102\n",
        "state/settings/system/screen_off_timeout": "60000\n",
    }
